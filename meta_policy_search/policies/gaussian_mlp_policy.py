"""A Gaussian policy with diagonal covariance matrix, whose mean is a multi-layer perceptron."""
import math
from collections import OrderedDict
from typing import Dict, Mapping, Optional, Sequence

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.actors.parameters import LOG_STD, check_std, fold_context, initial_log_std
from meta_policy_search.actors.stacked_mlp import gaussian_actor
from meta_policy_search.policies.base import ACTING, Policy, log_path_mean
from meta_policy_search.policies.distributions.diagonal_gaussian import DiagonalGaussian
from meta_policy_search.policies.networks import Nonlinearity, build_mlp, forward_mlp, numpy_network
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import Params, Path
from meta_policy_search.utils.fast_paths import replaces


class GaussianMLPPolicy(Policy):
    """Gaussian policy: `a ~ N(mlp(o), diag(std^2))`. The standard deviation does not depend on the observation.

    The parameters are `mean_network/<layer>/kernel`, `mean_network/<layer>/bias` (layers `hidden_0`, ..., `output`)
    and, if `learn_std`, `log_std_network/log_std_var`. Kernels have a Glorot-uniform initialization, drawn from the
    root seed. Biases are initialized to zero.

    Args:
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action.
        name (str): name scope of the policy's operations. Default: `"policy"`.
        hidden_sizes (sequence of int): units of each hidden layer; empty for a linear policy. Default: (32, 32).
        learn_std (bool): whether the standard deviation is a trained parameter; otherwise, it is fixed at its initial
            value. Default: True.
        hidden_nonlinearity (str, callable or None): nonlinearity of the hidden layers: `'tanh'`, `'relu'`, `'sigmoid'`,
            `'softplus'`, `'elu'`, a TensorFlow function, or None for the identity. Default: `'tanh'`.
        output_nonlinearity (str, callable or None): nonlinearity of the output layer, in the same forms. Default: None,
            the identity.
        init_std (float): initial standard deviation, in the action's unit, at least `min_std`. Default: 1.
        min_std (float): minimum standard deviation, in the action's unit, above 0. Default: 1e-6.
    """

    context_dim = 0  # MetaGaussianMLPPolicy has this argument

    def __init__(self, obs_dim: int, action_dim: int, name: str = "policy", hidden_sizes: Sequence[int] = (32, 32),
                 learn_std: bool = True, hidden_nonlinearity: Nonlinearity = "tanh",
                 output_nonlinearity: Nonlinearity = None, *, init_std: float = 1.0,
                 min_std: float = 1e-6) -> None:
        Policy.__init__(self, obs_dim, action_dim, name, hidden_sizes, learn_std, hidden_nonlinearity,
                        output_nonlinearity)
        self.init_std, self.min_std = check_std(init_std, min_std)
        self._distribution = DiagonalGaussian(self.action_dim)
        self.build_graph()

    def build_graph(self) -> None:
        """Builds the policy's variables and the operations for acting; called once, by the constructor."""
        log_std = {LOG_STD: initial_log_std(self.action_dim, self.init_std)} if self.learn_std else {}
        build_mlp(self, "mean_network", log_std)

    def distribution_info_sym(self, obs_var: tf.Tensor,
                              params: Optional[Mapping[str, tf.Tensor]] = None) -> Dict[str, tf.Tensor]:
        """Builds the distribution parameters; see `Policy.distribution_info_sym`.

        Returns `mean` `[N, A]` and `log_std` `[1, A]`; with stacked parameters, `[M, N, A]` and `[M, 1, A]`.
        """
        params = self.get_params() if params is None else params
        with tf.name_scope("distribution_info"):
            params = fold_context(params, "mean_network", self.obs_dim)
            mean = forward_mlp(params, obs_var, "mean_network", len(self.hidden_sizes), self.hidden_nonlinearity,
                               self.output_nonlinearity)
            log_std = params[LOG_STD] if self.learn_std else initial_log_std(self.action_dim, self.init_std)
            log_std = tf.maximum(log_std, np.float32(math.log(self.min_std)))
            return OrderedDict(mean=mean, log_std=tf.expand_dims(log_std, -2))

    @replaces(*ACTING)
    def make_actors(self, flat_params: np.ndarray) -> Optional[Actor]:
        """Returns an actor for parameters `[M, D]`; see `FlatPolicy.make_actors`.

        Returns None if a nonlinearity or the distribution is not from this library. The distribution parameters agree
        with those of `get_actions` to about 1e-6.
        """
        return self._stack(self.unflatten("flat_params", flat_params, ndim=2))

    def _stack(self, params: Params) -> Optional[Actor]:
        """Returns an actor for parameters `[M, ...]`; None under the same conditions as `make_actors`."""
        network = numpy_network(self)
        fixed_log_std = None if self.learn_std else initial_log_std(self.action_dim, self.init_std)
        params = fold_context(params, "mean_network", self.obs_dim)
        return None if network is None else gaussian_actor(params, network, fixed_log_std, self.min_std)

    def log_diagnostics(self, paths: Sequence[Path], prefix: str = "") -> None:
        """Logs `AveragePolicyEntropy` (see `Policy.log_diagnostics`) and `AveragePolicyStd`.

        `AveragePolicyStd` is the mean over paths of the mean standard deviation over each path, in the action's unit.
        """
        Policy.log_diagnostics(self, paths, prefix)
        log_path_mean(paths, prefix + "AveragePolicyStd", ["log_std"], lambda info: np.exp(info["log_std"]))
