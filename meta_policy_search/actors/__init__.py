"""Vectorized NumPy policies for sampling, which act in all tasks at once, without TensorFlow."""
from meta_policy_search.actors.actor import Actor
from meta_policy_search.actors.of_policies import actor_of

__all__ = ["Actor", "actor_of"]
