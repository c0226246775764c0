"""Writes the pretrained policies of the package: settings, test scores and weights, and the table of the docs.

`experiments/reproduce.py --update` calls it. Each policy is the one with the lowest training seed (in nearly all
entries 1). Test scores do not affect this choice.
"""
import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import meta_policy_search as mps
from experiments.reproduction.entries import ENTRIES, EXPERIMENTS, Method, read_tests, score_columns
from meta_policy_search.pretrained_policies import DATA, NAMES_FILE, Pretrained
from meta_policy_search.run_folder import read_params
from meta_policy_search.utils.files import write_text
from meta_policy_search.utils.statistics import mean_interval

TABLE = EXPERIMENTS.parent / "docs" / "pretrained_policies.inc"


def update(name: str, output: Path, tested: Collection[tuple[str, int]]) -> None:
    """Writes the policies of an entry, with the settings and weights of the tested runs in a folder."""
    records = {record.name: record for record in mps.pretrained()}
    for method, seed in choose(name):
        if (method.name, seed) in tested:
            run = output / f"{method.name},seed={seed}"
            records[method.pretrained] = describe(name, method, seed, read_params(str(run)))
            path = DATA / f"{method.pretrained}.npz"
            path.parent.mkdir(parents=True, exist_ok=True)
            mps.load_evaluator(run, method.snapshot).policy.save_npz(path)
    lines = ",\n".join(json.dumps(record._asdict()) for record in sorted(records.values()))
    write_text(DATA / NAMES_FILE, f"[\n{lines}\n]\n")
    write_text(TABLE, "\n".join(table(sorted(records.values()))) + "\n")


def choose(name: str) -> Iterator[tuple[Method, int]]:
    """Yields the method and the seed of each policy of an entry."""
    tests = read_tests(name)
    for method in ENTRIES[name].methods:
        if method.pretrained and method.name in tests:
            yield method, min(tests[method.name])


def describe(name: str, method: Method, seed: int, params: Any) -> Pretrained:
    """Returns the record of a policy, from the `params.json` of its run and its stored test."""
    entry, test, recorded = ENTRIES[name], read_tests(name)[method.name][seed], params["settings"]
    objects = {"optimizer", "task_sampler"} - {*params["given"]}  # described by their text
    unused = {"env", "env_kwargs", "n_itr", "start_itr", "seed", "vary", "policy", *objects}
    settings = {key: value for key, value in recorded.items() if key not in unused}
    steps = min(entry.num_steps, settings.get("num_inner_grad_steps", entry.num_steps))
    mean, half_width = mean_interval(np.transpose([test[column] for column in score_columns(entry)[:steps + 1]]))
    return Pretrained(
        name=method.pretrained, algo=params["algorithm"], env=recorded["env"], env_kwargs=recorded["env_kwargs"],
        settings=settings, rollouts_per_meta_task=entry.rollouts, num_tasks=len(test["task"]), score=entry.score,
        means=mean.round(4).tolist(), half_widths=half_width.round(4).tolist(),
        command=f"python -m experiments.reproduce {name} --methods {method.name} --seeds {seed}")


def table(records: Sequence[Pretrained]) -> Iterator[str]:
    """Yields the lines of the table of the documentation."""
    yield from (".. Written by experiments/reproduce.py.", "", ".. list-table::", "   :header-rows: 1", "")
    rows: list[Sequence[Any]] = [("name", "environment", "score", "before", "after", "steps")]
    for record in records:
        scores = [f"{mean:.2f} ± {width:.2f}" for mean, width in zip(record.means, record.half_widths, strict=True)]
        rows.append((f"``{record.name}``", f"``{record.env}``", record.score, scores[0],
                     scores[-1] if scores[1:] else "", len(scores) - 1 or ""))
    for row in rows:
        yield from (f"   {'*' if i == 0 else ' '} - {cell}".rstrip() for i, cell in enumerate(row))
