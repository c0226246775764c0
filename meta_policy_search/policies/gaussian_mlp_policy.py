"""A Gaussian policy with a diagonal covariance matrix, its mean a multi-layer perceptron."""
import math
from collections import OrderedDict
from typing import Any, Dict, Mapping, Optional, Sequence

import numpy as np

from meta_policy_search.actors.mlp_families import LOG_STD, GaussianFamily
from meta_policy_search.policies.base import PolicyArguments, log_path_mean
from meta_policy_search.policies.distributions.diagonal_gaussian import DiagonalGaussian
from meta_policy_search.policies.mlp_policy import MLPPolicy
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import Path
from meta_policy_search.utils.signatures import Unpack


class GaussianArguments(PolicyArguments, total=False):
    """Arguments that Gaussian policies share, by name."""

    init_std: float
    min_std: float


class GaussianMLPPolicy(GaussianFamily, MLPPolicy):
    """Gaussian policy: `a ~ N(mlp(o), diag(std^2))`, the standard deviation independent of the observation.

    The parameters are `mean_network/<layer>/kernel`, `mean_network/<layer>/bias` (layers `hidden_0`, ...,
    `output`) and, if `learn_std`, `log_std_network/log_std_var`. Kernels start Glorot-uniform, biases at zero,
    drawn from the root seed.

    Args:
        init_std (float): initial standard deviation, in the action's unit; default 1.
        min_std (float): smallest standard deviation; default 1e-6.
    """

    def __init__(self, *args: Any, init_std: float = 1.0, min_std: float = 1e-6,
                 **kwargs: Unpack[PolicyArguments]) -> None:
        super().__init__(*args, **kwargs)
        self._set_std(init_std, min_std)
        self._distribution = DiagonalGaussian(self.action_dim)
        self.build_graph()

    @property
    def distribution(self) -> DiagonalGaussian:
        """A `DiagonalGaussian` of the action's size."""
        return self._distribution

    def _initial_values(self, rng: np.random.Generator) -> "OrderedDict[str, np.ndarray]":
        values = super()._initial_values(rng)
        if self.learn_std:
            values[LOG_STD] = self._initial_log_std()
        return values

    def distribution_info_sym(self, obs_var: tf.Tensor,
                              params: Optional[Mapping[str, tf.Tensor]] = None) -> Dict[str, tf.Tensor]:
        """See `Policy`: `mean` `[N, A]` and `log_std` `[1, A]`; or `[M, N, A]` and `[M, 1, A]`."""
        params = self.get_params() if params is None else params
        with tf.name_scope("distribution_info"):
            mean = self._build_output(params, obs_var)
            log_std = params[LOG_STD] if self.learn_std else self._initial_log_std()
            log_std = tf.maximum(log_std, np.float32(math.log(self.min_std)))
            return OrderedDict(mean=mean, log_std=tf.expand_dims(log_std, -2))

    def log_diagnostics(self, paths: Sequence[Path], prefix: str = "") -> None:
        """Adds `AveragePolicyStd`, the mean standard deviation of the actions, in the same way."""
        super().log_diagnostics(paths, prefix)
        log_path_mean(paths, prefix + "AveragePolicyStd", ["log_std"], lambda info: np.exp(info["log_std"]))
