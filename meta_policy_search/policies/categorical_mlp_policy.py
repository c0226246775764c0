"""A policy for discrete actions: the logarithms of their odds are a multi-layer perceptron."""
from collections import OrderedDict
from typing import Any, Dict, Mapping, Optional

from meta_policy_search.actors.mlp_families import CategoricalFamily
from meta_policy_search.policies.base import PolicyArguments
from meta_policy_search.policies.distributions.categorical import Categorical
from meta_policy_search.policies.mlp_policy import MLPPolicy
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.signatures import Unpack


class CategoricalMLPPolicy(CategoricalFamily, MLPPolicy):
    """Categorical policy: `pi(a | o) = softmax(mlp(o))_a` for the actions `a = 0, ..., n - 1`.

    The parameters are `logits_network/<layer>/kernel` and `logits_network/<layer>/bias` (layers `hidden_0`, ...,
    `output`). Kernels start Glorot-uniform, biases at zero, drawn from the root seed.

    Args:
        action_dim (int): number of actions `n`.
        learn_std (bool): True; there is no standard deviation to learn or not.
    """

    def __init__(self, *args: Any, **kwargs: Unpack[PolicyArguments]) -> None:
        super().__init__(*args, **kwargs)
        if not self.learn_std:
            raise ValueError("learn_std: expected nothing or True, got False; a categorical policy has no standard "
                             "deviation")
        self._distribution = Categorical(self.action_dim)
        self.build_graph()

    @property
    def distribution(self) -> Categorical:
        """A `Categorical` of the number of actions."""
        return self._distribution

    def distribution_info_sym(self, obs_var: tf.Tensor,
                              params: Optional[Mapping[str, tf.Tensor]] = None) -> Dict[str, tf.Tensor]:
        """See `Policy.distribution_info_sym`: `log_prob` `[N, n]`, or `[M, N, n]`."""
        params = self.get_params() if params is None else params
        with tf.name_scope("distribution_info"):
            return OrderedDict(log_prob=tf.nn.log_softmax(self._build_output(params, obs_var)))
