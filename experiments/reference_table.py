"""Runs the reference table: tunes each method with equal effort, then trains it with ten fresh seeds.

    python -m experiments.reference_table navigation
    python -m experiments.reference_table navigation --methods promp trpo_maml --processes 2
    python -m experiments.reference_table navigation --smoke     # tiny sizes

experiments/reproduction/protocol.md describes the protocol. Interrupted runs are resumed. All files are written to
data/reference/WORLD: one run folder per method, configuration and seed, and the CSV file reference.csv. --update also
stores the CSV file, the chosen settings (experiments/configs), the policies with seed 201 (pretrained policies of the
package), the figure and the pages in the checkout.
"""
import argparse
import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Optional

import numpy as np

from experiments import reproduce
from experiments.reproduction import entries, pages, pretrained_files, reference, reference_page
from experiments.reproduction.entries import Runs
from experiments.reproduction.reference import METHODS, SEEDS, SHARES, TUNING_SEEDS, WORLDS
from meta_policy_search.cli.flags import Parser
from meta_policy_search.cli.train import run_tool
from meta_policy_search.utils.checks import check_choice
from meta_policy_search.utils.files import write_text
from meta_policy_search.utils.progress import print_line
from meta_policy_search.utils.statistics import exact_mean


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Runs a world; returns the exit status: 0, 1 if a final run failed, or 130 after Ctrl-C."""
    parser = Parser("experiments.reference_table", __doc__)
    parser.add_argument("world", metavar="WORLD", help=f"one of {', '.join(WORLDS)}")
    reproduce.add_run_flags(parser, "data/reference")
    return run_tool(parser, run_world, argv)


def run_world(arguments: argparse.Namespace) -> int:
    """Tunes and trains the methods of a world; returns the exit status."""
    world = check_choice("WORLD", arguments.world, list(WORLDS))
    methods = [check_choice("--methods", method, list(METHODS)) for method in arguments.methods or METHODS]
    if arguments.smoke and arguments.update:
        raise ValueError("--update: expected no --smoke, whose results are meaningless")
    output = Path(arguments.output, world + "-smoke" * arguments.smoke)
    status, tested = 0, []
    for method in methods:
        search = Search(world, method, output, arguments.processes, arguments.smoke)
        chosen, is_complete = search.run()
        status |= not is_complete
        tested += [(f"{method},{chosen}", seed) for name, seed in search.runs if name == method]
        if arguments.update:
            store(reference.data_path(world), method, search.runs)
            settings = reference.train_settings(world, method, chosen, 1.0)
            write_text(entries.EXPERIMENTS / "configs" / f"reference_{world}_{method}.json",
                       json.dumps(settings, indent=2) + "\n")
    if arguments.update:
        pretrained_files.update(*reference.chosen_entry(world), tested, output,
                                f"python -m experiments.reference_table {world} --methods {{method}}")
        reference_page.draw(world)
        reference_page.write(pages.DOCS)
    return status


def store(path: Path, method: str, runs: Runs) -> None:
    """Replaces the runs of a method in a CSV file."""
    kept = {run: columns for run, columns in entries.read_runs(path).items() if run[0].partition(",")[0] != method}
    entries.write_runs(path, {**kept, **runs})


class Search:
    """Successive halving over the configurations of a method, and the final trainings.

    Attributes:
        runs: all tests so far. They are stored in `reference.csv` after each phase, and read when the program starts
            again. They could not be repeated, because a later phase trains the same policies further.
    """

    def __init__(self, world: str, method: str, output: Path, processes: Optional[int], smoke: bool) -> None:
        self.world, self.method, self.output, self.processes, self.smoke = world, method, output, processes, smoke
        self.path = output / "reference.csv"
        self.runs = {run: columns for run, columns in entries.read_runs(self.path).items()
                     if run[0].partition(",")[0] == method}

    def run(self) -> tuple[int, bool]:
        """Returns the chosen configuration, and whether all final trainings succeeded."""
        scores = dict.fromkeys(range(reference.CONFIGURATIONS), 0.0)
        for share, number in SHARES:
            left = sorted(scores, key=scores.__getitem__, reverse=True)[:number]
            scores = self.train({i: f"{self.method},{i},{share}" for i in left}, share, TUNING_SEEDS,
                                reference.TUNING_TASKS)
        chosen = max(left, key=scores.__getitem__)
        print_line(f"{self.method}: configuration {chosen}, {scores[chosen]:.2f} in tuning")
        scores = self.train({chosen: self.method}, 1.0, SEEDS, reference.TEST_TASKS)
        return chosen, scores[chosen] > -np.inf

    def train(self, left: Mapping[int, str], share: float, seeds: Sequence[int], test_seed: int) -> dict[int, float]:
        """Trains configurations up to a share of the steps, and tests them; returns the score of each configuration.

        Earlier trainings of the same configuration and seed are continued. The score is the mean return after as many
        steps as in training, or minus infinity if a training failed. `left` contains the name of each configuration in
        `runs`.
        """
        entry = reference.entry_of_configurations(self.world, self.method, [*left], share, seeds)
        if self.smoke:
            entry = reproduce.smaller(entry)
            entry = dataclasses.replace(entry, methods=[dataclasses.replace(
                method, settings={**method.settings, "n_itr": round(4 * share)}) for method in entry.methods])
        of_configurations = list(zip(left.items(), entry.methods, strict=True))
        missing = [(method, seed) for (_, name), method in of_configurations for seed in method.seeds
                   if (name, seed) not in self.runs]
        tests, training = reproduce.train(
            entry, missing, self.output, self.processes, test_seed) if missing else ({}, {})
        scores = {}
        for (i, name), method in of_configurations:
            column, returns = entries.trained_column(entry, method), []
            for seed in method.seeds:
                run = (method.name, seed)
                if run in tests:
                    columns = reference.of_training(self.world, training[run]) if method.snapshot else {}
                    self.runs[name, seed] = {**tests[run], **{
                        key: np.full_like(tests[run]["task"], value) for key, value in
                        {"configuration": i, **columns}.items()}}
                returns.append(entries.mean_of(self.runs[name, seed], column) if (name, seed) in self.runs else -np.inf)
            scores[i] = float(exact_mean(returns))
        store(self.path, self.method, self.runs)
        return scores


if __name__ == "__main__":
    sys.exit(main())
