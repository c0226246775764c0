"""The Gaussian MLP policy with adapted parameters for each task of a meta-batch."""
from typing import Any

from meta_policy_search.policies.gaussian_mlp_policy import GaussianArguments, GaussianMLPPolicy
from meta_policy_search.policies.mlp_policy import MetaMLPPolicy
from meta_policy_search.utils.signatures import Unpack


class MetaGaussianMLPPolicy(MetaMLPPolicy, GaussianMLPPolicy):
    """A `GaussianMLPPolicy` for meta-learning: `M` tasks act with parameters of their own.

    Example:
        >>> import numpy as np
        >>> policy = MetaGaussianMLPPolicy(meta_batch_size=3, obs_dim=4, action_dim=2, hidden_sizes=(16,))
        >>> actions, infos = policy.get_actions(np.zeros((3, 5, 4)))  # 3 tasks, 5 observations each
        >>> len(actions), actions[0].shape, sorted(infos[0][0])
        (3, (5, 2), ['log_std', 'mean'])
        >>> policy.get_flat_params().size
        116
    """

    def __init__(self, meta_batch_size: int, *args: Any, **kwargs: Unpack[GaussianArguments]) -> None:
        super().__init__(meta_batch_size, *args, **kwargs)
