"""Module path of `DiagonalGaussian` in the public code of ProMP."""
from meta_policy_search.policies.distributions.base import DiagonalGaussian

__all__ = ["DiagonalGaussian"]
