"""Environments that are arithmetic, which state their rules once, for any number of copies."""
from typing import List, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.interface import BatchableMetaEnv, BatchedEnv
from meta_policy_search.types import BatchedStep, Task

Rngs = Sequence[Optional[np.random.Generator]]


class BatchedWorld(BatchedEnv):
    """`num_envs` environments that follow the rules of one `WorldMetaEnv`.

    Args:
        num_envs: number of environments, at least one.
        world: the environment whose rules they follow.

    Attributes:
        states: float64 `[num_envs, state_size]`.
        task_rows: float64 `[num_envs, ...]`, the task of each environment as `WorldMetaEnv._check_task` returns it.
    """

    def __init__(self, num_envs: int, world: "WorldMetaEnv") -> None:
        super().__init__(num_envs)
        self.observation_space, self.action_space = world.observation_space, world.action_space
        self._world = world
        self._rngs: List[Optional[np.random.Generator]] = [None] * self.num_envs  # of the current paths
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
    """An environment that states its rules on the rows of arrays, one row for each of its copies.

    A subclass sets both spaces before it calls this constructor, and states its rules by the attributes and the
    protected methods. They are those of the single environment and of its vectorized form. A row of a result must not
    depend on other rows, nor on their number.

    Args:
        render_mode: as in `BatchableMetaEnv`.

    Attributes:
        first_task: the task until `set_task` is called.
        state_size: length of a state.
    """

    batched_class = BatchedWorld
    first_task: Task
    state_size: int = 0
    _batched: BatchedWorld

    def __init__(self, *, render_mode: Optional[str] = None) -> None:
        super().__init__(render_mode=render_mode, world=self)

    def _draw_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws `n_tasks` tasks from `rng`."""
        raise NotImplementedError

    def _check_task(self, name: str, task: Task) -> np.ndarray:
        """Returns a task as one float64 array; raises `ValueError`, which calls it `name`, if it is none."""
        raise NotImplementedError

    def _as_task(self, row: np.ndarray) -> Task:
        """Returns the task that `_check_task` turns into `row`; by default `row` itself."""
        return row

    def _start(self, rng: np.random.Generator) -> np.ndarray:
        """Returns the state `[state_size]` that a path starts in; by default zeros."""
        return np.zeros(self.state_size)

    def _move(self, states: np.ndarray, actions: np.ndarray, ids: np.ndarray, tasks: np.ndarray,
              rngs: Rngs) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Takes one step in `k` environments.

        Args:
            states: float64 `[k, state_size]`, not to be changed.
            actions: float64 `[k, A]`, not clipped; int64 `[k]` where they are discrete.
            ids: int `[k]`, which environments these are.
            tasks: the tasks of all environments, rows as `_check_task` returns them.
            rngs: the generators of the paths of all environments; None before the first reset.

        Returns:
            New states `[k, state_size]`, rewards `[k]`, and which paths end, bool `[k]`.
        """
        raise NotImplementedError

    def _observe(self, states: np.ndarray) -> np.ndarray:
        """Returns the observations of states, a new float64 `[k, O]`; by default the states themselves."""
        return states.copy()
