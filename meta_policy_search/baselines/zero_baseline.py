"""Module path of `ZeroBaseline` in the public code of ProMP."""
from meta_policy_search.baselines.base import ZeroBaseline

__all__ = ["ZeroBaseline"]
