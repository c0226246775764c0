"""Acting on arrays without TensorFlow: in all tasks at once, behind one abstract class."""
from meta_policy_search.actors.actor import Actor
from meta_policy_search.actors.of_policies import actor_of

__all__ = ["Actor", "actor_of"]
