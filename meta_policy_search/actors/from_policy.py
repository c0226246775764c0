"""Creates actors from policies: `actor_from_policy` turns any policy into an `Actor`.

A policy may have a vectorized method, declared with `utils.fast_paths.replaces`. The method of a meta-policy is
`make_actor()`, for its current parameters. The method of a policy for one task is `make_actors(flat_params)`, for
several sets of parameters. A policy acts through its documented method `get_actions` if it has no vectorized method, or
if it overrides a method that the vectorized method replaces.
"""
import functools
import reprlib
from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.actors.actor import Actor, join_tasks
from meta_policy_search.actors.flat_policy import FlatPolicy, most_probable, num_tasks_of, sizes_of
from meta_policy_search.types import Infos
from meta_policy_search.utils.checks import check_not_replaced
from meta_policy_search.utils.fast_paths import fast_path, replaces


def actor_from_policy(policy: Any, action_shape: Optional[Tuple[int, ...]] = None,
                      flat_params: Optional[np.ndarray] = None) -> Actor:
    """Returns an actor that acts like a policy.

    Samplers call this function at the start of each round, so the actor has the current parameters.

    Args:
        policy: a meta-policy (an object with `meta_batch_size`), which acts in its `M` tasks, or a policy for one task
            (`M = 1`). Any object with `get_actions` is accepted.
        action_shape: shape of an action. If given, the policy is treated as a meta-policy, even if `get_actions` is its
            only attribute. Default: None.
        flat_params: `[n, D]`. If given, the actor acts in `n` tasks, like a policy for one task with each row of
            parameters. Default: None, the current parameters.

    Returns:
        The actor of the policy's vectorized method, or a `PolicyActor` if there is none. With `flat_params`, a
        `PolicyActor` sets each row of parameters, acts, and then restores the policy's parameters.

    Raises:
        TypeError: a vectorized method does not declare which methods it replaces, or does not return an `Actor`; or a
            method was replaced on the object.
    """
    check_not_replaced("policy", policy, FlatPolicy)
    if flat_params is not None:
        actor = _vectorized_actor(policy, "make_actors", flat_params)
        return actor or PolicyActor(functools.partial(_act_with_params, policy, flat_params))
    actor = _vectorized_actor(policy, "make_actor")
    if actor is None and isinstance(policy, FlatPolicy):
        policy.reset()  # earlier calls of `get_actions` may have had another number of paths
    if action_shape is None and num_tasks_of(policy) is None:
        if actor is None and fast_path(policy, "make_actors") is not None:
            actor = _vectorized_actor(policy, "make_actors", policy.get_flat_params()[None])
        return actor or PolicyActor(functools.partial(_act_in_one_task, policy),
                                    reset=lambda is_starting: _reset(policy, is_starting[0]))
    _, noise_dim, of_policy = sizes_of(policy)
    shape: Any = of_policy if action_shape is None else action_shape
    noise_dim = int(np.prod(shape)) if noise_dim is None else noise_dim
    return actor or PolicyActor(functools.partial(_act_in_all_tasks, policy, shape), noise_dim,
                                functools.partial(_reset, policy))


def _vectorized_actor(policy: Any, name: str, *args: Any) -> Optional[Actor]:
    """Returns the actor of a policy's vectorized method, or None if the documented methods must be called instead."""
    method = fast_path(policy, name)
    actor = None if method is None else method(*args)
    if actor is not None and not isinstance(actor, Actor):
        raise TypeError(f"policy.{name}: expected an actors.Actor or None, got {reprlib.repr(actor)}")
    return actor


class PolicyActor(Actor):
    """Acts through the `get_actions` method of a policy, which draws its own noise.

    For meta-policies, the noise of a Gaussian policy is also drawn, but not used. The environments therefore receive
    the same random numbers as with a vectorized policy.

    Args:
        get_actions: function of observations `[M, R, O]` with the return value of `act`.
        noise_dim: number of random numbers to draw per action. Default: 0.
        reset: function that `start_paths` calls with its argument. Default: None.
    """

    def __init__(self, get_actions: Callable[[np.ndarray], Tuple[np.ndarray, Infos]], noise_dim: int = 0,
                 reset: Optional[Callable[[np.ndarray], None]] = None) -> None:
        self._get_actions, self._reset = get_actions, reset
        self.noise_dim = noise_dim

    def start_paths(self, is_starting: np.ndarray) -> None:
        """Resets the recurrent states of the policy for the selected paths; see `Actor.start_paths`."""
        if self._reset is not None:
            self._reset(is_starting)

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        return self._get_actions(observations)


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


def _reset(policy: Any, is_starting: np.ndarray) -> None:
    """Resets the recurrent state of a policy, which may be any object with `get_actions`, for the selected paths."""
    if isinstance(policy, FlatPolicy) and is_starting.any():
        policy.reset(is_starting)


def _act_in_one_task(policy: Any, observations: np.ndarray) -> Tuple[np.ndarray, Infos]:
    """Acts at observations `[1, R, O]`."""
    actions, infos = policy.get_actions(observations[0])
    return np.asarray(actions)[None], {key: np.asarray(value)[None] for key, value in (infos or {}).items()}


def _act_with_params(policy: Any, flat_params: np.ndarray, observations: np.ndarray) -> Tuple[np.ndarray, Infos]:
    """Acts at observations `[M, R, O]` with the parameters `flat_params` `[M, D]`."""
    results, current_params = [], policy.get_flat_params()
    try:
        for params, rows in zip(flat_params, observations, strict=True):
            policy.set_flat_params(params)
            results.append(_act_in_one_task(policy, rows[None]))
    finally:
        policy.set_flat_params(current_params)
    return join_tasks(results)


def _act_in_all_tasks(policy: Any, action_shape: Tuple[int, ...], observations: np.ndarray) -> Tuple[np.ndarray, Infos]:
    """Acts at observations `[M, R, O]` with a meta-policy, and checks its return value."""
    actions, agent_infos = policy.get_actions(list(observations))
    num_tasks, num_paths = observations.shape[:2]
    shapes, expected = [np.shape(task_actions) for task_actions in actions], (num_paths, *action_shape)
    if shapes != [expected] * num_tasks:
        raise ValueError(f"policy.get_actions: expected actions of {num_tasks} tasks, each of shape {expected}, "
                         f"got the shapes {shapes}")
    if agent_infos is None:
        return np.asarray(actions), {}
    if [len(task_infos) for task_infos in agent_infos] != [num_paths] * num_tasks:
        raise ValueError(f"policy.get_actions: expected agent infos of {num_tasks} tasks, each a list of "
                         f"{num_paths} dicts, got {reprlib.repr(agent_infos)}")
    rows = [info for task_infos in agent_infos for info in task_infos]
    infos = {key: np.stack([row[key] for row in rows]).reshape(num_tasks, num_paths, *np.shape(rows[0][key]))
             for key in rows[0]}
    return np.asarray(actions), infos


class TaskPolicies:
    """Combines policies for single tasks into one meta-policy. The list `policies` may be changed at any time.

    Args:
        policies: one policy per task, all for the same spaces, such as a policy from `np.policies`, or any object with
            `obs_dim`, `action_dim` and `get_actions`.
    """

    def __init__(self, policies: Sequence[Any]) -> None:
        self.policies: List[Any] = list(policies)
        self.meta_batch_size = len(self.policies)
        self.obs_dim, self.action_dim, self.action_shape = sizes_of(self.policies[0])

    @replaces()
    def make_actor(self) -> "PerTaskActor":
        """Returns an actor that acts in all tasks with the current policies."""
        return PerTaskActor([actor_from_policy(policy) for policy in self.policies])


class PerTaskActor(Actor):
    """Acts in each task with a separate actor; all actors have the same type."""

    def __init__(self, actors: Sequence[Actor]) -> None:
        self._actors = actors
        self.noise_dim = actors[0].noise_dim
        self.draw_noise = actors[0].draw_noise  # type: ignore[method-assign]
        self.can_divide = all(actor.can_divide for actor in actors)

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        return join_tasks([actor.act(observations[i, None], noise[i, None]) for i, actor in enumerate(self._actors)])

    def start_paths(self, is_starting: np.ndarray) -> None:
        for i, actor in enumerate(self._actors):
            actor.start_paths(is_starting[i, None])

    def for_tasks(self, start: int, stop: int) -> "PerTaskActor":
        return PerTaskActor(self._actors[start:stop])
