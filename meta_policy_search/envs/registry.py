"""Environments by name, for configuration files and command lines, and their fixed training and test tasks."""
import functools
import inspect
import json
from pathlib import Path
from types import FunctionType
from typing import Any, Callable, Dict, List, Tuple

import numpy as np

from meta_policy_search.envs import control_envs, discrete_envs, meta_world, mujoco_envs, point_envs
from meta_policy_search.envs.compat import make_by_spec, name_of_env
from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.registry import Registry
from meta_policy_search.types import Task
from meta_policy_search.utils.checks import check_choice, check_type, comparable_name, did_you_mean, find_name

BUILT_IN: Dict[str, Callable[..., MetaEnv]] = {
    name: vars(package)[name]
    for package in (control_envs, discrete_envs, meta_world, mujoco_envs, point_envs) for name in package.__all__
    if name != "MetaWorldTask"
}  # `MetaPointEnv` is the former name of `MetaPointEnvNavigation`
ENVS = Registry("env", BUILT_IN)

SEEDS = {"train": 1, "test": 2}
"""Seed of the fixed tasks of each split."""

_FILE = Path(__file__).parent / "data" / "task_sets.json"  # written by `python tests/envs/test_task_sets.py`


def register_env(name: str, factory: Callable[..., MetaEnv]) -> None:
    """Registers an environment by name for `make_env`, `train`, the command line and sweeps.

    Args:
        name: the name, such as `"MyEnv-v0"`, of letters, digits and `_-.:/`; must differ from the names of other
            environments in more than case, hyphens and underscores. The same name replaces an earlier factory.
        factory: class or function that returns an environment.

    Raises:
        TypeError: `name` is not a non-empty string, or `factory` is not callable.
        ValueError: `name` has other characters, or is the name of a built-in or another environment.
    """
    ENVS.register(name, check_type("factory", factory, Callable, "a class or function that returns an environment"))


def available_envs() -> List[str]:
    """Returns the names of the built-in and registered environments, in alphabetical order."""
    return sorted(ENVS.entries)


def find_env(name: str) -> str:
    """Returns the registered name of an environment.

    Args:
        name: the name; case, hyphens and underscores are ignored. Also the id of a Gymnasium environment, or
            MODULE:NAME, where NAME is a class or function in the module, or a name or a Gymnasium id that the module
            registers; these are returned unchanged.

    Raises:
        ValueError: `name` is unknown.
    """
    return _find(name)[0]


def get_env_class(name: str) -> Callable[..., MetaEnv]:
    """Returns the environment class `name`, such as `"HalfCheetahRandDirecEnv"`, or the registered function.

    For the id of a Gymnasium environment, the function calls `gymnasium.make`.

    Raises:
        ValueError: `name` is unknown.
    """
    return _find(name)[1]


def _find(name: str) -> Tuple[str, Callable[..., MetaEnv]]:
    """Returns the registered name and the factory of an environment.

    Names may come from settings files of other people. MODULE:NAME is therefore only the class of an environment, a
    registered name, or a function that a module of the user defines.
    """
    if isinstance(name, str) and comparable_name(name) not in map(comparable_name, ENVS.entries):
        import gymnasium  # only if needed

        name, factory = ENVS.find(name, gymnasium.registry)
        if isinstance(factory, gymnasium.envs.registration.EnvSpec):
            return name, make_by_spec(factory)
    else:
        name, factory = ENVS.find(name)
    is_class = isinstance(factory, type) and {"reset", "step"} <= {*dir(factory)}
    is_function = (isinstance(factory, FunctionType) and factory.__module__ == name.rpartition(":")[0]
                   and "-packages" not in factory.__code__.co_filename)
    if not (is_class or is_function or factory in ENVS.entries.values()):
        raise ValueError(f"env: expected MODULE:NAME of an environment class, of a function that your module defines, "
                         f"or of a name that it registers, got {name!r}")
    return name, factory


def make_env(name: str, **kwargs: Any) -> MetaEnv:
    """Creates the environment `name`.

    Args:
        name: a name that `find_env` accepts.
        **kwargs: arguments of the environment class or function.

    Raises:
        ValueError: `name` is unknown.
        TypeError: the class or function has no such argument, or requires another one.

    Example:
        >>> env = make_env("MetaPointEnvMomentum", reward_type="dense")
        >>> env.set_task((2.0, -2.0))
        >>> observation, _ = env.reset(seed=1)
        >>> observation, reward, terminated, truncated, _ = env.step([0.1, -0.1])
        >>> observation.shape, terminated
        ((4,), False)
    """
    factory = get_env_class(name)
    signature = inspect.signature(factory)
    try:
        signature.bind(**kwargs)
    except TypeError as error:
        raise TypeError(f"{name}: {error}; arguments: {', '.join(signature.parameters) or 'none'}") from None
    return factory(**kwargs)


def load_tasks(env: str, split: str) -> List[Task]:
    """Returns the 100 tasks of a split, in a fixed order, for evaluations that can be compared.

    They were drawn from the task distribution of the environment with default arguments
    (`env.sample_tasks(100, np.random.default_rng(SEEDS[split]))`), rounded to seven digits and stored. They do not
    depend on the version of NumPy.

    Args:
        env: name of a built-in environment with continuous tasks, except `MetaTabularMDPEnv`.
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
    if split not in SEEDS:
        raise ValueError(f"tasks: expected a number, a list of tasks, {' or '.join(map(repr, SEEDS))}, got {split!r}"
                         + did_you_mean(split, SEEDS))
    if (name := name_of_env(env)) not in _read():
        raise ValueError(f"tasks: expected a number or a list of tasks, because {name} has no fixed tasks, got "
                         f"{split!r}. A number, such as 40, samples new tasks")
    return load_tasks(name, split)


@functools.lru_cache(maxsize=None)
def _read() -> Dict[str, Dict[str, List[Any]]]:
    return json.loads(_FILE.read_text(encoding="utf-8"))


def _as_task(value: Any) -> Task:
    if isinstance(value, dict):
        return {name: np.array(numbers) for name, numbers in value.items()}
    return np.array(value) if isinstance(value, list) else value
