"""Pool of Ray workers, which the samplers of a process share; lost workers are replaced.

Because workers are shared, evaluation during training needs no additional CPUs. The workers end with the last sampler.

Ray's automatic restarts (`max_restarts`, `max_task_retries`) are not used. They do not report which workers were lost.
They also wait for a replacement that may not fit on any machine, while other workers are idle.
"""
import contextlib
import itertools
import math
import os
import sys
import time
from collections import Counter
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from meta_policy_search.samplers.errors import EnvWorkerError, WorkerDiedError, tasks_text
from meta_policy_search.samplers.ray.connection import RayOptions, check_cluster, connect, import_ray
from meta_policy_search.samplers.ray.worker import make_worker_class
from meta_policy_search.utils import logger

MAX_LOSSES = 3
"""Number of workers that may be lost in a round while sampling the same tasks before an error is raised."""

_POLL = 1.0  # interval between checks of time limits while waiting for workers, s
_NO_SAMPLER = -1  # id that no sampler has


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
                pool._actors[number].call.remote("forget", sampler)

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
        if not self._is_connected():
            raise RuntimeError("the connection to Ray has ended (ray.shutdown()): create a new sampler")
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

    def collect(self, calls: Dict[range, Tuple], request: bytes, most: int, timeout: float
                ) -> Dict[range, Tuple[int, Any]]:
        """Lets up to `most` workers collect paths.

        Args:
            calls: for each range of tasks, the arguments of `Worker.collect` between `tasks` and `request`.
            request: the argument `request` of `Worker.collect`.
            most: maximum number of workers that run concurrently.
            timeout: time limit for the restart of a worker if all workers are lost, s.

        Returns:
            For each range of tasks, the worker id and the result of `Worker.collect`.

        Raises:
            EnvWorkerError: `MAX_LOSSES` workers were lost while sampling the same tasks; or all workers were lost and
                none restarted in time.
        """
        request_ref = self.put(request)
        self._fill(most)
        waiting = list(calls)
        losses: Dict[range, int] = Counter()
        running: Dict[Any, Tuple[int, range]] = {}  # worker id and tasks, by reference to the result
        answers: Dict[range, Tuple[int, Any]] = {}
        deadline, last_error = math.inf, None
        try:
            while waiting or running:
                # Usually, a worker receives the same tasks again and reuses their environments.
                idle = sorted(self._places.keys() - {number for number, _ in running.values()})
                for number in idle[:min(most - len(running), len(waiting))]:
                    tasks = waiting.pop(0)
                    ref = self._actors[number].call.remote("collect", tasks, *calls[tasks], request_ref)
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
                        answers[tasks] = number, self._ray.get(ref)
                    except self._ray.exceptions.RayTaskError as error:  # the result could not be pickled
                        raise EnvWorkerError(f"Ray worker {number} ({tasks_text(tasks.start, tasks.stop - 1)}): "
                                             f"{type(error.cause).__name__}: {error.cause}") from None
                    except self._ray.exceptions.RayError as error:
                        last_error = error
                        losses[tasks] += 1
                        self._replace(number, tasks, error, losses[tasks])
                        waiting.insert(0, tasks)
        except BaseException:  # also Ctrl-C: the workers must not continue with calls whose results are not used
            for number, _ in running.values():
                self._remove(number)
            raise
        return {tasks: answers[tasks] for tasks in calls}

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
            kind = self._ray.remote(num_cpus=self._cpus, max_restarts=0, max_task_retries=0)(make_worker_class())
            folders = [os.path.abspath(folder) for folder in sys.path]  # the workers may need the user's modules
            self._actors[number] = kind.remote(max(1, math.floor(self._cpus)), folders)
            self._starting[self._actors[number].call.remote("ready")] = number

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
                f"{tasks_text(tasks.start, tasks.stop - 1)}")
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
        WorkerPool.release(pool, _NO_SAMPLER, os.getpid())


def _reason(error: Optional[Exception]) -> str:
    """Returns Ray's error message in one line, at most 300 characters."""
    return "Ray gives no reason" if error is None else f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
