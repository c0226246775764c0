"""Base class of executors: interface of samplers, lists of the public code, argument checks and error messages.

Samplers call `set_tasks` and `collect`. Executors that step environments in this process or in worker processes have
two more interfaces. Environment `e = task * envs_per_task + j` is copy `j` of a task.

* Arrays, for the rollout loop: `reset_envs` and `step_envs` act on the environments in `env_ids` and draw from the
  given generators. Environments are not reset automatically. Actions are not checked, because the rollout loop checks
  the actions of the policy.
* Lists, compatible with the public code of ProMP: `reset` and `step` act on all environments. When a path ends, the
  environment starts the next path automatically. `step` checks the actions.

Use only one interface at a time. With the same generators and actions, all executors return bit-identical numbers:
`MetaBatchedEnvExecutor` and `MetaIterativeEnvExecutor` run the same environment code, and each worker contains one of
these executors. Environments that draw from the global `numpy.random` work with all executors, but their paths are
reproducible only in `MetaIterativeEnvExecutor`.
"""
import reprlib
import threading
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar

import cloudpickle
import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.envs.compat import adapt_env
from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.envs.normalized_env import Averages, get_averages, set_averages
from meta_policy_search.samplers.errors import EnvValueError, EnvWorkerError, tasks_text
from meta_policy_search.samplers.rollout_loop import PathRng, RolloutLoop, TaskRollouts, join_rollouts
from meta_policy_search.types import BatchedStep, Infos, Path, Task
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.seeding import Stream, next_rng
from meta_policy_search.utils.threads import divide, one_blas_thread, run_in_threads

Executor = TypeVar("Executor", bound="MetaEnvExecutor")


class MetaEnvExecutor:
    """Base class of executors, which hold many copies of a meta-environment, one group per task.

    Subclasses implement `_assign`, `reset_envs`, `advance` and, if they hold resources, `_close`. A subclass that only
    collects whole paths implements `collect_rollouts` instead.

    Args:
        env: meta-environment with the gym 0.26, Gymnasium or classic gym API; it is copied. The original samples
            tasks and has the same running averages as the copies.
        meta_batch_size: number of tasks, at least 1.
        envs_per_task: number of environments per task, at least 1.
        max_path_length: maximum number of steps of a path, at least 1.

    Attributes:
        tasks: tasks of the last `set_tasks`; None before the first call and after a failed call.
        logs_rllib_names: whether samplers also log returns under RLlib's names. Default: False.
        observation_shape: `(O,)`.
        action_shape: `(A,)`, or `()` for a discrete action space.
        first_task: index of the first task in error messages; nonzero in workers, which hold some of the tasks.
        max_threads: number of threads that may call `reset_envs` and `step_envs` concurrently, each for different
            tasks. It is above 1 if threads make sampling faster.
        is_interrupted: function that returns whether `collect_rollouts` has to end early. By default, it never has to.

    Raises:
        TypeError: `env` has no `sample_tasks` or `set_task`, or no spaces with a shape; or a size is not an integer.
        ValueError: a size is below 1.
    """

    logs_rllib_names = False

    def __init__(self, env: MetaEnv, meta_batch_size: int, envs_per_task: int, max_path_length: int) -> None:
        self.meta_batch_size = check_positive_int("meta_batch_size", meta_batch_size)
        self.envs_per_task = check_positive_int("envs_per_task", envs_per_task)
        self.max_path_length = check_positive_int("max_path_length", max_path_length)
        self.tasks: Optional[List[Task]] = None
        self._env = adapt_env(env)
        self._is_closed = False
        self.observation_shape = tuple(env.observation_space.shape)
        self.action_shape = tuple(env.action_space.shape)
        self.first_task = 0
        self._envs: List[Any] = []  # separate copies of the environment, if there are any
        self.max_threads = 1
        self.is_interrupted: Callable[[], bool] = bool  # `bool()` is False
        self._path_rngs: List[np.random.Generator] = []  # one per environment; they spawn the generators of its paths
        self._path_lengths = np.zeros(self.num_envs, dtype=int)

    @property
    def num_envs(self) -> int:
        """Number of environments, `meta_batch_size * envs_per_task`."""
        return self.meta_batch_size * self.envs_per_task

    def set_tasks(self, tasks: Optional[Sequence[Task]]) -> None:
        """Assigns each task to its `envs_per_task` environments, which receive copies of it.

        Depending on the environment, the new task takes effect immediately or at the next reset.

        Args:
            tasks: `meta_batch_size` tasks; None: tasks sampled from the environment.

        Raises:
            ValueError: the number of tasks is not `meta_batch_size`.
            EnvWorkerError: the environment rejects a task (`EnvValueError` if it raises `ValueError`). With Ray,
                `collect` raises these errors.
        """
        self._check_open()
        if tasks is None:
            tasks = self._env.sample_tasks(self.meta_batch_size, next_rng(Stream.EXECUTOR))
        tasks = list(tasks)
        if len(tasks) != self.meta_batch_size:
            raise ValueError(f"tasks: expected meta_batch_size={self.meta_batch_size} tasks, got {len(tasks)}")
        self.tasks = tasks  # set first, because error messages name tasks
        try:
            self._assign(tasks)
        except BaseException:
            self.tasks = None  # only some of the environments have the new tasks
            raise

    def _assign(self, tasks: List[Task]) -> None:
        """Sets the tasks of the environments; by default does nothing."""

    @one_blas_thread()
    def collect(self, num_rollouts: int, path_rng: PathRng, actor: Actor
                ) -> Tuple[Dict[int, List[Path]], List[TaskRollouts]]:
        """Collects paths in all tasks, with the running averages of the environment that the executor was built with.

        Args:
            num_rollouts: number of paths per task.
            path_rng: function that returns the generator of each path.
            actor: actor for all tasks.

        Returns:
            The path dicts of each task, by task index; and the rollouts that they consist of, with times.

        Raises:
            ValueError: an observation, reward or action is not finite; the message names task, path and step.
            EnvWorkerError: the environment raised an error (the message names task, path and step), or a worker died.
        """
        self._check_open()
        rollouts = self.collect_rollouts(num_rollouts, path_rng, actor, get_averages(self._env))
        return join_rollouts(rollouts), rollouts

    def collect_rollouts(self, num_rollouts: int, path_rng: PathRng, actor: Actor,
                         averages: Averages) -> List[TaskRollouts]:
        """Implements `collect`, in up to `max_threads` threads if the actor can be divided.

        If `is_interrupted` returns True, the last paths are incomplete. `averages` are the current running averages of
        the environment.
        """
        if averages:
            self.set_averages(averages)
        tasks = range(self.first_task, self.first_task + self.meta_batch_size)
        parts = [(actor, tasks)] if not actor.can_divide else [
            (actor.for_tasks(part.start - tasks.start, part.stop - tasks.start), part)
            for part in divide(tasks, self.max_threads)]
        stop = threading.Event()
        loops = [RolloutLoop(self, num_rollouts, path_rng, *part, stop) for part in parts]
        return run_in_threads([loop.run for loop in loops], stop.set, "sampling")

    def set_averages(self, averages: Averages) -> None:
        """Sets the running averages of all environments."""
        for env in (self._env, *self._envs):
            set_averages(env, averages)

    def close(self) -> None:
        """Closes the environments. The executor cannot be used afterwards. Further calls do nothing."""
        if not self._is_closed:
            self._is_closed = True
            self._close()

    def _close(self) -> None:
        """Implements `close`; by default does nothing."""

    def __enter__(self: Executor) -> Executor:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError(f"{type(self).__name__} is closed: create a new one")

    # ---- array interface

    def reset_envs(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        """Starts new paths in the selected environments.

        Args:
            env_ids: int `[k]`, indices of the environments, in any order, without duplicates.
            rngs: `k` generators. Environment `env_ids[i]` draws its start state and all random numbers until its next
                reset from `rngs[i]`. The caller must not use the generators afterwards; worker processes draw from
                copies.

        Returns:
            The start observations, float64 `[k, O]`.

        Raises:
            EnvWorkerError: an environment raised an error.
        """
        raise NotImplementedError(f"{type(self).__name__} has no reset_envs; it only collects whole paths")

    def step_envs(self, actions: np.ndarray, env_ids: np.ndarray) -> BatchedStep:
        """Takes one step in the selected environments. Ended paths are not reset automatically.

        Args:
            actions: `[k, A]`, finite (not checked); int `[k]` for a discrete action space.
            env_ids: int `[k]`, indices of the environments, in any order, without duplicates.

        Returns:
            A `BatchedStep` with `k` rows. An info that only some environments return is None in the others. Such
            infos, and infos that are not numeric, are arrays of objects.

        Raises:
            EnvWorkerError: an environment raised an error.
            EnvValueError: a returned value does not match the observation space or the interface, or an info has
                different shapes in different environments. It is a subclass of `EnvWorkerError` and `ValueError`.
        """
        steps = self.advance(np.array(actions), env_ids)
        if isinstance(steps.env_infos, list):
            try:
                return steps._replace(env_infos=stack_infos(steps.env_infos))
            except EnvValueError as error:
                raise self._fault(ValueError(error), "step", env_ids[error.env_ids]) from None
        return steps

    def advance(self, actions: np.ndarray, env_ids: np.ndarray) -> BatchedStep:
        """Implements `step_envs`. May modify `actions`, and may return `env_infos` as a list of `k` dicts."""
        raise NotImplementedError(f"{type(self).__name__} has no step_envs; it only collects whole paths")

    # ---- list interface

    def reset(self) -> List[np.ndarray]:
        """Resets all environments.

        The generator of each path depends on the seed (`set_seed`), the number of calls of `reset` (and of `set_tasks`
        without tasks) since it was set, the environment, and the index of the path.

        Returns:
            List of `num_envs` start observations, each float64 `[O]`.
        """
        self._check_open()
        self._path_rngs = next_rng(Stream.EXECUTOR).spawn(self.num_envs)
        return list(self._start_next_paths(np.arange(self.num_envs)))

    def step(
        self, actions: Sequence[np.ndarray]
    ) -> Tuple[List[np.ndarray], List[float], List[bool], List[Dict[str, Any]]]:
        """Takes one step in all environments. An environment whose path ended starts its next path.

        Args:
            actions: `num_envs` actions, each `[A]`, or an integer for a discrete action space.

        Returns:
            Four lists of length `num_envs`: observations, rewards, dones (whether the path ended, also at
            `max_path_length`) and env_infos (dicts). If done, the observation is the first one of the next path.

        Raises:
            RuntimeError: `reset` has not been called.
            ValueError: the actions have another shape or are not finite.
            EnvWorkerError: an environment failed, see `step_envs`.
        """
        if not self._path_rngs:
            raise RuntimeError("step: call reset() first")
        self._check_open()
        array, expected = np.array(actions), (self.num_envs, *self.action_shape)
        if array.shape != expected:
            raise ValueError(f"actions: expected shape {expected}, got {array.shape}")
        finite = np.isfinite(array)
        if not finite.all():
            e = int(np.argwhere(~finite)[0, 0])
            raise ValueError(f"actions: expected finite numbers, got {array[e]} for {self._who([e])}")
        observations, rewards, terminated, truncated, env_infos = self.advance(array, np.arange(self.num_envs))
        infos: Any = env_infos
        self._path_lengths += 1
        dones = terminated | truncated | (self._path_lengths >= self.max_path_length)
        if dones.any():
            ended = np.flatnonzero(dones)
            observations = np.array(observations)  # the environment may return a read-only array
            observations[ended] = self._start_next_paths(ended)
        if not isinstance(infos, list):
            infos = [{key: values[row] for key, values in infos.items()} for row in range(self.num_envs)]
        return list(observations), rewards.tolist(), dones.tolist(), infos

    def _start_next_paths(self, env_ids: np.ndarray) -> np.ndarray:
        self._path_lengths[env_ids] = 0
        return self.reset_envs(env_ids, [self._path_rngs[e].spawn(1)[0] for e in env_ids])

    # ---- errors

    def _fault(self, error: BaseException, doing: str, env_ids: Sequence[int]) -> EnvWorkerError:
        """Returns an `EnvWorkerError` for `error`, which one of the environments `env_ids` has raised."""
        kind = EnvValueError if isinstance(error, ValueError) else EnvWorkerError
        return kind(f"{self._who(env_ids)} raised {type(error).__name__} in {doing}: {error}",
                    env_ids=[int(e) + self.first_task * self.envs_per_task for e in env_ids])

    def _who(self, env_ids: Sequence[int]) -> str:
        """Describes environments and tasks for an error message, with indices among all tasks of the meta-batch."""
        first, last = min(env_ids), max(env_ids)
        shift = self.first_task * self.envs_per_task
        first_task, last_task = first // self.envs_per_task, last // self.envs_per_task
        tasks = tasks_text(range(first_task + self.first_task, last_task + self.first_task + 1))
        if first == last:
            value = "" if self.tasks is None else f": {reprlib.repr(self.tasks[first_task])}"
            return f"environment {first + shift} ({tasks}{value})"
        return f"one of environments {first + shift} to {last + shift} ({tasks})"


def pickle_env(env: MetaEnv) -> bytes:
    """Returns an environment as bytes, from which `pickle.loads` restores it in another process.

    Raises:
        TypeError: pickling fails.
    """
    try:
        return cloudpickle.dumps(env)
    except Exception as error:
        raise TypeError(f"env: expected an environment that can be pickled for other processes, got "
                        f"{type(env).__name__}, which raised {type(error).__name__}: {error}") from error


def stack_infos(infos: List[Dict[str, Any]]) -> Infos:
    """Stacks the infos of `k` environments to arrays `[k, ...]`; see `MetaEnvExecutor.step_envs`.

    Raises:
        EnvValueError: an info has different shapes; `env_ids` of the error contains the first row with another shape
            than the first value.
    """
    keys = dict.fromkeys(key for info in infos for key in info)
    return {key: _stacked(key, [info.get(key, _MISSING) for info in infos]) for key in keys}


_MISSING = object()


def _stacked(key: str, values: List[Any]) -> np.ndarray:
    present = [row for row, value in enumerate(values) if value is not _MISSING]
    try:
        array = np.array([values[row] for row in present])
    except ValueError:  # values of different shapes, or nested lists of different lengths
        shapes = [_shape(values[row]) for row in present]
        for row, shape in zip(present, shapes):
            if shape != shapes[0]:
                raise EnvValueError(f"{key}: expected shape {shapes[0]} as in other environments or steps, got {shape}"
                                    "; put an info of variable size into a dict", [row]) from None
        array = None
    if array is None or array.dtype.kind not in "biufc":
        array = np.empty(len(present), dtype=object)
        for i, row in enumerate(present):
            array[i] = values[row]
    if len(present) == len(values):
        return array
    filled = np.empty((len(values), *array.shape[1:]), dtype=object)
    filled[present] = array
    return filled


def _shape(value: Any) -> Tuple[int, ...]:
    try:
        return np.shape(value)
    except ValueError:  # a list of lists of different lengths is stored as an object
        return ()
