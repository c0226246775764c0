"""Classic control problems with task-specific masses, as in the MAML examples of RLlib."""
from typing import Tuple

import numpy as np

from meta_policy_search.envs.interface import Rngs, WorldMetaEnv
from meta_policy_search.envs.spaces import as_array
from meta_policy_search.types import Task
from meta_policy_search.utils.gym_import import gym

__all__ = ["CartPoleMassEnv", "PendulumMassEnv"]


class CartPoleMassEnv(WorldMetaEnv):
    """Gym's `CartPole-v1` with task-specific masses of the cart and the pole.

    The agent balances a pole on a cart by pushing the cart to the left or to the right.

    ===============  ============================================================================
    observation      float64 `[4]`: position of the cart (m), velocity of the cart (m/s), angle of
                     the pole from upright (rad), angular velocity of the pole (rad/s)
    action           discrete: 0 pushes the cart to the left, 1 to the right, each with 10 N
    task             `(mass of the cart, mass of the pole)`, kg, uniform in [0.5, 2] and
                     [0.05, 0.2]; default (1, 0.1), the masses of `CartPole-v1`
    start            all four state variables uniform in [-0.05, 0.05]
    reward           1 per step
    end of episode   when the cart is more than 2.4 m from the center, or the pole more than
                     12 degrees from upright
    ===============  ============================================================================

    A step takes 0.02 s and is integrated with the explicit Euler method. The task changes both masses in all equations
    of motion. RLlib's environment of the same name changes the two masses, but not the quantities that Gym derives from
    them: the total mass, and the product of pole mass and half length.

    References:
        `rllib/examples/env/cartpole_mass.py` of Ray 2; Barto, Sutton and Anderson: Neuronlike Adaptive Elements That
        Can Solve Difficult Learning Control Problems, 1983.
    """

    first_task = (1.0, 0.1)
    task_ranges = ((0.5, 2.0), (0.05, 0.2))
    state_size = 4
    gravity, force, time_step = 9.8, 10.0, 0.02  # m/s^2, N, s
    half_length = 0.5  # half the length of the pole, m
    max_position, max_angle = 2.4, np.radians(12.0)  # m, rad

    def __init__(self) -> None:
        high = np.array([2.0 * self.max_position, np.inf, 2.0 * self.max_angle, np.inf])
        self.observation_space = gym.spaces.Box(-high, high, (4,), np.float64)
        self.action_space = gym.spaces.Discrete(2)
        super().__init__()

    def _check_task(self, name: str, task: Task) -> np.ndarray:
        return as_array(name, task, (2,), "two masses above 0 kg (cart, pole)", lambda masses: masses > 0.0)

    def _start(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-0.05, 0.05, size=4)

    def _move(self, states: np.ndarray, actions: np.ndarray, ids: np.ndarray, tasks: np.ndarray,
              rngs: Rngs) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        angle, spin = states[:, 2], states[:, 3]
        cart, pole = tasks[ids].T
        total = cart + pole
        sine, cosine = np.sin(angle), np.cos(angle)
        push = (np.where(actions == 1, self.force, -self.force) + pole * self.half_length * spin * spin * sine) / total
        inertia = self.half_length * (4.0 / 3.0 - pole * cosine * cosine / total)
        angular = (self.gravity * sine - cosine * push) / inertia
        linear = push - pole * self.half_length * angular * cosine / total
        after = states + self.time_step * np.stack([states[:, 1], linear, spin, angular], axis=1)
        has_fallen = (np.abs(after[:, 0]) > self.max_position) | (np.abs(after[:, 2]) > self.max_angle)
        return after, np.ones(len(after)), has_fallen


class PendulumMassEnv(WorldMetaEnv):
    """Gym's `Pendulum-v1` with a task-specific mass of the pendulum.

    The agent swings a pendulum up and keeps it upright.

    ===============  ============================================================================
    observation      float64 `[3]`: cosine and sine of the angle from upright, angular velocity
                     (rad/s)
    action           float64 `[1]`: torque, clipped to [-2, 2] N m
    task             `(mass,)`, kg, uniform in [0.5, 2]; default (1,), the mass of `Pendulum-v1`
    start            angle uniform in [-pi, pi] rad, angular velocity uniform in [-1, 1] rad/s
    reward           `-(angle^2 + 0.1 * angular_velocity^2 + 0.001 * torque^2)`, with the state
                     before the step and the angle in [-pi, pi)
    end of episode   never; the sampler ends a path after `max_path_length` steps (200 steps in
                     RLlib)
    ===============  ============================================================================

    A step takes 0.05 s. The angular velocity is clipped to [-8, 8] rad/s. The torque limit is too low to lift the
    pendulum directly, so the agent must swing it up.

    References:
        `rllib/examples/env/pendulum_mass.py` of Ray 2, where a task is a number instead of a one-element array.
    """

    first_task = (1.0,)
    task_ranges = ((0.5, 2.0),)
    state_size = 2
    gravity, length, time_step = 10.0, 1.0, 0.05  # m/s^2, m, s
    max_torque, max_spin = 2.0, 8.0  # N m, rad/s

    def __init__(self) -> None:
        high = np.array([1.0, 1.0, self.max_spin])
        self.observation_space = gym.spaces.Box(-high, high, (3,), np.float64)
        self.action_space = gym.spaces.Box(-self.max_torque, self.max_torque, (1,), np.float64)
        super().__init__()

    def _check_task(self, name: str, task: Task) -> np.ndarray:
        return as_array(name, task, (1,), "an array with one mass above 0 kg", lambda mass: mass > 0.0)

    def _start(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform([-np.pi, -1.0], [np.pi, 1.0])

    def _move(self, states: np.ndarray, actions: np.ndarray, ids: np.ndarray, tasks: np.ndarray,
              rngs: Rngs) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        angle, spin = states.T
        torque = np.clip(actions[:, 0], -self.max_torque, self.max_torque)
        from_upright = (angle + np.pi) % (2.0 * np.pi) - np.pi
        rewards = -(from_upright * from_upright + 0.1 * spin * spin + 0.001 * torque * torque)
        inertia = tasks[ids, 0] * self.length * self.length  # three times the moment of inertia
        angular = 1.5 * self.gravity / self.length * np.sin(angle) + 3.0 / inertia * torque
        spin = np.clip(spin + self.time_step * angular, -self.max_spin, self.max_spin)
        after = np.stack([angle + self.time_step * spin, spin], axis=1)
        return after, rewards, np.zeros(len(after), dtype=bool)

    def _observe(self, states: np.ndarray) -> np.ndarray:
        return np.stack([np.cos(states[:, 0]), np.sin(states[:, 0]), states[:, 1]], axis=1)
