"""What the control problems share: a state, an equation of motion, and masses as tasks."""
import abc
from typing import List, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.interface import BatchedEnv
from meta_policy_search.envs.spaces import as_array
from meta_policy_search.types import BatchedStep, Task


class BatchedMassEnv(BatchedEnv):
    """`num_envs` systems with masses that differ between tasks.

    A subclass says where a path starts, how the system moves, what is observed and rewarded, and when a path ends. Its
    methods compute element by element, so that no row depends on others.

    Attributes:
        mass_ranges: lowest and highest mass of each body in kg, between which tasks are uniform.
        default_masses: of each body, kg, until `set_tasks` is called.
        state_size: length of a state.
    """

    mass_ranges: Tuple[Tuple[float, float], ...]
    default_masses: Tuple[float, ...]
    state_size: int

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs)
        self._masses = np.tile(np.array(self.default_masses), (self.num_envs, 1))
        self._states = np.zeros((self.num_envs, self.state_size))

    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws `n_tasks` tasks, each the masses of the bodies, float64 `[B]`."""
        low, high = np.transpose(self.mass_ranges)
        return list(rng.uniform(low, high, size=(n_tasks, len(low))))

    def set_tasks(self, tasks: Sequence[Task]) -> None:
        """See `BatchedEnv.set_tasks`; a task is the masses `[B]`, each above 0."""
        self._check_count(tasks)
        shape = (len(self.mass_ranges),)
        masses = np.array([as_array(f"task {i}", task, shape) for i, task in enumerate(tasks)])
        light = (masses <= 0.0).any(axis=1)
        if light.any():
            i = int(np.argmax(light))
            raise ValueError(f"task {i}: expected masses above 0, in kg, got {tasks[i]!r}")
        self._masses = masses

    def get_tasks(self) -> List[Task]:
        return list(self._masses.copy())

    def reset(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        for env_id, rng in zip(env_ids, rngs, strict=True):
            self._states[env_id] = self._start(rng)
        return self._observe(self._states[env_ids])

    def step(self, actions: np.ndarray, env_ids: Optional[np.ndarray] = None) -> BatchedStep:
        actions, ids = self._rows(actions, env_ids)
        after, rewards, terminated = self._move(self._states[ids], actions, self._masses[ids])
        self._states[ids] = after
        return BatchedStep(self._observe(after), rewards, terminated, np.zeros(len(ids), dtype=bool), {})

    @abc.abstractmethod
    def _start(self, rng: np.random.Generator) -> np.ndarray:
        """Returns the state `[state_size]` that a path starts in."""

    @abc.abstractmethod
    def _move(self, states: np.ndarray, actions: np.ndarray, masses: np.ndarray
              ) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns next states `[k, state_size]`, rewards `[k]`, and which paths end, bool `[k]`."""

    @abc.abstractmethod
    def _observe(self, states: np.ndarray) -> np.ndarray:
        """Returns the observations of states, a new float64 `[k, O]`."""
