"""Runs the reference table: tunes each method with equal effort, then trains it with ten fresh seeds.

    python -m experiments.reference_table navigation
    python -m experiments.reference_table navigation --methods promp trpo_maml --processes 2
    python -m experiments.reference_table navigation --smoke     # tiny sizes

experiments/reproduction/protocol.md describes the protocol. Interrupted runs are resumed. All files are written to
data/reference/WORLD: one run folder per method, configuration and seed, and the CSV file reference.csv. --update also
stores the CSV file, the chosen settings (experiments/configs), the figure and the pages in the checkout.
"""
import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional

import numpy as np

import meta_policy_search as mps
from experiments.reproduction import entries, pages, reference, reference_page
from experiments.reproduction.reference import METHODS, SEEDS, SHARES, TUNING_SEEDS, WORLDS
from meta_policy_search.cli.flags import Parser
from meta_policy_search.cli.train import INTERRUPTED, run_tool
from meta_policy_search.evaluation import TrialEvaluator
from meta_policy_search.parallel_runs import train_all
from meta_policy_search.plotting import read_progress
from meta_policy_search.utils.checks import check_choice
from meta_policy_search.utils.files import write_csv, write_text
from meta_policy_search.utils.progress import print_line
from meta_policy_search.utils.statistics import exact_mean

SMOKE = {"meta_batch_size": 2, "rollouts_per_meta_task": 2, "max_path_length": 10, "num_minibatches": 1}
Row = tuple[Any, ...]


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Runs a world; returns the exit status: 0, 1 if a run failed, or 130 after Ctrl-C."""
    return run_tool(make_parser(), run_world, argv)


def make_parser() -> Parser:
    """Returns the parser of the flags."""
    parser = Parser("experiments.reference_table", __doc__)
    add = parser.add_argument
    add("world", metavar="WORLD", help=f"one of {', '.join(WORLDS)}")
    add("--methods", nargs="+", metavar="METHOD", help="methods (default: all)")
    add("--processes", type=int, metavar="INT", help="number of trainings at a time (default: the number of cores)")
    add("--output", metavar="DIR", default=os.path.join("data", "reference"),
        help="parent folder of all files (default: data/reference)")
    add("--smoke", action="store_true", help="train and test with tiny sizes, with one seed in each phase")
    add("--update", action="store_true", help="store the results in the checkout")
    return parser


def run_world(arguments: argparse.Namespace) -> int:
    """Tunes and trains the methods of a world; returns the exit status."""
    world = check_choice("WORLD", arguments.world, list(WORLDS))
    methods = [check_choice("--methods", method, list(METHODS)) for method in arguments.methods or METHODS]
    if arguments.smoke and arguments.update:
        raise ValueError("--update: expected no --smoke, whose results are meaningless")
    output = Path(arguments.output, world + "-smoke" * arguments.smoke)
    status = 0
    for method in methods:
        search = Search(world, method, output, arguments.processes, arguments.smoke)
        try:
            rows = search.run()
        except Failed as error:
            print_line(str(error))
            status = 1
            continue
        if rows is None:
            print("Interrupted; run the same command to resume")
            return INTERRUPTED
        store(output / "reference.csv", method, rows)
        if arguments.update:
            store(reference.data_path(world), method, rows)
            settings = reference.train_settings(world, method, search.chosen, 1.0)
            del settings["algo"]  # the command names the algorithm
            write_text(entries.EXPERIMENTS / "configs" / f"reference_{world}_{method}.json",
                       json.dumps(settings, indent=2) + "\n")
    if arguments.update:
        reference_page.draw(world)
        reference_page.write(pages.DOCS)
    return status


def store(path: Path, method: str, rows: Sequence[Row]) -> None:
    """Replaces the rows of a method in a CSV file."""
    kept = [tuple(row.values()) for row in reference.read_rows(path) if row["method"] != method]
    write_csv(path, [reference.COLUMNS, *kept, *rows])


class Failed(RuntimeError):
    """Runs of a method failed."""


class Search:
    """Successive halving over the configurations of a method, and the final trainings."""

    def __init__(self, world: str, method: str, output: Path, processes: Optional[int], smoke: bool) -> None:
        self.world, self.method, self.output, self.processes, self.smoke = world, method, output, processes, smoke
        self.chosen = 0  # configuration of the final trainings

    def run(self) -> Optional[list[Row]]:
        """Returns the rows of all trainings, or None after Ctrl-C."""
        rows: list[Row] = []
        left, scores = list(range(reference.CONFIGURATIONS)), np.zeros(reference.CONFIGURATIONS)
        for share, number in SHARES:
            left = sorted(left, key=lambda i: -scores[i])[:number]
            found = self.train("tune", left, TUNING_SEEDS[:1] if self.smoke else TUNING_SEEDS, share)
            if found is None:
                return None
            scores = np.full(reference.CONFIGURATIONS, -np.inf)
            for configuration in left:
                scores[configuration] = exact_mean([score for each, score, _ in found if each == configuration])
            rows += [row for *_, of_run in found for row in of_run]
        self.chosen = int(np.argmax(scores))
        print_line(f"{self.method}: configuration {self.chosen}, {scores[self.chosen]:.2f} in tuning")
        found = self.train("final", [self.chosen], SEEDS[:1] if self.smoke else SEEDS, 1.0)
        return None if found is None else rows + [row for *_, of_run in found for row in of_run]

    def train(self, phase: str, left: Sequence[int], seeds: Sequence[int], share: float
              ) -> Optional[list[tuple[int, float, list[Row]]]]:
        """Trains configurations up to a share of the steps; returns the configuration, score and rows of each run.

        Earlier trainings of the same configuration and seed are continued. The score of a tuning run that failed is
        minus infinity. None: Ctrl-C was pressed.

        Raises:
            Failed: a final run failed.
        """
        chosen = [(configuration, seed) for configuration in left for seed in seeds]
        runs = {f"{self.method},{configuration},seed={seed}": self.settings(configuration, seed, share)
                for configuration, seed in chosen}
        failed, was_interrupted = train_all(str(self.output), runs, self.processes, resume=True)
        if was_interrupted:
            return None
        if failed and phase == "final":
            raise Failed(f"{self.method}: {', '.join(failed)} failed")
        found = []
        for (configuration, seed), name in zip(chosen, runs, strict=True):
            score, rows = (-np.inf, []) if name in failed else self.test(
                phase, str(self.output / name), (configuration, seed, share))
            found.append((configuration, score, rows))
            print_line(f"{name}, share {share}: {score:.2f}")
        return found

    def settings(self, configuration: int, seed: int, share: float) -> dict[str, Any]:
        """Returns the arguments of `train` for a configuration and a seed."""
        settings = reference.train_settings(self.world, self.method, configuration, share)
        if self.smoke:
            sizes = {key: value for key, value in SMOKE.items() if key in settings}
            settings |= {**sizes, "n_itr": max(1, round(4 * share))}
        return {**settings, "seed": seed}

    def test(self, phase: str, folder: str, run: tuple[int, int, float]) -> tuple[float, list[Row]]:
        """Tests the policy of a run; returns its score after as many steps as in training, and its rows."""
        entry = reference.entry_of(self.world)
        (method,) = (method for method in entry.methods if method.name == self.method)
        evaluator = mps.load_evaluator(folder, None if self.method == "random" else "last",
                                       rollouts_per_meta_task=2 if self.smoke else reference.ROLLOUTS)
        sizes = None
        if not isinstance(evaluator, TrialEvaluator):
            sizes = [evaluator.algo.inner_lr, evaluator.algo.inner_lr / 2]
        evaluation = evaluator.evaluate(
            4 if self.smoke else reference.TASKS, reference.NUM_STEPS, sizes,
            seeds=(reference.TEST_TASKS if phase == "final" else reference.TUNING_TASKS,))
        progress = read_progress(folder)
        goals = [goal if isinstance(goal, float) else "" for goal in evaluation.tasks[0]]
        costs = (np.nan,) * 4 if self.method == "random" else (
            progress["n_timesteps"][-1], progress["Time"][-1], *reference.reaches(self.world, progress))
        start = (self.method, phase, *run, *(f"{cost:.6g}" if np.isfinite(cost) else "" for cost in costs))
        rows = [(*start, task, goal, *(f"{value:.6g}" for value in returns))
                for task, (goal, returns) in enumerate(zip(goals, evaluation.task_returns, strict=True))]
        column = entries.score_columns(entry).index(entries.trained_column(entry, method))
        return float(exact_mean(evaluation.task_returns[:, column])), rows


if __name__ == "__main__":
    sys.exit(main())
