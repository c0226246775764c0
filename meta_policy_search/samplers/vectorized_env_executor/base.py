"""What all executors share: the two layers they are called through, the checks, and the naming of errors.

Environment `e = task * envs_per_task + j` is copy `j` of a task. Each executor has two layers:

* arrays, for samplers: `set_tasks`, `reset_envs` and `step_envs` act on the environments they are told, draw
  from the generators they are given and reset nothing by themselves. Actions are not checked again: a sampler has
  checked them when the policy gave them;
* lists, as documented for this method's public code: `reset` and `step` act on all environments, and a path
  that ends is followed by the next one. `step` checks the actions.

Use one layer at a time. Given the same generators and actions, all executors return the same numbers, bit for
bit: `MetaBatchedEnvExecutor` and `MetaIterativeEnvExecutor` run the same environment code, and the processes of
`MetaParallelEnvExecutor` hold one of these two each. An environment that draws from the global `numpy.random`
works everywhere, and is reproducible in `MetaIterativeEnvExecutor`.
"""
import abc
import os
import pickle
import reprlib
import types
from typing import Any, Dict, List, Optional, Sequence, Tuple

import cloudpickle
import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.envs.gym_compat import check_meta_env, methods_of, sample_tasks
from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.envs.spaces import check_has_spaces
from meta_policy_search.samplers.errors import EnvValueError, EnvWorkerError, PatchedEnvError, tasks_text
from meta_policy_search.samplers.rollout_loop import Collection, PathRng, collect_shares, join_shares
from meta_policy_search.types import BatchedStep, Infos, Task
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.seeding import Stream, next_rng


class MetaEnvExecutor(abc.ABC):
    """Many copies of a meta-environment, one group per task; see the module.

    A subclass supplies `_assign`, `reset_envs` and `advance`, and `_close` if there is something to close.

    Args:
        env: meta-environment, of our own kind, Gymnasium's or the classic one; it is copied. The original only
            samples tasks.
        meta_batch_size: number of tasks, at least one.
        envs_per_task: number of environments per task, at least one.
        max_path_length: `step` ends a path after so many steps; at least one.

    Attributes:
        tasks: what `set_tasks` was given last, or sampled; None before that, and where it failed.
        observation_shape: `(O,)`.
        action_shape: `(A,)`, or `()` where actions are discrete.
        first_task: number that errors give to the first task; not zero in a worker, which holds a share.
        max_threads: how many threads may call `reset_envs` and `step_envs` at a time, each for tasks of its own;
            more than one where that is faster.

    Raises:
        TypeError: `env` has no `sample_tasks` and `set_task`, or no spaces with a shape; or a size is not an integer.
        ValueError: a size is smaller than one.
    """

    def __init__(self, env: MetaEnv, meta_batch_size: int, envs_per_task: int, max_path_length: int) -> None:
        check_meta_env(env)
        check_has_spaces(env)
        self.meta_batch_size = check_positive_int("meta_batch_size", meta_batch_size)
        self.envs_per_task = check_positive_int("envs_per_task", envs_per_task)
        self.max_path_length = check_positive_int("max_path_length", max_path_length)
        self.first_task = 0
        self.max_threads = 1
        self._env = env
        self.observation_shape = tuple(env.observation_space.shape)
        self.action_shape = tuple(env.action_space.shape)
        self.tasks: Optional[List[Task]] = None
        self._path_rngs: List[np.random.Generator] = []  # one per environment, which spawns its paths'
        self._path_lengths = np.zeros(self.num_envs, dtype=int)
        self._is_closed = False

    @property
    def num_envs(self) -> int:
        """Number of environments, `meta_batch_size * envs_per_task`."""
        return self.meta_batch_size * self.envs_per_task

    # ---- arrays

    def set_tasks(self, tasks: Optional[Sequence[Task]]) -> None:
        """Gives all environments of a task a copy of that task; takes effect before their next reset.

        Args:
            tasks: `meta_batch_size` tasks; None samples new ones from the environment.

        Raises:
            ValueError: there are not `meta_batch_size` of them.
            EnvWorkerError: the environment does not accept one; an `EnvValueError` if it says `ValueError`.
        """
        self._check_open()
        if tasks is None:
            tasks = sample_tasks(self._env, self.meta_batch_size, rng=next_rng(Stream.EXECUTOR))
        tasks = list(tasks)
        if len(tasks) != self.meta_batch_size:
            raise ValueError(f"tasks: expected meta_batch_size={self.meta_batch_size} of them, got {len(tasks)}")
        self.tasks = tasks  # errors name them
        try:
            self._assign(tasks)
        except BaseException:
            self.tasks = None  # some environments have them, others have not
            raise

    @abc.abstractmethod
    def reset_envs(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        """Starts a new path in some of the environments.

        Args:
            env_ids: int `[k]`, which environments; in any order, no duplicates.
            rngs: `k` generators; environment `env_ids[i]` draws its start state, and whatever is random in its
                dynamics until its next reset, from `rngs[i]`. They belong to the environments from now on: a
                worker process draws from copies of them.

        Returns:
            The start observations, float64 `[k, O]`.

        Raises:
            EnvWorkerError: an environment failed.
        """

    def step_envs(self, actions: np.ndarray, env_ids: np.ndarray) -> BatchedStep:
        """Takes one step in some of the environments, without resetting any.

        Args:
            actions: `[k, A]`, finite, which is not checked; int `[k]` where the action space is discrete.
            env_ids: int `[k]`, which environments; in any order, no duplicates.

        Returns:
            A `BatchedStep` of `k` rows. An info that only some environments give is NaN in the others (None, if
            it is not numeric); infos that are not numbers come as arrays of objects.

        Raises:
            EnvWorkerError: an environment failed; an `EnvValueError`, which is a `ValueError` too, if what it
                returned does not fit its observation space or the interface, or an info has another shape than in
                other environments.
        """
        answer = self.advance(np.array(actions), env_ids)
        if isinstance(answer.env_infos, list):
            try:
                return answer._replace(env_infos=stack_infos(answer.env_infos))
            except EnvValueError as error:
                raise self._fault(ValueError(error), "step", env_ids[error.env_ids]) from None
        return answer

    @abc.abstractmethod
    def advance(self, actions: np.ndarray, env_ids: np.ndarray) -> BatchedStep:
        """Does what `step_envs` does, and may change `actions`; `env_infos` may be a list of `k` dicts."""

    @abc.abstractmethod
    def _assign(self, tasks: List[Task]) -> None:
        """Does what `set_tasks` does."""

    def collect(self, num_rollouts: int, path_rng: PathRng, actor: Actor) -> Collection:
        """Collects paths in all tasks, in `max_threads` threads if the actor can be divided.

        Args:
            num_rollouts: paths of each task.
            path_rng: makes the generator of each path.
            actor: acts in all tasks.

        Raises:
            ValueError: an observation, reward or action is not finite; names task, path and step.
            EnvWorkerError: the environment failed, or a worker process died; names task, path and step.
        """
        self._check_open()
        return join_shares(collect_shares(self, num_rollouts, path_rng, actor, range(self.meta_batch_size)))

    # ---- lists

    def reset(self) -> List[np.ndarray]:
        """Resets all environments.

        Their generators derive from the seed (`set_seed`), the number of calls of `reset` since, environment and path.

        Returns:
            List of `num_envs` start observations, each float64 `[O]`.
        """
        self._check_open()
        self._path_rngs = next_rng(Stream.EXECUTOR).spawn(self.num_envs)
        return list(self._start_next_paths(np.arange(self.num_envs)))

    def step(
        self, actions: Sequence[np.ndarray]
    ) -> Tuple[List[np.ndarray], List[float], List[bool], List[Dict[str, Any]]]:
        """Takes one step in all environments; one whose path has ended starts the next path.

        Args:
            actions: `num_envs` actions, each `[A]`, or an integer where the action space is discrete.

        Returns:
            Four lists of length `num_envs`: observations, rewards, dones (whether the path ended, by itself or
            by reaching `max_path_length`) and env_infos (dicts). Where done, the observation is the first of
            the next path.

        Raises:
            RuntimeError: `reset` has not been called.
            ValueError: the actions do not have the shape above, or are not finite.
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
        answer = self.advance(array, np.arange(self.num_envs))
        observations, rewards, terminated, truncated, _ = answer
        infos: Any = answer.env_infos
        self._path_lengths += 1
        dones = terminated | truncated | (self._path_lengths >= self.max_path_length)
        if dones.any():
            ended = np.flatnonzero(dones)
            observations[ended] = self._start_next_paths(ended)
        if not isinstance(infos, list):
            infos = [{key: values[row] for key, values in infos.items()} for row in range(self.num_envs)]
        return list(observations), rewards.tolist(), dones.tolist(), infos

    def _start_next_paths(self, env_ids: np.ndarray) -> np.ndarray:
        self._path_lengths[env_ids] = 0
        return self.reset_envs(env_ids, [self._path_rngs[e].spawn(1)[0] for e in env_ids])

    # ---- the end

    def close(self) -> None:
        """Closes the environments; the executor cannot be used afterwards. A second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            self._close()

    def _close(self) -> None:
        """Does what `close` does; by default nothing."""

    def __enter__(self) -> "MetaEnvExecutor":
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.close()

    # ---- checks and errors

    def _check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError(f"this {type(self).__name__} is closed")

    def _fault(self, error: BaseException, doing: str, env_ids: Sequence[int]) -> EnvWorkerError:
        """Returns the error to raise from `error`, which came from one of `env_ids`."""
        kind = EnvValueError if isinstance(error, ValueError) else EnvWorkerError
        return kind(f"{self._who(env_ids)} raised {type(error).__name__} in {doing}: {error}",
                    env_ids=[int(e) + self.first_task * self.envs_per_task for e in env_ids])

    def _who(self, env_ids: Sequence[int]) -> str:
        """Names environments and their tasks by their numbers among all, also in a worker, which holds a share."""
        first, last = min(env_ids), max(env_ids)
        shift = self.first_task * self.envs_per_task
        first_task, last_task = first // self.envs_per_task, last // self.envs_per_task
        tasks = tasks_text(first_task + self.first_task, last_task + self.first_task)
        if first == last:
            value = "" if self.tasks is None else f": {reprlib.repr(self.tasks[first_task])}"
            return f"environment {first + shift} ({tasks}{value})"
        return f"one of environments {first + shift} to {last + shift} ({tasks})"


def pickle_env(env: MetaEnv, for_workers: bool = False) -> bytes:
    """Returns an environment as bytes for `load_env`.

    Raises:
        TypeError: it cannot be pickled.
        PatchedEnvError: `reset`, `step` or `set_task` of the object was replaced, and the bytes are for workers.
    """
    places = {name: _place_of(function) for name, function in methods_of(env).items()}
    if for_workers:
        _refuse_patched([name for name in places if "()." in name])
    try:
        return cloudpickle.dumps((env, places))
    except Exception as error:
        raise TypeError(f"env: expected an environment that can be pickled, so that it can be copied, but "
                        f"{type(env).__name__} raised {type(error).__name__}: {error}") from error


def load_env(pickled: bytes) -> MetaEnv:
    """Returns a copy of an environment, from the bytes of `pickle_env`.

    Raises:
        PatchedEnvError: a method was replaced and the copy does not have the replacement. Processes that import a class
            do not see how another process has changed it.
    """
    env, places = pickle.loads(pickled)
    present = {name: _place_of(function) for name, function in methods_of(env).items()}
    _refuse_patched([name for name in {**present, **places} if present.get(name) != places.get(name)])
    return env


def _place_of(function: Any) -> Optional[Tuple[str, ...]]:
    """Returns where a function is defined, in terms that are the same in all processes; None for other objects."""
    if not isinstance(function, types.FunctionType):
        return None
    return os.path.basename(function.__code__.co_filename), function.__code__.co_name, function.__qualname__


def _refuse_patched(names: Sequence[str]) -> None:
    if names:
        raise PatchedEnvError(f"env: {names[0]} was replaced, which worker processes and other copies do not see; "
                              "override it in a subclass, or sample in this process (parallel=False)")


def stack_infos(infos: List[Dict[str, Any]]) -> Infos:
    """Turns the infos of `k` environments into arrays `[k, ...]`; see `MetaEnvExecutor.step_envs`.

    Raises:
        EnvValueError: a row, the only one in its `env_ids`, has an info of another shape than the rows before it.
    """
    keys = dict.fromkeys(key for info in infos for key in info)
    return {key: _stacked(key, [info.get(key, _MISSING) for info in infos]) for key in keys}


_MISSING = object()


def _stacked(key: str, values: List[Any]) -> np.ndarray:
    given = [row for row, value in enumerate(values) if value is not _MISSING]
    try:
        array = np.array([values[row] for row in given])
    except ValueError:  # values of unequal shapes, or lists that are no arrays
        shapes = [_shape(values[row]) for row in given]
        for row, shape in zip(given, shapes):
            if shape != shapes[0]:
                raise EnvValueError(f"{key}: expected shape {shapes[0]} as in other environments or steps, got {shape}"
                                    "; an info that changes its size may be given in a dict", [row]) from None
        array = None
    if array is None or array.dtype.kind not in "biufc":
        objects = np.empty(len(values), dtype=object)
        for row in given:
            objects[row] = values[row]
        return objects
    if len(given) == len(values):
        return array
    filled = np.full((len(values), *array.shape[1:]), np.nan, dtype=np.result_type(array, np.float64))
    filled[given] = array
    return filled


def _shape(value: Any) -> Tuple[int, ...]:
    try:
        return np.shape(value)
    except ValueError:  # lists of unequal length: an object
        return ()
