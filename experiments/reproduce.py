"""Reproduces results of papers: trains, tests in sampled tasks, and writes tables and figures.

    python -m experiments.reproduce exploration_corner
    python -m experiments.reproduce exploration_corner --methods log_likelihood --seeds 1 2 --processes 2
    python -m experiments.reproduce                        # only tables and figures, from existing data

experiments/results/entries.json defines the entries. Each method is trained once per seed; interrupted runs are
resumed. Every policy is then tested in the same 40 sampled tasks. Some entries do not train, but measure the quality of
gradient estimates, once per method and seed. The results are written to experiments/results/papers:

    NAME.csv             mean return (for Meta-World, success rate) in each test task after 0, 1, ... gradient steps,
                         by method and seed; or the measured values
    NAME_training.csv    returns in training, by method, seed and iteration
    NAME.svg             learning curves over environment steps
    weights/             weights of the policies

The tables are written to docs/papers.md and README.md. Results of other methods and seeds are kept. docs/papers.md
lists the expected results and the training time of each method in minutes.
"""
import argparse
import importlib
import os
import sys
from typing import Collection, Optional, Sequence

import numpy as np

import meta_policy_search as mps
from experiments.results import reproduced
from experiments.results.entries import ENTRIES, MEASUREMENTS, Entry, Measurement, Method, script_settings
from meta_policy_search.cli.flags import Parser
from meta_policy_search.cli.train import INTERRUPTED, run_tool
from meta_policy_search.parallel_runs import Member, train_all
from meta_policy_search.plotting import read_progress
from meta_policy_search.utils.checks import check_choice, check_int_at_least, check_positive_int
from meta_policy_search.utils.threads import available_cores

TEST_SEED = 1


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Reproduces an entry; returns the exit status: 0, 1 if a run failed, or 130 after Ctrl-C."""
    return run_tool(make_parser(), reproduce, argv)


def make_parser() -> Parser:
    """Returns the parser of the flags."""
    parser = Parser("experiments.reproduce", __doc__)
    parser.add_argument("name", metavar="NAME", nargs="?",
                        help="name of an entry (default: only write the tables and figures of all entries)")
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help="methods of the entry (default: all)")
    parser.add_argument("--seeds", type=int, nargs="+", metavar="INT", help="training seeds (default: as in the entry)")
    parser.add_argument("--processes", type=int, metavar="INT",
                        help="number of trainings at a time; they share the cores (default: the number of cores)")
    parser.add_argument("--output", metavar="DIR", default=os.path.join("data", "reproduce"),
                        help="parent folder of the trainings, with one folder per entry (default: data/reproduce)")
    return parser


def reproduce(arguments: argparse.Namespace) -> int:
    """Trains the incomplete runs of an entry, tests its policies and writes the files; returns the exit status."""
    name, status = arguments.name, 0
    if name is not None:
        check_choice("NAME", name, [*ENTRIES, *MEASUREMENTS])
    if name in MEASUREMENTS:
        _measure(name, MEASUREMENTS[name], arguments)
    elif name in ENTRIES:
        status = _train_and_test(name, ENTRIES[name], arguments)
    if status == INTERRUPTED:
        print("Interrupted; run the same command to resume")
        return status
    for path in reproduced.write(*[name] if name else ENTRIES):
        print(os.path.relpath(path))
    return status


def _seeds(arguments: argparse.Namespace) -> Optional[list[int]]:
    return None if arguments.seeds is None else [check_int_at_least("--seeds", seed, 0) for seed in arguments.seeds]


def _methods(arguments: argparse.Namespace, names: Collection[str]) -> list[str]:
    return [check_choice("--methods", name, names) for name in arguments.methods or names]


def _measure(name: str, measurement: Measurement, arguments: argparse.Namespace) -> None:
    """Measures the methods of an entry with each seed and stores the values; default: all that have no data."""
    seeds, methods, kept = _seeds(arguments), _methods(arguments, measurement.methods), reproduced.read_measured(name)
    measure = importlib.import_module(f"experiments.results.{measurement.module}").measure
    print(f"{measurement.value}, by {measurement.key}")
    for seed in seeds or measurement.seeds:
        missing = [method for method in methods if seeds or seed not in kept.get(method, {})]
        for method, by_key in measure(seed, missing) if missing else ():
            reproduced.keep_measured(name, method, seed, by_key)
            values = ", ".join(f"{key}: {value:.4g}" for key, value in by_key.items())
            print(f"{method}, seed {seed}: {values}", flush=True)


def _train_and_test(name: str, entry: Entry, arguments: argparse.Namespace) -> int:
    seeds = _seeds(arguments)
    selected = _methods(arguments, [method.name for method in entry.methods])
    methods = [method for method in entry.methods if method.name in selected]
    output = os.path.join(arguments.output, name)
    runs = [(method, seed, _make_run(entry, method, seed, output))
            for seed in seeds or sorted({seed for method in methods for seed in method.seeds}) for method in methods
            if seeds or seed in method.seeds]
    processes = available_cores() if arguments.processes is None else check_positive_int(
        "--processes", arguments.processes)
    _, was_interrupted = train_all(output, [run for _, _, run in runs], min(processes, len(runs)))
    if was_interrupted:
        return INTERRUPTED
    for method, seed, run in runs:
        if run.is_done:
            _test(name, entry, method, seed, run)
    return int(not all(run.is_done for _, _, run in runs))


def _make_run(entry: Entry, method: Method, seed: int, output: str) -> Member:
    settings = script_settings(method.script, {**entry.settings, **method.settings, "seed": seed})
    name = f"{method.name},seed={seed}"
    return Member(name, settings.pop("algo"), settings, os.path.join(output, name))


def _test(name: str, entry: Entry, method: Method, seed: int, run: Member) -> None:
    """Tests the policy of a run in sampled tasks; stores the test returns, training returns and policy weights."""
    evaluator = mps.load_evaluator(run.folder, method.snapshot, rollouts_per_meta_task=entry.rollouts)
    tasks = None
    if entry.score == "success rate":
        from experiments.metaworld_evaluation import evaluate_on_metaworld

        scores = np.transpose([evaluate_on_metaworld(evaluator, num_goals=entry.test_tasks,
                                                     adaptation_steps=steps).rounds
                               for steps in range(entry.num_steps + 1)])
    elif entry.score == "return of a trial":
        scores = evaluator.evaluate(entry.test_tasks, seeds=(TEST_SEED,)).task_returns.sum(axis=1, keepdims=True)
    else:
        step_sizes = [evaluator.algo.inner_lr, evaluator.algo.inner_lr / 2] if entry.halve_steps else None
        evaluation = evaluator.evaluate(entry.test_tasks, entry.num_steps, step_sizes, seeds=(TEST_SEED,))
        scores, tasks = evaluation.task_returns, evaluation.tasks[0]
    print(f"{run.name}: {', '.join(f'{value:.2f}' for value in scores.mean(axis=0))} after 0, 1, ... steps", flush=True)
    reproduced.keep(name, method.name, seed, scores, read_progress(run.folder), tasks)
    evaluator.algo.policy.save_npz(reproduced.weights_path(name, method.name, seed))


if __name__ == "__main__":
    sys.exit(main())
