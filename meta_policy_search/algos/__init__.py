"""Algorithms for single tasks that learn with TensorFlow, run by a `LocalRunner`."""
from meta_policy_search.algos.ddpg import DDPG

__all__ = ["DDPG"]
