"""The categorical MLP policy with adapted parameters for each task of a meta-batch."""
from meta_policy_search.policies.categorical_mlp_policy import CategoricalMLPPolicy
from meta_policy_search.policies.mlp_policy import MetaMLPPolicy


class MetaCategoricalMLPPolicy(MetaMLPPolicy, CategoricalMLPPolicy):
    """A `CategoricalMLPPolicy` for meta-learning: `M` tasks act with parameters of their own.

    Args:
        meta_batch_size (int): number `M` of tasks.
        *args: as for `Policy`.
        **kwargs: as for `Policy`.

    Raises:
        ValueError: `meta_batch_size` below one; else as for `CategoricalMLPPolicy`.
    """
