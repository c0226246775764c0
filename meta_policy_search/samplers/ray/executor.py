"""Executor that collects paths on Ray, and the pool of workers that the samplers of a process share.

Because workers are shared, evaluation during training needs no additional CPUs. The workers end with the last sampler.
Lost workers are replaced.

Ray's automatic restarts (`max_restarts`, `max_task_retries`) are not used. They do not report which workers were lost.
They also wait for a replacement that may not fit on any machine, while other workers are idle.
"""
import contextlib
import itertools
import math
import os
import sys
import time
import weakref
from collections import Counter
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

import cloudpickle

from meta_policy_search.actors.actor import Actor
from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.envs.normalized_env import Averages
from meta_policy_search.samplers.errors import EnvWorkerError, WorkerDiedError, tasks_text
from meta_policy_search.samplers.ray.connection import RayOptions, check_cluster, connect, import_ray
from meta_policy_search.samplers.rollout_loop import PathRng, TaskRollouts
from meta_policy_search.samplers.vectorized_env_executor.base import MetaEnvExecutor, pickle_env
from meta_policy_search.samplers.vectorized_env_executor.worker import load_result, make_ray_worker
from meta_policy_search.utils import logger
from meta_policy_search.utils.threads import divide

MAX_LOSSES = 3
"""Number of workers that may be lost in a round while sampling the same tasks before an error is raised."""

_POLL = 1.0  # interval between checks of time limits while waiting for workers, s
_SAMPLERS = itertools.count()  # ids of samplers


class RayExecutor(MetaEnvExecutor):
    """Divides the tasks of a sampler among the Ray workers of this process, which collect whole paths.

    Args:
        env, meta_batch_size, envs_per_task, max_path_length: see `MetaEnvExecutor`.
        options: options of the cluster.

    Attributes:
        num_workers: number of workers used.

    Raises:
        ImportError: Ray is not installed.
        ConnectionError: there is no cluster at the address.
        ValueError: the cluster has too few CPUs.
        TypeError: `env` cannot be pickled.
        EnvWorkerError: the workers did not start in time.
    """

    logs_rllib_names = True

    def __init__(self, env: MetaEnv, meta_batch_size: int, envs_per_task: int, max_path_length: int,
                 options: RayOptions) -> None:
        super().__init__(env, meta_batch_size, envs_per_task, max_path_length)
        pickled = pickle_env(env)
        self._timeout = options.worker_timeout
        self._pool = WorkerPool.open(options)
        self._number = next(_SAMPLERS)
        self._release = weakref.finalize(self, WorkerPool.release, self._pool, self._number, os.getpid())
        try:
            self.num_workers = min(self._pool.check_num_workers(options.num_workers), meta_batch_size)
            self._pool.start(self.num_workers, self._timeout)
            self._pickled_env = self._pool.put(pickled)  # stored once for all workers
        except BaseException:
            self.close()
            raise

    def collect_rollouts(self, num_rollouts: int, path_rng: PathRng, actor: Actor,
                         averages: Averages) -> List[TaskRollouts]:
        """Collects paths in all tasks.

        Raises:
            TypeError: the actor cannot be divided among workers.
            ValueError: an observation, reward or action is not finite; the message names task, path and step.
            EnvWorkerError: the environment raised an error (the message names task, path and step); several workers
                were lost while sampling the same tasks; or all workers were lost and none restarted in time.
            RuntimeError: the executor is closed, or Ray was shut down.
        """
        if not actor.can_divide:
            raise TypeError("policy: expected a policy whose make_actor() returns an Actor with can_divide and "
                            "for_tasks, because Ray workers act without TensorFlow, each for some of the tasks; use "
                            "parallel=False or parallel=True, which support every policy")
        assert self.tasks is not None, "samplers call set_tasks first"
        calls = {part: (self._number, [self._pickled_env], (part, self.envs_per_task, self.max_path_length),
                        cloudpickle.dumps(self.tasks[part.start:part.stop]),
                        cloudpickle.dumps((num_rollouts, path_rng, actor.for_tasks(part.start, part.stop), averages)))
                 for part in divide(range(self.meta_batch_size), self.num_workers)}
        rollouts: List[TaskRollouts] = []
        for part, (number, result) in self._pool.collect(calls, self.num_workers, self._timeout).items():
            rollouts += load_result(result, f"Ray worker {number} ({tasks_text(part)})")
        return rollouts

    def _close(self) -> None:
        """Ends the workers if no other sampler uses them, and Ray if it was started for them."""
        self._release()


class WorkerPool:
    """The Ray workers of this process, and its connection to Ray.

    A worker is starting, idle, or collecting paths. A lost worker is replaced immediately by a starting worker.
    """

    _opened: Optional["WorkerPool"] = None

    @classmethod
    def open(cls, options: RayOptions) -> "WorkerPool":
        """Returns the pool of this process and registers one more user of it.

        Raises:
            ImportError, ConnectionError: see `connection.connect` and `connection.import_ray`.
            ValueError: the options conflict with the options of the open pool.
        """
        pool = cls._opened
        if pool is not None and not pool._is_connected():
            pool._close()  # the user called ray.shutdown()
            pool = None
        if pool is None:
            pool = cls._opened = cls(options)
        else:
            pool._check_options(options)
        pool._num_users += 1
        return pool

    @classmethod
    def release(cls, pool: "WorkerPool", sampler: int, owner: int) -> None:
        """Unregisters a user of the pool: the sampler with the id `sampler`. The last release closes the pool.

        `owner` is the id of the process that opened the pool. A call in a fork of this process does nothing.
        """
        if os.getpid() != owner:
            return
        pool._num_users -= 1
        if pool._num_users == 0:
            pool._close()
            if cls._opened is pool:
                cls._opened = None
        elif pool._is_connected():
            for number in pool._places:
                pool._actors[number].forget.remote(sampler)

    def __init__(self, options: RayOptions) -> None:
        self._ray = import_ray()
        self._num_users = 0
        self._cpus = 1.0 if options.cpus_per_worker is None else float(options.cpus_per_worker)
        self._actors: Dict[int, Any] = {}  # by worker id
        self._places: Dict[int, str] = {}  # process and machine of each started worker
        self._starting: Dict[Any, int] = {}  # ids of starting workers, by the reference to the result of `ready`
        self._numbers = itertools.count()
        self._owns_ray = connect(self._ray, options)
        self._session = self._ray.get_runtime_context().get_job_id()

    def check_num_workers(self, wanted: Optional[int]) -> int:
        """Returns the number of workers for a sampler: `wanted`, or if it is None the maximum that fits.

        Raises:
            ValueError: the cluster has too few CPUs.
        """
        cpus = self._ray.cluster_resources().get("CPU", 0.0)
        most = math.floor(cpus / self._cpus + 1e-9)
        if most == 0:
            raise ValueError(f"cpus_per_worker: expected at most {cpus:g}, the number of CPUs of the cluster, got "
                             f"{self._cpus:g}")
        if wanted is not None and wanted > most:
            raise ValueError(f"num_workers: expected at most {most}, because the cluster has {cpus:g} CPUs and each "
                             f"worker uses cpus_per_worker={self._cpus:g}, got {wanted}")
        return most if wanted is None else wanted

    def put(self, value: Any) -> Any:
        """Puts a value into Ray's object store; returns its reference.

        Raises:
            RuntimeError: the connection to Ray has ended.
        """
        self._check_connected()
        return self._ray.put(value)

    def start(self, count: int, timeout: float) -> None:
        """Starts workers and waits until `count` workers have started.

        Raises:
            EnvWorkerError: a worker failed to start, or the workers did not start within `timeout` seconds.
        """
        self._fill(count)
        deadline = time.monotonic() + timeout
        while len(self._places) < count:
            if time.monotonic() > deadline:
                raise EnvWorkerError(
                    f"{len(self._places)} of {count} Ray workers started within {timeout:g} s (worker_timeout): other "
                    "programs may use the CPUs of the cluster; try fewer workers (num_workers)")
            for ref in self._wait():
                error = self._has_started(ref)
                if error is not None:
                    raise EnvWorkerError(f"a Ray worker failed to start: {error}") from error

    def collect(self, calls: Dict[range, Tuple], most: int, timeout: float) -> Dict[range, Tuple[int, bytes]]:
        """Lets up to `most` workers collect paths.

        Args:
            calls: for each range of tasks, the arguments of `worker.collect_on_ray` after `executors`.
            most: maximum number of workers that run concurrently.
            timeout: time limit for the restart of a worker if all workers are lost, s.

        Returns:
            For each range of tasks, the worker id and the result of `worker.collect_on_ray`.

        Raises:
            EnvWorkerError: `MAX_LOSSES` workers were lost while sampling the same tasks; or all workers were lost and
                none restarted in time.
        """
        self._check_connected()
        self._fill(most)
        waiting = list(calls)
        losses: Dict[range, int] = Counter()
        running: Dict[Any, Tuple[int, range]] = {}  # worker id and tasks, by reference to the result
        results: Dict[range, Tuple[int, bytes]] = {}
        deadline, last_error = math.inf, None
        try:
            while waiting or running:
                # Usually, a worker receives the same tasks again and reuses their environments.
                idle = sorted(self._places.keys() - {number for number, _ in running.values()})
                for number in idle[:min(most - len(running), len(waiting))]:
                    tasks = waiting.pop(0)
                    ref = self._actors[number].collect.remote(*calls[tasks])
                    running[ref] = (number, tasks)
                if running:
                    deadline = math.inf
                elif deadline == math.inf:
                    deadline = time.monotonic() + timeout
                elif time.monotonic() > deadline:
                    raise EnvWorkerError(f"all Ray workers were lost and none could be restarted within "
                                         f"{timeout:g} s (worker_timeout). {_reason(last_error)}")
                for ref in self._wait(running):
                    if ref in self._starting:
                        last_error = self._has_started(ref) or last_error
                        continue
                    number, tasks = running.pop(ref)
                    try:
                        results[tasks] = number, self._ray.get(ref)
                    except self._ray.exceptions.RayError as error:
                        last_error = error
                        losses[tasks] += 1
                        self._replace(number, tasks, error, losses[tasks])
                        waiting.insert(0, tasks)
        except BaseException:  # also Ctrl-C: the workers must not continue with calls whose results are not used
            for number, _ in running.values():
                self._remove(number)
            raise
        return {tasks: results[tasks] for tasks in calls}

    def _close(self) -> None:
        """Ends the workers, and Ray if this pool started it."""
        if self._is_connected():
            for number in list(self._actors):
                self._remove(number)
            if self._owns_ray:
                self._ray.shutdown()

    def _check_options(self, options: RayOptions) -> None:
        """Raises `ValueError` if the options conflict with the options of this pool."""
        check_cluster(self._ray, options)
        if options.cpus_per_worker not in (None, self._cpus):
            raise ValueError(f"cpus_per_worker: expected {self._cpus:g} or None, because the samplers of a process "
                             f"share their workers, got {options.cpus_per_worker:g}")

    def _is_connected(self) -> bool:
        return self._ray.is_initialized() and self._ray.get_runtime_context().get_job_id() == self._session

    def _check_connected(self) -> None:
        if not self._is_connected():
            raise RuntimeError("the connection to Ray has ended (ray.shutdown()): create a new sampler")

    def _wait(self, running: Iterable[Any] = ()) -> List[Any]:
        """Waits for a result of a running call or a starting worker; returns the available references."""
        refs = [*running, *self._starting]
        return self._ray.wait(refs, num_returns=1, timeout=_POLL)[0] if refs else []

    def _fill(self, count: int) -> None:
        """Starts workers until the pool has `count` workers; does not wait for them."""
        for number in self._actors.keys() - self._places.keys() - set(self._starting.values()):
            self._remove(number)  # Ctrl-C occurred between the last two lines of the loop below
        while len(self._actors) < count:
            number = next(self._numbers)
            kind = self._ray.remote(num_cpus=self._cpus, max_restarts=0, max_task_retries=0)(make_ray_worker())
            folders = [os.path.abspath(folder) for folder in sys.path]  # the workers may need the user's modules
            self._actors[number] = kind.remote(max(1, math.floor(self._cpus)), folders)
            self._starting[self._actors[number].ready.remote()] = number

    def _has_started(self, ref: Any) -> Optional[Exception]:
        """Registers a started worker. If the start failed, replaces the worker and returns the error."""
        number = self._starting[ref]
        try:
            self._places[number] = self._ray.get(ref)
            del self._starting[ref]
            return None
        except self._ray.exceptions.RayError as error:
            self._remove(number)
            self._fill(len(self._actors) + 1)
            return error

    def _replace(self, number: int, tasks: range, error: Exception, num_losses: int) -> None:
        """Replaces a lost worker; raises `EnvWorkerError` after `MAX_LOSSES` losses for the same tasks."""
        what = (f"Ray worker {number} ({self._places[number]}) was lost while it sampled "
                f"{tasks_text(tasks)}")
        self._remove(number)
        if num_losses >= MAX_LOSSES:
            raise WorkerDiedError(f"{what}; {num_losses} workers were lost while sampling these tasks: the environment "
                                  f"may end its process. {_reason(error)}")
        logger.warn(f"{what}; another worker samples them again, with the same random numbers. {_reason(error)}")
        self._fill(len(self._actors) + 1)

    def _remove(self, number: int) -> None:
        self._starting = {ref: other for ref, other in self._starting.items() if other != number}
        self._places.pop(number, None)
        self._ray.kill(self._actors.pop(number), no_restart=True)


@contextlib.contextmanager
def keep_workers(parallel: Any) -> Iterator[None]:
    """Keeps Ray workers alive between samplers within a `with` block, if `parallel` is a `RayOptions`."""
    if not isinstance(parallel, RayOptions):
        yield
        return
    pool = WorkerPool.open(parallel)
    try:
        yield
    finally:
        WorkerPool.release(pool, next(_SAMPLERS), os.getpid())


def _reason(error: Optional[Exception]) -> str:
    """Returns Ray's error message in one line, at most 300 characters."""
    return "Ray gives no reason" if error is None else f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
