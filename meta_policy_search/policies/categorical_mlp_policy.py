"""Policies for discrete actions: a multi-layer perceptron computes the logits."""
import functools
from typing import Sequence

import numpy as np

from meta_policy_search.actors.actor import Network
from meta_policy_search.ops.networks import categorical_mlp, make_context, make_mlp
from meta_policy_search.ops.tensorflow_ops import Nonlinearity
from meta_policy_search.policies.base import MetaPolicy, Policy
from meta_policy_search.policies.distributions import Categorical
from meta_policy_search.types import Params
from meta_policy_search.utils.checks import check_int_at_least


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
            `'softplus'`, `'elu'`, a function that snapshots can contain, such as `lambda x: tf.nn.selu(x)`, or None for
            the identity. Default: `'tanh'`.
        output_nonlinearity (str, callable or None): nonlinearity of the output layer, in the same forms. Default: None,
            the identity.
    """

    distribution_cls = Categorical
    context_dim = 0  # MetaCategoricalMLPPolicy has this argument

    def make_params(self, rng: np.random.Generator) -> Params:
        """Draws the initial parameters by name; see `Policy.make_params`."""
        if not self.learn_std:
            raise ValueError("learn_std: expected True, got False; a categorical policy has no standard deviation")
        params = make_mlp("logits_network", self.obs_dim + self.context_dim, self.action_dim, self.hidden_sizes, rng)
        return {**params, **make_context(self.context_dim)}

    def make_network(self) -> Network:
        """Returns the network, a perceptron for the logits; see `Policy.make_network`."""
        return functools.partial(categorical_mlp, hidden_nonlinearity=self.hidden_nonlinearity,
                                 output_nonlinearity=self.output_nonlinearity)


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
            `'softplus'`, `'elu'`, a function that snapshots can contain, such as `lambda x: tf.nn.selu(x)`, or None for
            the identity. Default: `'tanh'`.
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
