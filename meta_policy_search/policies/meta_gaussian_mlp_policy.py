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
    """
