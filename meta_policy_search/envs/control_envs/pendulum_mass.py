"""Pendulums of different masses, as in the examples of RLlib's MAML."""
from typing import Tuple

import numpy as np

from meta_policy_search.envs.control_envs.base import BatchedMassEnv
from meta_policy_search.envs.interface import BatchableMetaEnv
from meta_policy_search.utils.gym_import import gym

GRAVITY, LENGTH, TIME_STEP = 10.0, 1.0, 0.05  # m/s^2, m, s
MAX_TORQUE, MAX_SPIN = 2.0, 8.0  # N m, rad/s


class BatchedPendulumMassEnv(BatchedMassEnv):
    """Many `PendulumMassEnv`, stepped together."""

    mass_ranges = ((0.5, 2.0),)
    default_masses = (1.0,)
    state_size = 2

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs)
        high = np.array([1.0, 1.0, MAX_SPIN])
        self.observation_space = gym.spaces.Box(-high, high, (3,), np.float64)
        self.action_space = gym.spaces.Box(-MAX_TORQUE, MAX_TORQUE, (1,), np.float64)

    def _start(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform([-np.pi, -1.0], [np.pi, 1.0])

    def _move(self, states: np.ndarray, actions: np.ndarray, masses: np.ndarray
              ) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        angle, spin = states.T
        torque = np.clip(actions[:, 0], -MAX_TORQUE, MAX_TORQUE)
        from_upright = (angle + np.pi) % (2.0 * np.pi) - np.pi
        rewards = -(from_upright * from_upright + 0.1 * spin * spin + 0.001 * torque * torque)
        angular = 1.5 * GRAVITY / LENGTH * np.sin(angle) + 3.0 / (masses[:, 0] * LENGTH * LENGTH) * torque
        spin = np.clip(spin + TIME_STEP * angular, -MAX_SPIN, MAX_SPIN)
        after = np.stack([angle + TIME_STEP * spin, spin], axis=1)
        return after, rewards, np.zeros(len(after), dtype=bool)

    def _observe(self, states: np.ndarray) -> np.ndarray:
        return np.stack([np.cos(states[:, 0]), np.sin(states[:, 0]), states[:, 1]], axis=1)


class PendulumMassEnv(BatchableMetaEnv):
    """Gym's `Pendulum-v1`, with another mass of the pendulum in each task.

    ===============  ============================================================================
    observation      cosine and sine of the angle from upright, angular velocity (rad/s)
    action           torque, clipped to [-2, 2] N m
    task             `(mass,)` in kg, uniform in [0.5, 2]; at first (1,), which is `Pendulum-v1`
    start            angle uniform in [-pi, pi], angular velocity in [-1, 1] rad/s
    reward           minus (angle^2 + 0.1 angular velocity^2 + 0.001 torque^2), before the step
    end of episode   never; the sampler's path length cuts it off, 200 steps in the source
    ===============  ============================================================================

    A step takes 0.05 s; the angular velocity is clipped to [-8, 8] rad/s. The torque cannot lift a heavy pendulum at
    once: it must be swung.

    References:
        `rllib/examples/env/pendulum_mass.py` of Ray 2, where a task is a number in place of an array of one.
    """

    batched_class = BatchedPendulumMassEnv

    def __init__(self) -> None:
        super().__init__()
