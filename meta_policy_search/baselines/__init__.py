"""Reward baselines, which predict returns to reduce the variance of policy gradients."""
from meta_policy_search.baselines.base import Baseline
from meta_policy_search.baselines.gaussian_mlp_baseline import GaussianMLPBaseline
from meta_policy_search.baselines.linear_baseline import LinearFeatureBaseline, LinearTimeBaseline
from meta_policy_search.baselines.zero_baseline import ZeroBaseline

__all__ = ["Baseline", "GaussianMLPBaseline", "LinearFeatureBaseline", "LinearTimeBaseline", "ZeroBaseline"]

BASELINES = __all__[1:]
"""Names of the classes that `train` and the command line accept."""
