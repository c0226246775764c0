"""A Gaussian policy with diagonal covariance matrix, whose mean is a multi-layer perceptron."""
import functools
from typing import Sequence

import numpy as np

from meta_policy_search.actors.actor import Network
from meta_policy_search.actors.parameters import check_std
from meta_policy_search.ops.networks import LOG_STD, gaussian_mlp, make_context, make_log_std, make_mlp
from meta_policy_search.ops.tensorflow_ops import Nonlinearity
from meta_policy_search.policies.base import Policy, log_path_mean
from meta_policy_search.policies.distributions import DiagonalGaussian
from meta_policy_search.types import Params, Path


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
            `'softplus'`, `'elu'`, a function that snapshots can contain, such as `lambda x: tf.nn.selu(x)`, or None for
            the identity. Default: `'tanh'`.
        output_nonlinearity (str, callable or None): nonlinearity of the output layer, in the same forms. Default: None,
            the identity.
        init_std (float): initial standard deviation, in the action's unit, at least `min_std`. Default: 1.
        min_std (float): minimum standard deviation, in the action's unit, above 0. Default: 1e-6.
    """

    distribution_cls = DiagonalGaussian
    context_dim = 0  # MetaGaussianMLPPolicy has this argument

    def __init__(self, obs_dim: int, action_dim: int, name: str = "policy", hidden_sizes: Sequence[int] = (32, 32),
                 learn_std: bool = True, hidden_nonlinearity: Nonlinearity = "tanh",
                 output_nonlinearity: Nonlinearity = None, *, init_std: float = 1.0,
                 min_std: float = 1e-6) -> None:
        self.init_std, self.min_std = check_std(init_std, min_std)
        Policy.__init__(self, obs_dim, action_dim, name, hidden_sizes, learn_std, hidden_nonlinearity,
                        output_nonlinearity)

    def make_params(self, rng: np.random.Generator) -> Params:
        """Draws the initial parameters by name; see `Policy.make_params`."""
        params = make_mlp("mean_network", self.obs_dim + self.context_dim, self.action_dim, self.hidden_sizes, rng)
        if self.learn_std:
            params[LOG_STD] = make_log_std(self.action_dim, self.init_std)
        return {**params, **make_context(self.context_dim)}

    def make_network(self) -> Network:
        """Returns the network, a perceptron for the mean; see `Policy.make_network`."""
        fixed = None if self.learn_std else make_log_std(self.action_dim, self.init_std)
        return functools.partial(gaussian_mlp, hidden_nonlinearity=self.hidden_nonlinearity,
                                 output_nonlinearity=self.output_nonlinearity, fixed_log_std=fixed,
                                 min_std=self.min_std)

    def log_diagnostics(self, paths: Sequence[Path], prefix: str = "") -> None:
        """Logs `AveragePolicyEntropy` (see `Policy.log_diagnostics`) and `AveragePolicyStd`.

        `AveragePolicyStd` is the mean over paths of the mean standard deviation over each path, in the action's unit.
        """
        Policy.log_diagnostics(self, paths, prefix)
        log_path_mean(paths, prefix + "AveragePolicyStd", ["log_std"], lambda info: np.exp(info["log_std"]))
