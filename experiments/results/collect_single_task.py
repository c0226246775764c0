"""Turns the runs of one experiment in a single task, one per seed, into a small CSV file and a picture to keep.

    python experiments/results/collect_single_task.py NAME RUN_FOLDER [RUN_FOLDER ...]

writes `NAME.csv` and `NAME.png` beside this file.
"""
import argparse
import os
import sys
from typing import Optional, Sequence

if __package__:
    from experiments.results.collect import HERE, write_csv
else:
    from collect import HERE, write_csv  # type: ignore[no-redef]

from meta_policy_search.plotting import Progress, read_progress

POLICY_COLUMNS = {"Evaluation-AverageReturn": "without exploration", "BestCandidateReturn": "best candidate"}


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Collects the runs named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="name of the files, without ending")
    parser.add_argument("run_folders", nargs="+", help="run folders, one per seed")
    arguments = parser.parse_args(argv)
    runs = [read_progress(folder) for folder in arguments.run_folders]
    policy_column = next(column for column in POLICY_COLUMNS if column in runs[0])
    columns = ("Epoch", "n_timesteps", "AverageReturn", policy_column)
    write_csv(os.path.join(HERE, arguments.name + ".csv"), runs, columns)
    draw(os.path.join(HERE, arguments.name + ".png"), runs, arguments.name, policy_column)
    return 0


def draw(path: str, runs: Sequence[Progress], title: str, policy_column: str) -> None:
    """Draws the mean return of each epoch, faintly, and that of what is to be used in the end, for every run."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title.replace("_", " "))
    axes = figure.subplots()
    for number, run in enumerate(runs):
        label = f"run {number + 1}"
        axes.plot(run["n_timesteps"], run["AverageReturn"], color=f"C{number}", alpha=0.4, label=f"{label}, mean")
        axes.plot(run["n_timesteps"], run[policy_column], color=f"C{number}",
                  label=f"{label}, {POLICY_COLUMNS[policy_column]}")
    axes.set_xlabel("environment steps")
    axes.set_ylabel("return of a path")
    axes.legend(frameon=False, fontsize=7, ncols=len(runs))
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    sys.exit(main())
