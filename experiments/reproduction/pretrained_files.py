"""Writes the pretrained policies of the package: settings, test scores and weights, and the table of the docs.

`experiments/reproduce.py --update` and `experiments/reference_table.py --update` call it. Each policy is the one with
the lowest training seed. Test scores do not affect this choice.
"""
import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import meta_policy_search as mps
from experiments.reproduction.entries import EXPERIMENTS, ByMethod, Entry, Method, score_columns
from meta_policy_search.plotting import Progress
from meta_policy_search.pretrained_policies import DATA, NAMES_FILE, Pretrained
from meta_policy_search.run_folder import read_params
from meta_policy_search.utils.files import write_text
from meta_policy_search.utils.statistics import mean_interval

TABLE = EXPERIMENTS.parent / "docs" / "pretrained_policies.inc"


def update(entry: Entry, tests: ByMethod, tested: Collection[tuple[str, int]], output: Path, command: str) -> None:
    """Writes the policies of an entry, with the settings and weights of the tested runs in a folder.

    Args:
        entry: the entry.
        tests: its stored tests.
        tested: method and seed of the runs in the folder that were tested. Policies of other runs are kept.
        output: folder of the runs.
        command: command that repeats a run, with `{method}` (without a configuration) and `{seed}`.
    """
    records = {record.name: record for record in mps.pretrained()}
    for method, seed in choose(entry, tests):
        if (method.name, seed) in tested:
            run = output / f"{method.name},seed={seed}"
            records[method.pretrained] = describe(entry, method, tests[method.name][seed], read_params(str(run)),
                                                  command.format(method=method.name.partition(",")[0], seed=seed))
            path = DATA / f"{method.pretrained}.npz"
            path.parent.mkdir(parents=True, exist_ok=True)
            mps.load_evaluator(run, method.snapshot).policy.save_npz(path)
    lines = ",\n".join(json.dumps(record._asdict()) for record in sorted(records.values()))
    write_text(DATA / NAMES_FILE, f"[\n{lines}\n]\n")
    write_text(TABLE, "\n".join(table(sorted(records.values()))) + "\n")


def choose(entry: Entry, tests: ByMethod) -> Iterator[tuple[Method, int]]:
    """Yields the method and the seed of each policy of an entry with the given tests."""
    for method in entry.methods:
        if method.pretrained and method.name in tests:
            yield method, min(tests[method.name])


def describe(entry: Entry, method: Method, test: Progress, params: Any, command: str) -> Pretrained:
    """Returns the record of a policy, from its test and the `params.json` of its run."""
    recorded = params["settings"]
    objects = {"optimizer", "task_sampler"} - {*params["given"]}  # described by their text
    unused = {"env", "env_kwargs", "n_itr", "start_itr", "seed", "vary", "policy", *objects}
    settings = {key: value for key, value in recorded.items() if key not in unused}
    steps = min(entry.num_steps, settings.get("num_inner_grad_steps", 1))
    mean, half_width = mean_interval(np.transpose([test[column] for column in score_columns(entry)[:steps + 1]]))
    return Pretrained(
        name=method.pretrained, algo=params["algorithm"], env=recorded["env"], env_kwargs=recorded["env_kwargs"],
        settings=settings, rollouts_per_meta_task=entry.rollouts, num_tasks=len(test["task"]), score=entry.score,
        means=mean.round(4).tolist(), half_widths=half_width.round(4).tolist(), command=command)


def table(records: Sequence[Pretrained]) -> Iterator[str]:
    """Yields the lines of the table of the documentation."""
    yield from (".. Written by experiments/reproduce.py.", "", ".. list-table::", "   :header-rows: 1", "")
    rows: list[Sequence[Any]] = [("name", "environment", "score", "before", "after", "steps")]
    for record in records:
        has_width = record.score != "success rate"  # the interval of a rate may contain impossible values
        scores = [f"{mean:.2f}" + f" ± {width:.2f}" * has_width
                  for mean, width in zip(record.means, record.half_widths, strict=True)]
        rows.append((f"``{record.name}``", f"``{record.env}``", record.score, scores[0],
                     scores[-1] if scores[1:] else "", len(scores) - 1 or ""))
    for row in rows:
        yield from (f"   {'*' if i == 0 else ' '} - {cell}".rstrip() for i, cell in enumerate(row))
