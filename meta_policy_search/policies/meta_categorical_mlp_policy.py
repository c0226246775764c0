"""The categorical MLP policy with adapted parameters for each task of a meta-batch."""
from typing import Optional, Sequence, Union

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.policies.base import ACTING, MetaPolicy
from meta_policy_search.policies.categorical_mlp_policy import CategoricalMLPPolicy
from meta_policy_search.policies.networks import Nonlinearity
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.fast_paths import replaces


class MetaCategoricalMLPPolicy(CategoricalMLPPolicy, MetaPolicy):
    """A `CategoricalMLPPolicy` for meta-learning: each of `M` tasks acts with its own parameters.

    Args:
        meta_batch_size (int): number `M` of tasks.
        obs_dim (int): size `O` of an observation.
        action_dim (int): number of actions `n`.
        name (str): name scope of the policy's operations.
        hidden_sizes (tuple of int): units of each hidden layer; empty for a linear policy.
        learn_std (bool): True; there is no standard deviation to learn or not.
        hidden_nonlinearity (callable, str or None): of the hidden layers, such as `tf.tanh` or `'tanh'`; None for
            the identity.
        output_nonlinearity (callable, str or None): of the output layer.
    """

    def __init__(self, meta_batch_size: int, obs_dim: int, action_dim: int, name: str = "policy",
                 hidden_sizes: Sequence[int] = (32, 32), learn_std: bool = True,
                 hidden_nonlinearity: Union[str, Nonlinearity] = tf.tanh,
                 output_nonlinearity: Union[str, Nonlinearity] = None) -> None:
        self._init_tasks(meta_batch_size)
        CategoricalMLPPolicy.__init__(self, obs_dim, action_dim, name, hidden_sizes, learn_std, hidden_nonlinearity,
                                      output_nonlinearity)

    @replaces(*ACTING)
    def make_actors(self, flat_params: np.ndarray) -> Optional[Actor]:
        """See `GaussianMLPPolicy.make_actors`."""
        return self._stack(self._unflatten("flat_params", flat_params, ndim=2))

    @replaces(*ACTING)
    def make_actor(self) -> Optional[Actor]:
        """See `MetaPolicy.make_actor`; None as in `make_actors`."""
        return self._stack(self.stacked_param_values())
