"""Interfaces of a single meta-environment and of a vectorized environment of `n` copies.

`WorldMetaEnv` implements both for environments whose rules are array operations.
"""
import abc
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.spaces import as_array, is_discrete
from meta_policy_search.types import BatchedStep, Path, RenderMode, Task
from meta_policy_search.utils.checks import check_choice, check_int_at_least, check_positive_int
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.gym_import import gym
from meta_policy_search.utils.serializable import Configurable, check_own_pickle

Rngs = Sequence[Optional[np.random.Generator]]


class PhysicsError(RuntimeError):
    """A physics simulation diverged.

    Args:
        message: the error message.
        env_ids: indices of the diverged environments.

    Attributes:
        env_ids: indices of the diverged environments, a tuple of integers.
    """

    def __init__(self, message: str, env_ids: Sequence[int]) -> None:
        super().__init__(message)
        self.env_ids = tuple(env_ids)

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (str(self), self.env_ids)


class MetaEnv(Configurable, gym.Env):
    """A gym environment with a distribution of tasks.

    Subclasses implement `sample_tasks`, `set_task` and the gym 0.26 methods `reset(seed=, options=) -> (observation,
    info)` and `step(action) -> (observation, reward, terminated, truncated, info)`. Samplers also accept Gymnasium
    environments and classic gym environments (`reset() -> observation`, `step` returns four values).

    An environment can describe its tasks by numbers, which `RoML` requires: `tasks_at(points)` returns the tasks at
    points of the unit cube, an array `[n, task_dimensions]`. Uniform points give the tasks of `sample_tasks`.

    For speed, an environment can also implement `make_batched(num_envs)`, which returns a `BatchedEnv`; see
    `BatchableMetaEnv`. To support rendering, a subclass sets `metadata["render_modes"]` and implements `_draw` or
    `render`.
    """

    __setattr__ = object.__setattr__  # attributes, such as those of a curriculum, can be assigned at any time

    observation_space: Any  # gym's type `Space` declares neither `low` nor `n`
    action_space: Any

    def sample_tasks(self, n_tasks: int) -> List[Task]:
        """Returns a list of `n_tasks` tasks drawn from the task distribution.

        Subclasses may add an argument `rng` (`numpy.random.Generator` or None). Samplers then pass a generator, which
        makes the tasks a function of the seed and the iteration only.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement sample_tasks")

    def set_task(self, task: Task) -> None:
        """Sets the task, an element of the list that `sample_tasks` returns; samplers call `reset` afterwards."""
        raise NotImplementedError(f"{type(self).__name__} does not implement set_task")

    def get_task(self) -> Task:
        """Returns the current task."""
        raise NotImplementedError(f"{type(self).__name__} does not implement get_task, which returns the task")

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """Logs environment-specific statistics of the paths of all tasks.

        Every key starts with `prefix`, such as `Step_0-`. By default, nothing is logged.
        """

    def render(self) -> np.ndarray:  # type: ignore[override]  # gym also allows other frame types
        """Returns an image of the current state, uint8 `[H, W, 3]`, for `render_mode="rgb_array"`.

        Raises:
            NotImplementedError: the environment does not support rendering.
            RuntimeError: `render_mode` is None, or a system library for rendering is missing (the message names it).
        """
        if self.render_mode is None and self.metadata.get("render_modes"):
            raise RuntimeError(f'render: expected an environment created with render_mode="rgb_array", such as '
                               f'{type(self).__name__}(render_mode="rgb_array")')
        return self._draw()

    def _draw(self) -> np.ndarray:
        raise NotImplementedError(f'render: {type(self).__name__} does not support render_mode="rgb_array"')

    def __str__(self) -> str:
        return repr(self)


class BatchedEnv(abc.ABC):
    """Vectorized environment: `num_envs` copies of an environment, each with a separate task, that step together.

    Observations, actions and rewards are arrays with one row per copy. The single environment (`BatchableMetaEnv`) uses
    the same code with `num_envs=1`, so both give bit-identical results. The values of a row must not depend on the
    other rows or on the number of rows.

    Args:
        num_envs: number of copies, at least 1.

    Attributes:
        observation_space: `gym.spaces.Box` of one copy.
        action_space: `gym.spaces.Box` or `gym.spaces.Discrete` of one copy; discrete actions start at 0.
        max_threads: number of threads that may call `reset` and `step` concurrently, each for different copies; default
            1.
    """

    observation_space: Any
    action_space: Any
    max_threads: int = 1

    def __init__(self, num_envs: int) -> None:
        self.num_envs = check_positive_int("num_envs", num_envs)

    @abc.abstractmethod
    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws `n_tasks` tasks from `rng`."""

    @abc.abstractmethod
    def set_tasks(self, tasks: Sequence[Task]) -> None:
        """Sets the task of each copy.

        Copies with the same task may receive the same object. Implementations must not modify it.

        Raises:
            ValueError: a task is invalid, or the number of tasks is not `num_envs`.
        """

    @abc.abstractmethod
    def get_tasks(self) -> List[Task]:
        """Returns a list with the task of each copy; `set_tasks` accepts it."""

    @abc.abstractmethod
    def reset(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        """Starts new paths in the selected copies; returns their observations, float64 `[k, O]`.

        Args:
            env_ids: int `[k]`, indices of the copies, without duplicates.
            rngs: `k` generators. Copy `env_ids[i]` draws from `rngs[i]` until its next reset.
        """

    @abc.abstractmethod
    def step(self, actions: np.ndarray, env_ids: Optional[np.ndarray] = None) -> BatchedStep:
        """Takes one step in the selected copies. Ended paths are not reset automatically.

        Args:
            actions: `[k, A]`, or int `[k]` for a discrete action space. Values must be finite (not checked); they are
                clipped to the action space.
            env_ids: int `[k]`, indices of the copies; default all.

        Returns:
            A `BatchedStep` of new arrays with `k` rows.
        """

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """Logs statistics of the paths of all tasks. Default: logs nothing; see `MetaEnv.log_diagnostics`."""

    def _check_count(self, tasks: Sequence[Task]) -> None:
        if len(tasks) != self.num_envs:
            raise ValueError(f"tasks: expected {self.num_envs} tasks, one per environment, got {len(tasks)}")

    def _rows(self, actions: np.ndarray, env_ids: Optional[np.ndarray]) -> Tuple[np.ndarray, np.ndarray]:
        """Checks the arguments of `step`; returns `(actions, env_ids)`.

        Actions are float64 `[k, A]` or, for a discrete action space, int64 `[k]`; env_ids are int `[k]`.
        """
        ids = np.arange(self.num_envs) if env_ids is None else np.asarray(env_ids)
        actions = np.asarray(actions)
        expected = (len(ids), *self.action_space.shape)
        if actions.shape != expected:
            raise ValueError(f"actions: expected shape {expected}, got {actions.shape}")
        if not is_discrete(self.action_space):
            return np.asarray(actions, dtype=np.float64), ids
        if actions.dtype.kind not in "iu" or not ((0 <= actions) & (actions < self.action_space.n)).all():
            raise ValueError(f"actions: expected integers from 0 to {self.action_space.n - 1}, got {actions.tolist()}")
        return actions.astype(np.int64), ids


class BatchableMetaEnv(MetaEnv):
    """A single environment implemented as a vectorized environment (`BatchedEnv`) with one copy.

    Subclasses set `batched_class`. If this class has arguments besides `num_envs`, the subclass declares the same
    arguments in its constructor and passes them to this constructor by keyword.

    Args:
        render_mode: one of `metadata["render_modes"]` to enable `render`; default None.
        **kwargs: arguments of `batched_class`.

    Raises:
        ValueError: `render_mode` is not supported.

    Attributes:
        batched_class: subclass of `BatchedEnv`, called as `batched_class(num_envs, **kwargs)`.
    """

    batched_class: type

    def __init__(self, *, render_mode: RenderMode = None, **kwargs: Any) -> None:
        self.render_mode = check_choice("render_mode", render_mode, (None, *self.metadata["render_modes"]))
        self._batched_kwargs: Dict[str, Any] = kwargs
        self._batched: BatchedEnv = self.batched_class(1, **kwargs)
        self.observation_space = self._batched.observation_space
        self.action_space = self._batched.action_space

    def __setstate__(self, state: Dict[str, Any]) -> None:
        check_own_pickle(self, state, "_batched")
        self.__dict__.update(state)

    @replaces("reset", "step", "set_task")
    def make_batched(self, num_envs: int) -> BatchedEnv:
        """Returns a vectorized environment of `num_envs` copies.

        The current task is not copied; call `set_tasks` of the vectorized environment.
        """
        return self.batched_class(num_envs, **self._batched_kwargs)

    def sample_tasks(self, n_tasks: int, rng: Optional[np.random.Generator] = None) -> List[Task]:
        """Returns a list of `n_tasks` tasks drawn from `rng`, by default from `np_random`."""
        n_tasks = check_positive_int("n_tasks", n_tasks)
        return self._batched.sample_tasks(n_tasks, self.np_random if rng is None else rng)

    def set_task(self, task: Task) -> None:
        self._batched.set_tasks([task])

    def get_task(self) -> Task:
        return self._batched.get_tasks()[0]

    def reset(self, *, seed: Optional[int] = None, options: Optional[dict] = None) -> Tuple[np.ndarray, Dict[str, Any]]:
        """Starts a new path; returns `(observation [O], {})`."""
        super().reset(seed=None if seed is None else check_int_at_least("seed", seed, 0))
        return self._batched.reset(np.zeros(1, dtype=int), [self.np_random])[0], {}

    def step(self, action: np.ndarray) -> Tuple[np.ndarray, float, bool, bool, Dict[str, Any]]:
        """Takes one step; returns `(observation [O], reward, terminated, truncated, env_info)`."""
        if not is_discrete(self.action_space):
            action = as_array("action", action, self.action_space.shape)
        elif np.ndim(action):
            raise ValueError(f"action: expected an integer (shape ()), got shape {np.shape(action)}")
        answer = self._batched.step(np.asarray(action)[None])
        info = {key: values[0] for key, values in answer.env_infos.items()}
        return (answer.observations[0], float(answer.rewards[0]), bool(answer.terminated[0]),
                bool(answer.truncated[0]), info)

    def log_diagnostics(self, paths: Sequence[Path], prefix: str = "") -> None:
        self._batched.log_diagnostics(paths, prefix)


class BatchedWorld(BatchedEnv):
    """Vectorized environment of `num_envs` copies that follow the rules of a `WorldMetaEnv`.

    Args:
        num_envs: number of copies, at least 1.
        world: the environment that defines the rules.

    Attributes:
        states: float64 `[num_envs, state_size]`.
        task_rows: float64 `[num_envs, ...]`, the task of each copy as `WorldMetaEnv._check_task` returns it.
        trail: states of the first copy since the last reset; only the first one without a render mode.
    """

    def __init__(self, num_envs: int, world: "WorldMetaEnv") -> None:
        super().__init__(num_envs)
        self.observation_space, self.action_space = world.observation_space, world.action_space
        self._world = world
        self._rngs: List[Optional[np.random.Generator]] = [None] * self.num_envs  # generators of the current paths
        self.states = np.zeros((self.num_envs, world.state_size))
        self.trail: List[np.ndarray] = []
        self.set_tasks([world.first_task] * self.num_envs)

    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        return self._world._draw_tasks(n_tasks, rng)

    def set_tasks(self, tasks: Sequence[Task]) -> None:
        self._check_count(tasks)
        self.task_rows = np.array([self._world._check_task(f"task {i}", task) for i, task in enumerate(tasks)])

    def get_tasks(self) -> List[Task]:
        return [self._world._as_task(row) for row in self.task_rows.copy()]

    def reset(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        for env_id, rng in zip(env_ids, rngs, strict=True):
            self._rngs[env_id] = rng
            self.states[env_id] = self._world._start(rng)
        self.trail = [self.states[0].copy()]
        return self._world._observe(self.states[env_ids])

    def step(self, actions: np.ndarray, env_ids: Optional[np.ndarray] = None) -> BatchedStep:
        actions, ids = self._rows(actions, env_ids)
        after, rewards, terminated = self._world._move(self.states[ids], actions, ids, self.task_rows, self._rngs)
        self.states[ids] = after
        if self._world.render_mode is not None:
            self.trail.append(self.states[0].copy())
        return BatchedStep(self._world._observe(after), rewards, terminated, np.zeros(len(ids), dtype=bool), {})


class WorldMetaEnv(BatchableMetaEnv):
    """Base class of environments whose rules are array operations, with one row per copy.

    A subclass sets `observation_space` and `action_space` before it calls this constructor. It defines its rules in the
    attributes and protected methods below, which the single and the vectorized environment share. The values of a row
    must not depend on the other rows or on the number of rows.

    Args:
        render_mode: see `BatchableMetaEnv`.

    Attributes:
        first_task: the task before the first call of `set_task`.
        task_ranges: `[k, 2]`, lowest and highest value of each entry of a task, if tasks are uniform vectors; empty
            (default) otherwise.
        state_size: length of a state.
    """

    batched_class = BatchedWorld
    first_task: Task
    task_ranges: Any = ()
    state_size: int = 0
    _batched: BatchedWorld

    def __init__(self, *, render_mode: RenderMode = None) -> None:
        super().__init__(render_mode=render_mode, world=self)

    @property
    def task_dimensions(self) -> int:
        """Number of coordinates of `tasks_at`; 0 for environments without `tasks_at`."""
        return len(self.task_ranges)

    def tasks_at(self, points: np.ndarray) -> List[Task]:
        """Returns the tasks at points of the unit cube (see `MetaEnv`), by default vectors in `task_ranges`."""
        low, high = np.transpose(self.task_ranges)
        return list(low + (high - low) * points)

    def _draw_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws `n_tasks` tasks from `rng`; by default those at uniform points."""
        return self.tasks_at(rng.random((n_tasks, self.task_dimensions)))

    def _check_task(self, name: str, task: Task) -> np.ndarray:
        """Returns a task as a float64 array.

        Raises:
            ValueError: the task is invalid; `name` is its name in the message.
        """
        raise NotImplementedError

    def _as_task(self, row: np.ndarray) -> Task:
        """Returns the task that `_check_task` converts to `row`; by default `row`."""
        return row

    def _start(self, rng: np.random.Generator) -> np.ndarray:
        """Returns the start state `[state_size]` of a path; by default zeros."""
        return np.zeros(self.state_size)

    def _move(self, states: np.ndarray, actions: np.ndarray, ids: np.ndarray, tasks: np.ndarray,
              rngs: Rngs) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Takes one step in `k` copies.

        Args:
            states: float64 `[k, state_size]`; must not be modified.
            actions: float64 `[k, A]`, not clipped; int64 `[k]` for a discrete action space.
            ids: int `[k]`, indices of the copies.
            tasks: float64 `[num_envs, ...]`, the tasks of all copies as `_check_task` returns them.
            rngs: the generators of all copies; None before the first reset of a copy.

        Returns:
            New states `[k, state_size]`, rewards `[k]`, and bool `[k]`, whether each path terminates.
        """
        raise NotImplementedError

    def _observe(self, states: np.ndarray) -> np.ndarray:
        """Returns the observations of `states` as a new array, float64 `[k, O]`; by default a copy of the states."""
        return states.copy()
