"""The policies of several tasks, of whatever kind, as what a `MetaSampler` asks of a meta-policy."""
from typing import Any, List, Sequence, Tuple

import numpy as np

from meta_policy_search.actors.of_policies import actor_of
from meta_policy_search.types import Infos

__all__ = ["TaskPolicies"]


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
        self.obs_dim, self.action_dim = first.obs_dim, first.action_dim
        self.distribution = getattr(first, "distribution", first)  # has the shape of an action

    def make_actor(self) -> "PerTaskActor":
        """Returns what acts for all tasks with the policies as they are now, on arrays `[M, R, O]`."""
        actors = [actor_of(policy) for policy in self.policies]
        # what runs in the graph, and draws for itself, acts in one thread
        return (_TaskActors if all(hasattr(actor, "for_tasks") for actor in actors) else PerTaskActor)(actors)


class PerTaskActor:
    """Acts for tasks with an actor of its own for each."""

    def __init__(self, actors: Sequence[Any]) -> None:
        self._actors = actors
        self.noise_dim, self.draw_noise = actors[0].noise_dim, actors[0].draw_noise

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Does what `np.policies.StackedGaussianMLP.act` does."""
        answers = [actor.act(observations[i, None], noise[i, None]) for i, actor in enumerate(self._actors)]
        infos = {key: np.concatenate([info[key] for _, info in answers]) for key in answers[0][1]}
        return np.concatenate([actions for actions, _ in answers]), infos


class _TaskActors(PerTaskActor):
    """The same, and the tasks may be divided among threads."""

    def for_tasks(self, start: int, stop: int) -> "_TaskActors":
        """Returns what acts for the tasks from `start` to before `stop`."""
        return type(self)(self._actors[start:stop])
