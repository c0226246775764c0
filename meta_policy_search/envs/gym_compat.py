"""One interface for every kind of environment: gym 0.26, Gymnasium, and the classic four-tuple `step`.

Executors and wrappers call environments of unknown origin through these functions only.
"""
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

_STEPPING = ("reset", "step", "set_task")


def check_meta_env(env: Any, name: str = "env") -> None:
    """Raises a `TypeError`, which calls `env` by `name`, unless `env` implements `sample_tasks` and `set_task`."""
    if isinstance(env, type):
        raise TypeError(f"{name}: expected an environment, got the class {env.__name__} itself; call it first")
    missing = [method for method in ("sample_tasks", "set_task") if method_of(env, method) is None]
    if missing:
        raise TypeError(f"{name}: expected a meta-environment with sample_tasks and set_task, but "
                        f"{type(env).__name__} has no {' and no '.join(missing)}")


def method_of(env: Any, name: str) -> Optional[Callable]:
    """Returns a method of an environment, or None if it has none, or only the one of `MetaEnv` that raises."""
    method = getattr(env, name, None)
    is_missing = name in ("sample_tasks", "set_task") and getattr(method, "__func__", None) is vars(MetaEnv)[name]
    return method if callable(method) and not is_missing else None


def make_batched(env: Any, num_envs: int) -> Optional[BatchedEnv]:
    """Returns `num_envs` copies of an environment that step together, or None if it must be stepped by its own methods.

    It has no vectorized form where it has no `make_batched`, where `reset`, `step` or `set_task` are not those that
    `make_batched` replaces (see `utils.fast_paths`), and where a wrapper's environment has none.
    """
    vectorized = fast_path(env, "make_batched")
    return None if vectorized is None else vectorized(num_envs)


def reset_env(env: Any) -> np.ndarray:
    """Starts a new path; returns the observation, as the environment gave it."""
    return reset_with_info(env)[0]


def reset_with_info(env: Any, **arguments: Any) -> Tuple[np.ndarray, Dict[str, Any]]:
    """Starts a new path; returns `(observation, info)`, the info of a classic environment being empty.

    The `arguments` that are not None are passed to `env.reset`; classic environments take none.
    """
    answer = env.reset(**{name: value for name, value in arguments.items() if value is not None})
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], dict):
        return answer
    return answer, {}


def step_env(env: Any, action: Any) -> Tuple[np.ndarray, float, bool, bool, Dict[str, Any]]:
    """Takes one step.

    A classic four-tuple's `done` means terminated, unless its info says `TimeLimit.truncated`: gym's time
    limit sets that where the limit, and not the task, ended the path.

    Returns:
        `(observation, reward, terminated, truncated, info)`; observation and info as the environment gave them.

    Raises:
        ValueError: the environment returned neither a four- nor a five-tuple, or a part of it is not of its type.
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
    return observation, _as_number(name, reward, "one number as reward"), terminated, truncated, info


def set_rng(env: Any, rng: np.random.Generator) -> None:
    """Makes `rng` the generator that `env` draws from, where it has one of its own.

    Reaches through wrappers (`env.unwrapped`). An environment that holds a legacy `RandomState` gets one that draws
    from the same stream. One that draws from the global `numpy.random` is left as it is.
    """
    target = innermost(env)
    own = _attributes(target)
    if not hasattr(type(target), "np_random") and "np_random" not in own:
        return
    current = own.get("_np_random", own.get("np_random"))
    target.np_random = np.random.RandomState(rng.bit_generator) if isinstance(current, np.random.RandomState) else rng


def innermost(env: Any) -> Any:
    """Returns the environment inside all wrappers."""
    return getattr(env, "unwrapped", env)


def log_diagnostics(env: Any, paths: Sequence[Path], prefix: str) -> None:
    """Calls `env.log_diagnostics` (see `MetaEnv`) if there is such a method."""
    if method_of(env, "log_diagnostics"):
        env.log_diagnostics(paths, prefix)


def close_env(env: Any) -> None:
    """Calls `env.close` if there is such a method."""
    if method_of(env, "close"):
        env.close()


def own_generators(env: Any) -> List[str]:
    """Returns the names of the generators other than `np_random` that `env` or an environment inside it holds."""
    return [f"{type(layer).__name__}.{name}" for layer in _layers(env) for name, value in _attributes(layer).items()
            if isinstance(value, (np.random.Generator, np.random.RandomState, random.Random))
            and name not in ("np_random", "_np_random")]


def methods_of(env: Any) -> Dict[str, Any]:
    """Returns the functions of an environment and of those inside it, by class and name.

    The result changes if a method of a class, or `reset`, `step` or `set_task` of an object, is replaced.
    """
    found: Dict[str, Any] = {}
    for layer in _layers(env):
        for cls in type(layer).__mro__:
            found.update({f"{cls.__qualname__}.{name}": function for name, function in vars(cls).items()
                          if isinstance(function, types.FunctionType)})
        own = _attributes(layer)
        found.update({f"{type(layer).__qualname__}().{name}": own[name] for name in _STEPPING if name in own})
    return found


def _layers(env: Any) -> Iterator[Any]:
    """Yields an environment, the one that it wraps, and so on."""
    while env is not None:
        yield env
        own = _attributes(env)
        env = own.get("wrapped_env", own.get("env"))


def sample_tasks(env: Any, n_tasks: int, rng: Optional[np.random.Generator] = None) -> List[Task]:
    """Returns a list of `n_tasks` tasks that a meta-environment samples.

    They are drawn from `rng`: it is passed to `env.sample_tasks` if that takes an argument `rng`, otherwise it becomes
    the environment's own generator (`set_rng`). None: the environment decides.

    Raises:
        ValueError: the environment returned something else than `n_tasks` tasks.
        RuntimeError: it called `sys.exit`.
    """
    n_tasks = check_positive_int("n_tasks", n_tasks)
    arguments = {}
    if rng is not None and "rng" in inspect.signature(env.sample_tasks).parameters:
        arguments = {"rng": rng}
    elif rng is not None:
        set_rng(env, rng)
    try:
        tasks = env.sample_tasks(n_tasks, **arguments)
    except SystemExit as error:  # it would end training without a message
        raise RuntimeError(f"sample_tasks of {type(env).__name__}: called sys.exit({error})") from error
    if not isinstance(tasks, (list, tuple, np.ndarray)) or len(tasks) != n_tasks:
        raise ValueError(f"sample_tasks of {type(env).__name__}: expected a list of {n_tasks} tasks, got {tasks!r}")
    return list(tasks)


def _attributes(env: Any) -> Dict[str, Any]:
    """Returns the attributes of the object itself; none for an object with slots."""
    return getattr(env, "__dict__", {})


def _as_number(name: str, value: Any, expected: str) -> float:
    """Returns a number as a float; a one-element array counts as its element."""
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
    """An environment around another one, `wrapped_env`, whose attributes it takes where it has none of its own."""

    wrapped_env: Any

    @property
    def unwrapped(self) -> Any:
        """The environment inside all wrappers."""
        return innermost(self.wrapped_env)

    def _wrap(self, env: Any) -> None:
        """Makes `env` the wrapped environment."""
        self.wrapped_env = env
        hidden = ("metadata", "render_mode", "reward_range", "spec")  # by the defaults of gym.Env
        vars(self).update({name: getattr(env, name) for name in hidden if hasattr(env, name)})

    def __getattr__(self, name: str) -> Any:
        """Returns the wrapped environment's attribute.

        Raises:
            AttributeError: the wrapped environment has no such attribute, or the name is that of a special method or
                `make_batched`: a vectorized form of the wrapped environment would lack what this wrapper does.
        """
        if name.startswith("__") or name == "make_batched" or "wrapped_env" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.wrapped_env, name)

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """Renders the wrapped environment."""
        return self.wrapped_env.render(*args, **kwargs)

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """See `MetaEnv.log_diagnostics`; logs what the wrapped environment logs."""
        log_diagnostics(self.wrapped_env, paths, prefix)

    def close(self) -> None:
        """Closes the wrapped environment."""
        close_env(self.wrapped_env)
