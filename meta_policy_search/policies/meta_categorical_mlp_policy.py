"""The categorical MLP policy with adapted parameters for each task of a meta-batch."""
from typing import Any

from meta_policy_search.policies.base import PolicyArguments
from meta_policy_search.policies.categorical_mlp_policy import CategoricalMLPPolicy
from meta_policy_search.policies.mlp_policy import MetaMLPPolicy
from meta_policy_search.utils.signatures import Unpack


class MetaCategoricalMLPPolicy(MetaMLPPolicy, CategoricalMLPPolicy):
    """A `CategoricalMLPPolicy` for meta-learning: `M` tasks act with parameters of their own."""

    def __init__(self, meta_batch_size: int, *args: Any, **kwargs: Unpack[PolicyArguments]) -> None:
        super().__init__(meta_batch_size, *args, **kwargs)
