"""Repeats published results: trains, tests in sampled tasks, and compares with the stored and published numbers.

    python -m experiments.reproduce --list
    python -m experiments.reproduce exploration_corner
    python -m experiments.reproduce exploration_corner --methods log_likelihood --seeds 1 2 --processes 2
    python -m experiments.reproduce exploration_corner --smoke    # a few iterations of tiny size

experiments/reproduction/entries.json defines the entries. Each method is trained once per seed; interrupted runs are
resumed. Every policy is then tested in the same sampled tasks. Entries without training measure reference policies.
All files are written to data/reproduce/NAME: one run folder per method and seed, and the CSV file test.csv.

--update also stores the results in the checkout: data, figures, pretrained policies, the pages of the documentation and
the table of README.md. Stored results of other methods and seeds are kept. Without NAME, it only rewrites figures and
pages from the stored data.
"""
import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional

import numpy as np

import meta_policy_search as mps
from experiments.reproduction import entries, figures, measurements, pages, pretrained_files, reference, reference_page
from experiments.reproduction.entries import ENTRIES, Entry, Method, Runs
from meta_policy_search.cli.flags import Parser
from meta_policy_search.cli.train import run_tool
from meta_policy_search.evaluation import TrialEvaluator
from meta_policy_search.parallel_runs import train_all
from meta_policy_search.plotting import Progress, read_progress
from meta_policy_search.run_folder import RunInfo, describe_process
from meta_policy_search.settings import SMOKE
from meta_policy_search.utils.checks import check_choice, check_int_at_least
from meta_policy_search.utils.files import write_text
from meta_policy_search.utils.progress import print_line, text_table
from meta_policy_search.utils.statistics import exact_mean, exact_sum

TEST_SEED = 1


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Repeats an entry; returns the exit status: 0, 1 if a run failed, or 130 after Ctrl-C."""
    parser = Parser("experiments.reproduce", __doc__)
    add = parser.add_argument
    add("name", metavar="NAME", nargs="?", help="name of an entry")
    add("--list", action="store_true", help="print the entries with seeds and minutes")
    add("--seeds", type=int, nargs="+", metavar="INT", help="training seeds (default: as in the entry)")
    add_run_flags(parser, "data/reproduce")
    return run_tool(parser, reproduce, argv)


def add_run_flags(parser: Parser, folder: str) -> None:
    """Adds the flags of trainings and tests; `folder` is the default of `--output`."""
    add = parser.add_argument
    add("--methods", nargs="+", metavar="METHOD", help="methods (default: all)")
    add("--processes", type=int, metavar="INT",
        help="number of trainings at a time; they share the cores (default: the number of cores)")
    add("--output", metavar="DIR", default=folder,
        help=f"parent folder of all files, with one folder per entry or world (default: {folder})")
    add("--smoke", action="store_true", help="train and test with tiny sizes, each method with its first seed")
    add("--update", action="store_true", help="store the results in the checkout, rewrite the pages")


def reproduce(arguments: argparse.Namespace) -> int:
    """Trains the incomplete runs of an entry, tests its policies and prints the results; returns the exit status."""
    name = arguments.name
    if arguments.list:
        rows = [[each, *pages.seeds_and_minutes(each), entry.question] for each, entry in ENTRIES.items()]
        print(text_table([["entry", "seeds", "minutes", "question"], *rows], right=(1, 2)))
    elif name is None and arguments.update:
        for each in entries.stored():
            figures.draw(each)
        for world in reference.stored_worlds():
            reference_page.draw(world)
        pages.write()
        reference_page.write(pages.DOCS)
    else:
        entry, output = ENTRIES[check_choice("NAME", name, list(ENTRIES))], Path(arguments.output, name)
        if arguments.smoke:
            entry, output = smaller(entry), output.with_name(f"{name}-smoke")
        if arguments.smoke and arguments.update:
            raise ValueError("--update: expected no --smoke, whose results are meaningless")
        return _repeat(name, entry, output, arguments)
    return 0


def _repeat(name: str, entry: Entry, output: Path, arguments: argparse.Namespace) -> int:
    seeds = dict.fromkeys(check_int_at_least("--seeds", seed, 0) for seed in arguments.seeds or ())
    names = [method.name for method in entry.methods]
    methods = [check_choice("--methods", method, names) for method in arguments.methods or names]
    chosen = [(method, seed) for method in entry.methods if method.name in methods for seed in seeds or method.seeds]
    entries.read_tests(name), entries.read_training(name)  # a damaged file is an error before the trainings
    output.mkdir(parents=True, exist_ok=True)
    tests, training = (measure(entry, chosen), {}) if entry.measure else train(
        entry, chosen, output, arguments.processes)
    entries.write_runs(output / "test.csv", {**entries.read_runs(output / "test.csv"), **tests})
    print(comparison(name, entry, tests))
    here, machines = machine(), entries.read_machines()
    repeated = entries.read_runs(entries.DATA / f"{name}.csv").keys() & tests.keys()
    if any(machines.get(f"{name}/{method}/{seed}") != here for method, seed in repeated):
        print(f"other kernel: numbers may differ from the stored ones (now {here})")
    if arguments.update and tests:
        machines.update({f"{name}/{method}/{seed}": here for method, seed in tests})
        write_text(entries.DATA / "machines.json", json.dumps(machines, indent=0, sort_keys=True) + "\n")
        for path, new in ((entries.DATA / f"{name}_training.csv", training), (entries.DATA / f"{name}.csv", tests)):
            if new:
                entries.write_runs(path, {**entries.read_runs(path), **new})
        pretrained_files.update(ENTRIES[name], entries.read_tests(name), tests, output,
                                f"python -m experiments.reproduce {name} --methods {{method}} --seeds {{seed}}")
        figures.draw(name)
        pages.write()
    return int(len(tests) < len(chosen))


def machine() -> str:
    """Describes what rounding depends on: the BLAS kernels and the versions of libraries."""
    process = describe_process([])
    versions = (f"{name} {process['versions'][name]}" for name in ("tensorflow", "numpy", "mujoco"))
    return ", ".join([process["machine"]["blas_kernels"], *versions])


def smaller(entry: Entry) -> Entry:
    """Returns an entry that takes seconds."""
    methods = []
    for method in entry.methods:
        names = {"n_itr", "meta_batch_size", "rollouts_per_meta_task", "max_path_length", *entry.settings,
                 *method.settings}
        sizes = {key: value for key, value in SMOKE.items() if key in names}
        methods.append(dataclasses.replace(method, settings={**method.settings, **sizes}, seeds=method.seeds[:1]))
    return dataclasses.replace(entry, methods=methods, rollouts=entry.rollouts and 2,
                               test_tasks=min(entry.test_tasks, 2))


def measure(entry: Entry, chosen: Sequence[tuple[Method, int]]) -> Runs:
    """Measures methods with their seeds; returns the values."""
    found: Runs = {}
    for method, seed in chosen:
        measured = getattr(measurements, entry.measure)(method.name, seed, entry.test_tasks)
        values = {key: np.atleast_1d(value) for key, value in measured.items()}  # of one task or of several
        found[method.name, seed] = {"task": np.arange(max(map(len, values.values())), dtype=float), **values}
        means = ", ".join(f"{key} {exact_mean(value):.4g}" for key, value in values.items())
        print_line(f"{method.name}, seed {seed}: {means}")
    return found


def train(entry: Entry, chosen: Sequence[tuple[Method, int]], output: Path, processes: Optional[int],
          test_seed: int = TEST_SEED) -> tuple[Runs, Runs]:
    """Trains incomplete runs and tests their policies; returns the tests and the returns in training.

    Failed runs have no test.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    runs = {f"{method.name},seed={seed}": entries.script_settings(
        method.script, {**entry.settings, **method.settings, "seed": seed}) for method, seed in chosen}
    _, was_interrupted = train_all(str(output), runs, processes, resume=True)
    if was_interrupted:
        print("Interrupted; run the same command to resume")
        raise KeyboardInterrupt
    tests: Runs = {}
    training: Runs = {}
    for (method, seed), name in zip(chosen, runs, strict=True):
        folder = str(output / name)
        if RunInfo.read(folder).is_done(runs[name].get("n_itr")):
            progress = read_progress(folder)
            columns = ["Itr", "n_timesteps", "Time", *(column for column in progress if column.endswith(
                ("-AverageReturn", "EpisodeReturn")) or column in entries.UPDATE_COLUMNS)]
            training[method.name, seed] = {column: progress[column] for column in columns}
            tests[method.name, seed] = test(entry, method, folder, test_seed)
            means = [exact_mean(values) for column, values in tests[method.name, seed].items()
                     if column.startswith("after")]
            print_line(f"{name}: {', '.join(f'{mean:.2f}' for mean in means)} after 0, 1, ... steps")
    return tests, training


def test(entry: Entry, method: Method, folder: str, seed: int = TEST_SEED) -> Progress:
    """Tests the policy of a run in sampled tasks; returns the returns of each task after 0, 1, ... steps."""
    goals: Any = [None]
    evaluator: Any = mps.load_evaluator(folder, method.snapshot, rollouts_per_meta_task=entry.rollouts)
    if entry.score == "success rate":
        from experiments.metaworld_evaluation import evaluate_on_metaworld

        scores = np.transpose([evaluate_on_metaworld(evaluator, num_goals=entry.test_tasks,
                                                     adaptation_steps=steps).rounds
                               for steps in range(entry.num_steps + 1)])
    elif entry.score == "return of a trial":
        paths = 1 if isinstance(evaluator, TrialEvaluator) else evaluator.rollouts_per_meta_task
        evaluation = evaluator.evaluate(entry.test_tasks, seeds=(seed,))
        scores = paths * exact_sum(evaluation.task_returns, axis=1)[:, None]
    else:
        has_sizes = entry.halve_steps and not isinstance(evaluator, TrialEvaluator)
        step_sizes = [evaluator.algo.inner_lr, evaluator.algo.inner_lr / 2] if has_sizes else None
        evaluation = evaluator.evaluate(entry.test_tasks, entry.num_steps, step_sizes, seeds=(seed,))
        scores, goals = evaluation.task_returns, evaluation.tasks[0]
    return {"task": np.arange(len(scores), dtype=float), **goal_column(entry, goals),
            **dict(zip(entries.score_columns(entry), scores.T, strict=True))}


def goal_column(entry: Entry, tasks: Sequence[Any]) -> Progress:
    """Returns the column `goal` of a test; an empty dict for most tests.

    It contains the tasks if they are numbers, and the index of the corner (in sorted order) if there are four corners.
    """
    if isinstance(tasks[0], float):
        return {"goal": np.array(tasks)}
    if not entries.has_few_tasks(entry) or tasks[0] is None:
        return {}
    return {"goal": np.unique(tasks, axis=0, return_inverse=True)[1].ravel().astype(float)}


def comparison(name: str, entry: Entry, tests: Runs) -> str:
    """Returns a table with the new, the stored and the published numbers of each method."""
    columns, rows = entries.score_columns(entry), []
    for method in entry.methods:
        for label, found in (("now", entries.by_method(tests)), ("stored", entries.read_tests(name))):
            if runs := found.get(method.name):
                cells = [pages.cell(entries.over_seeds(runs, column)) for column in columns]
                rows.append([method.name, label, str(len(runs)), *cells])
        if values := pages.published(method, len(columns)):
            rows.append([method.name, "published", "", *values])
    header = ["method", "numbers", "seeds", *(column.removeprefix("after_") for column in columns)]
    return text_table([header, *rows], right=range(2, len(header)))


if __name__ == "__main__":
    sys.exit(main())
