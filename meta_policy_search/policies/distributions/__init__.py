"""Distributions over actions."""
from meta_policy_search.policies.distributions.base import Distribution
from meta_policy_search.policies.distributions.categorical import Categorical
from meta_policy_search.policies.distributions.diagonal_gaussian import DiagonalGaussian

__all__ = ["Categorical", "DiagonalGaussian", "Distribution"]
