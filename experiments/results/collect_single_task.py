"""Turns the runs of one experiment in a single task, one per seed, into a small CSV file to keep.

    python experiments/results/collect_single_task.py NAME RUN_FOLDER [RUN_FOLDER ...]

writes `NAME.csv` beside this file; `draw.py` draws its picture.
"""
import sys
from typing import Optional, Sequence

from experiments.results.collect import read_runs, write_columns

POLICY_COLUMNS = ("Evaluation-AverageReturn", "BestCandidateReturn")


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Collects the runs named on the command line."""
    path, runs = read_runs(__doc__, argv)
    policy_column = next(column for column in POLICY_COLUMNS if column in runs[0])
    write_columns(f"{path}.csv", runs, ("Epoch", "n_timesteps", "AverageReturn", policy_column))
    return 0


if __name__ == "__main__":
    sys.exit(main())
