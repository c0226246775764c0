"""Algorithms that learn with TensorFlow and are run by a `LocalRunner`."""
from meta_policy_search.algos.ddpg import DDPG
from meta_policy_search.algos.gradient_adaptation import GradientAdaptation

__all__ = ["DDPG", "GradientAdaptation"]
