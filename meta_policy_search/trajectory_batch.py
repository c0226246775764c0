"""Stores trajectories of one environment as flat arrays."""
import dataclasses
from typing import Any, Dict, List, Sequence

import numpy as np

from meta_policy_search.envs.spaces import check_env_spec
from meta_policy_search.samplers.paths import concatenate_paths, split_paths
from meta_policy_search.types import Infos, Path


@dataclasses.dataclass(frozen=True, eq=False)
class TrajectoryBatch:
    """`P` trajectories of one environment, concatenated to arrays of `N` steps (`N` is the sum of `lengths`).

    Args:
        env_spec (EnvSpec): observation space and action space of the environment.
        observations: `[N, O]`, input of the policy at each step; finite.
        last_observations: `[P, O]`, observation after the last action of each trajectory; finite.
        actions: `[N, A]`, or integers `[N]` if actions are discrete; finite.
        rewards: `[N]`; finite.
        terminals: bool `[N]`, True at the last step of a trajectory that the task itself ended. False at all other
            steps, including the last step of a trajectory that a time limit truncated.
        env_infos: dict of arrays, each `[N, ...]`.
        agent_infos: dict of arrays, each `[N, ...]`.
        lengths: int `[P]`, number of steps of each trajectory, at least 1.

    Raises:
        TypeError: `env_spec` is not an `EnvSpec`.
        ValueError: an array has the wrong type or shape or contains a value that is not finite, or `terminals` is True
            before the last step of a trajectory; the message names the argument.
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
                raise ValueError(f"{name}: expected {'booleans' if kinds == 'b' else 'numbers'} of shape {shape}, "
                                 f"given lengths and env_spec, got {array.dtype} of shape {array.shape}")
            if not np.isfinite(array).all():
                raise ValueError(f"{name}: expected finite numbers, got {array[~np.isfinite(array)][0]}")
        for name in ("env_infos", "agent_infos"):
            arrays[name] = {key: np.asarray(values) for key, values in vars(self)[name].items()}
            for key, values in arrays[name].items():
                if values.shape[:1] != (num_steps,):
                    raise ValueError(f"{name}[{key!r}]: expected {num_steps} steps, the sum of lengths, got shape "
                                     f"{values.shape}")
        ends = np.cumsum(lengths) - 1
        if arrays["terminals"].sum() != arrays["terminals"][ends].sum():
            raise ValueError(f"terminals: expected True only at the last steps of trajectories (with lengths "
                             f"{lengths}, at {ends}), got True at {np.flatnonzero(arrays['terminals'])}")
        vars(self).update(arrays)

    def __len__(self) -> int:
        return len(self.lengths)

    @classmethod
    def from_paths(cls, env_spec: Any, paths: Sequence[Path]) -> "TrajectoryBatch":
        """Builds a batch from path dicts, as returned by samplers.

        Args:
            env_spec (EnvSpec): observation space and action space of the environment.
            paths: path dicts with `observations`, `actions`, `rewards` and `last_observation`, and optionally
                `terminated` (default False), `env_infos` and `agent_infos`. Env infos that some paths lack are omitted.

        Raises:
            TypeError: `paths` is not a list, or an entry is not numeric.
            ValueError: there are no paths, a path lacks a key, or an array has the wrong shape or a value that is not
                finite.
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
        """Returns one path dict per trajectory; the arrays are views."""
        arrays = {"observations": self.observations, "actions": self.actions, "rewards": self.rewards}
        return split_paths(self.lengths, arrays, self.env_infos, self.agent_infos, self.last_observations,
                           self.terminals[np.cumsum(self.lengths) - 1])

    @property
    def next_observations(self) -> np.ndarray:
        """Observation after each action, `[N, O]`."""
        dtype = np.result_type(self.observations, self.last_observations)
        following = np.empty_like(self.observations, dtype)
        following[:-1] = self.observations[1:]
        following[np.cumsum(self.lengths) - 1] = self.last_observations
        return following
