"""The half cheetah: a planar two-legged runner (Wawrzynski 2009, doi:10.1109/ISIE.2009.5214007)."""
from typing import Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.base import BatchedMujocoEnv
from meta_policy_search.envs.mujoco_envs.engines.base import State

__all__ = ["BatchedHalfCheetahEnv"]

CONTROL_COST = 0.05  # reward lost per squared unit of action, per step
START_NOISE = 0.1  # half width of the start positions (m, rad), standard deviation of the start velocities (m/s, rad/s)


class BatchedHalfCheetahEnv(BatchedMujocoEnv):
    """The robot of the half-cheetah environments: model, observation, start state and the parts of their rewards.

    The observation leaves out `qpos[0]`, the distance from the start, so that no policy can depend on it; a table of it
    is in `HalfCheetahRandDirecEnv`.

    Arguments and attributes are those of `BatchedMujocoEnv`.
    """

    robot = "half_cheetah"
    frame_skip = 5  # of 0.01 s: a step takes 0.05 s

    def _start_state(self, rng: np.random.Generator) -> Tuple[np.ndarray, np.ndarray]:
        return self._normal_start(START_NOISE, rng)

    def _observations(self, state: State) -> np.ndarray:
        return np.concatenate((state.qpos[:, 1:], state.qvel), axis=1)

    @staticmethod
    def _control_reward(actions: np.ndarray) -> np.ndarray:
        """Returns minus the control cost of clipped actions, float64 `[k]`."""
        return -CONTROL_COST * np.square(actions).sum(axis=1)
