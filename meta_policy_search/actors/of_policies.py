"""Actors of policies: the one place that turns a policy, of whatever kind, into an `Actor`.

A policy may have a form on arrays: `make_actor()` for the parameters as they are, `make_actors(flat_params)` for
several sets of them. Where it has neither, or they return None, it is asked through its documented `get_actions`.
"""
import reprlib
from typing import Any, Optional, Tuple

import numpy as np

from meta_policy_search.actors.actor import Actor, join_tasks
from meta_policy_search.envs.spaces import is_discrete
from meta_policy_search.types import Infos


def actor_of(policy: Any, action_shape: Optional[Tuple[int, ...]] = None) -> Actor:
    """Returns what acts as a policy does, with its parameters as they are now.

    Args:
        policy: a meta-policy (one with `meta_batch_size`), which acts in its `M` tasks; or a policy for one task
            (`M = 1`).
        action_shape: shape of an action; says that the policy is a meta-policy, though it may have nothing but
            `get_actions`. Default: None.
    """
    is_meta_policy = action_shape is not None or hasattr(policy, "meta_batch_size")
    if hasattr(policy, "make_actor"):
        actor = _check_actor("make_actor", policy.make_actor())
    elif is_meta_policy or not hasattr(policy, "get_flat_params"):
        actor = None
    else:
        actor = make_actors(policy, policy.get_flat_params()[None])
    if actor is None:
        actor = MetaPolicyActor(policy, action_shape) if is_meta_policy else PolicyActor(policy)
    return actor


def actors_of(policy: Any, flat_params: np.ndarray) -> Actor:
    """Returns what acts as a policy for one task does with each row of `flat_params` `[n, D]`, in a task of its own."""
    actors = make_actors(policy, flat_params)
    return SequentialActor(policy, flat_params) if actors is None else actors


def make_actors(policy: Any, flat_params: np.ndarray) -> Optional[Actor]:
    """Returns the same as `actors_of` where the policy has a form on arrays, else None."""
    return _check_actor("make_actors", policy.make_actors(flat_params)) if hasattr(policy, "make_actors") else None


def action_shape_of(policy: Any) -> Optional[Tuple[int, ...]]:
    """Returns the shape of a policy's action: `(A,)`, or `()` where actions are discrete.

    Its distribution or, where it has none, the policy says so (`action_shape`); by default it is `(action_dim,)`, or
    None where the policy does not say that either.
    """
    default = (policy.action_dim,) if hasattr(policy, "action_dim") else None
    shape = getattr(getattr(policy, "distribution", policy), "action_shape", default)
    return None if shape is None else tuple(shape)


def check_spaces(policy: Any, env: Any) -> None:
    """Raises `ValueError` unless the policy's observations and actions are the environment's (or `EnvSpec`'s).

    A policy without `obs_dim`, or without `action_dim`, is taken to fit.
    """
    space, is_index = env.action_space, is_discrete(env.action_space)
    action_shape = action_shape_of(policy)
    if action_shape is not None and is_index != (action_shape == ()):
        fitting = "CategoricalMLPPolicy" if is_index else "GaussianMLPPolicy"
        fitting = f"Meta{fitting}" if hasattr(policy, "meta_batch_size") else fitting
        given = "integers" if action_shape == () else f"arrays of shape {action_shape}"
        raise ValueError(f"policy: expected one for the environment's action space {space}, such as a {fitting}, got a "
                         f"{type(policy).__name__}, whose actions are {given}")
    if is_index and getattr(space, "start", 0) != 0:
        raise ValueError(f"env: expected discrete actions numbered from 0, got {space}")
    for name, shape in (("obs_dim", env.observation_space.shape),
                        ("action_dim", (int(space.n),) if is_index else space.shape)):
        size = getattr(policy, name, *shape[:1])
        if tuple(shape) != (size,):
            raise ValueError(f"policy.{name}: expected {shape}, the size of the environment's space, got {size}")


def _check_actor(method: str, actor: Any) -> Optional[Actor]:
    if actor is not None and not isinstance(actor, Actor):
        raise TypeError(f"policy.{method}: expected an actors.Actor or None, got {reprlib.repr(actor)}")
    return actor


class PolicyActor(Actor):
    """Acts in one task through the `get_actions` of a policy, which draws its own noise."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        actions, infos = self._policy.get_actions(observations[0])
        return np.asarray(actions)[None], {key: np.asarray(value)[None] for key, value in (infos or {}).items()}


class SequentialActor(PolicyActor):
    """Acts through the `get_actions` of a policy that takes one set of parameters after the other, then its own again.

    `flat_params` `[M, D]` are the parameters in each task.
    """

    def __init__(self, policy: Any, flat_params: np.ndarray) -> None:
        super().__init__(policy)
        self._flat_params = flat_params

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        answers, own = [], self._policy.get_flat_params()
        for flat_params, rows in zip(self._flat_params, observations, strict=True):
            self._policy.set_flat_params(flat_params)
            answers.append(super().act(rows[None], noise))
        self._policy.set_flat_params(own)
        return join_tasks(answers)


class MetaPolicyActor(Actor):
    """Acts through the `get_actions` of a meta-policy, which draws its own noise.

    The noise of a Gaussian policy is drawn beside, and not used: so the environments draw the same random numbers as
    with such a policy in its form on arrays.
    """

    def __init__(self, policy: Any, action_shape: Optional[Tuple[int, ...]] = None) -> None:
        self._policy = policy
        self._action_shape: Any = action_shape_of(policy) if action_shape is None else action_shape
        self.noise_dim = getattr(policy, "action_dim", int(np.prod(self._action_shape)))  # type: ignore[arg-type]

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
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
        for row in rows:
            if set(row) != set(rows[0]):
                raise ValueError(f"policy.get_actions: expected agent infos with the same keys everywhere, got "
                                 f"{sorted(rows[0])} and {sorted(row)}")
        infos = {key: np.stack([row[key] for row in rows]).reshape(num_tasks, num_paths, *np.shape(rows[0][key]))
                 for key in rows[0]}
        return np.asarray(actions), infos
