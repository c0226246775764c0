"""The workers of this process: shared by its samplers, replaced when they are lost, ended with the last sampler.

They are shared so that evaluation in the course of training needs no processors of its own.

Ray could restart workers and repeat calls by itself (`max_restarts`, `max_task_retries`). It would not tell which were
lost, and would go on repeating a call on a worker that no machine has room for, while others are idle.
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
"""So many workers may be lost over the same tasks in a round, before their environment is held to be the cause."""

_POLL = 1.0  # seconds between two looks at the clock while waiting for workers
_NOBODY = -1  # a number that no sampler has


class WorkerPool:
    """The workers of this process, and its connection to Ray.

    A worker is idle, samples a share, or is starting. One that is lost is replaced at once by one that is starting, for
    as long as it takes.
    """

    _opened: Optional["WorkerPool"] = None

    @classmethod
    def open(cls, options: RayOptions) -> "WorkerPool":
        """Returns the pool of this process, for one more user.

        Raises:
            ImportError, ConnectionError: see `connection`.
            ValueError: there are too few CPUs, or the options ask for another pool than the one that is open.
        """
        pool = cls._opened
        if pool is not None and not pool._is_connected():
            pool._close()  # somebody has shut down Ray
            pool = None
        if pool is None:
            pool = cls._opened = cls(options)
        else:
            pool._check_options(options)
        pool._num_users += 1
        return pool

    @classmethod
    def release(cls, pool: "WorkerPool", sampler: int, owner: int) -> None:
        """Takes back one `open`, of sampler `sampler` in process `owner`; in a fork of that nothing happens."""
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
        self._actors: Dict[int, Any] = {}  # by number of the worker
        self._places: Dict[int, str] = {}  # of those that have started
        self._starting: Dict[Any, int] = {}  # by what each returns when it has started
        self._numbers = itertools.count()
        self._owns_ray = connect(self._ray, options)
        self._session = self._ray.get_runtime_context().get_job_id()

    def check_num_workers(self, wanted: Optional[int]) -> int:
        """Returns how many workers a sampler may use; raises `ValueError` if there are too few CPUs for `wanted`."""
        cpus = self._ray.cluster_resources().get("CPU", 0.0)
        most = math.floor(cpus / self._cpus + 1e-9)
        if most == 0:
            raise ValueError(f"cpus_per_worker: expected at most {cpus:g}, as the cluster has {cpus:g} CPUs, got "
                             f"{self._cpus:g}")
        if wanted is not None and wanted > most:
            raise ValueError(f"num_workers: expected at most {most}, as the cluster has {cpus:g} CPUs and each worker "
                             f"takes cpus_per_worker={self._cpus:g}, got {wanted}")
        return most if wanted is None else wanted

    def put(self, value: Any) -> Any:
        """Puts a value into the object store; returns its reference."""
        if not self._is_connected():
            raise RuntimeError("this sampler's connection to Ray has ended (ray.shutdown()): make a new sampler")
        return self._ray.put(value)

    def start(self, count: int, timeout: float) -> None:
        """Waits until there are `count` workers; raises `EnvWorkerError` if they do not start in time."""
        self._fill(count)
        deadline = time.monotonic() + timeout
        while len(self._places) < count:
            if time.monotonic() > deadline:
                raise EnvWorkerError(
                    f"{len(self._places)} of {count} Ray workers have started within {timeout:g} s (worker_timeout): "
                    "the cluster's CPUs may be taken by others; fewer workers (num_workers) may fit")
            for ref in self._wait():
                error = self._has_started(ref)
                if error is not None:
                    raise EnvWorkerError(f"a Ray worker could not be started: {error}") from error

    def collect(self, calls: Dict[range, Tuple], request: bytes, most: int, timeout: float
                ) -> Dict[range, Tuple[int, Any]]:
        """Has paths collected by workers, of which `most` work at a time.

        Args:
            calls: by tasks, the arguments of `Worker.collect` between `tasks` and `request`.
            request: that argument.
            most: number of workers.
            timeout: seconds to wait, when all workers are lost, for one that can be started again.

        Returns:
            By tasks, the number of the worker, and what `Worker.collect` returned.

        Raises:
            EnvWorkerError: `MAX_LOSSES` workers were lost over the same tasks; or all were lost, and none could be
                started again in time.
        """
        request_ref = self.put(request)
        self._fill(most)
        waiting = list(calls)
        losses: Dict[range, int] = Counter()
        running: Dict[Any, Tuple[int, range]] = {}  # number of the worker, and tasks
        answers: Dict[range, Tuple[int, Any]] = {}
        deadline, last_error = math.inf, None
        try:
            while waiting or running:
                # as a rule the same worker gets the same tasks, for which it has environments
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
                    raise EnvWorkerError(f"all Ray workers were lost, and none could be started again within "
                                         f"{timeout:g} s (worker_timeout). {_reason(last_error)}")
                for ref in self._wait(running):
                    if ref in self._starting:
                        last_error = self._has_started(ref) or last_error
                        continue
                    number, tasks = running.pop(ref)
                    try:
                        answers[tasks] = number, self._ray.get(ref)
                    except self._ray.exceptions.RayTaskError as error:  # the result cannot be pickled
                        raise EnvWorkerError(f"Ray worker {number} ({tasks_text(tasks.start, tasks.stop - 1)}): "
                                             f"{type(error.cause).__name__}: {error.cause}") from None
                    except self._ray.exceptions.RayError as error:
                        last_error = error
                        losses[tasks] += 1
                        self._replace(number, tasks, error, losses[tasks])
                        waiting.insert(0, tasks)
        except BaseException:  # Ctrl-C among them: nobody waits for these answers any more
            for number, _ in running.values():
                self._remove(number)
            raise
        return {tasks: answers[tasks] for tasks in calls}

    def _close(self) -> None:
        """Ends the workers, and Ray if it was started here."""
        if self._is_connected():
            for number in list(self._actors):
                self._remove(number)
            if self._owns_ray:
                self._ray.shutdown()

    def _check_options(self, options: RayOptions) -> None:
        """Raises `ValueError` if options ask for another pool than this one."""
        check_cluster(self._ray, options)
        if options.cpus_per_worker not in (None, self._cpus):
            raise ValueError(f"cpus_per_worker: expected {self._cpus:g} or None, as other samplers of this process, "
                             f"which share their workers, got {options.cpus_per_worker:g}")

    def _is_connected(self) -> bool:
        return self._ray.is_initialized() and self._ray.get_runtime_context().get_job_id() == self._session

    def _wait(self, running: Iterable[Any] = ()) -> List[Any]:
        """Returns which of the calls, and of the starting workers, have an answer."""
        refs = [*running, *self._starting]
        return self._ray.wait(refs, num_returns=1, timeout=_POLL)[0] if refs else []

    def _fill(self, count: int) -> None:
        """Starts workers until there are `count` of them; does not wait for them."""
        for number in self._actors.keys() - self._places.keys() - set(self._starting.values()):
            self._remove(number)  # Ctrl-C came between two lines below
        while len(self._actors) < count:
            number = next(self._numbers)
            kind = self._ray.remote(num_cpus=self._cpus, max_restarts=0, max_task_retries=0)(make_worker_class())
            folders = [os.path.abspath(folder) for folder in sys.path]  # where the user's modules may be
            self._actors[number] = kind.remote(max(1, math.floor(self._cpus)), folders)
            self._starting[self._actors[number].call.remote("ready")] = number

    def _has_started(self, ref: Any) -> Optional[Exception]:
        """Notes that a worker has started, or replaces it if it could not; then returns why."""
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
        """Puts a new worker in the place of one that was lost; raises `EnvWorkerError` if too many were."""
        what = (f"Ray worker {number} ({self._places[number]}) was lost while it sampled "
                f"{tasks_text(tasks.start, tasks.stop - 1)}")
        self._remove(number)
        if num_losses >= MAX_LOSSES:
            raise WorkerDiedError(f"{what}, and is the last of {num_losses} lost over these tasks: the environment may "
                                  f"end its process. {_reason(error)}")
        logger.warn(f"{what}; another one samples them again, with the same random numbers. {_reason(error)}")
        self._fill(len(self._actors) + 1)

    def _remove(self, number: int) -> None:
        self._starting = {ref: other for ref, other in self._starting.items() if other != number}
        self._places.pop(number, None)
        self._ray.kill(self._actors.pop(number), no_restart=True)


@contextlib.contextmanager
def keep_workers(parallel: Any) -> Iterator[None]:
    """Keeps the workers of samplers on Ray (`RayOptions`) within a `with` block for those that follow."""
    if not isinstance(parallel, RayOptions):
        yield
        return
    pool = WorkerPool.open(parallel)
    try:
        yield
    finally:
        WorkerPool.release(pool, _NOBODY, os.getpid())


def _reason(error: Optional[Exception]) -> str:
    """Returns what Ray says in a line."""
    return "Ray gives no reason" if error is None else f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
