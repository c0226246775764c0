"""The walker: a planar robot with a torso and two legs (Levine and Koltun 2013, "Guided policy search")."""
from typing import Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.base import BatchedMujocoEnv
from meta_policy_search.envs.mujoco_envs.engines.base import State

__all__ = ["BatchedWalker2DEnv"]

CONTROL_COST = 1e-3  # reward lost per squared unit of action, per step
START_NOISE = 0.005  # half width of start positions (m, rad) and velocities (m/s, rad/s)
HEIGHTS = (0.8, 2.0)  # m, between which the torso has to stay
PITCHES = (-1.0, 1.0)  # rad, the same
LARGEST_OBSERVED_VELOCITY = 10.0  # m/s and rad/s; observed velocities are clipped to it


class BatchedWalker2DEnv(BatchedMujocoEnv):
    """The robot of the walker environments: model, observation, start state, end and the parts of their rewards.

    Tables of observation and action are in `Walker2DRandDirecEnv`. Arguments and attributes are those of
    `BatchedMujocoEnv`.
    """

    robot = "walker2d"
    frame_skip = 8  # of 0.002 s: a step takes 0.016 s

    def _start_state(self, rng: np.random.Generator) -> Tuple[np.ndarray, np.ndarray]:
        return self._uniform_start(START_NOISE, rng)

    def _observations(self, state: State) -> np.ndarray:
        velocities = np.clip(state.qvel, -LARGEST_OBSERVED_VELOCITY, LARGEST_OBSERVED_VELOCITY)
        return np.concatenate((state.qpos[:, 1:], velocities), axis=1)

    @staticmethod
    def _control_reward(actions: np.ndarray) -> np.ndarray:
        """Returns minus the control cost of clipped actions, float64 `[k]`."""
        return -CONTROL_COST * np.square(actions).sum(axis=1)

    def _terminated(self, state: State) -> np.ndarray:
        height, pitch = state.qpos[:, 1], state.qpos[:, 2]
        is_up = (HEIGHTS[0] < height) & (height < HEIGHTS[1]) & (PITCHES[0] < pitch) & (pitch < PITCHES[1])
        return ~is_up
