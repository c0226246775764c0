"""Executor that collects paths in worker processes."""
import os
import signal
import weakref
from multiprocessing.connection import wait
from typing import Any, Callable, Dict, List, NoReturn, Optional, Sequence, Tuple

import cloudpickle
import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.envs.normalized_env import Averages
from meta_policy_search.samplers.errors import WorkerDiedError, tasks_text
from meta_policy_search.samplers.rollout_loop import PathRng, TaskRollouts
from meta_policy_search.samplers.vectorized_env_executor.base import MetaEnvExecutor, pickle_env
from meta_policy_search.samplers.vectorized_env_executor.worker import GRACE, WorkerProcess, load_result, stop_workers
from meta_policy_search.types import BatchedStep, Task
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.threads import available_cores, divide


class MetaParallelEnvExecutor(MetaEnvExecutor):
    """Divides the tasks among worker processes, each of which has a local executor for its tasks.

    The workers collect whole paths with a part of the actor. If the actor cannot be divided, it acts in this process,
    and the workers only step their environments.

    If a worker dies or an environment in it fails, the executor raises `EnvWorkerError`. The message names the tasks
    and the exit code, or contains the worker's traceback. After an error, or Ctrl-C during a call, all workers are
    ended. `set_tasks`, `collect` and `reset` restart them with their tasks. The workers also end when the executor is
    closed or deleted, and when the interpreter exits or is killed. The executor requires a POSIX system.

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
        self._parts = divide(range(self.meta_batch_size), self.num_processes)
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
            for _ in self._parts:
                self._workers.append(WorkerProcess())
        except BaseException:
            stop_workers(self._workers, self._owner)
            raise
        self._are_usable = True
        self._exchange({w: ("build", self._pickled, tasks, self.envs_per_task, self.max_path_length)
                        for w, tasks in enumerate(self._parts)})

    def _restart(self) -> None:
        """Starts new workers with the current tasks if the workers have ended."""
        self._check_open()
        if not self._are_usable:
            self._start_workers()
            if self.tasks is not None:
                self._assign(self.tasks)

    def _assign(self, tasks: List[Task]) -> None:
        if not self._are_usable:
            self._start_workers()
        self._exchange({w: ("set_tasks", tasks[part.start:part.stop]) for w, part in enumerate(self._parts)})

    def collect_rollouts(self, num_rollouts: int, path_rng: PathRng, actor: Actor,
                         averages: Averages) -> List[TaskRollouts]:
        if not actor.can_divide:  # it acts in this process, and the workers step their environments
            return super().collect_rollouts(num_rollouts, path_rng, actor, averages)
        self._restart()
        results = self._exchange({
            w: ("collect_rollouts", num_rollouts, path_rng, actor.for_tasks(tasks.start, tasks.stop), averages)
            for w, tasks in enumerate(self._parts)})
        return [rollouts for result in results for rollouts in result]

    def set_averages(self, averages: Averages) -> None:
        self._restart()
        self._exchange({w: ("set_averages", averages) for w in range(len(self._parts))})

    def reset_envs(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        self._restart()
        results, order = self._step_workers(env_ids, lambda rows, ids: ("reset_envs", ids, [rngs[row] for row in rows]))
        return np.concatenate(results)[order]

    def advance(self, actions: np.ndarray, env_ids: np.ndarray) -> BatchedStep:
        self._check_open()
        if not self._are_usable:
            raise RuntimeError("step: the worker processes and their paths have ended: reset the environments first")
        results, order = self._step_workers(env_ids, lambda rows, ids: ("advance", actions[rows], ids))
        *arrays, infos = zip(*results, strict=True)
        observations, rewards, terminated, truncated = (np.concatenate(parts)[order] for parts in arrays)
        return BatchedStep(observations, rewards, terminated, truncated, _joined(infos, order))

    def _step_workers(self, env_ids: np.ndarray, request: Callable[[np.ndarray, np.ndarray], Tuple]
                      ) -> Tuple[List[Any], np.ndarray]:
        """Resets or steps environments in their workers.

        Args:
            env_ids: int `[k]`, indices of the environments.
            request: function that returns the request to a worker. Its arguments are the positions of the worker's
                environments in `env_ids` and the indices of these environments within the worker.

        Returns:
            The results of the workers; and the order that sorts the concatenated results like `env_ids`, int `[k]`.
        """
        starts = [tasks.start for tasks in self._parts]
        worker_of = np.searchsorted(starts, env_ids // self.envs_per_task, side="right") - 1
        rows = {w: np.flatnonzero(worker_of == w) for w in np.unique(worker_of).tolist()}
        results = self._exchange({w: request(of_worker, env_ids[of_worker] - starts[w] * self.envs_per_task)
                                  for w, of_worker in rows.items()})
        return results, np.argsort(np.concatenate(list(rows.values())))

    def _exchange(self, requests: Dict[int, Tuple]) -> List[Any]:
        """Sends each worker its request, then returns the results in the order of `requests`.

        After any exception, including Ctrl-C, requests and results may no longer match, so all workers are ended.
        """
        if os.getpid() != self._owner:
            raise RuntimeError(f"the worker processes belong to process {self._owner}: a fork needs its own sampler")
        try:
            for w, request in requests.items():
                try:
                    self._workers[w].connection.send_bytes(cloudpickle.dumps(request))
                except OSError:
                    self._raise_death(w)
            results: Dict[int, Any] = {}
            while len(results) < len(requests):
                waiting: Dict[Any, int] = {self._workers[w].connection: w for w in requests if w not in results}
                for connection in wait(list(waiting), timeout=1.0):
                    w = waiting.pop(connection)
                    try:
                        pickled = self._workers[w].connection.recv_bytes()
                    except (EOFError, OSError):
                        self._raise_death(w)
                    results[w] = load_result(pickled, *self._describe(w))
                for w in waiting.values():  # finds dead workers whose child processes keep the pipe open
                    if self._workers[w].has_ended() and not self._workers[w].connection.poll():
                        self._raise_death(w)
        except BaseException:
            self._are_usable, self._path_rngs = False, []  # `step` requires `reset`, because the paths have ended
            stop_workers(self._workers, self._owner)
            raise
        return [results[w] for w in requests]

    def _raise_death(self, w: int) -> NoReturn:
        self._workers[w].wait_for_end(GRACE)
        code = self._workers[w].process.returncode  # None if the process is still ending
        name = f" ({signal.Signals(-code).name})" if code is not None and -code in set(signal.Signals) else ""
        worker, env_ids = self._describe(w)
        raise WorkerDiedError(f"{worker} died with exit code {code}{name}", env_ids) from None

    def _describe(self, w: int) -> Tuple[str, range]:
        """Returns a name of a worker for error messages, and the indices of its environments."""
        tasks = self._parts[w]
        return (f"worker process {w} ({tasks_text(tasks)})",
                range(tasks.start * self.envs_per_task, tasks.stop * self.envs_per_task))

    def _close(self) -> None:
        self._stop()


def _joined(infos: Sequence[Any], order: np.ndarray) -> Any:
    """Joins the env_infos of the workers. Vectorized environments return the same keys for any number of rows."""
    if isinstance(infos[0], list):
        rows = [info for part in infos for info in part]
        return [rows[row] for row in order]
    return {key: np.concatenate([part[key] for part in infos])[order] for key in infos[0]}
