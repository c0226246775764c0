"""Turns the runs of one experiment in a single task, one per seed, into a small CSV file and a picture to keep.

    python experiments/results/collect_single_task.py NAME RUN_FOLDER [RUN_FOLDER ...]

writes `NAME.csv` and `NAME.png` beside this file.
"""
import sys
from typing import Optional, Sequence

from experiments.results.collect import picture, read_runs, write_columns
from meta_policy_search.plotting import Progress

POLICY_COLUMNS = {"Evaluation-AverageReturn": "without exploration", "BestCandidateReturn": "best candidate"}


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Collects the runs named on the command line."""
    path, runs = read_runs(__doc__, argv)
    policy_column = next(column for column in POLICY_COLUMNS if column in runs[0])
    write_columns(f"{path}.csv", runs, ("Epoch", "n_timesteps", "AverageReturn", policy_column))
    draw(f"{path}.png", runs, policy_column)
    return 0


def draw(path: str, runs: Sequence[Progress], policy_column: str) -> None:
    """Draws the mean return of each epoch, faintly, and that of what is to be used in the end, for every run."""
    with picture(path, height=4.0, dpi=100) as figure:
        axes = figure.subplots()
        for number, run in enumerate(runs):
            label = f"run {number + 1}"
            axes.plot(run["n_timesteps"], run["AverageReturn"], color=f"C{number}", alpha=0.4, label=f"{label}, mean")
            axes.plot(run["n_timesteps"], run[policy_column], color=f"C{number}",
                      label=f"{label}, {POLICY_COLUMNS[policy_column]}")
        axes.set_xlabel("environment steps")
        axes.set_ylabel("return of a path")
        axes.legend(frameon=False, fontsize=7, ncols=len(runs))


if __name__ == "__main__":
    sys.exit(main())
