"""Creates actors from policies: `actor_from_policy` turns any policy into an `Actor`.

A policy may have a vectorized method, declared with `utils.fast_paths.replaces`. The method of a meta-policy is
`make_actor()`, for its current parameters. The method of a policy for one task is `make_actors(flat_params)`, for
several sets of parameters. A policy acts through its documented method `get_actions` if it has no vectorized method, or
if it overrides a method that the vectorized method replaces.
"""
import reprlib
from typing import Any, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.actors.flat_policy import FlatPolicy, most_probable, num_tasks_of, sizes_of
from meta_policy_search.types import Infos
from meta_policy_search.utils.checks import check_not_replaced
from meta_policy_search.utils.fast_paths import fast_path


def actor_from_policy(policy: Any, action_shape: Optional[Tuple[int, ...]] = None) -> Actor:
    """Returns an actor that acts like a policy.

    Samplers call this function at the start of each round, so the actor has the current parameters.

    Args:
        policy: a meta-policy (an object with `meta_batch_size`), which acts in its `M` tasks, a policy for one task
            (`M = 1`), or a list of policies for one task, one per task. Any object with `get_actions` is accepted.
        action_shape: shape of an action. If given, the policy is treated as a meta-policy, even if `get_actions` is its
            only attribute. Default: None.

    Returns:
        The actor of the policy's vectorized method, or a `PolicyActor` if there is none.

    Raises:
        TypeError: a vectorized method does not declare which methods it replaces, or does not return an `Actor`; or a
            method was replaced on the object.
    """
    if isinstance(policy, list):
        return PerTaskActor([actor_from_policy(of_task) for of_task in policy])
    actor, is_for_one_task = vectorized_actor(policy, "make_actor"), action_shape is None and not num_tasks_of(policy)
    if actor is None and isinstance(policy, FlatPolicy):
        policy.reset()  # earlier calls of `get_actions` may have had another number of paths
    if actor is None and is_for_one_task and fast_path(policy, "make_actors") is not None:
        actor = vectorized_actor(policy, "make_actors", policy.get_flat_params()[None])
    shape = sizes_of(policy)[2] if action_shape is None else action_shape
    return actor or PolicyActor(policy, None if is_for_one_task else shape)


def vectorized_actor(policy: Any, name: str, *args: Any) -> Optional[Actor]:
    """Returns the actor of a policy's vectorized method, or None if the documented methods must be called instead.

    Raises:
        TypeError: see `actor_from_policy`.
    """
    method = fast_path(check_not_replaced("policy", policy, FlatPolicy), name)
    actor = None if method is None else method(*args)
    if actor is not None and not isinstance(actor, Actor):
        raise TypeError(f"policy.{name}: expected an actors.Actor or None, got {reprlib.repr(actor)}")
    return actor


class PolicyActor(Actor):
    """Acts through the `get_actions` method of a policy, which draws its own noise.

    For meta-policies, the noise of a Gaussian policy is also drawn, but not used. The environments therefore receive
    the same random numbers as with a vectorized policy.

    Args:
        policy: any object with `get_actions`.
        action_shape: shape of an action of a meta-policy; None for a policy for one task.
    """

    def __init__(self, policy: Any, action_shape: Optional[Tuple[int, ...]]) -> None:
        self._policy, self._action_shape = policy, action_shape
        if action_shape is not None:
            noise_dim = sizes_of(policy)[1]
            self.noise_dim = int(np.prod(action_shape)) if noise_dim is None else noise_dim

    def start_paths(self, is_starting: np.ndarray) -> None:
        """Resets the recurrent states of the policy for the selected paths; see `Actor.start_paths`."""
        if isinstance(self._policy, FlatPolicy) and is_starting.any():
            self._policy.reset(is_starting[0] if self._action_shape is None else is_starting)

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        if self._action_shape is None:
            actions, infos = self._policy.get_actions(observations[0])
            return np.asarray(actions)[None], {key: np.asarray(value)[None] for key, value in (infos or {}).items()}
        actions, agent_infos = self._policy.get_actions(list(observations))
        num_tasks, num_paths = observations.shape[:2]
        shapes, expected = [np.shape(task_actions) for task_actions in actions], (num_paths, *self._action_shape)
        if shapes != [expected] * num_tasks:
            raise ValueError(f"policy.get_actions: expected actions of {num_tasks} tasks, each of shape {expected}, "
                             f"got the shapes {shapes}")
        if agent_infos is None:
            return np.asarray(actions), {}
        if [len(task_infos) for task_infos in agent_infos] != [num_paths] * num_tasks:
            raise ValueError(f"policy.get_actions: expected agent infos of {num_tasks} tasks, each a list of "
                             f"{num_paths} dicts, got {reprlib.repr(agent_infos)}")
        rows = [info for task_infos in agent_infos for info in task_infos]
        return np.asarray(actions), {
            key: np.stack([row[key] for row in rows]).reshape(num_tasks, num_paths, *np.shape(rows[0][key]))
            for key in rows[0]}


class DeterministicActor(Actor):
    """Takes the mean, or the most probable, action of another actor, without changing the random numbers of paths."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor
        self.noise_dim, self.can_divide = actor.noise_dim, actor.can_divide
        self.draw_noise, self.start_paths = actor.draw_noise, actor.start_paths  # type: ignore[method-assign]

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        actions, infos = self._actor.act(observations, noise)
        return most_probable(actions, infos), infos

    def for_tasks(self, start: int, stop: int) -> "DeterministicActor":
        return DeterministicActor(self._actor.for_tasks(start, stop))


class PerTaskActor(Actor):
    """Acts in each task with a separate actor; all actors have the same type."""

    def __init__(self, actors: Sequence[Actor]) -> None:
        self._actors = actors
        self.noise_dim = actors[0].noise_dim
        self.draw_noise = actors[0].draw_noise  # type: ignore[method-assign]
        self.can_divide = all(actor.can_divide for actor in actors)

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        results = [actor.act(observations[i, None], noise[i, None]) for i, actor in enumerate(self._actors)]
        return np.concatenate([actions for actions, _ in results]), {
            key: np.concatenate([infos[key] for _, infos in results]) for key in results[0][1]}

    def start_paths(self, is_starting: np.ndarray) -> None:
        for i, actor in enumerate(self._actors):
            actor.start_paths(is_starting[i, None])

    def for_tasks(self, start: int, stop: int) -> "PerTaskActor":
        return PerTaskActor(self._actors[start:stop])
