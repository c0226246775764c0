"""Algorithms that learn with TensorFlow and are run by a `LocalRunner`."""
from meta_policy_search.algos.ddpg import DDPG

__all__ = ["DDPG"]
