"""Environment wrapper that adds the task to the observations, for oracle policies."""
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from meta_policy_search.envs.compat import WrappingEnv
from meta_policy_search.envs.interface import BatchedEnv
from meta_policy_search.envs.normalized_env import BatchedNormalizedEnv, NormalizedEnv
from meta_policy_search.envs.spaces import is_box
from meta_policy_search.types import BatchedStep, Task
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.gym_import import gym


class TaskObservingEnv(NormalizedEnv):
    """Normalized environment that appends the task parameters to each observation.

    Args:
        env: the meta-environment. Its observations are vectors, and its tasks are numbers or arrays of numbers.
        **settings: arguments of `NormalizedEnv`.

    Raises:
        TypeError: the tasks are not numbers, for example dicts of parameters.
        ValueError: the observations are not vectors.
    """

    def __init__(self, env: Any, **settings: Any) -> None:
        super().__init__(env, **settings)
        (task,) = self.sample_tasks(1, np.random.default_rng(0))
        self.observation_space = _with_task(self.observation_space, as_numbers(task))

    @replaces("reset", "step", "set_task", "get_task")
    def make_batched(self, num_envs: int) -> Optional[BatchedEnv]:
        """Returns a vectorized environment of `num_envs` copies, or None; see `NormalizedEnv.make_batched`."""
        batched = WrappingEnv.make_batched(self, num_envs)
        return None if batched is None else _BatchedTaskObservingEnv(self, batched)

    def reset(self, *, seed: Optional[int] = None, options: Optional[dict] = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts a new path; returns `(observation with the task, info)`."""
        observation, info = super().reset(seed=seed, options=options)
        return self._appended(observation), info

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Takes one step; the returned observation includes the task."""
        observation, reward, terminated, truncated, info = super().step(action)
        return self._appended(observation), reward, terminated, truncated, info

    def _appended(self, observation: np.ndarray) -> np.ndarray:
        return np.concatenate((observation, as_numbers(self.get_task())))


class _BatchedTaskObservingEnv(BatchedNormalizedEnv):
    """Vectorized `TaskObservingEnv`."""

    def __init__(self, env: TaskObservingEnv, batched_env: BatchedEnv) -> None:
        super().__init__(batched_env, env.make_normalizer(batched_env.num_envs))
        self.observation_space = env.observation_space
        self._numbers = np.array([as_numbers(task) for task in self.get_tasks()])

    def set_tasks(self, tasks: Sequence[Task]) -> None:
        super().set_tasks(tasks)
        self._numbers = np.array([as_numbers(task) for task in tasks])

    def reset(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        """Starts new paths in the selected copies; the returned observations include the tasks."""
        return np.concatenate((super().reset(env_ids, rngs), self._numbers[env_ids]), axis=1)

    def step(self, actions: np.ndarray, env_ids: Optional[np.ndarray] = None) -> BatchedStep:
        """Takes one step in the selected copies; the returned observations include the tasks."""
        answer = super().step(actions, env_ids)
        numbers = self._numbers if env_ids is None else self._numbers[env_ids]
        return answer._replace(observations=np.concatenate((answer.observations, numbers), axis=1))


def as_numbers(task: Task) -> np.ndarray:
    """Converts a task to a vector, float64 `[k]`; raises `TypeError` if it does not consist of numbers."""
    numbers = np.ravel(np.asarray(task))
    if numbers.dtype.kind not in "fiub":
        raise TypeError(f"observe_task: expected an environment with numeric tasks, got the task {task!r}")
    return numbers.astype(np.float64)


def _with_task(space: Any, numbers: np.ndarray) -> Any:
    if not is_box(space) or len(space.shape) != 1:
        raise ValueError(f"observe_task: expected an environment with vector observations, got {space}")
    bounds = np.full(len(numbers), np.inf)
    return gym.spaces.Box(np.concatenate((space.low, -bounds)), np.concatenate((space.high, bounds)), dtype=np.float64)
