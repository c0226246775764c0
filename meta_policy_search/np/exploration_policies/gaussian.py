"""Exploration by independent Gaussian noise."""
from typing import Any, Optional

import numpy as np

from meta_policy_search.np.exploration_policies.base import ExplorationPolicy
from meta_policy_search.utils.checks import check_non_negative


class GaussianNoisePolicy(ExplorationPolicy):
    """Adds Gaussian noise to another policy's actions: `x_t = sigma n_t`, each `n_t` standard normal.

    Args:
        sigma (float): standard deviation, in the action's unit, at least 0. Default: 0.1.
    """

    def __init__(self, env_spec: Any, policy: Any, sigma: float = 0.1) -> None:
        super().__init__(env_spec, policy)
        self.sigma = check_non_negative("sigma", sigma)

    def next_noise(self, noise: Optional[np.ndarray], normal: np.ndarray) -> np.ndarray:
        return self.sigma * normal
