"""Replay buffer for off-policy algorithms."""
from typing import Any, Dict, Sequence

import numpy as np

from meta_policy_search.envs.spaces import check_env_spec
from meta_policy_search.trajectory_batch import TrajectoryBatch
from meta_policy_search.types import Path
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.serializable import Configurable


class ReplayBuffer(Configurable):
    """Stores the latest transitions and samples from them at random.

    Pickles contain the transitions and the random state, so a resumed run draws the same transitions.

    Args:
        env_spec (EnvSpec): observation space and action space of the environment.
        size_in_transitions (int): capacity in transitions, at least 1; new transitions replace the oldest.

    Attributes:
        n_transitions_stored (int): number of stored transitions.
    """

    def __init__(self, env_spec: Any, size_in_transitions: int) -> None:
        self.env_spec = check_env_spec("env_spec", env_spec)
        self.size_in_transitions = check_positive_int("size_in_transitions", size_in_transitions)
        self.n_transitions_stored = 0
        self._next_row = 0
        self._rng = seeding.next_rng(seeding.Stream.REPLAY)
        self._allocate()

    def _allocate(self) -> None:
        rows, spec = self.size_in_transitions, self.env_spec
        observation_shape, action_shape = tuple(spec.observation_space.shape), tuple(spec.action_space.shape)
        self._columns = {
            "observations": np.zeros((rows, *observation_shape), np.float32),
            "actions": np.zeros((rows, *action_shape), np.float32 if action_shape else np.int64),
            "rewards": np.zeros(rows, np.float32), "terminals": np.zeros(rows, bool),
            "next_observations": np.zeros((rows, *observation_shape), np.float32)}

    def add_paths(self, paths: Sequence[Path]) -> None:
        """Stores all transitions of paths. If they exceed the capacity, only the last ones are stored."""
        trajectories = TrajectoryBatch.from_paths(self.env_spec, paths)
        number = min(len(trajectories.rewards), self.size_in_transitions)
        rows = (self._next_row + np.arange(number)) % self.size_in_transitions
        for name, column in self._columns.items():
            column[rows] = getattr(trajectories, name)[-number:]
        self._next_row = (self._next_row + number) % self.size_in_transitions
        self.n_transitions_stored = min(self.n_transitions_stored + number, self.size_in_transitions)

    def sample_transitions(self, batch_size: int) -> Dict[str, np.ndarray]:
        """Draws `B = batch_size` transitions uniformly, with replacement.

        Returns:
            Dict of `observations` `[B, O]`, `actions` `[B, A]` (int64 `[B]` if actions are discrete), `rewards` `[B]`
            and `next_observations` `[B, O]`, all float32, and `terminals`, bool `[B]`, True if the task itself ended at
            the transition.

        Raises:
            ValueError: the buffer is empty, or `batch_size` is less than 1.
        """
        batch_size = check_positive_int("batch_size", batch_size)
        if self.n_transitions_stored == 0:
            raise ValueError(f"batch_size: expected a buffer with transitions to draw {batch_size} from, got an empty "
                             "buffer; call add_paths first")
        rows = self._rng.integers(self.n_transitions_stored, size=batch_size)
        return {name: column[rows] for name, column in self._columns.items()}

    def __getstate__(self) -> Dict[str, Any]:
        """Omits empty rows."""
        columns = {name: column[:self.n_transitions_stored] for name, column in self._columns.items()}
        return {**vars(self), "_columns": columns}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        """Restores the buffer, including its empty rows."""
        vars(self).update(state)
        self._allocate()
        for name, rows in state["_columns"].items():
            self._columns[name][:len(rows)] = rows
