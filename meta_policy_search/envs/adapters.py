"""Adapters that turn gym and Gymnasium environments into meta-environments."""
import copy
import functools
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import numpy as np

from meta_policy_search.envs import gym_compat
from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.envs.spaces import as_array, as_numbers, is_box, is_discrete
from meta_policy_search.types import Task
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.gym_import import gym


class SingleTaskEnv(gym_compat.WrappingEnv):
    """Adapts an environment without tasks to the meta-environment interface.

    The only task is None. The methods follow the gym 0.26 API. Attributes that this class does not define are looked up
    on the wrapped environment.

    Args:
        env: environment with the gym 0.26, Gymnasium or classic gym API (see `gym_compat`).

    Raises:
        TypeError: `env` is a class, or has no `reset` or `step`.
    """

    def __init__(self, env: Any) -> None:
        self._wrap(_steppable(env))
        self.observation_space = env.observation_space
        self.action_space = env.action_space

    np_random = MetaEnv.np_random

    def sample_tasks(self, n_tasks: int) -> List[Task]:  # type: ignore[override]  # no random numbers are drawn
        """Returns a list that contains None `n_tasks` times."""
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

    def reset(self, *, seed: Optional[int] = None, options: Optional[dict] = None) -> Tuple[np.ndarray, Dict[str, Any]]:
        """Starts a new path; returns `(observation [O], info)`."""
        return gym_compat.reset_with_info(self.wrapped_env, seed=seed, options=options)

    def step(self, action: Any) -> Tuple[np.ndarray, float, bool, bool, Dict[str, Any]]:
        """Takes one step; returns `(observation [O], reward, terminated, truncated, env_info)`."""
        return gym_compat.step_env(self.wrapped_env, action)


class GymnasiumMetaEnv(gym_compat.WrappingEnv):
    """Adapts a Gymnasium environment and a task distribution to the meta-environment interface.

    - Tasks: `sample_task` draws a task, and `set_task` applies it.
    - Seeds: every reset seeds the wrapped environment, with the given seed or with a seed drawn from `np_random`.
      Samplers use a separate generator for each path. Paths are therefore independent if the wrapped environment draws
      all its random numbers from the generator that its seed initializes.
    - Observations: float64 vectors. `gymnasium.spaces.flatten` flattens observations of any other space; a discrete
      observation becomes a one-hot vector.
    - Actions: clipped to the bounds of a `Box`. Discrete actions are integers from 0, also if the wrapped space starts
      at another number.

    A copy (by pickling or `copy.deepcopy`) creates a new wrapped environment with the same task and the same state of
    `np_random`. The copy must be reset before its first step.

    Args:
        env: id of a registered environment, such as `"Pendulum-v1"`, or a function without arguments that creates an
            environment, such as its class.
        sample_task: function `(rng) -> task` that draws a task from a `numpy.random.Generator`.
        set_task: function `(env, task)` that sets the task of the environment; `env` includes its wrappers. The task
            may take effect immediately or at the next reset. None (default): calls `env.unwrapped.set_task(task)`.

    Raises:
        TypeError: `env` has no `reset` or `step`; `set_task` is None and the environment has no method `set_task`; the
            observation space cannot be flattened; or the action space is neither a 1-D `Box` nor `Discrete`.
        gymnasium.error.Error: the environment id is not registered.

    Attributes:
        wrapped_env: the Gymnasium environment.
    """

    def __init__(self, env: Union[str, Callable[[], Any]], sample_task: Callable[[np.random.Generator], Task],
                 set_task: Optional[Callable[[Any, Task], None]] = None) -> None:
        self._make_env = _make_by_id(env) if isinstance(env, str) else env
        if not callable(self._make_env):
            raise TypeError(f"env: expected an environment id or a function that creates an environment, got {env!r}")
        self._sample_task, self._set_task = sample_task, set_task
        self._task: Task = None
        self._wrap(_steppable(self._make_env()))
        inner = gym_compat.innermost(self.wrapped_env)
        if set_task is None and gym_compat.method_of(inner, "set_task") is None:
            raise TypeError(f"set_task: expected a function (env, task), got None; {type(inner).__name__} has no "
                            "method set_task that could be used instead")
        self.observation_space = _observation_space(self.wrapped_env.observation_space)
        self.action_space = _action_space(self.wrapped_env.action_space)

    unwrapped = MetaEnv.unwrapped  # returns self, because paths draw from the generator of this wrapper
    np_random = MetaEnv.np_random

    def sample_tasks(self, n_tasks: int, rng: Optional[np.random.Generator] = None) -> List[Task]:
        """Returns a list of `n_tasks` tasks drawn from `rng`, by default from `np_random`."""
        rng = self.np_random if rng is None else rng
        return [self._sample_task(rng) for _ in range(check_positive_int("n_tasks", n_tasks))]

    def set_task(self, task: Task) -> None:
        """Sets a copy of the task. Errors of the wrapped environment are not caught."""
        self._apply_task(task)
        self._task = copy.deepcopy(task)

    def get_task(self) -> Task:
        """Returns the current task, or None before the first call of `set_task`."""
        return copy.deepcopy(self._task)

    def reset(self, *, seed: Optional[int] = None, options: Optional[dict] = None) -> Tuple[np.ndarray, Dict[str, Any]]:
        """Starts a new path; returns `(observation [O], info)`.

        A given `seed` seeds both `np_random` and the wrapped environment. Without a seed, the seed of the wrapped
        environment is drawn from `np_random`.
        """
        super().reset(seed=None if seed is None else int(seed))  # gym requires a Python integer
        seed = int(self.np_random.integers(2**31) if seed is None else seed)
        observation, info = gym_compat.reset_with_info(self.wrapped_env, seed=seed, options=options)
        return self._as_vector(observation), info

    def step(self, action: Any) -> Tuple[np.ndarray, float, bool, bool, Dict[str, Any]]:
        """Takes one step; returns `(observation [O], reward, terminated, truncated, env_info)`."""
        answer = gym_compat.step_env(self.wrapped_env, self._wrapped_action(action))
        return (self._as_vector(answer[0]), *answer[1:])

    def _apply_task(self, task: Task) -> None:
        if self._set_task is None:
            gym_compat.innermost(self.wrapped_env).set_task(copy.deepcopy(task))
        else:
            self._set_task(self.wrapped_env, copy.deepcopy(task))

    def _as_vector(self, observation: Any) -> np.ndarray:
        space = self.wrapped_env.observation_space
        if not _is_vector(space):
            from gymnasium import spaces

            observation = spaces.flatten(space, observation)
        return as_numbers("observation", observation).astype(np.float64)

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
        return {name: value for name, value in self.__dict__.items() if name != "wrapped_env"}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.wrapped_env = self._make_env()
        if self._task is not None:
            self._apply_task(self._task)


def _steppable(env: Any) -> Any:
    if isinstance(env, type) or not (gym_compat.method_of(env, "reset") and gym_compat.method_of(env, "step")):
        raise TypeError(f"env: expected an environment with the methods reset and step, got {env!r}")
    return env


def _make_by_id(env_id: str) -> Callable[[], Any]:
    import gymnasium

    return functools.partial(gymnasium.make, env_id, disable_env_checker=True)


def _is_vector(space: Any) -> bool:
    return is_box(space) and len(space.shape) == 1


def _observation_space(space: Any) -> gym.spaces.Box:
    if not _is_vector(space):
        from gymnasium import spaces

        flat = spaces.flatten_space(space)
        if not is_box(flat):
            raise TypeError(f"env: expected an observation space that can be flattened to a vector, got {space}")
        space = flat
    return _box(space)


def _action_space(space: Any) -> gym.Space:
    if _is_vector(space) and np.dtype(space.dtype).kind == "f":
        return _box(space)
    if is_discrete(space):
        return gym.spaces.Discrete(int(space.n))
    raise TypeError(f"env: expected a 1-D Box of real numbers or a Discrete action space, got {space}")


def _box(space: Any) -> gym.spaces.Box:
    low, high = (np.asarray(bound, dtype=np.float64) for bound in (space.low, space.high))
    return gym.spaces.Box(low, high, dtype=np.float64)
