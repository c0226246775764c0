"""Policies as static TensorFlow graphs."""
from meta_policy_search.policies.base import MetaPolicy, Policy
from meta_policy_search.policies.distributions import DiagonalGaussian, Distribution
from meta_policy_search.policies.gaussian_mlp_policy import GaussianMLPPolicy
from meta_policy_search.policies.meta_gaussian_mlp_policy import MetaGaussianMLPPolicy

__all__ = [
    "DiagonalGaussian",
    "Distribution",
    "GaussianMLPPolicy",
    "MetaGaussianMLPPolicy",
    "MetaPolicy",
    "Policy",
]
