"""Executors that step environments in this process."""
import copy
from typing import Any, List, Sequence, Tuple, Union

import numpy as np

from meta_policy_search.envs.compat import adapt_env, close_env, copy_env
from meta_policy_search.envs.interface import BatchedEnv, MetaEnv
from meta_policy_search.envs.spaces import as_numbers
from meta_policy_search.samplers.errors import ENV_EXCEPTIONS, EnvWorkerError
from meta_policy_search.samplers.vectorized_env_executor.base import MetaEnvExecutor
from meta_policy_search.types import BatchedStep, Task


class MetaIterativeEnvExecutor(MetaEnvExecutor):
    """Holds separate copies of the environment and steps them sequentially in this process.

    This executor supports every environment.

    Args:
        env: meta-environment with the gym 0.26, Gymnasium or classic gym API; it is copied. The original only samples
            tasks.
        meta_batch_size: number of tasks, at least 1.
        envs_per_task: number of environments per task, at least 1.
        max_path_length: maximum number of steps of a path in `step`, at least 1.

    Raises:
        TypeError: `env` cannot be copied (`copy.deepcopy`); also see `MetaEnvExecutor`.
        ValueError: see `MetaEnvExecutor`.
    """

    def __init__(self, env: MetaEnv, meta_batch_size: int, envs_per_task: int, max_path_length: int) -> None:
        super().__init__(env, meta_batch_size, envs_per_task, max_path_length)
        self._envs = [copy_env(self._env) for _ in range(self.num_envs)]

    def _assign(self, tasks: List[Task]) -> None:
        for e, env in enumerate(self._envs):
            try:
                env.set_task(tasks[e // self.envs_per_task])
            except ENV_EXCEPTIONS as error:
                raise self._fault(error, "set_task", [e]) from error

    def reset_envs(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        observations = np.empty((len(env_ids), *self.observation_shape))
        for row, (e, rng) in enumerate(zip(env_ids.tolist(), rngs, strict=True)):
            try:
                self._envs[e].np_random = rng
                observations[row] = _checked("observation", self._envs[e].reset()[0], self.observation_shape)
            except ENV_EXCEPTIONS as error:
                raise self._fault(error, "reset", [e]) from error
        return observations

    def advance(self, actions: np.ndarray, env_ids: np.ndarray) -> BatchedStep:
        n = len(env_ids)
        observations, rewards = np.empty((n, *self.observation_shape)), np.empty(n)
        terminated, truncated, infos = np.empty(n, dtype=bool), np.empty(n, dtype=bool), []
        for row, e in enumerate(env_ids.tolist()):
            try:
                observation, rewards[row], terminated[row], truncated[row], info = self._envs[e].step(actions[row])
                observations[row] = _checked("observation", observation, self.observation_shape)
                infos.append(info)
            except ENV_EXCEPTIONS as error:
                raise self._fault(error, "step", [e]) from error
        return BatchedStep(observations, rewards, terminated, truncated, infos)  # type: ignore[arg-type]  # infos: list

    def _close(self) -> None:
        for env in self._envs:
            close_env(env)


class MetaBatchedEnvExecutor(MetaEnvExecutor):
    """Steps all environments together through the vectorized environment `env.make_batched(num_envs)`.

    If an exception of the vectorized environment has an attribute `env_ids`, such as `PhysicsError`, the error of the
    executor names these environments. Otherwise it names all environments of the call.

    Args:
        env: meta-environment with `make_batched`. It samples tasks, and `set_averages` also changes it.
        meta_batch_size: number of tasks, at least 1.
        envs_per_task: number of environments per task, at least 1.
        max_path_length: maximum number of steps of a path in `step`, at least 1.

    Raises:
        TypeError: `env` cannot be vectorized, see `envs.compat.WrappingEnv.make_batched`; also see `MetaEnvExecutor`.
        ValueError: see `MetaEnvExecutor`.
    """

    def __init__(self, env: MetaEnv, meta_batch_size: int, envs_per_task: int, max_path_length: int) -> None:
        super().__init__(env, meta_batch_size, envs_per_task, max_path_length)
        batched = self._env.make_batched(self.num_envs)
        if batched is None:
            raise TypeError(f"env: expected an environment that can be vectorized (make_batched), got "
                            f"{type(env).__name__}; MetaIterativeEnvExecutor supports every environment")
        self._batched: BatchedEnv = batched
        self.max_threads = self._batched.max_threads

    def _assign(self, tasks: List[Task]) -> None:
        try:
            tasks = copy.deepcopy(tasks)
            self._batched.set_tasks([task for task in tasks for _ in range(self.envs_per_task)])
        except ENV_EXCEPTIONS as error:
            raise self._batched_fault(error, "set_tasks", range(self.num_envs)) from error

    def reset_envs(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        try:
            observations = self._batched.reset(env_ids, rngs)
            return _checked("observation", observations, (len(env_ids), *self.observation_shape))
        except ENV_EXCEPTIONS as error:
            raise self._batched_fault(error, "reset", env_ids) from error

    def advance(self, actions: np.ndarray, env_ids: np.ndarray) -> BatchedStep:
        try:
            steps, count = self._batched.step(actions, env_ids), len(env_ids)
            return BatchedStep(_checked("observation", steps.observations, (count, *self.observation_shape)),
                               _checked("rewards", steps.rewards, (count,)),
                               _checked("terminated", steps.terminated, (count,), bool),
                               _checked("truncated", steps.truncated, (count,), bool), steps.env_infos)
        except ENV_EXCEPTIONS as error:
            raise self._batched_fault(error, "step", env_ids) from error

    def _batched_fault(self, error: BaseException, doing: str, env_ids: Any) -> EnvWorkerError:
        return self._fault(error, doing, getattr(error, "env_ids", env_ids))


def _checked(name: str, values: Any, shape: Tuple[int, ...], dtype: type = np.float64) -> np.ndarray:
    """Converts values of an environment to an array; raises `ValueError` for another shape or no numbers."""
    numbers = as_numbers(name, values)
    array: np.ndarray = numbers.astype(dtype, copy=False)
    if array.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")
    if dtype is bool and (array != numbers).any():
        raise ValueError(f"{name}: expected True or False, got {numbers}")
    return array


def make_local_executor(env: MetaEnv, meta_batch_size: int, envs_per_task: int, max_path_length: int,
                        first_task: int = 0) -> Union[MetaBatchedEnvExecutor, MetaIterativeEnvExecutor]:
    """Creates the fastest executor in this process: `MetaBatchedEnvExecutor` if `env` can be vectorized."""
    kind = MetaIterativeEnvExecutor if adapt_env(env).make_batched(1) is None else MetaBatchedEnvExecutor
    executor = kind(env, meta_batch_size, envs_per_task, max_path_length)
    executor.first_task = first_task
    return executor

