"""Vectorized NumPy policies for sampling, which act in all tasks at once, without TensorFlow."""
from meta_policy_search.actors.actor import Actor
from meta_policy_search.actors.from_policy import actor_from_policy

__all__ = ["Actor", "actor_from_policy"]
