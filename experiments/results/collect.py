"""Turns the runs of one experiment, one per seed, into a small CSV file and a picture to keep.

    python experiments/results/collect.py NAME RUN_FOLDER [RUN_FOLDER ...]

writes `NAME.csv` and `NAME.png` beside this file and says where the gain from adaptation is significant.
"""
import argparse
import os
import sys
from typing import Optional, Sequence

import numpy as np

from meta_policy_search.plotting import Progress, read_progress
from meta_policy_search.utils.statistics import half_width_of_mean

HERE = os.path.dirname(os.path.abspath(__file__))
COLUMNS = ("Itr", "n_timesteps", "Step_0-AverageReturn", "Step_1-AverageReturn", "AdaptationGain", "AdaptationGainCI95")
WINDOW = 20  # iterations whose gains are averaged to judge significance


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Collects the runs named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="name of the files, without ending")
    parser.add_argument("run_folders", nargs="+", help="run folders, one per seed")
    arguments = parser.parse_args(argv)
    runs = [read_progress(folder) for folder in arguments.run_folders]
    write_csv(os.path.join(HERE, arguments.name + ".csv"), runs)
    draw(os.path.join(HERE, arguments.name + ".png"), runs, arguments.name)
    for number, run in enumerate(runs, 1):
        print(f"run {number}: {describe(run)}")
    return 0


def write_csv(path: str, runs: Sequence[Progress], columns: Sequence[str] = COLUMNS) -> None:
    """Writes the columns that the picture shows, to six digits, with the number of the run before them."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join(("run", *columns)) + "\n")
        for number, run in enumerate(runs, 1):
            for row in zip(*(run[column] for column in columns)):
                file.write(",".join([str(number), *(f"{value:.6g}" for value in row)]) + "\n")


def gain_and_interval(run: Progress) -> np.ndarray:
    """Returns the gain averaged over the last `WINDOW` iterations at each, and half its 95% interval; `[2, n]`."""
    gains, half_widths = run["AdaptationGain"], run["AdaptationGainCI95"]
    starts = np.maximum(np.arange(len(gains)) - WINDOW + 1, 0)
    rows = [slice(start, end + 1) for end, start in enumerate(starts)]
    means = [gains[row].mean() for row in rows]
    return np.array([means, [half_width_of_mean(half_widths[row]) for row in rows]])


def describe(run: Progress) -> str:
    """Returns one line: where the gain's interval is above zero, and how the run ends."""
    mean, half_width = gain_and_interval(run)
    above = np.flatnonzero(mean - half_width > 0.0)
    where = f"first at {above[0]}, last at {above[-1]}" if len(above) else "nowhere"
    return (f"{len(mean)} iterations; interval above zero in {len(above)} of them ({where}); last {WINDOW}: "
            f"{mean[-1]:+.3f} +- {half_width[-1]:.3f}, return {run[COLUMNS[2]][-WINDOW:].mean():.3f} -> "
            f"{run[COLUMNS[3]][-WINDOW:].mean():.3f}")


def draw(path: str, runs: Sequence[Progress], title: str) -> None:
    """Draws returns before and after adaptation, and the gain with its 95% interval over tasks, for every run."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 6.0), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title.replace("_", " "))
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    for number, run in enumerate(runs):
        color, label = f"C{number}", f"run {number + 1}"
        top.plot(run["Itr"], run[COLUMNS[2]], color=color, alpha=0.45, linewidth=1.0, label=f"{label}, before")
        top.plot(run["Itr"], run[COLUMNS[3]], color=color, linewidth=1.2, label=f"{label}, after adaptation")
        mean, half_width = gain_and_interval(run)
        bottom.plot(run["Itr"], mean, color=color, label=label)
        bottom.fill_between(run["Itr"], mean - half_width, mean + half_width, color=color, alpha=0.2, linewidth=0)
    bottom.axhline(0.0, color="black", linewidth=0.8)
    top.set_ylabel("mean return")
    bottom.set_ylabel(f"gain, mean of {WINDOW}\niterations, 95% interval")
    bottom.set_xlabel("iteration")
    for axes in (top, bottom):
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*top.get_legend_handles_labels(), loc="outside lower center", ncols=len(runs), fontsize=8,
                  frameon=False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    sys.exit(main())
