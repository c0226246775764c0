"""Classic control problems whose bodies have another mass in each task, as in the examples of RLlib's MAML."""
import abc
from typing import List, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.interface import BatchableMetaEnv, BatchedEnv
from meta_policy_search.envs.spaces import as_array
from meta_policy_search.types import BatchedStep, Task
from meta_policy_search.utils.gym_import import gym

__all__ = ["CartPoleMassEnv", "PendulumMassEnv"]


class _BatchedMassEnv(BatchedEnv):
    """`num_envs` systems with masses that differ between tasks.

    A subclass says where a path starts, how the system moves, what is observed and rewarded, and when a path ends. Its
    methods compute element by element, so that no row depends on others.

    Attributes:
        mass_ranges: lowest and highest mass of each body in kg, between which tasks are uniform.
        default_masses: of each body, kg, until `set_tasks` is called.
        state_size: length of a state.
    """

    mass_ranges: Tuple[Tuple[float, float], ...]
    default_masses: Tuple[float, ...]
    state_size: int

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs)
        self._masses = np.tile(np.array(self.default_masses), (self.num_envs, 1))
        self._states = np.zeros((self.num_envs, self.state_size))

    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws `n_tasks` tasks, each the masses of the bodies, float64 `[B]`."""
        low, high = np.transpose(self.mass_ranges)
        return list(rng.uniform(low, high, size=(n_tasks, len(low))))

    def set_tasks(self, tasks: Sequence[Task]) -> None:
        """See `BatchedEnv.set_tasks`; a task is the masses `[B]`, each above 0."""
        self._check_count(tasks)
        shape = (len(self.mass_ranges),)
        masses = np.array([as_array(f"task {i}", task, shape) for i, task in enumerate(tasks)])
        light = (masses <= 0.0).any(axis=1)
        if light.any():
            i = int(np.argmax(light))
            raise ValueError(f"task {i}: expected masses above 0, in kg, got {tasks[i]!r}")
        self._masses = masses

    def get_tasks(self) -> List[Task]:
        return list(self._masses.copy())

    def reset(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        for env_id, rng in zip(env_ids, rngs, strict=True):
            self._states[env_id] = self._start(rng)
        return self._observe(self._states[env_ids])

    def step(self, actions: np.ndarray, env_ids: Optional[np.ndarray] = None) -> BatchedStep:
        actions, ids = self._rows(actions, env_ids)
        after, rewards, terminated = self._move(self._states[ids], actions, self._masses[ids])
        self._states[ids] = after
        return BatchedStep(self._observe(after), rewards, terminated, np.zeros(len(ids), dtype=bool), {})

    @abc.abstractmethod
    def _start(self, rng: np.random.Generator) -> np.ndarray:
        """Returns the state `[state_size]` that a path starts in."""

    @abc.abstractmethod
    def _move(self, states: np.ndarray, actions: np.ndarray, masses: np.ndarray
              ) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns next states `[k, state_size]`, rewards `[k]`, and which paths end, bool `[k]`."""

    def _observe(self, states: np.ndarray) -> np.ndarray:
        """Returns the observations of states, a new float64 `[k, O]`; by default the states themselves."""
        return states.copy()


class _BatchedCartPoleMassEnv(_BatchedMassEnv):
    """Many `CartPoleMassEnv`, stepped together."""

    mass_ranges = ((0.5, 2.0), (0.05, 0.2))
    default_masses = (1.0, 0.1)
    state_size = 4
    gravity, force, time_step = 9.8, 10.0, 0.02  # m/s^2, N, s
    half_length = 0.5  # of the pole, m
    max_position, max_angle = 2.4, np.radians(12.0)  # m, rad

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs)
        high = np.array([2.0 * self.max_position, np.inf, 2.0 * self.max_angle, np.inf])
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
        push = (np.where(actions == 1, self.force, -self.force) + pole * self.half_length * spin * spin * sine) / total
        inertia = self.half_length * (4.0 / 3.0 - pole * cosine * cosine / total)
        angular = (self.gravity * sine - cosine * push) / inertia
        linear = push - pole * self.half_length * angular * cosine / total
        after = states + self.time_step * np.stack([states[:, 1], linear, spin, angular], axis=1)
        has_fallen = (np.abs(after[:, 0]) > self.max_position) | (np.abs(after[:, 2]) > self.max_angle)
        return after, np.ones(len(after)), has_fallen


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

    batched_class = _BatchedCartPoleMassEnv

    def __init__(self) -> None:
        super().__init__()


class _BatchedPendulumMassEnv(_BatchedMassEnv):
    """Many `PendulumMassEnv`, stepped together."""

    mass_ranges = ((0.5, 2.0),)
    default_masses = (1.0,)
    state_size = 2
    gravity, length, time_step = 10.0, 1.0, 0.05  # m/s^2, m, s
    max_torque, max_spin = 2.0, 8.0  # N m, rad/s

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs)
        high = np.array([1.0, 1.0, self.max_spin])
        self.observation_space = gym.spaces.Box(-high, high, (3,), np.float64)
        self.action_space = gym.spaces.Box(-self.max_torque, self.max_torque, (1,), np.float64)

    def _start(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform([-np.pi, -1.0], [np.pi, 1.0])

    def _move(self, states: np.ndarray, actions: np.ndarray, masses: np.ndarray
              ) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        angle, spin = states.T
        torque = np.clip(actions[:, 0], -self.max_torque, self.max_torque)
        from_upright = (angle + np.pi) % (2.0 * np.pi) - np.pi
        rewards = -(from_upright * from_upright + 0.1 * spin * spin + 0.001 * torque * torque)
        inertia = masses[:, 0] * self.length * self.length  # times 3
        angular = 1.5 * self.gravity / self.length * np.sin(angle) + 3.0 / inertia * torque
        spin = np.clip(spin + self.time_step * angular, -self.max_spin, self.max_spin)
        after = np.stack([angle + self.time_step * spin, spin], axis=1)
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

    batched_class = _BatchedPendulumMassEnv

    def __init__(self) -> None:
        super().__init__()
