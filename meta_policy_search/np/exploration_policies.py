"""Policies that explore: another policy's actions with noise, clipped to the action space."""
import abc
import copy
import math
from typing import Any, Callable, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.actors.flat_policy import act_in_one_task
from meta_policy_search.actors.of_policies import check_spaces, make_actors
from meta_policy_search.envs.env_spec import check_env_spec
from meta_policy_search.envs.spaces import is_box
from meta_policy_search.np.policies import Policy
from meta_policy_search.types import Infos
from meta_policy_search.utils.checks import check_finite, check_non_negative, check_positive
from meta_policy_search.utils.fast_paths import replaces

__all__ = ["ExplorationPolicy", "GaussianNoisePolicy", "OrnsteinUhlenbeckPolicy"]


class ExplorationPolicy(Policy):
    """Acts like another policy (by the mean, if that is Gaussian), with noise added to its actions.

    It shares that policy's parameters. The noise is a process `x_0, x_1, ...` that begins anew with each path; a
    subclass supplies `next_noise`.

    Args:
        env_spec (EnvSpec): spaces of the environment, of which the action space is a box; actions are clipped to it.
        policy: the other policy, such as those of `np.policies`; it must have the vectorized method `make_actors`.
    """

    def __init__(self, env_spec: Any, policy: Any) -> None:
        space = check_env_spec("env_spec", env_spec).action_space
        if not is_box(space):
            raise ValueError(f"env_spec: expected one whose action space is a box, got {space}")
        check_spaces(policy, env_spec)
        super().__init__(policy.obs_dim, policy.action_dim)
        self.policy = policy
        self._bounds = np.asarray(space.low, np.float32), np.asarray(space.high, np.float32)
        self._noise: Optional[np.ndarray] = None  # [A], of the latest step
        self.make_actors(self.get_flat_params()[None])  # raises if the policy has none

    @abc.abstractmethod
    def next_noise(self, noise: Optional[np.ndarray], normal: np.ndarray) -> np.ndarray:
        """Computes the noise of a step.

        Args:
            noise: `[A]`, that of the step before; None at the first step of a path.
            normal: `[A]`, standard normal.

        Returns:
            `[A]`, in the action's unit.
        """

    def compute_noise(self, noise: Optional[np.ndarray], normal: np.ndarray) -> np.ndarray:
        """Computes the noise of consecutive steps, float32 `[T, A]`; `normal` is `[T, A]`, else see `next_noise`."""
        rows = np.empty_like(normal, dtype=np.float32)
        for step, row in enumerate(normal):
            rows[step] = noise = self.next_noise(noise, row)
        return rows

    def reset(self, dones: Any = None) -> None:
        """Begins a new path, for `get_action` and `get_actions`."""
        self._noise = None

    def get_flat_params(self) -> np.ndarray:
        """Returns a copy of the other policy's parameters, float32 `[D]`."""
        return self.policy.get_flat_params()

    def set_flat_params(self, flat_params: np.ndarray) -> None:
        """Sets the other policy's parameters, `[D]`."""
        self.policy.set_flat_params(flat_params)

    def get_actions(self, observations: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """See `Policy.get_actions`; the observations are those of consecutive steps."""
        observations = self._check_observations("observations", observations, ndim=2)
        normal = self._rng.standard_normal((len(observations), self.action_dim), dtype=np.float32)
        noise = self.compute_noise(self._noise, normal)
        self._noise = noise[-1]
        return act_in_one_task(self.make_actors(self.get_flat_params()[None]), observations, noise)

    @replaces("get_action", "get_actions")
    def make_actors(self, flat_params: np.ndarray) -> Actor:
        """See `Policy.make_actors`; raises `TypeError` if the other policy has no vectorized method."""
        actor = make_actors(self.policy, flat_params)
        if actor is None:
            raise TypeError(f"policy: expected one with a vectorized method (make_actors), got {self.policy!r}")
        return _NoisyActor(actor, self.action_dim, self.compute_noise, self._bounds)


class _NoisyActor(Actor):
    """Acts like another actor, with noise added to its actions."""

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
        silence = np.zeros((*observations.shape[:2], self._actor.noise_dim), np.float32)
        actions, infos = self._actor.act(observations, silence)
        return np.clip(actions + noise, *self._bounds), infos


class GaussianNoisePolicy(ExplorationPolicy):
    """Adds Gaussian noise to another policy's actions: `x_t = sigma n_t`, each `n_t` standard normal.

    Args:
        env_spec (EnvSpec): spaces of the environment; the action space is a box, to which actions are clipped.
        policy: the other policy; see `ExplorationPolicy`.
        sigma (float): standard deviation, in the action's unit, at least 0.
    """

    def __init__(self, env_spec: Any, policy: Any, sigma: float = 0.1) -> None:
        super().__init__(env_spec, policy)
        self.sigma = check_non_negative("sigma", sigma)

    def next_noise(self, noise: Optional[np.ndarray], normal: np.ndarray) -> np.ndarray:
        return self.sigma * normal


class OrnsteinUhlenbeckPolicy(ExplorationPolicy):
    """Adds noise from an Ornstein-Uhlenbeck process to another policy's actions, so that it explores with momentum.

    `x_t = x_{t-1} + theta (mu - x_{t-1}) dt + sigma sqrt(dt) n_t` from `x_{-1} = x0`, each `n_t` standard normal. Far
    from the start of a path, with `theta dt` between 0 and 2, the noise has the mean `mu` and the standard deviation
    `sigma sqrt(dt / (1 - (1 - theta dt)^2))`, 0.38 by default.

    Args:
        env_spec (EnvSpec): spaces of the environment; the action space is a box, to which actions are clipped.
        policy: the other policy; see `ExplorationPolicy`.
        mu (float): mean that the noise is drawn to, in the action's unit.
        sigma (float): scale of the noise, in the action's unit per square root of time, at least 0.
        theta (float): how fast it is drawn there, per unit of time, at least 0.
        dt (float): time of a step, above 0.
        x0 (float or None): noise that a path begins with, in the action's unit. Default: `mu`.

    References:
        Lillicrap et al. 2016, "Continuous control with deep reinforcement learning", arXiv:1509.02971, for its use and
        the defaults.
    """

    def __init__(self, env_spec: Any, policy: Any, mu: float = 0.0, sigma: float = 0.2, theta: float = 0.15,
                 dt: float = 1.0, x0: Optional[float] = None) -> None:
        super().__init__(env_spec, policy)
        self.mu = check_finite("mu", mu)
        self.sigma = check_non_negative("sigma", sigma)
        self.theta = check_non_negative("theta", theta)
        self.dt = check_positive("dt", dt)
        self.x0 = self.mu if x0 is None else check_finite("x0", x0)

    def next_noise(self, noise: Optional[np.ndarray], normal: np.ndarray) -> np.ndarray:
        before = self.x0 if noise is None else noise
        return before + self.theta * (self.mu - before) * self.dt + self.sigma * math.sqrt(self.dt) * normal
