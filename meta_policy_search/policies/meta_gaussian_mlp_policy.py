"""A Gaussian MLP policy with adapted parameters for each task of a meta-batch."""
from typing import Sequence

from meta_policy_search.ops.tensorflow_ops import Nonlinearity
from meta_policy_search.policies.base import MetaPolicy
from meta_policy_search.policies.gaussian_mlp_policy import GaussianMLPPolicy
from meta_policy_search.utils.checks import check_int_at_least


class MetaGaussianMLPPolicy(GaussianMLPPolicy, MetaPolicy):
    """A `GaussianMLPPolicy` for meta-learning, with separate parameters for each of `M` tasks.

    Args:
        meta_batch_size (int): number of tasks `M`.
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
        context_dim (int): number of context parameters (CAVIA, arXiv:1810.03642), at least 0. The context is appended
            to each observation and is zero before adaptation. Only adaptation steps change it. With
            `adapt_params='context'`, an algorithm adapts only the context. Default: 0.

    Example:
        >>> import numpy as np
        >>> policy = MetaGaussianMLPPolicy(meta_batch_size=3, obs_dim=4, action_dim=2, hidden_sizes=(16,))
        >>> actions, infos = policy.get_actions(np.zeros((3, 5, 4)))  # 3 tasks, 5 observations each
        >>> len(actions), actions[0].shape, sorted(infos[0][0])
        (3, (5, 2), ['log_std', 'mean'])
        >>> policy.get_flat_params().size
        116
    """

    def __init__(self, meta_batch_size: int, obs_dim: int, action_dim: int, name: str = "policy",
                 hidden_sizes: Sequence[int] = (32, 32), learn_std: bool = True,
                 hidden_nonlinearity: Nonlinearity = "tanh",
                 output_nonlinearity: Nonlinearity = None, *, init_std: float = 1.0,
                 min_std: float = 1e-6, context_dim: int = 0) -> None:
        self._init_tasks(meta_batch_size)
        self.context_dim = check_int_at_least("context_dim", context_dim, 0)
        GaussianMLPPolicy.__init__(self, obs_dim, action_dim, name, hidden_sizes, learn_std, hidden_nonlinearity,
                                   output_nonlinearity, init_std=init_std, min_std=min_std)
