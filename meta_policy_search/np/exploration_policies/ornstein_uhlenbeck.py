"""Exploration by noise that is correlated in time."""
import math
from typing import Any, Optional

import numpy as np

from meta_policy_search.np.exploration_policies.base import ExplorationPolicy
from meta_policy_search.utils.checks import check_finite, check_non_negative, check_positive


class OrnsteinUhlenbeckPolicy(ExplorationPolicy):
    """Adds noise from an Ornstein-Uhlenbeck process to another policy's actions, so that it explores with momentum.

    `x_t = x_{t-1} + theta (mu - x_{t-1}) dt + sigma sqrt(dt) n_t` from `x_{-1} = x0`, each `n_t` standard normal. Far
    from the start of a path, with `theta dt` between 0 and 2, the noise has the mean `mu` and the standard deviation
    `sigma sqrt(dt / (1 - (1 - theta dt)^2))`, 0.38 by default.

    Args:
        mu (float): mean that the noise is drawn to, in the action's unit. Default: 0.
        sigma (float): scale of the noise, in the action's unit per square root of time, at least 0. Default: 0.2.
        theta (float): how fast it is drawn there, per unit of time, at least 0. Default: 0.15.
        dt (float): time of a step, above 0. Default: 1.
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
