"""Writes the main columns of several runs, one per seed, to one CSV file.

    python experiments/results/collect.py NAME RUN_FOLDER [RUN_FOLDER ...]

writes `NAME.csv` beside this file; `draw.py` draws its picture. Of runs that meta-learn, it prints in which iterations
the gain from adaptation is significant.
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
SINGLE_TASK_COLUMNS = ("Epoch", "n_timesteps", "AverageReturn", "Evaluation-AverageReturn", "BestCandidateReturn")
WINDOW = 20  # iterations whose gains are averaged to judge significance


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Collects the runs named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="name of the file, without ending")
    parser.add_argument("run_folders", nargs="+", help="run folders, one per seed")
    arguments = parser.parse_args(argv)
    runs = [read_progress(folder) for folder in arguments.run_folders]
    meta_learns = "AdaptationGain" in runs[0]
    columns = COLUMNS if meta_learns else [column for column in SINGLE_TASK_COLUMNS if column in runs[0]]
    write_columns(os.path.join(HERE, f"{arguments.name}.csv"), runs, columns)
    for number, run in enumerate(runs if meta_learns else [], 1):
        print(f"run {number}: {describe(run)}")
    return 0


def write_columns(path: str, runs: Sequence[Progress], columns: Sequence[str]) -> None:
    """Writes some columns of runs with six digits; the first column is the number of the run."""
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
    """Returns one line: the iterations in which the gain's interval is above zero, and the final returns."""
    mean, half_width = gain_and_interval(run)
    above = np.flatnonzero(mean - half_width > 0.0)
    where = f"first at {above[0]}, last at {above[-1]}" if len(above) else "nowhere"
    return (f"{len(mean)} iterations; interval above zero in {len(above)} of them ({where}); last {WINDOW}: "
            f"{mean[-1]:+.3f} +- {half_width[-1]:.3f}, return {run[COLUMNS[2]][-WINDOW:].mean():.3f} -> "
            f"{run[COLUMNS[3]][-WINDOW:].mean():.3f}")


if __name__ == "__main__":
    sys.exit(main())
