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
        lengths = np.asarray(self.lengths)
        if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or not (lengths.size and lengths.min() > 0):
            raise ValueError(f"lengths: expected at least one integer, each at least 1, got {lengths}")
        num_steps, observation_shape = int(lengths.sum()), tuple(self.env_spec.observation_space.shape)
        arrays: Dict[str, Any] = {"lengths": lengths}
        for name, kinds, shape in (("observations", "fiu", (num_steps, *observation_shape)),
                                   ("last_observations", "fiu", (len(lengths), *observation_shape)),
                                   ("actions", "fiu", (num_steps, *self.env_spec.action_space.shape)),
                                   ("rewards", "fiu", (num_steps,)), ("terminals", "b", (num_steps,))):
            array = arrays[name] = np.asarray(vars(self)[name])
            if array.shape != shape or array.dtype.kind not in kinds:
                raise ValueError(f"{name}: expected {'booleans' if kinds == 'b' else 'numbers'} of shape {shape}, as "
                                 f"the sum of lengths and env_spec say, got {array.dtype} of shape {array.shape}")
            if not np.isfinite(array).all():
                raise ValueError(f"{name}: expected finite numbers, got {array[~np.isfinite(array)][0]} among them")
        for name in ("env_infos", "agent_infos"):
            arrays[name] = {key: np.asarray(values) for key, values in vars(self)[name].items()}
            for key, values in arrays[name].items():
                if values.shape[:1] != (num_steps,):
                    raise ValueError(f"{name}[{key!r}]: expected {num_steps} steps, the sum of lengths, got shape "
                                     f"{values.shape}")
        ends = np.cumsum(lengths) - 1
        if arrays["terminals"].sum() != arrays["terminals"][ends].sum():
            raise ValueError(f"terminals: expected True only at the last steps of trajectories, which lengths "
                             f"{lengths} put at {ends}, got True at {np.flatnonzero(arrays['terminals'])}")
        vars(self).update(arrays)

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
