"""Exploration policies: add noise to the actions of another policy and clip them to the action space."""
import abc
import copy
import math
from typing import Any, Callable, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.actors.flat_policy import act_in_one_task, check_spaces
from meta_policy_search.actors.from_policy import vectorized_actor
from meta_policy_search.envs.spaces import check_env_spec, is_box
from meta_policy_search.np.policies import Policy
from meta_policy_search.types import Infos
from meta_policy_search.utils.checks import check_bool, check_finite, check_non_negative, check_positive
from meta_policy_search.utils.fast_paths import replaces


class ExplorationPolicy(Policy):
    """Adds noise to the actions of another policy; for a Gaussian policy, to the mean.

    The exploration policy shares the parameters of the other policy. The noise is a process `x_0, x_1, ...` that
    restarts with each path. A subclass implements `next_noise`.

    Args:
        env_spec (EnvSpec): observation space and action space. The action space is a box; actions are clipped to it.
        policy: the other policy, such as a policy from `np.policies`; it must have the vectorized method `make_actors`.

    Raises:
        TypeError: `policy` has no vectorized method.
        ValueError: the action space is not a box, or `policy` does not fit `env_spec`.
    """

    def __init__(self, env_spec: Any, policy: Any) -> None:
        space = check_env_spec("env_spec", env_spec).action_space
        if not is_box(space):
            raise ValueError(f"env_spec: expected a box as action space, got {space}")
        check_spaces(policy, env_spec)
        super().__init__(policy.obs_dim, policy.action_dim)
        self.env_spec, self.policy = env_spec, policy
        self._bounds = np.asarray(space.low, np.float32), np.asarray(space.high, np.float32)
        self._noise: Optional[np.ndarray] = None  # [A], of the last step
        self.make_actors(self.get_flat_params()[None])  # raises an error if the policy has none

    @abc.abstractmethod
    def next_noise(self, noise: Optional[np.ndarray], normal: np.ndarray) -> np.ndarray:
        """Computes the noise of a step.

        Args:
            noise: `[A]`, noise of the previous step; None at the first step of a path.
            normal: `[A]`, standard normal random numbers.

        Returns:
            `[A]`, in the action's unit.
        """

    def compute_noise(self, noise: Optional[np.ndarray], normal: np.ndarray) -> np.ndarray:
        """Computes the noise of consecutive steps, float32 `[T, A]`.

        Args:
            noise: `[A]`, noise of the step before the first one; None at the start of a path.
            normal: `[T, A]`, standard normal random numbers.
        """
        rows = np.empty_like(normal, dtype=np.float32)
        for step, row in enumerate(normal):
            rows[step] = noise = self.next_noise(noise, row)
        return rows

    def reset(self, dones: Any = None) -> None:
        """Starts a new path for `get_action` and `get_actions`, which restarts the noise."""
        self._noise = None

    def get_flat_params(self) -> np.ndarray:
        """Returns a copy of the other policy's parameters, float32 `[D]`."""
        return self.policy.get_flat_params()

    def set_flat_params(self, flat_params: np.ndarray) -> None:
        """Sets the other policy's parameters, `[D]`."""
        self.policy.set_flat_params(flat_params)

    def get_actions(self, observations: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Chooses an action for each observation; treats the observations as consecutive steps of one path."""
        observations = self._check_observations("observations", observations, ndim=2)
        normal = self._rng.standard_normal((len(observations), self.action_dim), dtype=np.float32)
        noise = self.compute_noise(self._noise, normal)
        self._noise = noise[-1] if len(noise) else self._noise
        return act_in_one_task(self.make_actors(self.get_flat_params()[None]), observations, noise)

    def act(self, observation: np.ndarray, deterministic: bool = False) -> np.ndarray:
        """Returns an action `[A]` for an observation `[O]`; see `FlatPolicy.act`.

        Args:
            observation: `[O]`.
            deterministic: whether to return the other policy's action without noise. Default: False.
        """
        if not check_bool("deterministic", deterministic):
            return super().act(observation)
        return np.clip(self.policy.act(observation, deterministic=True), *self._bounds)

    @replaces("get_action", "get_actions")
    def make_actors(self, flat_params: np.ndarray) -> Actor:
        """Returns an actor that acts with noise; raises `TypeError` if the other policy is not vectorized."""
        actor = vectorized_actor(self.policy, "make_actors", flat_params)
        if actor is None:
            raise TypeError(f"policy: expected a policy with the vectorized method make_actors, got {self.policy!r}")
        return _NoisyActor(actor, self.action_dim, self.compute_noise, self._bounds)


class _NoisyActor(Actor):
    """Adds noise to the actions of another actor."""

    def __init__(self, actor: Actor, action_dim: int, compute_noise: Callable, bounds: Sequence[np.ndarray]) -> None:
        self._actor, self._compute_noise, self._bounds = actor, compute_noise, bounds
        self.noise_dim, self.can_divide = action_dim, actor.can_divide

    def for_tasks(self, start: int, stop: int) -> "_NoisyActor":
        part = copy.copy(self)
        part._actor = self._actor.for_tasks(start, stop)
        return part

    def draw_noise(self, rng: np.random.Generator, out: np.ndarray) -> None:
        """Fills `out`, float32 `[T, A]`, with the noise of a path."""
        out[:] = self._compute_noise(None, rng.standard_normal(out.shape, dtype=np.float32))

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        median = 0.5 if self._actor.uniform_noise else 0.0
        without_noise = np.full((*observations.shape[:2], self._actor.noise_dim), median, np.float32)
        actions, infos = self._actor.act(observations, without_noise)
        return np.clip(actions + noise, *self._bounds), infos


class GaussianNoisePolicy(ExplorationPolicy):
    """Adds Gaussian noise to the actions of another policy: `x_t = sigma n_t`, where `n_t` is standard normal.

    Args:
        env_spec (EnvSpec): observation space and action space. The action space is a box; actions are clipped to it.
        policy: the other policy; see `ExplorationPolicy`.
        sigma (float): standard deviation of the noise, in the action's unit, at least 0. Default: 0.1.
    """

    assignable_arguments = ("sigma",)
    _checks = {"sigma": check_non_negative}

    def __init__(self, env_spec: Any, policy: Any, sigma: float = 0.1) -> None:
        super().__init__(env_spec, policy)
        self.sigma = sigma

    def next_noise(self, noise: Optional[np.ndarray], normal: np.ndarray) -> np.ndarray:
        return self.sigma * normal


class OrnsteinUhlenbeckPolicy(ExplorationPolicy):
    """Adds temporally correlated noise (an Ornstein-Uhlenbeck process) to the actions of another policy.

    `x_t = x_{t-1} + theta (mu - x_{t-1}) dt + sigma sqrt(dt) n_t` with `x_{-1} = x0`, where `n_t` is standard normal.
    If `theta dt` is between 0 and 2, the stationary distribution of the noise has the mean `mu` and the standard
    deviation `sigma sqrt(dt / (1 - (1 - theta dt)^2))`, 0.38 by default.

    Args:
        env_spec (EnvSpec): observation space and action space. The action space is a box; actions are clipped to it.
        policy: the other policy; see `ExplorationPolicy`.
        mu (float): long-term mean of the noise, in the action's unit. Default: 0.
        sigma (float): scale of the noise, in the action's unit per square root of time, at least 0. Default: 0.2.
        theta (float): rate of reversion to the mean, per unit of time, at least 0. Default: 0.15.
        dt (float): duration of a step, above 0. Default: 1.
        x0 (float or None): initial noise of each path, in the action's unit. Default: None, `mu`.

    References:
        Lillicrap et al. 2016, "Continuous control with deep reinforcement learning", arXiv:1509.02971, for the use in
        DDPG and the default values.
    """

    assignable_arguments = ("mu", "sigma", "theta", "dt", "x0")
    _checks = {"mu": check_finite, "sigma": check_non_negative, "theta": check_non_negative, "dt": check_positive,
               "x0": check_finite}

    def __init__(self, env_spec: Any, policy: Any, mu: float = 0.0, sigma: float = 0.2, theta: float = 0.15,
                 dt: float = 1.0, x0: Optional[float] = None) -> None:
        super().__init__(env_spec, policy)
        self.mu, self.sigma, self.theta, self.dt = mu, sigma, theta, dt
        self.x0 = self.mu if x0 is None else x0

    def next_noise(self, noise: Optional[np.ndarray], normal: np.ndarray) -> np.ndarray:
        before = self.x0 if noise is None else noise
        return before + self.theta * (self.mu - before) * self.dt + self.sigma * math.sqrt(self.dt) * normal
