"""What the environments with discrete actions share: random steps, drawn from the generator of their path."""
import abc
from typing import Callable, List, Optional, Sequence

import numpy as np

from meta_policy_search.envs.interface import BatchedEnv
from meta_policy_search.types import BatchedStep
from meta_policy_search.utils.gym_import import gym


class BatchedDiscreteEnv(BatchedEnv):
    """`num_envs` environments in which one of a few actions is chosen at each step; a path never ends by itself.

    A subclass says where a path starts, what an action does and what is observed. Its methods work on the environments
    `ids`, draw by `_draw` only, and compute row by row, so that no row depends on the number of rows.

    Args:
        obs_dim: size of an observation, whose entries are between 0 and 1.
        num_actions: number of actions.
    """

    def __init__(self, num_envs: int, obs_dim: int, num_actions: int) -> None:
        super().__init__(num_envs)
        self.observation_space = gym.spaces.Box(0.0, 1.0, (obs_dim,), np.float64)
        self.action_space = gym.spaces.Discrete(num_actions)
        self._rngs: List[Optional[np.random.Generator]] = [None] * self.num_envs

    def reset(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        for env_id, rng in zip(env_ids, rngs, strict=True):
            self._rngs[env_id] = rng
        self._start(env_ids)
        return self._observe(env_ids)

    def step(self, actions: np.ndarray, env_ids: Optional[np.ndarray] = None) -> BatchedStep:
        """See `BatchedEnv.step`; actions are int `[k]`."""
        actions, ids = self._rows(actions, env_ids)
        rewards, never = self._act(actions, ids), np.zeros(len(ids), dtype=bool)
        return BatchedStep(self._observe(ids), rewards, terminated=never, truncated=never.copy(), env_infos={})

    def _draw(self, draw: Callable[[np.random.Generator], float], ids: np.ndarray) -> np.ndarray:
        """Returns a number `[k]` for each environment, drawn from its own generator."""
        rngs = [self._rngs[env_id] for env_id in ids]
        if None in rngs:
            raise RuntimeError("step: call reset() first")
        return np.array([draw(rng) for rng in rngs])

    @abc.abstractmethod
    def _start(self, ids: np.ndarray) -> None:
        """Puts environments in the state that a path starts in."""

    @abc.abstractmethod
    def _act(self, actions: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Takes a step by actions int64 `[k]`; returns the rewards, float64 `[k]`."""

    @abc.abstractmethod
    def _observe(self, ids: np.ndarray) -> np.ndarray:
        """Returns the observations, a new float64 `[k, obs_dim]`."""

