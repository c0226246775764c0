"""Cart and pole of different masses, as in the examples of RLlib's MAML."""
from typing import Tuple

import numpy as np

from meta_policy_search.envs.control_envs.base import BatchedMassEnv
from meta_policy_search.envs.interface import BatchableMetaEnv
from meta_policy_search.utils.gym_import import gym

GRAVITY, FORCE, TIME_STEP = 9.8, 10.0, 0.02  # m/s^2, N, s
HALF_LENGTH = 0.5  # of the pole, m
MAX_POSITION, MAX_ANGLE = 2.4, np.radians(12.0)


class BatchedCartPoleMassEnv(BatchedMassEnv):
    """Many `CartPoleMassEnv`, stepped together."""

    mass_ranges = ((0.5, 2.0), (0.05, 0.2))
    default_masses = (1.0, 0.1)
    state_size = 4

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs)
        high = np.array([2.0 * MAX_POSITION, np.inf, 2.0 * MAX_ANGLE, np.inf])
        self.observation_space = gym.spaces.Box(-high, high, (4,), np.float64)
        self.action_space = gym.spaces.Discrete(2)

    def _start(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-0.05, 0.05, size=4)

    def _move(self, states: np.ndarray, actions: np.ndarray, masses: np.ndarray
              ) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        angle, spin = states[:, 2], states[:, 3]
        pole = masses[:, 1]
        total = masses[:, 0] + pole
        sine, cosine = np.sin(angle), np.cos(angle)
        push = (np.where(actions == 1, FORCE, -FORCE) + pole * HALF_LENGTH * spin * spin * sine) / total
        angular = (GRAVITY * sine - cosine * push) / (HALF_LENGTH * (4.0 / 3.0 - pole * cosine * cosine / total))
        linear = push - pole * HALF_LENGTH * angular * cosine / total
        after = states + TIME_STEP * np.stack([states[:, 1], linear, spin, angular], axis=1)
        has_fallen = (np.abs(after[:, 0]) > MAX_POSITION) | (np.abs(after[:, 2]) > MAX_ANGLE)
        return after, np.ones(len(after)), has_fallen

    def _observe(self, states: np.ndarray) -> np.ndarray:
        return states.copy()


class CartPoleMassEnv(BatchableMetaEnv):
    """Gym's `CartPole-v1`, with another mass of cart and pole in each task.

    ===============  ============================================================================
    observation      position of the cart (m), its velocity (m/s), angle of the pole from upright
                     (rad), its angular velocity (rad/s)
    action           0 pushes the cart to the left, 1 to the right, by 10 N
    task             `(mass of the cart, mass of the pole)` in kg, uniform in [0.5, 2] and
                     [0.05, 0.2]; at first (1, 0.1), which is `CartPole-v1`
    start            all four uniform in [-0.05, 0.05]
    reward           1 for each step
    end of episode   the cart is further than 2.4 m from the middle, or the pole further than
                     12 degrees from upright
    ===============  ============================================================================

    A step takes 0.02 s (Euler's rule). In RLlib's environment of this name the masses of a task enter a part of the
    equations only: those of the whole, and of the pole times its length, stay what they were. Here they enter all.

    References:
        `rllib/examples/env/cartpole_mass.py` of Ray 2; Barto, Sutton and Anderson: Neuronlike Adaptive Elements That
        Can Solve Difficult Learning Control Problems, 1983.
    """

    batched_class = BatchedCartPoleMassEnv

    def __init__(self) -> None:
        super().__init__()
