"""The Gaussian MLP policy with adapted parameters for each task of a meta-batch."""
from meta_policy_search.policies.gaussian_mlp_policy import GaussianMLPPolicy
from meta_policy_search.policies.mlp_policy import MetaMLPPolicy


class MetaGaussianMLPPolicy(MetaMLPPolicy, GaussianMLPPolicy):
    """A `GaussianMLPPolicy` for meta-learning: `M` tasks act with parameters of their own.

    Args:
        meta_batch_size (int): number `M` of tasks.
        *args: as for `Policy`.
        **kwargs: as for `GaussianMLPPolicy`.

    Raises:
        ValueError: `meta_batch_size` below one; else as for `GaussianMLPPolicy`.

    Example:
        >>> import numpy as np
        >>> policy = MetaGaussianMLPPolicy(meta_batch_size=3, obs_dim=4, action_dim=2, hidden_sizes=(16,))
        >>> actions, infos = policy.get_actions(np.zeros((3, 5, 4)))  # 3 tasks, 5 observations each
        >>> len(actions), actions[0].shape, sorted(infos[0][0])
        (3, (5, 2), ['log_std', 'mean'])
        >>> policy.get_flat_params().size
        116
    """
