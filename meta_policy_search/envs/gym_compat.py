"""Functions that call gym 0.26, Gymnasium and classic gym environments in the same way.

In the classic gym API (before 0.26), `reset()` returns only the observation, and `step` returns `(observation, reward,
done, info)`. Executors and wrappers call user-provided environments only through these functions.
"""
import copy
import inspect
import random
import types
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.interface import BatchedEnv, MetaEnv
from meta_policy_search.envs.spaces import as_numbers
from meta_policy_search.types import Path, Task
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.fast_paths import fast_path


def check_meta_env(env: Any, name: str = "env") -> None:
    """Checks that `env` implements `sample_tasks` and `set_task`.

    Args:
        env: the object to check.
        name: name of the argument in the error message; default "env".

    Raises:
        TypeError: `env` is a class, or a method is missing.
    """
    if isinstance(env, type):
        raise TypeError(f"{name}: expected an environment, got the class {env.__name__}; create an instance first")
    missing = [method for method in ("sample_tasks", "set_task") if method_of(env, method) is None]
    if missing:
        raise TypeError(f"{name}: expected a meta-environment with the methods sample_tasks and set_task, got "
                        f"{type(env).__name__} without {' and '.join(missing)}")


def method_of(env: Any, name: str) -> Optional[Callable]:
    """Returns the method `name` of an environment, or None if the environment does not implement it.

    The methods of `MetaEnv` that only raise `NotImplementedError` count as not implemented.
    """
    method = getattr(env, name, None)
    is_missing = name in ("sample_tasks", "set_task") and getattr(method, "__func__", None) is vars(MetaEnv)[name]
    return method if callable(method) and not is_missing else None


def make_batched(env: Any, num_envs: int) -> Optional[BatchedEnv]:
    """Returns a vectorized environment of `num_envs` copies, or None if `env` must be called through its own methods.

    The result is None in three cases: `env` has no `make_batched`; a subclass overrides `reset`, `step` or `set_task`
    but not `make_batched` (see `utils.fast_paths`); `env` wraps an environment to which one of these cases applies.
    """
    vectorized = fast_path(env, "make_batched")
    return None if vectorized is None else vectorized(num_envs)


def reset_env(env: Any) -> np.ndarray:
    """Starts a new path; returns its first observation."""
    return reset_with_info(env)[0]


def reset_with_info(env: Any, **arguments: Any) -> Tuple[np.ndarray, Dict[str, Any]]:
    """Starts a new path; returns `(observation, info)`. The info of a classic environment is empty.

    Args:
        env: the environment.
        **arguments: keyword arguments of `env.reset`, such as `seed`. Arguments that are None are omitted, because
            classic environments take no arguments.
    """
    answer = env.reset(**{name: value for name, value in arguments.items() if value is not None})
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], dict):
        return answer
    return answer, {}


def step_env(env: Any, action: Any) -> Tuple[np.ndarray, float, bool, bool, Dict[str, Any]]:
    """Takes one environment step.

    The `done` of a classic environment means terminated, unless its info contains a true `TimeLimit.truncated`: gym's
    time limit sets this entry if the path ended because of the time limit.

    Returns:
        `(observation, reward, terminated, truncated, info)`. Observation and info are returned unchanged; reward is a
        float, terminated and truncated are bools.

    Raises:
        ValueError: `env.step` returned neither four nor five values, or a value of the wrong type.
    """
    answer = env.step(action)
    if not isinstance(answer, (tuple, list)) or len(answer) not in (4, 5):
        raise ValueError(f"step of {type(env).__name__}: expected (observation, reward, terminated, truncated, "
                         f"info) or (observation, reward, done, info), got {answer!r}")
    observation, reward, *flags, info = answer
    name = f"step of {type(env).__name__}"
    if not isinstance(answer[-1], Mapping):
        raise ValueError(f"{name}: expected a dict as info, got {info!r}")
    if len(flags) == 2:
        terminated, truncated = _as_flag(name, flags[0], "terminated"), _as_flag(name, flags[1], "truncated")
    else:
        done = _as_flag(name, flags[0], "done")
        truncated = done and bool(info.get("TimeLimit.truncated", False))
        terminated = done and not truncated
    return observation, _as_number(name, reward, "a single number as reward"), terminated, truncated, info


def set_rng(env: Any, rng: np.random.Generator) -> None:
    """Makes `env` draw its random numbers from `rng`, if `env` has an attribute `np_random`.

    The generator is set on the innermost environment (`env.unwrapped`). If this environment holds a legacy
    `RandomState`, it receives a `RandomState` that draws from the bit generator of `rng`. Environments that draw from
    the global `numpy.random` are not changed.
    """
    target = innermost(env)
    own = _attributes(target)
    if not hasattr(type(target), "np_random") and "np_random" not in own:
        return
    current = own.get("_np_random", own.get("np_random"))
    target.np_random = np.random.RandomState(rng.bit_generator) if isinstance(current, np.random.RandomState) else rng


def innermost(env: Any) -> Any:
    """Returns the environment without its wrappers."""
    return getattr(env, "unwrapped", env)


def name_of_env(env: Any) -> str:
    """Returns the class name of an environment without its wrappers, or the id of a wrapped Gymnasium environment."""
    inner = innermost(env)
    while isinstance(inner, WrappingEnv):  # an adapter
        inner = innermost(inner.wrapped_env)
        if getattr(inner, "spec", None) is not None:
            return inner.spec.id
    return type(inner).__name__


def log_diagnostics(env: Any, paths: Sequence[Path], prefix: str) -> None:
    """Calls `log_diagnostics` of an environment (see `MetaEnv`) or policy, if there is such a method.

    Raises:
        TypeError: the method does not accept a prefix. Without prefixes, the statistics of one adaptation step would
            overwrite the statistics of another step.
    """
    method = method_of(env, "log_diagnostics")
    if method is None:
        return
    try:
        inspect.signature(method).bind(paths, prefix)
    except TypeError:
        raise TypeError(f"{type(env).__name__}.log_diagnostics: expected the arguments (paths, prefix), got "
                        f"{inspect.signature(method)}. Put the prefix, such as 'Step_0-', before each key") from None
    method(paths, prefix)


def close_env(env: Any) -> None:
    """Calls `env.close` if the method exists."""
    if method_of(env, "close"):
        env.close()


def own_generators(env: Any) -> List[str]:
    """Returns the attributes of `env` and its wrapped environments, except `np_random`, that hold random generators.

    Each entry is `"ClassName.attribute"`.
    """
    return [f"{type(layer).__name__}.{name}" for layer in _layers(env) for name, value in _attributes(layer).items()
            if isinstance(value, (np.random.Generator, np.random.RandomState, random.Random))
            and name not in ("np_random", "_np_random")]


def copy_env(env: Any) -> Any:
    """Returns a deep copy of an environment for use in this process.

    Functions and methods that are stored as attributes of an environment or wrapper, such as a replaced `step`, refer
    to the copy where the original functions refer to the original.

    Raises:
        TypeError: the environment cannot be copied.
    """
    copies: Dict[int, Any] = {}  # by the id of the original
    try:
        copied = copy.deepcopy(env, copies)
    except Exception as error:
        raise TypeError(f"env: expected an environment that copy.deepcopy can copy, got {type(env).__name__}, which "
                        f"raised {type(error).__name__}: {error}") from error
    for layer in _layers(copied):
        for name, value in _attributes(layer).items():
            if isinstance(value, types.FunctionType):
                vars(layer)[name] = _refer_to_copies(value, copies)
    return copied


def _refer_to_copies(value: Any, copies: Dict[int, Any]) -> Any:
    """Returns the copy of `value`; a function becomes a function whose closure refers to copies."""
    if id(value) in copies:
        return copies[id(value)]
    if isinstance(value, types.MethodType):
        return types.MethodType(value.__func__, _refer_to_copies(value.__self__, copies))
    if not isinstance(value, types.FunctionType) or value.__closure__ is None:
        return value
    cells = tuple(types.CellType() for _ in value.__closure__)
    function = types.FunctionType(value.__code__, value.__globals__, value.__name__, value.__defaults__, cells)
    function.__kwdefaults__ = value.__kwdefaults__
    copies[id(value)] = function  # first, because a function may refer to itself
    for cell, original in zip(cells, value.__closure__):
        cell.cell_contents = _refer_to_copies(original.cell_contents, copies)
    return function


def _layers(env: Any) -> Iterator[Any]:
    """Yields an environment and all environments that it wraps, outermost first."""
    while env is not None:
        yield env
        own = _attributes(env)
        env = own.get("wrapped_env", own.get("env"))


def sample_tasks(env: Any, n_tasks: int, rng: Optional[np.random.Generator] = None) -> List[Task]:
    """Returns a list of `n_tasks` tasks sampled from a meta-environment.

    Args:
        env: the meta-environment.
        n_tasks: number of tasks, at least 1.
        rng: generator to draw from. It is passed to `env.sample_tasks` if this method has an argument `rng`; otherwise
            `set_rng` makes it the generator of the environment. None (default): the environment uses its own generator.

    Raises:
        ValueError: `env.sample_tasks` did not return `n_tasks` tasks in a list, tuple or array.
        RuntimeError: `env.sample_tasks` called `sys.exit`.
    """
    n_tasks = check_positive_int("n_tasks", n_tasks)
    arguments = {}
    if rng is not None and "rng" in inspect.signature(env.sample_tasks).parameters:
        arguments = {"rng": rng}
    elif rng is not None:
        set_rng(env, rng)
    try:
        tasks = env.sample_tasks(n_tasks, **arguments)
    except SystemExit as error:  # would otherwise end training without an error message
        raise RuntimeError(f"sample_tasks of {type(env).__name__}: called sys.exit({error})") from error
    if not isinstance(tasks, (list, tuple, np.ndarray)) or len(tasks) != n_tasks:
        raise ValueError(f"sample_tasks of {type(env).__name__}: expected a list of {n_tasks} tasks, got {tasks!r}")
    return list(tasks)


def _attributes(env: Any) -> Dict[str, Any]:
    """Returns the instance attributes of an environment; an empty dict if it has no `__dict__`."""
    return getattr(env, "__dict__", {})


def _as_number(name: str, value: Any, expected: str) -> float:
    """Returns a number as a float; an array with one element is accepted."""
    array = as_numbers(name, value, expected)
    if array.size != 1:
        raise ValueError(f"{name}: expected {expected}, got {value!r}")
    return float(array.item())


def _as_flag(name: str, value: Any, kind: str) -> bool:
    """Returns a flag as a bool; 0 and 1 count as False and True."""
    number = _as_number(name, value, f"True or False as {kind}")
    if number not in (0.0, 1.0):
        raise ValueError(f"{name}: expected True or False as {kind}, got {value!r}")
    return number == 1.0


class WrappingEnv(MetaEnv):
    """Base class of wrappers. Attributes that a wrapper does not define are looked up on `wrapped_env`."""

    wrapped_env: Any

    @property
    def unwrapped(self) -> Any:
        """The environment without its wrappers."""
        return innermost(self.wrapped_env)

    def _wrap(self, env: Any) -> None:
        """Sets `env` as the wrapped environment."""
        self.wrapped_env = env
        hidden = ("metadata", "render_mode", "reward_range", "spec")  # gym.Env defines these: no `__getattr__` call
        vars(self).update({name: getattr(env, name) for name in hidden if hasattr(env, name)})

    def __getattr__(self, name: str) -> Any:
        """Returns the attribute `name` of the wrapped environment.

        Raises:
            AttributeError: the wrapped environment has no such attribute; or `name` is a special method or
                `make_batched`. A vectorized environment made by the wrapped environment would bypass this wrapper.
        """
        if name.startswith("__") or name == "make_batched" or "wrapped_env" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.wrapped_env, name)

    @property
    def np_random(self) -> np.random.Generator:
        """The generator of the innermost environment. Setting it sets the generator of that environment."""
        return self.unwrapped.np_random

    @np_random.setter
    def np_random(self, rng: np.random.Generator) -> None:
        set_rng(self.wrapped_env, rng)

    def sample_tasks(self, n_tasks: int, rng: Optional[np.random.Generator] = None) -> List[Task]:
        """Returns a list of `n_tasks` tasks of the wrapped environment; see `gym_compat.sample_tasks` for `rng`."""
        return sample_tasks(self.wrapped_env, n_tasks, rng)

    def set_task(self, task: Task) -> None:
        self.wrapped_env.set_task(task)

    def get_task(self) -> Task:
        return self.wrapped_env.get_task()

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """Renders the wrapped environment."""
        return self.wrapped_env.render(*args, **kwargs)

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """Logs the statistics that the wrapped environment logs; see `MetaEnv.log_diagnostics`."""
        log_diagnostics(self.wrapped_env, paths, prefix)

    def close(self) -> None:
        """Closes the wrapped environment."""
        close_env(self.wrapped_env)
