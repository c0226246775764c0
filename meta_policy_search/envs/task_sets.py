"""Fixed training and test tasks of the built-in environments with continuous tasks.

`data/task_sets.json` contains 100 training tasks and 100 test tasks per environment. They were drawn from the task
distribution of the environment with default arguments (`env.sample_tasks(100, np.random.default_rng(SEEDS[split]))`)
and rounded to seven digits. The file defines them: they do not depend on the version of NumPy. After a change of
environments, `python tests/envs/test_task_sets.py` writes the file.
"""
import functools
import json
from pathlib import Path
from typing import Any, Dict, List

import numpy as np

from meta_policy_search.envs.compat import name_of_env
from meta_policy_search.envs.registry import BUILT_IN
from meta_policy_search.types import Task
from meta_policy_search.utils.checks import check_choice, find_name

__all__ = ["SEEDS", "load_tasks"]

SEEDS = {"train": 1, "test": 2}
"""Seed of the tasks of each split."""

_FILE = Path(__file__).parent / "data" / "task_sets.json"


def load_tasks(env: str, split: str) -> List[Task]:
    """Returns the 100 tasks of a split, in a fixed order, for evaluations that can be compared.

    Args:
        env: name of a built-in environment with continuous tasks.
        split: `"train"` or `"test"`.

    Raises:
        ValueError: an argument is invalid, or the environment has no fixed tasks, such as one with two directions.

    Example:
        >>> tasks = load_tasks("HalfCheetahRandVelEnv", "test")
        >>> len(tasks), tasks[0]
        (100, 0.7848364)
    """
    check_choice("split", split, SEEDS)
    name = find_name("env", env, BUILT_IN)
    if name not in _read():
        raise ValueError(f"env: {name} has no fixed tasks")
    return [_as_task(value) for value in _read()[name][split]]


def tasks_of(env: Any, split: str) -> List[Task]:
    """Returns the fixed tasks of an environment, see `load_tasks`; raises `ValueError` if it has none."""
    check_choice("tasks", split, SEEDS)
    if (name := name_of_env(env)) not in _read():
        raise ValueError(f"tasks: expected a number or a list of tasks, because {name} has no fixed tasks, got "
                         f"{split!r}")
    return load_tasks(name, split)


@functools.lru_cache(maxsize=None)
def _read() -> Dict[str, Dict[str, List[Any]]]:
    return json.loads(_FILE.read_text(encoding="utf-8"))


def _as_task(value: Any) -> Task:
    if isinstance(value, dict):
        return {name: np.array(numbers) for name, numbers in value.items()}
    return np.array(value) if isinstance(value, list) else value
