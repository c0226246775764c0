"""Actors made from policies."""
import reprlib
from typing import Any, Tuple

import numpy as np

from meta_policy_search.types import Infos


def actor_of(policy: Any) -> Any:
    """Returns what acts as a single policy does, with its parameters as they are now, on arrays `[1, R, O]`.

    Args:
        policy: one whose parameters are one flat vector (`make_actors`), or that says what acts (`make_actor`); any
            other one is asked through `get_actions`, and draws its own noise.

    Returns:
        An object with `act`, `draw_noise` and `noise_dim`; where it also has `for_tasks`, it runs without the policy.
    """
    actor = None
    if hasattr(policy, "get_flat_params"):
        actor = _numpy_copies(policy, policy.get_flat_params()[None])
    elif hasattr(policy, "make_actor"):
        actor = policy.make_actor()
    return _PolicyActor(policy) if actor is None else actor


def actors_of(policy: Any, flat_params: np.ndarray) -> Any:
    """Returns what acts as a policy does with each of several sets of parameters, on arrays `[n, R, O]`.

    Args:
        policy: as for `SingleTaskSampler`; one without a NumPy form takes one set of parameters after the other.
        flat_params: `[n, D]`.

    Returns:
        As `actor_of`.
    """
    actors = _numpy_copies(policy, flat_params)
    return SequentialActor(policy, flat_params) if actors is None else actors


class _PolicyActor:
    """Acts for one candidate with a policy that has no NumPy form, and draws its own noise."""

    noise_dim = 0

    def __init__(self, policy: Any) -> None:
        self._policy = policy

    def draw_noise(self, rng: np.random.Generator, out: np.ndarray) -> None:
        """Does nothing."""

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        actions, infos = self._policy.get_actions(observations[0])
        return np.asarray(actions)[None], {key: np.asarray(value)[None] for key, value in infos.items()}


class SequentialActor(_PolicyActor):
    """Acts for candidates with a policy that takes the parameters of one after the other, and then its own again."""

    def __init__(self, policy: Any, flat_params: np.ndarray) -> None:
        super().__init__(policy)
        self._flat_params = flat_params

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Acts as `StackedGaussianMLP.act`."""
        all_actions, all_infos, own = [], [], self._policy.get_flat_params()
        for flat_params, rows in zip(self._flat_params, observations, strict=True):
            self._policy.set_flat_params(flat_params)
            actions, infos = super().act(rows[None], noise)
            all_actions.append(actions)
            all_infos.append(infos)
        self._policy.set_flat_params(own)
        return np.concatenate(all_actions), {key: np.concatenate([infos[key] for infos in all_infos])
                                             for key in all_infos[0]}


def _numpy_copies(policy: Any, flat_params: np.ndarray) -> Any:
    return policy.make_actors(flat_params) if hasattr(policy, "make_actors") else None



class _GraphActor:
    """Acts for all paths of all tasks with a policy that has no NumPy form, and draws its own noise."""

    def __init__(self, policy: Any, action_shape: Tuple[int, ...]) -> None:
        self._policy, self._action_shape = policy, action_shape

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Does what `StackedGaussianMLP.act` does.

        Raises:
            ValueError: `get_actions` returned something else than is documented.
        """
        actions, agent_infos = self._policy.get_actions(list(observations))
        num_tasks, num_paths = observations.shape[:2]
        shapes, expected = [np.shape(task_actions) for task_actions in actions], (num_paths, *self._action_shape)
        if shapes != [expected] * num_tasks:
            raise ValueError(f"policy.get_actions: expected actions of {num_tasks} tasks, each of shape {expected}, "
                             f"got the shapes {shapes}")
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

