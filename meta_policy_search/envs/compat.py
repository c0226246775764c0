"""One internal interface for gym 0.26, Gymnasium and classic gym environments, wrapped or not.

In the classic gym API (before 0.26), `reset()` returns only the observation, and `step` returns `(observation, reward,
done, info)`. Samplers, wrappers and evaluators adapt the user's environment when they receive it (`adapt_env`,
`SingleTaskEnv`), and then call the methods of the adapter.
"""
import copy
import functools
import importlib
import inspect
import sys
import warnings
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from meta_policy_search.envs.interface import BatchedEnv, MetaEnv
from meta_policy_search.envs.spaces import as_array, as_numbers, check_has_shape, check_size, is_box, is_discrete
from meta_policy_search.types import Path, Task
from meta_policy_search.utils.checks import (
    attributes_of,
    check_arguments,
    check_int_at_least,
    check_not_replaced,
    check_positive_int,
    check_type,
)
from meta_policy_search.utils.fast_paths import fast_path, replaces
from meta_policy_search.utils.gym_import import gym

_SPACES = ("observation_space", "action_space")
_AVERAGES = {"obs_rms", "return_rms"}  # attributes of Gymnasium's wrappers with running averages


class WrappingEnv(MetaEnv):
    """Adapts a meta-environment with any gym API to the interface of `MetaEnv`; base class of wrappers.

    `reset` and `step` follow the gym 0.26 API, and their results are checked. Tasks and infos are copied. Each method
    for tasks is that of the outermost wrapper that has it, or else that of the innermost environment. Attributes that
    this class does not define are looked up on the wrapped environment.

    Args:
        env: meta-environment with the gym 0.26, Gymnasium or classic gym API.

    Raises:
        TypeError: `env` is not a meta-environment or has no spaces, or a method was replaced on an object.
        ValueError: the spaces are invalid, see `check_has_spaces`.

    Attributes:
        wrapped_env: the user's environment.
    """

    def __init__(self, env: Any) -> None:
        check_meta_env(env)
        check_has_spaces(env)
        self._wrap(env)

    def _wrap(self, env: Any) -> None:
        """Sets `env` as the wrapped environment."""
        for layer in layers(env):
            check_not_replaced("env", layer, MetaEnv)
        self.wrapped_env = env
        self.observation_space, self.action_space = (attribute(env, name) for name in _SPACES)
        self.metadata = attribute(env, "metadata", {})
        self.spec = attribute(env, "spec")

    def __getattr__(self, name: str) -> Any:
        """Returns the attribute `name` of the wrapped environment.

        Raises:
            AttributeError: the wrapped environment has no such attribute, or `name` is a special method.
        """
        if name.startswith("__") or "wrapped_env" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.wrapped_env, name)

    @property
    def unwrapped(self) -> Any:
        """The environment without its wrappers."""
        return innermost(self.wrapped_env)

    @property
    def render_mode(self) -> Optional[str]:
        """The render mode of the wrapped environment. Setting it calls `set_render_mode`."""
        return attribute(self.wrapped_env, "render_mode")

    @render_mode.setter
    def render_mode(self, render_mode: Optional[str]) -> None:
        set_render_mode(self.wrapped_env, render_mode)

    @property
    def max_episode_steps(self) -> Optional[int]:
        """Time limit of the environment (`spec.max_episode_steps`); None if it has none."""
        return attribute(self.spec, "max_episode_steps")

    @property
    def np_random(self) -> np.random.Generator:
        """The generator of the innermost environment. Setting it makes that environment draw from the new generator.

        If the innermost environment holds a legacy `RandomState`, it receives a `RandomState` that draws from the bit
        generator. Environments without an attribute `np_random`, which draw from the global `numpy.random`, do not
        change.
        """
        return self.unwrapped.np_random

    @np_random.setter
    def np_random(self, rng: np.random.Generator) -> None:
        env = self.unwrapped
        attributes = attributes_of(env)
        if "np_random" not in attributes and "np_random" not in dir(type(env)):
            return
        current = attributes.get("_np_random", attributes.get("np_random"))
        env.np_random = np.random.RandomState(rng.bit_generator) if isinstance(current, np.random.RandomState) else rng

    @replaces("reset", "step", "set_task")
    def make_batched(self, num_envs: int) -> Optional[BatchedEnv]:
        """Returns a vectorized environment of `num_envs` copies, or None if `env` must be called by its own methods.

        The result is None in three cases: the wrapped environment has no `make_batched`; a subclass overrides `reset`,
        `step` or `set_task` but not `make_batched` (see `utils.fast_paths`); the wrapped environment wraps an
        environment to which one of these cases applies.
        """
        vectorized = fast_path(self.wrapped_env, "make_batched")
        return None if vectorized is None else vectorized(num_envs)

    def sample_tasks(self, n_tasks: int, rng: Optional[np.random.Generator] = None) -> List[Task]:
        """Returns a list of `n_tasks` tasks sampled from the wrapped environment.

        Args:
            n_tasks: number of tasks, at least 1.
            rng: generator to draw from. It is passed to `sample_tasks` of the wrapped environment if this method has an
                argument `rng`; otherwise it becomes the generator of the environment. None (default): the environment
                uses its own generator.

        Raises:
            ValueError: the wrapped environment did not return `n_tasks` tasks in a list, tuple or array.
        """
        n_tasks = check_positive_int("n_tasks", n_tasks)
        owner, arguments = owner_of_tasks(self.wrapped_env), {}
        if rng is not None and "rng" in inspect.signature(owner.sample_tasks).parameters:
            arguments = {"rng": rng}
        elif rng is not None:
            self.np_random = rng
        tasks = owner.sample_tasks(n_tasks, **arguments)
        if not isinstance(tasks, (list, tuple, np.ndarray)) or len(tasks) != n_tasks:
            raise ValueError(f"sample_tasks of {type(owner).__name__}: expected a list of {n_tasks} tasks, got "
                             f"{tasks!r}")
        return list(tasks)

    def set_task(self, task: Task) -> None:
        """Sets a copy of the task."""
        owner_of_tasks(self.wrapped_env, "set_task").set_task(copy.deepcopy(task))

    def get_task(self) -> Task:
        """Returns a copy of the task."""
        owner = owner_of_tasks(self.wrapped_env, "get_task")
        if not hasattr(owner, "get_task"):
            raise NotImplementedError(f"{type(owner).__name__} does not implement get_task, which returns the task")
        return copy.deepcopy(owner.get_task())

    def reset(self, *, seed: Optional[int] = None, options: Optional[dict] = None) -> Tuple[Any, Dict[str, Any]]:
        """Starts a new path; returns `(observation, info)`. The info of a classic environment is empty.

        `seed` and `options` are passed to the wrapped environment unless they are None, because classic environments
        take no arguments.
        """
        arguments = {name: value for name, value in (("seed", seed), ("options", options)) if value is not None}
        result = self.wrapped_env.reset(**arguments)
        if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict):
            return result[0], copied(result[1])
        return result, {}

    def step(self, action: Any) -> Tuple[Any, float, bool, bool, Dict[str, Any]]:
        """Takes one environment step with a copy of the action.

        The `done` of a classic environment means terminated, unless its info contains a true `TimeLimit.truncated`:
        gym's time limit sets this entry if the path ended because of the time limit.

        Returns:
            `(observation, reward, terminated, truncated, info)`. The observation is returned unchanged; reward is a
            float, terminated and truncated are bools, and info is a copy.

        Raises:
            ValueError: the wrapped environment returned neither four nor five values, or a value of the wrong type.
        """
        result = self.wrapped_env.step(copied(action))
        name = f"step of {type(self.wrapped_env).__name__}"
        if not isinstance(result, (tuple, list)) or len(result) not in (4, 5):
            raise ValueError(f"{name}: expected (observation, reward, terminated, truncated, info) or (observation, "
                             f"reward, done, info), got {result!r}")
        observation, reward, *flags, info = result
        if not isinstance(info, Mapping):
            raise ValueError(f"{name}: expected a dict as info, got {info!r}")
        info = {key: copied(value) for key, value in info.items()}
        reward = _as_number(f"{name}: reward", reward, "a single number")
        flags = [_as_number(f"{name}: {kind}", flag, "True or False") for kind, flag in
                 zip(("terminated", "truncated"), flags)]
        if any(flag not in (0, 1) for flag in flags):
            raise ValueError(f"{name}: terminated, truncated: expected True or False, got {flags}")
        terminated, truncated = map(bool, flags if len(flags) == 2 else (flags[0], False))
        if len(flags) == 1 and terminated and info.get("TimeLimit.truncated", False):
            terminated, truncated = False, True
        return observation, float(reward), terminated, truncated, info

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """Renders the wrapped environment."""
        return self.wrapped_env.render(*args, **kwargs)

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """Logs the statistics that the wrapped environment logs; see `MetaEnv.log_diagnostics`."""
        log_diagnostics(owner_of_tasks(self.wrapped_env, "log_diagnostics"), paths, prefix)

    def close(self) -> None:
        """Closes the wrapped environment if it has a method `close`."""
        attribute(self.wrapped_env, "close", lambda: None)()


class BatchedWrapper(BatchedEnv):
    """Base class of vectorized wrappers.

    Args:
        batched_env: the vectorized form of the environment that `env` wraps; it samples, sets and returns the tasks.
        env: the wrapper of a single environment.
    """

    def __init__(self, batched_env: BatchedEnv, env: WrappingEnv) -> None:
        super().__init__(batched_env.num_envs)
        self._batched_env, self.max_threads = batched_env, batched_env.max_threads
        self.observation_space, self.action_space = env.observation_space, env.action_space

    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        return self._batched_env.sample_tasks(n_tasks, rng)

    def set_tasks(self, tasks: Sequence[Task]) -> None:
        self._batched_env.set_tasks(tasks)

    def get_tasks(self) -> List[Task]:
        return self._batched_env.get_tasks()


class SingleTaskEnv(WrappingEnv):
    """Adapts an environment without tasks to the meta-environment interface.

    The only task is None. All else is as in `WrappingEnv`.

    Args:
        env: environment with the gym 0.26, Gymnasium or classic gym API.

    Raises:
        TypeError: `env` is a class, or has no `reset` or `step`.
    """

    def __init__(self, env: Any) -> None:
        check_steppable(env)
        check_has_spaces(env)
        self._wrap(env)

    @replaces("reset", "step", "set_task")
    def make_batched(self, num_envs: int) -> None:
        """Returns None, because vectorized environments have other tasks."""

    def sample_tasks(self, n_tasks: int, rng: Optional[np.random.Generator] = None) -> List[Task]:
        """Returns a list that contains None `n_tasks` times; no random numbers are drawn."""
        return [None] * check_positive_int("n_tasks", n_tasks)

    def set_task(self, task: Task) -> None:
        """Accepts None, the only task.

        Raises:
            ValueError: `task` is not None.
        """
        if task is not None:
            raise ValueError(f"task: expected None ({type(self.wrapped_env).__name__} has no tasks), got {task!r}")

    def get_task(self) -> Task:
        """Returns None."""
        return None


class GymnasiumMetaEnv(WrappingEnv):
    """Adapts a Gymnasium environment and a task distribution to the meta-environment interface.

    - Tasks: `sample_task` draws a task, and `set_task` applies it.
    - Seeds: every reset seeds the wrapped environment, with the given seed or with a seed drawn from `np_random`.
      Samplers use a separate generator for each path. Paths are therefore independent if the wrapped environment draws
      all its random numbers from the generator that its seed initializes.
    - Observations: float64 vectors of at most 5,000 numbers. Arrays are flattened in C order.
      `gymnasium.spaces.flatten` flattens observations of other spaces, such as `Dict` and `Tuple`; a discrete
      observation becomes a one-hot vector.
    - Actions: clipped to the bounds of a `Box`. Discrete actions are integers from 0, also if the wrapped space starts
      at another number.

    A copy (by pickling or `copy.deepcopy`) creates a new wrapped environment with the same task and the same state of
    `np_random`. The copy must be reset before its first step.

    Args:
        env: id of a registered environment, such as `"Pendulum-v1"` or `"package:Name-v0"`, or a function without
            arguments that creates an environment, such as its class.
        sample_task: function `(rng) -> task` that draws a task from a `numpy.random.Generator`.
        set_task: function `(env, task)` that sets the task of the environment; `env` includes its wrappers. The task
            may take effect immediately or at the next reset. None (default): calls `env.unwrapped.set_task(task)`.

    Raises:
        TypeError: `env` has no `reset` or `step`; `set_task` is None and the environment has no method `set_task`; the
            observation space cannot be flattened; or the action space is neither a 1-D `Box` nor `Discrete`.
        ValueError: observations have more than 5,000 numbers.
        gymnasium.error.Error: the environment id is not registered.

    Attributes:
        wrapped_env: the Gymnasium environment.
    """

    def __init__(self, env: Union[str, Callable[[], Any]], sample_task: Callable[[np.random.Generator], Task],
                 set_task: Optional[Callable[[Any, Task], None]] = None) -> None:
        self._make_env = check_type("env", _make_by_id(env) if isinstance(env, str) else env, Callable,
                                    "an environment id or a function that creates an environment")
        self._sample_task = check_type("sample_task", sample_task, Callable, "a function")
        self._set_task = check_type("set_task", _call_set_task if set_task is None else set_task, Callable,
                                    "a function")
        check_arguments("sample_task", self._sample_task, "(rng)", None)
        check_arguments("set_task", self._set_task, "(env, task)", None, None)
        self._task: Task = None
        self._wrap(check_steppable(make_quietly(self._make_env)))
        inner = innermost(self.wrapped_env)
        if set_task is None and _method(inner, "set_task") is None:
            raise TypeError(f"set_task: expected a function (env, task), because {type(inner).__name__} has no method "
                            "set_task, got None")
        self.observation_space, self.action_space = spaces_of(self.wrapped_env)

    unwrapped = MetaEnv.unwrapped  # returns self, because paths draw from the generator of this wrapper
    np_random = MetaEnv.np_random

    def sample_tasks(self, n_tasks: int, rng: Optional[np.random.Generator] = None) -> List[Task]:
        """Returns a list of `n_tasks` tasks drawn from `rng`, by default from `np_random`."""
        rng = self.np_random if rng is None else rng
        return [self._sample_task(rng) for _ in range(check_positive_int("n_tasks", n_tasks))]

    def set_task(self, task: Task) -> None:
        """Sets a copy of the task. Errors of the wrapped environment are not caught."""
        self._set_task(self.wrapped_env, copy.deepcopy(task))
        self._task = copy.deepcopy(task)

    def get_task(self) -> Task:
        """Returns the current task, or None before the first call of `set_task`."""
        return copy.deepcopy(self._task)

    def reset(self, *, seed: Optional[int] = None, options: Optional[dict] = None) -> Tuple[np.ndarray, Dict[str, Any]]:
        """Starts a new path; returns `(observation [O], info)`.

        A given `seed` seeds both `np_random` and the wrapped environment. Without a seed, the seed of the wrapped
        environment is drawn from `np_random`.
        """
        MetaEnv.reset(self, seed=None if seed is None else check_int_at_least("seed", seed, 0))
        seed = int(self.np_random.integers(2**31) if seed is None else seed)
        observation, info = super().reset(seed=seed, options=options)
        return self._as_vector(observation), info

    def step(self, action: Any) -> Tuple[np.ndarray, float, bool, bool, Dict[str, Any]]:
        """Takes one step; returns `(observation [O], reward, terminated, truncated, env_info)`."""
        observation, *others = super().step(self._wrapped_action(action))
        return (self._as_vector(observation), *others)  # type: ignore[return-value]

    @WrappingEnv.render_mode.setter  # type: ignore[attr-defined]
    def render_mode(self, render_mode: Optional[str]) -> None:
        self.wrapped_env.close()
        self.__setstate__({"_make_env": functools.partial(_make_with_render_mode, self._make_env, render_mode)})

    def _as_vector(self, observation: Any) -> np.ndarray:
        space = self.wrapped_env.observation_space
        if not is_box(space):
            from gymnasium import spaces

            observation = spaces.flatten(space, observation)
        return as_numbers("observation", observation).astype(np.float64).ravel()

    def _wrapped_action(self, action: Any) -> Any:
        space = self.wrapped_env.action_space
        if is_box(space):
            action = as_array("action", action, self.action_space.shape)
            return np.clip(action, self.action_space.low, self.action_space.high).astype(space.dtype)
        index = np.asarray(action)
        if index.shape != () or index.dtype.kind not in "iu" or not 0 <= index < space.n:
            raise ValueError(f"action: expected an integer from 0 to {space.n - 1}, got {action!r}")
        return space.dtype.type(int(index) + int(space.start))

    def __getstate__(self) -> Dict[str, Any]:
        import gymnasium

        # `self.spec.kwargs` contains the arguments of this environment, unlike those of the registered spec.
        return {**self.__dict__, "wrapped_env": None, "_registered": self.spec and gymnasium.registry.get(self.spec.id)}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        if spec := self.__dict__.pop("_registered", None):  # worker processes do not know ids that a script registered
            import gymnasium

            gymnasium.registry.setdefault(spec.id, spec)
        self.wrapped_env = make_quietly(self._make_env)
        if self._task is not None:
            self.set_task(self._task)


def _call_set_task(env: Any, task: Task) -> None:
    innermost(env).set_task(task)


def _make_by_id(env_id: str) -> Callable[..., Any]:
    import gymnasium

    module, _, env_id = env_id.rpartition(":")
    if module:
        importlib.import_module(module)
    return make_by_spec(gymnasium.spec(env_id))


def make_by_spec(spec: Any) -> Callable[..., Any]:
    """Returns a function that creates the environment of a Gymnasium spec, also in a process that lacks its id."""
    import gymnasium

    return functools.partial(gymnasium.make, spec, disable_env_checker=True)


def make_quietly(make_env: Callable[..., Any]) -> Any:
    """Returns a new environment. If MuJoCo is loaded, it does not write warnings about the model.

    MuJoCo 4 warns about models of Gymnasium for each environment, and each copy is a new environment.
    """
    mujoco = sys.modules.get("mujoco")
    if mujoco is None or mujoco.get_mju_user_warning() is not None:
        return make_env()
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        return make_env()
    finally:
        mujoco.set_mju_user_warning(None)  # warnings about simulations are kept


def _make_with_render_mode(make_env: Callable[..., Any], render_mode: Optional[str], /, **kwargs: Any) -> Any:
    """Returns a new environment with a render mode: an argument of `make_env` or, if it has none, an attribute."""
    try:
        return make_env(render_mode=render_mode, **kwargs)
    except TypeError:  # no argument `render_mode`
        env = make_env(**kwargs)
    innermost(env).render_mode = render_mode
    return env


def spaces_of(env: Any) -> Tuple[gym.spaces.Box, gym.Space]:
    """Returns the observation and action space of a Gymnasium environment as spaces of gym, see `GymnasiumMetaEnv`."""
    from gymnasium import spaces

    space, action_space = env.observation_space, env.action_space
    try:
        size = int(np.prod(space.shape)) if is_box(space) else spaces.flatdim(space)
    except (NotImplementedError, ValueError) as error:
        raise TypeError(f"env: expected an observation space that can be flattened to a vector, got {space}. Select "
                        "entries of a dict with gymnasium.wrappers.FilterObservation") from error
    check_size("env.observation_space", space, size)
    space = space if is_box(space) else spaces.flatten_space(space)
    if is_box(action_space) and len(action_space.shape) == 1 and np.dtype(action_space.dtype).kind == "f":
        return _box(space), _box(action_space)
    if is_discrete(action_space):
        return _box(space), gym.spaces.Discrete(int(action_space.n))
    raise TypeError(f"env: expected a 1-D Box of real numbers or a Discrete action space, got {action_space}")


def _box(space: Any) -> gym.spaces.Box:
    low, high = (np.asarray(bound, dtype=np.float64).ravel() for bound in (space.low, space.high))
    return gym.spaces.Box(low, high, dtype=np.float64)


def adapt_env(env: Any, needs_tasks: bool = True) -> WrappingEnv:
    """Returns the adapter of an environment; an adapter is returned unchanged. Wrappers are adapted again.

    Args:
        env: environment with the gym 0.26, Gymnasium or classic gym API.
        needs_tasks: whether an environment without tasks is refused; default True. Otherwise its only task is None.
    """
    if not needs_tasks and not has_tasks(env):
        return SingleTaskEnv(env)
    return env if type(env) in (WrappingEnv, SingleTaskEnv) else WrappingEnv(env)


def has_spaces(env: Any) -> bool:
    """Returns whether an environment, or its innermost environment, has an observation and an action space."""
    return all(attribute(env, name) is not None for name in _SPACES)


def add_spaces(env: Any, choose_action: Callable[[np.ndarray], Any]) -> WrappingEnv:
    """Adapts a meta-environment without spaces: a copy is reset, and gives the shape of observations.

    Args:
        env: meta-environment with the gym 0.26, Gymnasium or classic gym API.
        choose_action: function of the first observation; its result has the shape of actions.
    """
    check_meta_env(env)
    adapter = WrappingEnv.__new__(WrappingEnv, env)
    adapter._wrap(env)
    trial = copy_env(adapter)
    trial.set_task(trial.sample_tasks(1)[0])
    observation = as_numbers("observation", trial.reset()[0])
    adapter.observation_space, adapter.action_space = (
        gym.spaces.Box(-np.inf, np.inf, np.shape(each), np.float64) for each in (
            observation, choose_action(observation)))
    return adapter


def check_meta_env(env: Any) -> None:
    """Raises `TypeError` if `env` is a class, lacks `sample_tasks` or `set_task`, or they take other arguments."""
    owner = owner_of_tasks(env)
    _check_methods(owner, env, ("sample_tasks", "set_task"), "env: expected a meta-environment")
    rng = {"rng": None} if "rng" in inspect.signature(owner.sample_tasks).parameters else {}
    name = type(owner).__name__
    check_arguments(f"{name}.sample_tasks", owner.sample_tasks, "(n_tasks) or (n_tasks, rng)", 1, **rng)
    check_arguments(f"{name}.set_task", owner.set_task, "(task)", None)


def check_has_spaces(env: Any) -> None:
    """Checks the spaces of an environment.

    Raises:
        TypeError: the observation or action space is missing or has no shape.
        ValueError: a lower bound of a box exceeds the upper bound, the difference of two finite action bounds
            overflows, observations are too large, discrete actions do not start at 0, or actions are neither discrete
            nor real numbers.
    """
    for name in _SPACES:
        space = check_has_shape(f"env.{name}", attribute(env, name))
        if name == "observation_space":
            check_size(f"env.{name}", space, int(np.prod(space.shape)))
        if is_box(space):
            low, high = (np.asarray(bound, np.float64) for bound in (space.low, space.high))
            with np.errstate(over="ignore"):
                overflows = np.isinf(high - low) & np.isfinite(low) & np.isfinite(high)
            if not (low <= high).all() or name == "action_space" and overflows.any():
                raise ValueError(f"env.{name}: expected a box with low <= high and a finite width, or infinite bounds, "
                                 f"got bounds from {space.low} to {space.high}")
    if is_discrete(env.action_space) and getattr(env.action_space, "start", 0) != 0:
        raise ValueError(f"env.action_space: expected discrete actions numbered from 0, got {env.action_space}")
    if not is_discrete(env.action_space) and np.dtype(attribute(env.action_space, "dtype", float)).kind != "f":
        raise ValueError(f"env.action_space: expected a Box of real numbers or a Discrete, got {env.action_space}")


def check_steppable(env: Any) -> Any:
    """Returns `env` unchanged.

    Raises:
        TypeError: it is a class or has no `reset` or `step`, or a wrapper of Gymnasium in it has running averages. Each
            copy of the environment would have its own, and no snapshot would contain them.
    """
    _check_methods(env, env, ("reset", "step"), "env: expected an environment")
    for layer in layers(env):
        if type(layer).__module__.startswith("gymnasium.wrappers") and attributes_of(layer).keys() & _AVERAGES:
            raise TypeError(f"env: expected no {type(layer).__name__}, because each copy of the environment would have "
                            "different averages: use normalize with normalize_obs=True or normalize_reward=True")
    return env


def _check_methods(owner: Any, env: Any, names: Sequence[str], expected: str) -> None:
    if isinstance(env, type):
        raise TypeError(f"{expected}, got the class {env.__name__}: pass an object, such as {env.__name__}()")
    if isinstance(env, str):
        raise TypeError(f"{expected}, got the name {env!r}: pass make_env({env!r})")
    if any(_method(owner, name) is None for name in names):
        hint = ("; meta_policy_search.vary adds tasks to a Gymnasium environment, as does the argument vary of train "
                "(--vary on the command line)" if "set_task" in names else "")
        raise TypeError(f"{expected} with the methods {' and '.join(names)}, got {env!r}{hint}")


def has_tasks(env: Any) -> bool:
    """Returns whether an environment, or an environment that it wraps, samples tasks; a class is no environment."""
    return not isinstance(env, type) and _method(owner_of_tasks(env), "sample_tasks") is not None


def owner_of_tasks(env: Any, name: str = "sample_tasks") -> Any:
    """Returns the outermost wrapper with the method `name` for tasks; the innermost environment if none has it."""
    return next((layer for layer in layers(env) if _method(layer, name) is not None), innermost(env))


def _method(env: Any, name: str) -> Optional[Callable]:
    """Returns the method `name` of an environment, or None if the environment does not implement it.

    The methods of `MetaEnv` that only raise `NotImplementedError` count as not implemented.
    """
    method = getattr(env, name, None)
    is_missing = name in ("sample_tasks", "set_task", "get_task") and (
        attribute(method, "__func__") is vars(MetaEnv)[name])
    return method if callable(method) and not is_missing else None


def attribute(env: Any, name: str, default: Any = None) -> Any:
    """Returns an attribute of an environment or of its innermost environment; `default` if both lack it."""
    for each in (env, innermost(env)):
        value = getattr(each, name, None)
        if value is not None:
            return value
    return default


def innermost(env: Any) -> Any:
    """Returns the environment without its wrappers."""
    return getattr(env, "unwrapped", env)


def name_of_env(env: Any) -> str:
    """Returns the class name of an environment without its wrappers, or the id of a wrapped Gymnasium environment."""
    inner = innermost(env)
    while isinstance(inner, WrappingEnv):  # an adapter
        inner = innermost(inner.wrapped_env)
        if attribute(inner, "spec") is not None:
            return inner.spec.id
    return type(inner).__name__


def frame_rate(env: Any) -> float:
    """Returns the environment steps per second of real time, `metadata["render_fps"]`; 30 if it is not set."""
    return env.metadata.get("render_fps", 30)


def set_render_mode(env: Any, render_mode: Optional[str]) -> None:
    """Sets the render mode of an environment that has not been reset; raises `ValueError` if it is not supported."""
    inner = innermost(env)
    if attribute(env, "render_mode") == render_mode:
        return
    if render_mode not in attribute(env, "metadata", {}).get("render_modes", ()):
        raise ValueError(f"render_mode: {type(inner).__name__} does not support render_mode={render_mode!r}. A video "
                         "needs it in metadata['render_modes'] and the method render. A trajectory plot only needs the "
                         "attribute position, two numbers (x, y)")
    inner.render_mode = render_mode


def mujoco_simulator(env: Any) -> Any:
    """Returns the innermost environment if it is one of Gymnasium with MuJoCo (`model`, `data`), wrapped or not."""
    for layer in layers(env):
        inner = innermost(layer)
        if type(getattr(inner, "model", None)).__module__.startswith("mujoco"):
            return inner
    return None


def log_diagnostics(env: Any, paths: Sequence[Path], prefix: str) -> None:
    """Calls `log_diagnostics` of an environment (see `MetaEnv`) or policy, if there is such a method."""
    method = _method(env, "log_diagnostics")
    if method is not None:
        method(paths, prefix)


def copied(value: Any) -> Any:
    """Returns `value` with copies of its containers and arrays, which an environment may overwrite later."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(copied, value))
    if isinstance(value, np.ndarray) and value.dtype == object:
        return np.frompyfunc(copied, 1, 1)(value)
    return value.copy() if isinstance(value, (np.ndarray, set, bytearray)) else value


def copy_env(env: Any) -> Any:
    """Returns a deep copy of an environment for use in this process.

    Functions are not copied: a function in an attribute that refers to the original still does in the copy. Gymnasium
    rebuilds its MuJoCo environments (`EzPickle`) from their constructor arguments; numbers, strings and arrays that
    were assigned later are copied, too.

    Raises:
        TypeError: the environment cannot be copied.
    """
    try:
        copied = copy.deepcopy(env)
    except Exception as error:
        raise TypeError(f"env: expected an environment that copy.deepcopy can copy, got "
                        f"{type(innermost(env)).__name__}, which raised {type(error).__name__}: {error}") from error
    for original, layer in zip(layers(env), layers(copied)):
        if "_ezpickle_args" in attributes_of(layer):  # its copies are rebuilt from the constructor arguments
            vars(layer).update({name: copy.copy(value) for name, value in vars(original).items() if _is_plain(value)})
    return copied


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float, str, type(None), np.generic)) or (
        isinstance(value, np.ndarray) and value.flags.owndata)


def close_env(env: Any) -> None:
    """Closes an environment if it has a method `close`; an error, for example of a viewer, becomes a warning."""
    try:
        attribute(env, "close", lambda: None)()
    except Exception as error:
        warnings.warn(f"{type(innermost(env)).__name__}.close raised {type(error).__name__}: {error}", stacklevel=2)


def layers(env: Any) -> Iterator[Any]:
    """Yields an environment and all environments that it wraps, outermost first."""
    while env is not None:
        yield env
        attributes = attributes_of(env)
        env = attributes.get("wrapped_env", attributes.get("env"))
        env = env if hasattr(env, "step") else None  # `env` of a helper object can refer back


def _as_number(name: str, value: Any, expected: str) -> Any:
    """Returns a number or flag; also accepts an array with one element."""
    if type(value) in (float, bool):
        return value
    array = as_numbers(name, value, expected)
    if array.size != 1:
        raise ValueError(f"{name}: expected {expected}, got {value!r}")
    return array.item()
