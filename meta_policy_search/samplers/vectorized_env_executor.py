"""Executors: many copies of a meta-environment, one group per task, reset and stepped together.

Environment `e = task * envs_per_task + j` is copy `j` of a task. Each executor has two layers:

* arrays, for samplers: `set_tasks`, `reset_envs` and `step_envs` act on the environments they are told, draw
  from the generators they are given and reset nothing by themselves;
* lists, as documented for this method's public code: `reset` and `step` act on all environments, and a path
  that ends is followed by the next one.

Use one layer at a time. Given the same generators and actions, all executors return the same numbers, bit for
bit: `MetaBatchedEnvExecutor` and `MetaIterativeEnvExecutor` run the same environment code, and the processes of
`MetaParallelEnvExecutor` hold one of these two each. An environment that draws from the global `numpy.random`
works everywhere, and is reproducible in `MetaIterativeEnvExecutor`.
"""
import abc
import os
import pickle
import reprlib
import signal
import weakref
from multiprocessing.connection import wait
from typing import Any, Dict, List, NoReturn, Optional, Sequence, Tuple, Union

import cloudpickle
import numpy as np

from meta_policy_search.envs.base import BatchedEnv, MetaEnv
from meta_policy_search.envs.gym_forms import batched_form, check_meta_env, reset_env, sample_tasks, set_rng, step_env
from meta_policy_search.envs.spaces import is_discrete
from meta_policy_search.samplers.env_worker import WorkerProcess, stop_workers
from meta_policy_search.types import BatchedStep, Infos, Task
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.cores import available_cores
from meta_policy_search.utils.seeding import Stream, next_rng

__all__ = [
    "EnvValueError",
    "EnvWorkerError",
    "MetaBatchedEnvExecutor",
    "MetaEnvExecutor",
    "MetaIterativeEnvExecutor",
    "MetaParallelEnvExecutor",
    "make_local_executor",
    "pickle_env",
    "stack_infos",
    "tasks_text",
]


class EnvWorkerError(RuntimeError):
    """An environment raised an exception, or the process that ran it died.

    In the process itself the environment's exception is the `__cause__`; from a worker process its traceback is
    part of the message.

    Attributes:
        env_ids: numbers of the environments that are to blame, or among which the one to blame is.
    """

    def __init__(self, message: str, env_ids: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.env_ids = list(env_ids)


class EnvValueError(EnvWorkerError, ValueError):
    """An environment was given, or returned, a value that does not fit."""


class MetaEnvExecutor(abc.ABC):
    """What all executors share: the checks, the layer of lists, and the two ways to end.

    A subclass supplies `_assign`, `_start`, `advance` and `_close`, on arguments already checked.

    Args:
        env: meta-environment, of our own kind, Gymnasium's or the classic one; it is copied, and itself used
            for sampling tasks only.
        meta_batch_size: number of tasks, at least one.
        envs_per_task: number of environments per task, at least one.
        max_path_length: `step` ends a path after so many steps; at least one.

    Attributes:
        first_task: number that errors give to the first task; not zero in a worker, which holds a share.
        max_callers: how many threads may call `reset_envs` and `step_envs` at a time, each for tasks of its own;
            more than one where that is faster.

    Raises:
        TypeError: `env` has no `sample_tasks` and `set_task`, or no spaces with a shape; or a size is not an
            integer.
        ValueError: a size is smaller than one.
    """

    def __init__(self, env: MetaEnv, meta_batch_size: int, envs_per_task: int, max_path_length: int) -> None:
        check_meta_env(env)
        self.meta_batch_size = check_positive_int("meta_batch_size", meta_batch_size)
        self.envs_per_task = check_positive_int("envs_per_task", envs_per_task)
        self.max_path_length = check_positive_int("max_path_length", max_path_length)
        self.first_task = 0
        self.max_callers = 1
        self._env = env
        self._observation_shape = _space_shape(env, "observation_space")
        self._action_shape = _space_shape(env, "action_space")
        self._is_discrete = is_discrete(env.action_space)
        self._tasks: Optional[List[Task]] = None
        self._path_rngs: Optional[List[np.random.Generator]] = None  # one per environment, which spawns its paths'
        self._path_lengths = np.zeros(self.num_envs, dtype=int)
        self._is_closed = False

    @property
    def num_envs(self) -> int:
        """Number of environments, `meta_batch_size * envs_per_task`."""
        return self.meta_batch_size * self.envs_per_task

    # ---- arrays

    def set_tasks(self, tasks: Optional[Sequence[Task]]) -> None:
        """Gives all environments of a task that task; takes effect before their next reset.

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
        self._tasks = tasks
        self._assign(tasks)

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
            ValueError: an argument has the wrong shape or range.
            EnvWorkerError: an environment failed.
        """
        self._check_open()
        ids = self._checked_ids(env_ids)
        if len(rngs) != len(ids):
            raise ValueError(f"rngs: expected {len(ids)} generators, one per environment, got {len(rngs)}")
        return self._start(ids, rngs)

    def step_envs(self, actions: np.ndarray, env_ids: np.ndarray) -> BatchedStep:
        """Takes one step in some of the environments, without resetting any.

        Args:
            actions: `[k, A]`, finite; int `[k]` where the action space is discrete.
            env_ids: int `[k]`, which environments; in any order, no duplicates.

        Returns:
            A `BatchedStep` of `k` rows. An info that only some environments give is NaN in the others (None, if
            it is not numeric); infos that are not numbers, or differ in shape, come as arrays of objects.

        Raises:
            ValueError: an argument has the wrong shape or range.
            EnvWorkerError: an environment failed; an `EnvValueError`, which is a `ValueError` too, if what it
                returned does not fit its observation space or the interface.
        """
        answer = self._step(actions, self._checked_ids(env_ids))
        if isinstance(answer.env_infos, list):
            return answer._replace(env_infos=stack_infos(answer.env_infos))
        return answer

    @abc.abstractmethod
    def advance(self, actions: np.ndarray, env_ids: np.ndarray) -> BatchedStep:
        """Does what `step_envs` does, without its checks; `env_infos` may be a list of `k` dicts."""

    @abc.abstractmethod
    def _assign(self, tasks: List[Task]) -> None:
        """Does what `set_tasks` does."""

    @abc.abstractmethod
    def _start(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        """Does what `reset_envs` does."""

    # ---- lists

    def reset(self) -> List[np.ndarray]:
        """Resets all environments.

        Their generators derive from the seed (`set_seed`), the number of calls of `reset` since, environment
        and path.

        Returns:
            List of `num_envs` start observations, each float64 `[O]`.
        """
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
        if self._path_rngs is None:
            raise RuntimeError("step: call reset() first")
        observations, rewards, terminated, truncated, infos = self._step(actions, np.arange(self.num_envs))
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

    @abc.abstractmethod
    def _close(self) -> None:
        """Does what `close` does."""

    def __enter__(self) -> "MetaEnvExecutor":
        """Returns the executor, to be closed at the end of the `with` block."""
        return self

    def __exit__(self, *exc_info: Any) -> None:
        """Closes the executor."""
        self.close()

    # ---- checks and errors

    def _check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError(f"this {type(self).__name__} is closed")

    def _step(self, actions: Any, env_ids: np.ndarray) -> BatchedStep:
        self._check_open()
        return self.advance(self._checked_actions(actions, env_ids), env_ids)

    def _checked_ids(self, env_ids: Any) -> np.ndarray:
        ids = np.asarray(env_ids)
        if ids.ndim != 1 or ids.size == 0 or ids.dtype.kind not in "iu":
            raise ValueError(f"env_ids: expected a list of at least one integer, got {env_ids!r}")
        if ids.min() < 0 or ids.max() >= self.num_envs:
            raise ValueError(f"env_ids: expected numbers from 0 to {self.num_envs - 1}, got {env_ids!r}")
        if np.bincount(ids).max() > 1:
            raise ValueError(f"env_ids: expected each environment once, got {env_ids!r}")
        return ids

    def _checked_actions(self, actions: Any, env_ids: np.ndarray) -> np.ndarray:
        """Returns a copy, which environments may change as they like."""
        expected = (len(env_ids), *self._action_shape)
        try:
            array = np.array(actions)
        except ValueError as error:  # NumPy's, for rows of unequal length
            raise ValueError(f"actions: expected shape {expected}, got actions of unequal shapes") from error
        if array.shape != expected:
            raise ValueError(f"actions: expected shape {expected}, got {array.shape}")
        kinds, what = ("iu", "integers") if self._is_discrete else ("biuf", "numbers")
        if array.dtype.kind not in kinds:
            raise ValueError(f"actions: expected {what}, got {array.dtype}")
        finite = np.isfinite(array)
        if not finite.all():
            row = int(np.argwhere(~finite)[0, 0])
            raise ValueError(f"actions: expected finite numbers, got {array[row]} for "
                             f"{self._who([env_ids[row]])}")
        return array

    def _check_observation(self, observation: np.ndarray, expected: Tuple[int, ...]) -> None:
        if observation.shape != expected:
            raise ValueError(f"observation: expected shape {expected}, as the observation space says, "
                             f"got {observation.shape}")

    def _fault(self, error: Exception, doing: str, env_ids: Sequence[int]) -> EnvWorkerError:
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
            value = "" if self._tasks is None else f": {reprlib.repr(self._tasks[first_task])}"
            return f"environment {first + shift} ({tasks}{value})"
        return f"one of environments {first + shift} to {last + shift} ({tasks})"


class MetaIterativeEnvExecutor(MetaEnvExecutor):
    """Holds a copy of the environment per path and steps one after the other, in this process.

    Works for every environment. Arguments, methods and errors: see `MetaEnvExecutor`.

    Args:
        env: meta-environment.
        meta_batch_size: number of tasks.
        envs_per_task: number of environments per task.
        max_path_length: maximum length of a path; the environment is then reset.

    Raises:
        TypeError: `env` cannot be copied, that is pickled.
    """

    def __init__(self, env: MetaEnv, meta_batch_size: int, envs_per_task: int, max_path_length: int) -> None:
        super().__init__(env, meta_batch_size, envs_per_task, max_path_length)
        pickled = pickle_env(env)
        self._envs = [pickle.loads(pickled) for _ in range(self.num_envs)]

    def _assign(self, tasks: List[Task]) -> None:
        for e, env in enumerate(self._envs):
            try:
                env.set_task(tasks[e // self.envs_per_task])
            except Exception as error:
                raise self._fault(error, "set_task", [e]) from error

    def _start(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        observations = np.empty((len(env_ids), *self._observation_shape))
        for row, (e, rng) in enumerate(zip(env_ids.tolist(), rngs, strict=True)):
            try:
                set_rng(self._envs[e], rng)
                observations[row] = self._checked_observation(reset_env(self._envs[e]))
            except Exception as error:
                raise self._fault(error, "reset", [e]) from error
        return observations

    def advance(self, actions: np.ndarray, env_ids: np.ndarray) -> BatchedStep:
        """See `MetaEnvExecutor.advance`."""
        n = len(env_ids)
        observations, rewards = np.empty((n, *self._observation_shape)), np.empty(n)
        terminated, truncated, infos = np.empty(n, dtype=bool), np.empty(n, dtype=bool), []
        for row, e in enumerate(env_ids.tolist()):
            try:
                observation, rewards[row], terminated[row], truncated[row], info = step_env(self._envs[e], actions[row])
                observations[row] = self._checked_observation(observation)
                infos.append(dict(info))
            except Exception as error:
                raise self._fault(error, "step", [e]) from error
        return BatchedStep(observations, rewards, terminated, truncated, infos)

    def _checked_observation(self, observation: Any) -> np.ndarray:
        observation = np.asarray(observation, dtype=np.float64)
        self._check_observation(observation, self._observation_shape)
        return observation

    def _close(self) -> None:
        for env in self._envs:
            if hasattr(env, "close"):
                env.close()


class MetaBatchedEnvExecutor(MetaEnvExecutor):
    """Steps all environments at once as arrays, through `env.make_batched(num_envs)`.

    Arguments, methods and errors: see `MetaEnvExecutor`. Where an exception of the batched environment has an
    attribute `env_ids`, such as `PhysicsError`, the executor's error names these environments, otherwise all that
    took part.

    Args:
        env: meta-environment with a batched form, see `envs.gym_forms.batched_form`.
        meta_batch_size: number of tasks.
        envs_per_task: number of environments per task.
        max_path_length: maximum length of a path; the environment is then reset.

    Raises:
        TypeError: `env` has no batched form.
    """

    def __init__(self, env: MetaEnv, meta_batch_size: int, envs_per_task: int, max_path_length: int) -> None:
        super().__init__(env, meta_batch_size, envs_per_task, max_path_length)
        make_batched = batched_form(env)
        if make_batched is None:
            raise TypeError(f"env: expected an environment with a make_batched that steps as it does itself, got "
                            f"{type(env).__name__}; MetaIterativeEnvExecutor takes any environment")
        self._batched: BatchedEnv = make_batched(self.num_envs)
        self.max_callers = getattr(self._batched, "max_callers", 1)

    def _assign(self, tasks: List[Task]) -> None:
        try:
            self._batched.set_tasks([task for task in tasks for _ in range(self.envs_per_task)])
        except Exception as error:
            raise self._batched_fault(error, "set_tasks", range(self.num_envs)) from error

    def _start(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        try:
            observations = self._batched.reset(env_ids, rngs)
            self._check_observation(observations, (len(env_ids), *self._observation_shape))
        except Exception as error:
            raise self._batched_fault(error, "reset", env_ids) from error
        return observations

    def advance(self, actions: np.ndarray, env_ids: np.ndarray) -> BatchedStep:
        """See `MetaEnvExecutor.advance`."""
        try:
            answer = self._batched.step(actions, env_ids)
            self._check_observation(answer.observations, (len(env_ids), *self._observation_shape))
        except Exception as error:
            raise self._batched_fault(error, "step", env_ids) from error
        return answer

    def _batched_fault(self, error: Exception, doing: str, env_ids: Sequence[int]) -> EnvWorkerError:
        return self._fault(error, doing, getattr(error, "env_ids", env_ids))

    def _close(self) -> None:
        """A batched environment has nothing to close."""


class MetaParallelEnvExecutor(MetaEnvExecutor):
    """Divides the tasks among worker processes, each of which steps its share as `make_local_executor` would.

    Arguments, methods and errors: see `MetaEnvExecutor`. A worker that dies, or in which an environment fails,
    raises `EnvWorkerError`, which names tasks and exit code, or carries the worker's traceback; the executor is
    then closed. It closes likewise at Ctrl-C during a call, when it is no longer used and when the interpreter
    exits, and its processes end if this one is killed. Needs a POSIX system.

    Args:
        env: meta-environment.
        meta_batch_size: number of tasks.
        envs_per_task: number of environments per task.
        max_path_length: maximum length of a path; the environment is then reset.
        num_processes: number of worker processes, of which no more than `meta_batch_size` are started; default:
            one per core that this process may use. Each computes on one thread.

    Raises:
        TypeError: `env` cannot be pickled.
        EnvWorkerError: a worker could not build its environments.
    """

    def __init__(
        self,
        env: MetaEnv,
        meta_batch_size: int,
        envs_per_task: int,
        max_path_length: int,
        num_processes: Optional[int] = None,
    ) -> None:
        super().__init__(env, meta_batch_size, envs_per_task, max_path_length)
        wanted = available_cores() if num_processes is None else check_positive_int("num_processes", num_processes)
        self.num_processes = min(wanted, self.meta_batch_size)
        bounds = np.arange(self.num_processes + 1) * self.meta_batch_size // self.num_processes
        self._shares = [slice(int(start), int(stop)) for start, stop in zip(bounds[:-1], bounds[1:], strict=True)]
        pickled = pickle_env(env)
        self._workers: List[WorkerProcess] = []
        self._stop = weakref.finalize(self, stop_workers, self._workers, os.getpid())
        try:
            for _ in self._shares:
                self._workers.append(WorkerProcess())
        except BaseException:
            self.close()
            raise
        self._exchange({w: ("build", pickled, share.start, share.stop - share.start, self.envs_per_task,
                            self.max_path_length) for w, share in enumerate(self._shares)})

    def set_tasks(self, tasks: Optional[Sequence[Task]] = None) -> None:
        """See `MetaEnvExecutor.set_tasks`; new tasks by default."""
        super().set_tasks(tasks)

    def _assign(self, tasks: List[Task]) -> None:
        self._exchange({w: ("set_tasks", cloudpickle.dumps(tasks[share])) for w, share in enumerate(self._shares)})

    def _start(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        rows = self._rows(env_ids)
        answers = self._exchange({w: ("reset", self._local(env_ids[mine], w), [rngs[row] for row in mine])
                                  for w, mine in rows.items()})
        return np.concatenate(answers)[_inverse(rows)]

    def advance(self, actions: np.ndarray, env_ids: np.ndarray) -> BatchedStep:
        """See `MetaEnvExecutor.advance`."""
        rows = self._rows(env_ids)
        answers = self._exchange({w: ("step", actions[mine], self._local(env_ids[mine], w))
                                  for w, mine in rows.items()})
        order = _inverse(rows)
        *arrays, infos = zip(*answers, strict=True)
        return BatchedStep(*(np.concatenate(parts)[order] for parts in arrays), _joined(infos, order))

    def _rows(self, env_ids: np.ndarray) -> Dict[int, np.ndarray]:
        """Returns, for each worker that holds some of `env_ids`, the positions of these in `env_ids`."""
        starts = [share.start for share in self._shares]
        worker_of = np.searchsorted(starts, env_ids // self.envs_per_task, side="right") - 1
        rows = {w: np.flatnonzero(worker_of == w) for w in range(self.num_processes)}
        return {w: mine for w, mine in rows.items() if len(mine)}

    def _local(self, env_ids: np.ndarray, w: int) -> np.ndarray:
        """Returns the numbers by which worker `w` knows `env_ids`."""
        return env_ids - self._shares[w].start * self.envs_per_task

    def _exchange(self, requests: Dict[int, Tuple]) -> List[Any]:
        """Sends each worker its request, then collects the results, in the order of `requests`.

        Whatever goes wrong, Ctrl-C among it, requests and answers no longer match: the executor is closed.
        """
        try:
            for w, request in requests.items():
                try:
                    self._workers[w].send(*request)
                except OSError:
                    self._raise_death(w)
            results: Dict[int, Any] = {}
            while len(results) < len(requests):
                waiting = {self._workers[w].connection: w for w in requests if w not in results}
                for connection in wait(list(waiting), timeout=1.0):
                    w = waiting.pop(connection)
                    results[w] = self._receive(w)
                for w in waiting.values():  # dead, while a process of its own making holds its pipe open
                    if self._workers[w].has_died():
                        self._raise_death(w)
        except BaseException:
            self.close()
            raise
        return [results[w] for w in requests]

    def _receive(self, w: int) -> Any:
        try:
            succeeded, result = self._workers[w].receive()
        except (EOFError, OSError):
            self._raise_death(w)
        if not succeeded:
            result.raise_as(f"worker process {w} ({self._held(w)})", self._env_ids(w))
        return result

    def _raise_death(self, w: int) -> NoReturn:
        code = self._workers[w].exit_code()
        known = code is not None and code < 0 and -code in set(signal.Signals)
        raise EnvWorkerError(f"worker process {w} ({self._held(w)}) died with exit code {code}"
                             + (f" ({signal.Signals(-code).name})" if known else ""), self._env_ids(w)) from None

    def _env_ids(self, w: int) -> range:
        """Returns the numbers of the environments that a worker holds."""
        return range(self._shares[w].start * self.envs_per_task, self._shares[w].stop * self.envs_per_task)

    def _held(self, w: int) -> str:
        return tasks_text(self._shares[w].start, self._shares[w].stop - 1)

    def _close(self) -> None:
        self._stop()


def make_local_executor(
    env: MetaEnv, meta_batch_size: int, envs_per_task: int, max_path_length: int
) -> Union[MetaBatchedEnvExecutor, MetaIterativeEnvExecutor]:
    """Returns the fastest executor within this process: the batched one if `env` has a batched form."""
    kind = MetaIterativeEnvExecutor if batched_form(env) is None else MetaBatchedEnvExecutor
    return kind(env, meta_batch_size, envs_per_task, max_path_length)


def pickle_env(env: MetaEnv) -> bytes:
    """Returns an environment as bytes; raises `TypeError` if it cannot be pickled."""
    try:
        return cloudpickle.dumps(env)
    except Exception as error:
        raise TypeError(f"env: expected an environment that can be pickled, so that it can be copied, but "
                        f"{type(env).__name__} raised {type(error).__name__}: {error}") from error


def _space_shape(env: MetaEnv, name: str) -> Tuple[int, ...]:
    shape = getattr(getattr(env, name, None), "shape", None)
    if shape is None:
        raise TypeError(f"env: expected an environment whose {name} has a shape, such as a Box, but "
                        f"{type(env).__name__} has {getattr(env, name, None)!r}")
    return tuple(shape)


def tasks_text(first: int, last: int) -> str:
    """Names tasks by their numbers."""
    return f"task {first}" if first == last else f"tasks {first} to {last}"


def _inverse(rows: Dict[int, np.ndarray]) -> np.ndarray:
    """Returns the order that brings results, collected worker after worker, back to that of the request."""
    return np.argsort(np.concatenate(list(rows.values())))


def _joined(infos: Sequence[Union[Infos, List[Dict[str, Any]]]], order: np.ndarray) -> Union[Infos, List[Dict]]:
    """Joins the workers' env_infos; a batched environment gives the same keys whatever its number of rows."""
    if isinstance(infos[0], list):
        rows = [info for part in infos for info in part]
        return [rows[row] for row in order]
    return {key: np.concatenate([part[key] for part in infos])[order] for key in infos[0]}


def stack_infos(infos: List[Dict[str, Any]]) -> Infos:
    """Turns the infos of `k` environments into arrays `[k, ...]`; see `MetaEnvExecutor.step_envs`."""
    keys = dict.fromkeys(key for info in infos for key in info)
    return {key: _stacked([info.get(key, _MISSING) for info in infos]) for key in keys}


_MISSING = object()


def _stacked(values: List[Any]) -> np.ndarray:
    given = [row for row, value in enumerate(values) if value is not _MISSING]
    try:
        array = np.array([values[row] for row in given])
    except ValueError:  # values of unequal shapes
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
