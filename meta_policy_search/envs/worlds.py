"""Base classes of environments whose rules are array arithmetic.

The rules are written once, for the rows of an array. They serve both the single and the vectorized environment.
"""
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.interface import BatchableMetaEnv, BatchedEnv
from meta_policy_search.types import BatchedStep, RenderMode, Task

Rngs = Sequence[Optional[np.random.Generator]]


class BatchedWorld(BatchedEnv):
    """Vectorized environment of `num_envs` copies that follow the rules of a `WorldMetaEnv`.

    Args:
        num_envs: number of copies, at least 1.
        world: the environment that defines the rules.

    Attributes:
        states: float64 `[num_envs, state_size]`.
        task_rows: float64 `[num_envs, ...]`, the task of each copy as `WorldMetaEnv._check_task` returns it.
    """

    def __init__(self, num_envs: int, world: "WorldMetaEnv") -> None:
        super().__init__(num_envs)
        self.observation_space, self.action_space = world.observation_space, world.action_space
        self._world = world
        self._rngs: List[Optional[np.random.Generator]] = [None] * self.num_envs  # generators of the current paths
        self.states = np.zeros((self.num_envs, world.state_size))
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
        return self._world._observe(self.states[env_ids])

    def step(self, actions: np.ndarray, env_ids: Optional[np.ndarray] = None) -> BatchedStep:
        actions, ids = self._rows(actions, env_ids)
        after, rewards, terminated = self._world._move(self.states[ids], actions, ids, self.task_rows, self._rngs)
        self.states[ids] = after
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
        task_ranges: `[k, 2]`, lowest and highest value of each entry of a task, if tasks are uniform vectors.
        state_size: length of a state.
    """

    batched_class = BatchedWorld
    first_task: Task
    task_ranges: Any
    state_size: int = 0
    _batched: BatchedWorld

    def __init__(self, *, render_mode: RenderMode = None) -> None:
        super().__init__(render_mode=render_mode, world=self)

    def _draw_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws `n_tasks` tasks from `rng`; by default vectors that are uniform in `task_ranges`."""
        low, high = np.transpose(self.task_ranges)
        return list(rng.uniform(low, high, size=(n_tasks, len(low))))

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
