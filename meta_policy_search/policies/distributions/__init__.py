"""Distributions over actions."""
from meta_policy_search.policies.distributions.base import (
    Categorical,
    DiagonalGaussian,
    DistInfo,
    DistInfoSym,
    Distribution,
)

__all__ = ["Categorical", "DiagonalGaussian", "DistInfo", "DistInfoSym", "Distribution"]
