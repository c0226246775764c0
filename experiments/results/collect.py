"""Collects the main columns of several runs (one per seed) in one CSV file.

    python -m experiments.results.collect NAME RUN_FOLDER [RUN_FOLDER ...]

The script writes `NAME.csv` into the folder of this file. `draw.py` plots the file.
"""
import argparse
import os
from typing import Optional, Sequence

from meta_policy_search.plotting import read_progress
from meta_policy_search.utils.files import write_csv

HERE = os.path.dirname(os.path.abspath(__file__))
COLUMNS = ("Itr", "n_timesteps", "Step_0-AverageReturn", "Step_1-AverageReturn", "AdaptationGain", "AdaptationGainCI95")
SINGLE_TASK_COLUMNS = ("Epoch", "n_timesteps", "AverageReturn", "Evaluation-AverageReturn", "BestCandidateReturn")


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Writes the number of the run and the columns (six significant digits) of each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="name of the CSV file, without suffix")
    parser.add_argument("run_folders", nargs="+", help="run folders, one per seed")
    arguments = parser.parse_args(argv)
    runs = [read_progress(folder) for folder in arguments.run_folders]
    columns = COLUMNS if "AdaptationGain" in runs[0] else [key for key in SINGLE_TASK_COLUMNS if key in runs[0]]
    rows = [(number, *(f"{value:.6g}" for value in row)) for number, run in enumerate(runs, 1)
            for row in zip(*(run[column] for column in columns))]
    write_csv(os.path.join(HERE, f"{arguments.name}.csv"), [("run", *columns), *rows])


if __name__ == "__main__":
    main()
