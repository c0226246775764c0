"""Policies for discrete actions: a multi-layer perceptron computes the logits."""
from collections import OrderedDict
from typing import Dict, Mapping, Optional, Sequence

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.actors.parameters import fold_context
from meta_policy_search.actors.stacked_mlp import categorical_actor
from meta_policy_search.policies.base import ACTING, MetaPolicy, Policy
from meta_policy_search.policies.distributions.categorical import Categorical
from meta_policy_search.policies.networks import Nonlinearity, build_mlp, forward_mlp, numpy_network
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import Params
from meta_policy_search.utils.checks import check_int_at_least
from meta_policy_search.utils.fast_paths import replaces


class CategoricalMLPPolicy(Policy):
    """Categorical policy: `pi(a | o) = softmax(mlp(o))_a` for the actions `a = 0, ..., n - 1`.

    The parameters are `logits_network/<layer>/kernel` and `logits_network/<layer>/bias` (layers `hidden_0`, ...,
    `output`). Kernels have a Glorot-uniform initialization, drawn from the root seed. Biases are initialized to zero.

    Args:
        obs_dim (int): size `O` of an observation.
        action_dim (int): number of actions `n`.
        name (str): name scope of the policy's operations. Default: `"policy"`.
        hidden_sizes (sequence of int): units of each hidden layer; empty for a linear policy. Default: (32, 32).
        learn_std (bool): must be True; a categorical policy has no standard deviation. Default: True.
        hidden_nonlinearity (str, callable or None): nonlinearity of the hidden layers: `'tanh'`, `'relu'`, `'sigmoid'`,
            `'softplus'`, `'elu'`, a TensorFlow function, or None for the identity. Default: `'tanh'`.
        output_nonlinearity (str, callable or None): nonlinearity of the output layer, in the same forms. Default: None,
            the identity.
    """

    context_dim = 0  # MetaCategoricalMLPPolicy has this argument

    def __init__(self, obs_dim: int, action_dim: int, name: str = "policy", hidden_sizes: Sequence[int] = (32, 32),
                 learn_std: bool = True, hidden_nonlinearity: Nonlinearity = "tanh",
                 output_nonlinearity: Nonlinearity = None) -> None:
        Policy.__init__(self, obs_dim, action_dim, name, hidden_sizes, learn_std, hidden_nonlinearity,
                        output_nonlinearity)
        if not self.learn_std:
            raise ValueError("learn_std: expected True, got False; a categorical policy has no standard deviation")
        self._distribution = Categorical(self.action_dim)
        self.build_graph()

    def build_graph(self) -> None:
        """Builds the policy's variables and the operations for acting; called once, by the constructor."""
        build_mlp(self, "logits_network", {})

    def distribution_info_sym(self, obs_var: tf.Tensor,
                              params: Optional[Mapping[str, tf.Tensor]] = None) -> Dict[str, tf.Tensor]:
        """Builds `log_prob`, `[N, n]` or `[M, N, n]`; see `Policy.distribution_info_sym`."""
        params = self.get_params() if params is None else params
        with tf.name_scope("distribution_info"):
            params = fold_context(params, "logits_network", self.obs_dim)
            logits = forward_mlp(params, obs_var, "logits_network", len(self.hidden_sizes), self.hidden_nonlinearity,
                                 self.output_nonlinearity)
            return OrderedDict(log_prob=tf.nn.log_softmax(logits))

    @replaces(*ACTING)
    def make_actors(self, flat_params: np.ndarray) -> Optional[Actor]:
        """Returns an actor for parameters `[M, D]`; see `GaussianMLPPolicy.make_actors`."""
        return self._stack(self.unflatten("flat_params", flat_params, ndim=2))

    def _stack(self, params: Params) -> Optional[Actor]:
        """Returns an actor for parameters `[M, ...]`; None under the same conditions as `make_actors`."""
        network = numpy_network(self)
        params = fold_context(params, "logits_network", self.obs_dim)
        return None if network is None else categorical_actor(params, network)


class MetaCategoricalMLPPolicy(CategoricalMLPPolicy, MetaPolicy):
    """A `CategoricalMLPPolicy` for meta-learning, with separate parameters for each of `M` tasks.

    Args:
        meta_batch_size (int): number of tasks `M`.
        obs_dim (int): size `O` of an observation.
        action_dim (int): number of actions `n`.
        name (str): name scope of the policy's operations. Default: `"policy"`.
        hidden_sizes (sequence of int): units of each hidden layer; empty for a linear policy. Default: (32, 32).
        learn_std (bool): must be True; a categorical policy has no standard deviation. Default: True.
        hidden_nonlinearity (str, callable or None): nonlinearity of the hidden layers: `'tanh'`, `'relu'`, `'sigmoid'`,
            `'softplus'`, `'elu'`, a TensorFlow function, or None for the identity. Default: `'tanh'`.
        output_nonlinearity (str, callable or None): nonlinearity of the output layer, in the same forms. Default: None,
            the identity.
        context_dim (int): number of context parameters, at least 0; see `MetaGaussianMLPPolicy`. Default: 0.
    """

    def __init__(self, meta_batch_size: int, obs_dim: int, action_dim: int, name: str = "policy",
                 hidden_sizes: Sequence[int] = (32, 32), learn_std: bool = True,
                 hidden_nonlinearity: Nonlinearity = "tanh",
                 output_nonlinearity: Nonlinearity = None, *, context_dim: int = 0) -> None:
        self._init_tasks(meta_batch_size)
        self.context_dim = check_int_at_least("context_dim", context_dim, 0)
        CategoricalMLPPolicy.__init__(self, obs_dim, action_dim, name, hidden_sizes, learn_std, hidden_nonlinearity,
                                      output_nonlinearity)

    @replaces(*ACTING)
    def make_actors(self, flat_params: np.ndarray) -> Optional[Actor]:
        """Returns an actor for parameters `[M, D]`; see `GaussianMLPPolicy.make_actors`."""
        return self._stack(self.unflatten("flat_params", flat_params, ndim=2))

    @replaces(*ACTING)
    def make_actor(self) -> Optional[Actor]:
        """Returns an actor for the policy's `M` tasks; None under the same conditions as `make_actors`."""
        return self._stack(self.stacked_param_values())
