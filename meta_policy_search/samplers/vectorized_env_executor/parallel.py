"""Executor that steps environments in worker processes."""
import os
import signal
import weakref
from multiprocessing.connection import wait
from typing import Any, Dict, List, NoReturn, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.samplers.errors import WorkerDiedError, tasks_text
from meta_policy_search.samplers.vectorized_env_executor.base import MetaEnvExecutor, pickle_env
from meta_policy_search.samplers.vectorized_env_executor.worker import WorkerProcess, stop_workers
from meta_policy_search.types import BatchedStep, Task
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.threads import available_cores, divide


class MetaParallelEnvExecutor(MetaEnvExecutor):
    """Divides the tasks among worker processes, each of which steps its share with `make_local_executor`.

    If a worker dies or an environment in it fails, the executor raises `EnvWorkerError`. The message names the tasks
    and the exit code, or contains the worker's traceback. After an error, or Ctrl-C during a call, all workers are
    ended. `set_tasks` and `reset_envs` restart them with their tasks. The workers also end when the executor is closed
    or deleted, and when the interpreter exits or is killed. The executor requires a POSIX system.

    Args:
        env: meta-environment with the gym 0.26, Gymnasium or classic gym API; it is copied. The original only samples
            tasks.
        meta_batch_size: number of tasks, at least 1.
        envs_per_task: number of environments per task, at least 1.
        max_path_length: maximum number of steps of a path in `step`, at least 1.
        num_processes: number of worker processes; at most `meta_batch_size` are started. None (default): one per core
            available to this process. Each worker process uses one thread.

    Raises:
        TypeError: `env` cannot be pickled; also see `MetaEnvExecutor`.
        ValueError: see `MetaEnvExecutor`.
        EnvWorkerError: a worker could not create its environments.
    """

    def __init__(self, env: MetaEnv, meta_batch_size: int, envs_per_task: int, max_path_length: int,
                 num_processes: Optional[int] = None) -> None:
        super().__init__(env, meta_batch_size, envs_per_task, max_path_length)
        wanted = available_cores() if num_processes is None else check_positive_int("num_processes", num_processes)
        self.num_processes = min(wanted, self.meta_batch_size)
        self._shares = divide(range(self.meta_batch_size), self.num_processes)
        self._pickled = pickle_env(env)
        self._workers: List[WorkerProcess] = []
        self._are_usable = False
        self._stop = weakref.finalize(self, stop_workers, self._workers, os.getpid())
        self._owner = os.getpid()
        self._start_workers()

    def set_tasks(self, tasks: Optional[Sequence[Task]] = None) -> None:
        """Sets the tasks, by default newly sampled ones; see `MetaEnvExecutor.set_tasks`."""
        super().set_tasks(tasks)

    def _start_workers(self) -> None:
        """Starts new workers and ends existing ones, whose state is unknown."""
        stop_workers(self._workers, self._owner)
        try:
            for _ in self._shares:
                self._workers.append(WorkerProcess())
        except BaseException:
            stop_workers(self._workers, self._owner)
            raise
        self._are_usable = True
        self._exchange({w: ("build", self._pickled, share.stop - share.start, self.envs_per_task, self.max_path_length,
                            share.start) for w, share in enumerate(self._shares)})

    def _assign(self, tasks: List[Task]) -> None:
        if not self._are_usable:
            self._start_workers()
        self._exchange({w: ("set_tasks", tasks[share.start:share.stop]) for w, share in enumerate(self._shares)})

    def reset_envs(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        if not self._are_usable:
            self._start_workers()
            if self.tasks is not None:
                self._assign(self.tasks)
        rows = self._rows(env_ids)
        answers = self._exchange({w: ("reset_envs", self._local(env_ids[mine], w), [rngs[row] for row in mine])
                                  for w, mine in rows.items()})
        return np.concatenate(answers)[_inverse(rows)]

    def advance(self, actions: np.ndarray, env_ids: np.ndarray) -> BatchedStep:
        if not self._are_usable:
            raise RuntimeError("step: the worker processes and their paths have ended: reset the environments first")
        rows = self._rows(env_ids)
        answers = self._exchange({w: ("advance", actions[mine], self._local(env_ids[mine], w))
                                  for w, mine in rows.items()})
        order = _inverse(rows)
        *arrays, infos = zip(*answers, strict=True)
        observations, rewards, terminated, truncated = (np.concatenate(parts)[order] for parts in arrays)
        return BatchedStep(observations, rewards, terminated, truncated, _joined(infos, order))

    def _rows(self, env_ids: np.ndarray) -> Dict[int, np.ndarray]:
        """Returns for each worker with environments in `env_ids` the positions of these environments in `env_ids`."""
        starts = [share.start for share in self._shares]
        worker_of = np.searchsorted(starts, env_ids // self.envs_per_task, side="right") - 1
        rows = {w: np.flatnonzero(worker_of == w) for w in range(self.num_processes)}
        return {w: mine for w, mine in rows.items() if len(mine)}

    def _local(self, env_ids: np.ndarray, w: int) -> np.ndarray:
        """Returns the indices of the environments `env_ids` within worker `w`."""
        return env_ids - self._shares[w].start * self.envs_per_task

    def _exchange(self, requests: Dict[int, Tuple]) -> List[Any]:
        """Sends each worker its request, then returns the results in the order of `requests`.

        After any exception, including Ctrl-C, requests and answers may no longer match, so all workers are ended.
        """
        try:
            for w, request in requests.items():
                try:
                    self._workers[w].send(*request)
                except OSError:
                    self._raise_death(w)
            results: Dict[int, Any] = {}
            while len(results) < len(requests):
                waiting: Dict[Any, int] = {self._workers[w].connection: w for w in requests if w not in results}
                for connection in wait(list(waiting), timeout=1.0):
                    w = waiting.pop(connection)
                    results[w] = self._receive(w)
                for w in waiting.values():  # finds dead workers whose child processes keep the pipe open
                    if self._workers[w].has_died():
                        self._raise_death(w)
        except BaseException:
            self._are_usable = False
            stop_workers(self._workers, self._owner)
            raise
        return [results[w] for w in requests]

    def _receive(self, w: int) -> Any:
        try:
            succeeded, result = self._workers[w].receive()
        except (EOFError, OSError):
            self._raise_death(w)
        if not succeeded:
            raise result.by(f"worker process {w} ({self._held(w)})", self._env_ids(w))
        return result

    def _raise_death(self, w: int) -> NoReturn:
        code = self._workers[w].exit_code()
        name = f" ({signal.Signals(-code).name})" if code is not None and -code in set(signal.Signals) else ""
        raise WorkerDiedError(f"worker process {w} ({self._held(w)}) died with exit code {code}{name}",
                              self._env_ids(w)) from None

    def _env_ids(self, w: int) -> range:
        """Returns the indices of the environments of a worker."""
        return range(self._shares[w].start * self.envs_per_task, self._shares[w].stop * self.envs_per_task)

    def _held(self, w: int) -> str:
        return tasks_text(self._shares[w].start, self._shares[w].stop - 1)

    def _close(self) -> None:
        self._stop()


def _inverse(rows: Dict[int, np.ndarray]) -> np.ndarray:
    """Returns the order that sorts results, concatenated by worker, in the order of the request."""
    return np.argsort(np.concatenate(list(rows.values())))


def _joined(infos: Sequence[Any], order: np.ndarray) -> Any:
    """Joins the env_infos of the workers. Vectorized environments return the same keys for any number of rows."""
    if isinstance(infos[0], list):
        rows = [info for part in infos for info in part]
        return [rows[row] for row in order]
    return {key: np.concatenate([part[key] for part in infos])[order] for key in infos[0]}

