"""Policies that explore: another policy's actions with noise."""
from meta_policy_search.np.exploration_policies.base import ExplorationPolicy
from meta_policy_search.np.exploration_policies.gaussian import GaussianNoisePolicy
from meta_policy_search.np.exploration_policies.ornstein_uhlenbeck import OrnsteinUhlenbeckPolicy

__all__ = ["ExplorationPolicy", "GaussianNoisePolicy", "OrnsteinUhlenbeckPolicy"]
