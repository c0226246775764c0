"""Turns the runs of one experiment, one per seed, into a small CSV file to keep.

    python experiments/results/collect.py NAME RUN_FOLDER [RUN_FOLDER ...]

writes `NAME.csv` beside this file and says where the gain from adaptation is significant; `draw.py` draws its picture.
"""
import argparse
import os
import sys
from typing import Optional, Sequence

import numpy as np

from meta_policy_search.plotting import Progress, read_progress
from meta_policy_search.utils.files import write_csv
from meta_policy_search.utils.statistics import half_width_of_mean

HERE = os.path.dirname(os.path.abspath(__file__))
COLUMNS = ("Itr", "n_timesteps", "Step_0-AverageReturn", "Step_1-AverageReturn", "AdaptationGain", "AdaptationGainCI95")
WINDOW = 20  # iterations whose gains are averaged to judge significance


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Collects the runs named on the command line."""
    path, runs = read_runs(__doc__, argv)
    write_columns(f"{path}.csv", runs, COLUMNS)
    for number, run in enumerate(runs, 1):
        print(f"run {number}: {describe(run)}")
    return 0


def read_runs(description: Optional[str], argv: Optional[Sequence[str]]) -> tuple[str, list[Progress]]:
    """Returns the path of the files to write, without ending, and the runs that a command line names."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="name of the files, without ending")
    parser.add_argument("run_folders", nargs="+", help="run folders, one per seed")
    arguments = parser.parse_args(argv)
    return os.path.join(HERE, arguments.name), [read_progress(folder) for folder in arguments.run_folders]


def write_columns(path: str, runs: Sequence[Progress], columns: Sequence[str]) -> None:
    """Writes some columns of runs to six digits, with the number of the run before them."""
    rows = [(number, *(f"{value:.6g}" for value in row)) for number, run in enumerate(runs, 1)
            for row in zip(*(run[column] for column in columns))]
    write_csv(path, [("run", *columns), *rows])


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


if __name__ == "__main__":
    sys.exit(main())
