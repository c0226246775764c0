"""The policies of several tasks, of whatever kind, as what a `MetaSampler` asks of a meta-policy."""
from typing import Any, List, Sequence, Tuple

import numpy as np

from meta_policy_search.actors.actor import Actor, join_tasks
from meta_policy_search.actors.of_policies import action_shape_of, actor_of
from meta_policy_search.types import Infos


class TaskPolicies:
    """A policy for each task, which may be replaced at any time (`policies`).

    Args:
        policies: one for each task, all for the same spaces: those of `np.policies`, `TaskPolicy`, `SearchPolicy`, or
            any with `obs_dim`, `action_dim` and `get_actions`.
    """

    def __init__(self, policies: Sequence[Any]) -> None:
        self.policies: List[Any] = list(policies)
        self.meta_batch_size = len(self.policies)
        first = self.policies[0]
        self.obs_dim, self.action_dim, self.action_shape = first.obs_dim, first.action_dim, action_shape_of(first)

    def make_actor(self) -> "PerTaskActor":
        """Returns what acts in all tasks with the policies as they are now."""
        return PerTaskActor([actor_of(policy) for policy in self.policies])


class PerTaskActor(Actor):
    """Acts in each task with an actor of its own, all of the same kind."""

    def __init__(self, actors: Sequence[Actor]) -> None:
        self._actors = actors
        self.noise_dim = actors[0].noise_dim
        self.draw_noise = actors[0].draw_noise  # type: ignore[method-assign]
        self.can_divide = all(actor.can_divide for actor in actors)

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        return join_tasks([actor.act(observations[i, None], noise[i, None]) for i, actor in enumerate(self._actors)])

    def for_tasks(self, start: int, stop: int) -> "PerTaskActor":
        return PerTaskActor(self._actors[start:stop])
