"""What the MLP policies of a family have in common on NumPy (`np.policies`) and in the graph (`policies`)."""
import math
from typing import Any

import numpy as np

from meta_policy_search.actors.stacked_mlp import StackedCategoricalMLP, StackedGaussianMLP
from meta_policy_search.types import Params
from meta_policy_search.utils.checks import check_positive

LOG_STD = "log_std_network/log_std_var"
"""Name of the parameter that is the logarithm of the standard deviation."""


class GaussianFamily:
    """Gaussian policies: the network's output is the mean; the standard deviation is a parameter, or fixed.

    Attributes:
        action_dim (int): size `A` of an action.
        learn_std (bool): whether the standard deviation is a parameter.
    """

    action_dim: int
    learn_std: bool
    _scope = "mean_network"

    def _set_std(self, init_std: float, min_std: float) -> None:
        """Checks and sets the initial and the smallest standard deviation."""
        self.init_std = check_positive("init_std", init_std)
        self.min_std = check_positive("min_std", min_std)
        if self.init_std < self.min_std:
            raise ValueError(f"init_std: expected at least min_std={self.min_std}, got {self.init_std}")

    def _initial_log_std(self) -> np.ndarray:
        return np.full(self.action_dim, math.log(self.init_std), np.float32)

    def _stack_params(self, params: Params, *network: Any) -> StackedGaussianMLP:
        """Returns what acts; parameters `[M, ...]`, and the network's depth and nonlinearities by name."""
        if not self.learn_std:
            num_tasks = len(next(iter(params.values())))
            params = {**params, LOG_STD: np.broadcast_to(self._initial_log_std(), (num_tasks, self.action_dim))}
        return StackedGaussianMLP(params, *network, math.log(self.min_std))  # type: ignore[call-arg]


class CategoricalFamily:
    """Categorical policies: the network's outputs are the logarithms of the odds."""

    _scope = "logits_network"

    def _stack_params(self, params: Params, *network: Any) -> StackedCategoricalMLP:
        """Returns what acts; parameters `[M, ...]`, and the network's depth and nonlinearities by name."""
        return StackedCategoricalMLP(params, *network)
