"""Trajectories of one environment, as flat arrays."""
import dataclasses
from typing import Any, Dict, List, Sequence

import numpy as np

from meta_policy_search.envs.env_spec import check_env_spec
from meta_policy_search.samplers.paths import concatenate_paths, split_paths
from meta_policy_search.types import Infos, Path


@dataclasses.dataclass(frozen=True, eq=False)
class TrajectoryBatch:
    """`P` trajectories, one after the other in arrays of all `N` steps (`N` is the sum of `lengths`).

    Args:
        env_spec (EnvSpec): spaces of the environment.
        observations: `[N, O]`, what the policy saw before each action; finite.
        last_observations: `[P, O]`, the observation after the last action of each trajectory; finite.
        actions: `[N, A]`, or integers `[N]` where actions are discrete; finite.
        rewards: `[N]`; finite.
        terminals: bool `[N]`, whether the task itself ended the trajectory with this step: False where a time limit cut
            it off, and before the last step.
        env_infos: each `[N, ...]`.
        agent_infos: each `[N, ...]`.
        lengths: int `[P]`, steps of each trajectory, at least 1.
    """

    env_spec: Any
    observations: np.ndarray
    last_observations: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    terminals: np.ndarray
    env_infos: Infos
    agent_infos: Infos
    lengths: np.ndarray

    def __post_init__(self) -> None:
        check_env_spec("env_spec", self.env_spec)
        for name, kinds, what in (("lengths", "iu", "integers"), ("terminals", "b", "booleans"),
                                  ("observations", "fiu", "numbers"), ("last_observations", "fiu", "numbers"),
                                  ("actions", "fiu", "numbers"), ("rewards", "fiu", "numbers")):
            array = np.asarray(vars(self)[name])
            if array.dtype.kind not in kinds:
                raise TypeError(f"{name}: expected an array of {what}, got one of dtype {array.dtype}")
            object.__setattr__(self, name, array)
        if self.lengths.ndim != 1 or len(self.lengths) == 0 or self.lengths.min() < 1:
            raise ValueError(f"lengths: expected at least one, each at least 1, got {self.lengths}")
        num_steps, num_paths = int(self.lengths.sum()), len(self.lengths)
        observation_shape = tuple(self.env_spec.observation_space.shape)
        action_shape = tuple(self.env_spec.action_space.shape)
        for name, shape, why in (
            ("observations", (num_steps, *observation_shape), "the sum of lengths and the observation space"),
            ("last_observations", (num_paths, *observation_shape), "the number of lengths and the observation space"),
            ("actions", (num_steps, *action_shape), "the sum of lengths and the action space"),
            ("rewards", (num_steps,), "the sum of lengths"),
            ("terminals", (num_steps,), "the sum of lengths"),
        ):
            array = vars(self)[name]
            if array.shape != shape:
                raise ValueError(f"{name}: expected shape {shape}, by {why}, got {array.shape}")
            if not np.isfinite(array).all():
                raise ValueError(f"{name}: expected finite numbers, got {array[~np.isfinite(array)][0]} among them")
        for name in ("env_infos", "agent_infos"):
            object.__setattr__(self, name, _checked_infos(name, vars(self)[name], num_steps))
        is_last = np.zeros(num_steps, dtype=bool)
        is_last[np.cumsum(self.lengths) - 1] = True
        if (self.terminals & ~is_last).any():
            step = int(np.argmax(self.terminals & ~is_last))
            raise ValueError(f"terminals: expected True only at the last steps of trajectories, which lengths "
                             f"{self.lengths} put at {np.flatnonzero(is_last)}, got True at {step}")

    def __len__(self) -> int:
        return len(self.lengths)

    @classmethod
    def from_paths(cls, env_spec: Any, paths: Sequence[Path]) -> "TrajectoryBatch":
        """Makes a batch of path dicts, as samplers return them.

        Args:
            env_spec (EnvSpec): spaces of the environment.
            paths: path dicts with `observations`, `actions`, `rewards`, `last_observation` and, where there are any,
                `terminated`, `env_infos` and `agent_infos`; env infos that not all paths have are left out.
        """
        task = concatenate_paths(paths)
        for index, path in enumerate(paths):
            if "last_observation" not in path:
                raise ValueError(f"path {index}: expected a key 'last_observation', got only {sorted(path)}")
        terminals = np.zeros(int(task.lengths.sum()), dtype=bool)
        terminals[np.cumsum(task.lengths) - 1] = [bool(path.get("terminated", False)) for path in paths]
        last_observations = np.stack([path["last_observation"] for path in paths])
        return cls(env_spec=env_spec, **task.arrays, last_observations=last_observations, terminals=terminals,
                   env_infos=task.env_infos, agent_infos=task.agent_infos, lengths=task.lengths)

    def to_paths(self) -> List[Path]:
        """Returns a path dict for each trajectory; its arrays are views."""
        arrays = {"observations": self.observations, "actions": self.actions, "rewards": self.rewards}
        return split_paths(self.lengths, arrays, self.env_infos, self.agent_infos, self.last_observations,
                           self.terminals[np.cumsum(self.lengths) - 1])

    @property
    def next_observations(self) -> np.ndarray:
        """The observation after each action, `[N, O]`."""
        following = np.empty_like(self.observations)
        following[:-1] = self.observations[1:]
        following[np.cumsum(self.lengths) - 1] = self.last_observations
        return following

    @classmethod
    def concatenate(cls, *batches: "TrajectoryBatch") -> "TrajectoryBatch":
        """Returns the trajectories of several batches as one; env infos that not all have are left out.

        The first batch's `env_spec` is kept. Batches whose sizes or agent infos differ raise `ValueError`.
        """
        if not batches:
            raise ValueError("batches: expected at least one, got none")
        return cls.from_paths(batches[0].env_spec, [path for batch in batches for path in batch.to_paths()])

    def split(self) -> List["TrajectoryBatch"]:
        """Returns a batch for each trajectory."""
        return [self.from_paths(self.env_spec, [path]) for path in self.to_paths()]


def _checked_infos(name: str, infos: Any, num_steps: int) -> Dict[str, np.ndarray]:
    if not isinstance(infos, dict):
        raise TypeError(f"{name}: expected a dict of arrays, got {type(infos).__name__}")
    arrays = {key: np.asarray(values) for key, values in infos.items()}
    for key, values in arrays.items():
        if values.shape[:1] != (num_steps,):
            raise ValueError(f"{name}[{key!r}]: expected {num_steps} steps, the sum of lengths, got shape "
                             f"{values.shape}")
    return arrays

