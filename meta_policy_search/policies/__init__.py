"""Policies as static TensorFlow graphs, for one task or for all tasks of a meta-batch."""
from meta_policy_search.policies.base import MetaPolicy, Policy
from meta_policy_search.policies.categorical_mlp_policy import CategoricalMLPPolicy, MetaCategoricalMLPPolicy
from meta_policy_search.policies.distributions import Categorical, DiagonalGaussian, Distribution
from meta_policy_search.policies.gaussian_mlp_policy import GaussianMLPPolicy
from meta_policy_search.policies.meta_gaussian_mlp_policy import MetaGaussianMLPPolicy
from meta_policy_search.policies.recurrent_policy import (
    CategoricalRecurrentPolicy,
    GaussianRecurrentPolicy,
    RecurrentPolicy,
)

__all__ = ["Categorical", "CategoricalMLPPolicy", "CategoricalRecurrentPolicy", "DiagonalGaussian", "Distribution",
           "GaussianMLPPolicy", "GaussianRecurrentPolicy", "MetaCategoricalMLPPolicy", "MetaGaussianMLPPolicy",
           "MetaPolicy", "Policy", "RecurrentPolicy"]
