"""Workers on a Ray cluster that collect whole paths.

Ray starts the workers, finds out when one is lost, and moves objects between machines; what is done about it is here.
A worker has no state that matters: each call tells it the environment, the tasks and what to collect, so any worker
can do any call, and a call whose worker was lost is simply given to another one. As every random number belongs to
its path, the paths are the same then, too.

What a call needs travels through Ray's object store: the environment once for each sampler, the policy's parameters
once for each round. What it returns comes back as arrays. What the user may have made travels as `cloudpickle` bytes,
as to the processes of `MetaParallelEnvExecutor`. Workers do not load TensorFlow.

All samplers of a process share one set of workers (and may use different numbers of them), so that evaluation in the
course of training needs no processors of its own. The set is closed with the last of these samplers.
"""
import contextlib
import dataclasses
import itertools
import logging
import math
import os
import pickle
import shutil
import socket
import sys
import time
import weakref
from collections import Counter
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import cloudpickle
import numpy as np

from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.samplers.executors.base import pickle_env
from meta_policy_search.samplers.executors.errors import EnvWorkerError, Failure, failure_of, tasks_text
from meta_policy_search.samplers.executors.local import make_local_executor
from meta_policy_search.samplers.rollouts import Collected, Round, collect, divide
from meta_policy_search.types import Task
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import check_positive, check_positive_int
from meta_policy_search.utils.cores import THREAD_VARIABLES, available_cores

__all__ = ["MAX_LOSSES", "RayExecutor", "RayOptions", "keep_workers"]

MAX_LOSSES = 3
"""So many workers may be lost over the same tasks in a round, before their environment is held to be the cause."""

CONNECT_TIMEOUT = 5.0
"""Seconds that a cluster may take to answer at its address."""

_LARGEST_STORE = 4 << 30  # bytes; a round of 40 tasks x 20 paths x 200 steps of Humanoid takes 0.6 GB
_SMALLEST_STORE = 80 << 20  # Ray refuses less than 75 MiB
_POLL = 1.0  # seconds between two looks at the clock while waiting for workers


@dataclasses.dataclass(frozen=True)
class RayOptions:
    """Which cluster to sample on, and how much of it; `MetaSampler(parallel=RayOptions(...))`.

    Args:
        address: `host:port` of a cluster, whose machines include this one, or `'auto'` for the one that runs on this
            machine. Default: the environment variable `RAY_ADDRESS`; without it, Ray is started on this machine for as
            long as there are samplers. Where the process is connected to Ray already, that is used, and left running.
        num_workers: number of workers, of which no more are started than there are tasks. Default: as many as the
            cluster has CPUs for.
        cpus_per_worker: CPUs that Ray reserves for each; a worker computes on so many threads (at least one).
            Default: 1.
        worker_timeout: seconds that workers may take to start, and that a round waits, when all workers are lost, for
            one that can be started again. Default: 60.

    Raises:
        ValueError: a number out of range, or an address of another form.
        TypeError: an argument of the wrong type.
    """

    address: Optional[str] = None
    num_workers: Optional[int] = None
    cpus_per_worker: Optional[float] = None
    worker_timeout: float = 60.0

    def __post_init__(self) -> None:
        """Checks the arguments."""
        if self.address is not None:
            _check_address("address", self.address)
        if self.num_workers is not None:
            check_positive_int("num_workers", self.num_workers)
        if self.cpus_per_worker is not None:
            check_positive("cpus_per_worker", self.cpus_per_worker)
        check_positive("worker_timeout", self.worker_timeout)


class RayExecutor:
    """Has the paths of a sampler collected by workers; see the module.

    Args:
        env: meta-environment; copies of it are sent to the workers.
        meta_batch_size: number of tasks.
        envs_per_task: paths of a task under way at the same time.
        max_path_length: maximum length of a path.
        options: which cluster.

    Attributes:
        num_workers: how many workers it uses.
        bytes_sent: bytes put into the object store so far: environment and parameters.
        bytes_received: bytes of the paths that came back.

    Raises:
        ImportError: Ray is not installed.
        ConnectionError: there is no cluster at the address.
        ValueError: the cluster has fewer CPUs than asked for.
        TypeError: `env` cannot be pickled.
        EnvWorkerError: the workers did not start.
    """

    def __init__(
        self, env: MetaEnv, meta_batch_size: int, envs_per_task: int, max_path_length: int, options: RayOptions
    ) -> None:
        pickled = pickle_env(env)
        self._sizes = (envs_per_task, max_path_length)
        self._meta_batch_size = meta_batch_size
        self._timeout = options.worker_timeout
        self._tasks: Optional[List[Task]] = None
        self._version = 0  # of the tasks
        self._pool = _Pool.open(options)
        self._key = next(_KEYS)
        self._release = weakref.finalize(self, _Pool.release, self._pool, self._key, os.getpid())
        try:
            self.num_workers = min(self._pool.check_num_workers(options.num_workers), meta_batch_size)
            self._pool.start(self.num_workers, self._timeout)
            self._env = self._pool.put(pickled)
        except BaseException:
            self.close()
            raise
        self.bytes_sent, self.bytes_received = len(pickled), 0

    def set_tasks(self, tasks: Sequence[Task]) -> None:
        """Sets the tasks of the rounds to come.

        Raises:
            ValueError: there are not `meta_batch_size` of them.
        """
        if len(tasks) != self._meta_batch_size:
            raise ValueError(f"tasks: expected meta_batch_size={self._meta_batch_size} of them, got {len(tasks)}")
        self._tasks = list(tasks)
        self._version += 1

    def collect(self, round_: Round, actor: Any) -> List[Collected]:
        """Collects a round of paths in all tasks.

        Args:
            round_: what to collect.
            actor: acts for all tasks, and has passed `check_actor`.

        Returns:
            The paths, those of the first tasks first, in arrays of their own.

        Raises:
            ValueError: an observation, reward or action is not finite; names task, path and step.
            EnvWorkerError: the environment failed, and names task, path and step; or workers were lost, and could not
                be started again in time, or again and again over the same tasks.
            RuntimeError: this is closed, or Ray was shut down.
        """
        if not self._release.alive:
            raise RuntimeError(f"this {type(self).__name__} is closed")
        data, buffers = _pack((round_, actor))
        self.bytes_sent += _num_bytes(data, buffers)
        parameters = self._pool.put((data, buffers))
        shares = divide(range(self._meta_batch_size), self.num_workers)
        calls = [_Call(share, (self._key, [self._env], self._sizes, self._version, share.start,
                               cloudpickle.dumps(self._tasks[share.start:share.stop]), parameters))
                 for share in shares]
        parts: List[Collected] = []
        for share, (number, answer) in zip(shares, self._pool.run(calls, self.num_workers, self._timeout)):
            if isinstance(answer, Failure):
                answer.raise_as(f"Ray worker {number} ({_text(share)})")
            self.bytes_received += _num_bytes(*answer)
            parts += _unpack(*answer, copy=True)
        return parts

    @staticmethod
    def check_actor(actor: Any) -> None:
        """Raises `TypeError` unless an actor can be sent to workers, and divided among them."""
        if not actor.can_divide:
            raise TypeError("policy: expected one whose make_actor() gives an Actor with can_divide and for_tasks, as "
                            "Ray's workers act without TensorFlow, each for some of the tasks; sampling in this "
                            "process or in worker processes (parallel=False or True) takes any policy")

    def close(self) -> None:
        """Ends the workers, if no other sampler uses them, and Ray, if it was started for them."""
        self._release()


@contextlib.contextmanager
def keep_workers(parallel: Any) -> Iterator[None]:
    """Keeps the workers of samplers within a `with` block for those that follow.

    Args:
        parallel: `RayOptions`, if these samplers are on Ray; anything else, and nothing happens.
    """
    if not isinstance(parallel, RayOptions):
        yield
        return
    pool = _Pool.open(parallel)
    try:
        yield
    finally:
        _Pool.release(pool, -1, os.getpid())


_KEYS = itertools.count()


class _Call(NamedTuple):
    """What one worker does in a round."""

    tasks: range
    arguments: Tuple  # of `_Worker.collect`


# On this side ----------------------------------------------------------------------------------------------------


class _Pool:
    """The workers of this process, and its connection to Ray.

    A worker is idle, has a call, or is starting. One that is lost is replaced at once by one that is starting, for as
    long as it takes.
    """

    _open: Optional["_Pool"] = None

    @classmethod
    def open(cls, options: RayOptions) -> "_Pool":
        """Returns the pool of this process, for one more user."""
        pool = cls._open
        if pool is not None and not pool._is_connected():
            pool.close()  # somebody has shut down Ray
            pool = None
        if pool is None:
            pool = cls._open = cls(options)
        else:
            pool.check_options(options)
        pool._num_users += 1
        return pool

    @classmethod
    def release(cls, pool: "_Pool", key: int, owner: int) -> None:
        """Takes back one `open` of the process `owner`; a fork of it must not end what is not its own."""
        if os.getpid() != owner:
            return
        pool._num_users -= 1
        if pool._num_users == 0:
            pool.close()
            if cls._open is pool:
                cls._open = None
        else:
            pool.forget(key)

    def __init__(self, options: RayOptions) -> None:
        self._ray = _import_ray()
        self._num_users = 0
        self._cpus = 1.0 if options.cpus_per_worker is None else float(options.cpus_per_worker)
        self._actors: Dict[int, Any] = {}  # by number of the worker
        self._places: Dict[int, str] = {}  # of those that have started
        self._idle: List[int] = []
        self._starting: Dict[Any, int] = {}  # by what each returns when it has started
        self._numbers = itertools.count()
        self._owns_ray = _connect(self._ray, options, self._cpus)
        self._session = self._ray.get_runtime_context().get_job_id()

    def check_options(self, options: RayOptions) -> None:
        """Raises `ValueError` if options ask for another pool than this one."""
        _check_cluster(self._ray, options)
        if options.cpus_per_worker not in (None, self._cpus):
            raise ValueError(f"cpus_per_worker: expected {self._cpus:g} or None, as other samplers of this process, "
                             f"which share their workers, got {options.cpus_per_worker:g}")

    def check_num_workers(self, wanted: Optional[int]) -> int:
        """Returns how many workers a sampler may use: as many as it wants, or as there are CPUs for.

        Raises:
            ValueError: there are too few CPUs.
        """
        cpus = self._ray.cluster_resources().get("CPU", 0.0)
        return _check_cpus(wanted, self._cpus, cpus, f"the cluster has {cpus:g} CPUs")

    def put(self, value: Any) -> Any:
        """Puts a value into the object store; returns its reference."""
        self._check_connected()
        return self._ray.put(value)

    def start(self, count: int, timeout: float) -> None:
        """Waits until there are `count` workers.

        Raises:
            EnvWorkerError: they did not start in time.
        """
        while len(self._actors) < count:
            self._start_one()
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

    def run(self, calls: Sequence[_Call], most: int, timeout: float) -> List[Tuple[int, Any]]:
        """Has calls answered by workers, of which `most` work at a time.

        Returns:
            For each call the worker's number and its answer.

        Raises:
            EnvWorkerError: see `RayExecutor.collect`.
        """
        self._check_connected()
        waiting, running, losses = list(range(len(calls))), {}, Counter()
        answers: List[Any] = [None] * len(calls)
        self._idle = sorted(self._places)
        deadline, last_error = math.inf, None
        try:
            while waiting or running:
                for ref in self._wait(0.0):
                    self._has_started(ref)
                while waiting and self._idle and len(running) < most:
                    # as a rule the same worker gets the same tasks, for which it has environments
                    number, i = self._idle.pop(0), waiting.pop(0)
                    running[self._actors[number].collect.remote(*calls[i].arguments)] = (number, i)
                if running or self._idle:
                    deadline = math.inf
                elif deadline == math.inf:
                    deadline = time.monotonic() + timeout
                elif time.monotonic() > deadline:
                    raise EnvWorkerError(f"all Ray workers were lost, and none could be started again within "
                                         f"{timeout:g} s (worker_timeout); the last one: {_reason(last_error)}")
                for ref in self._wait(_POLL, running):
                    if ref in self._starting:
                        last_error = self._has_started(ref) or last_error
                        continue
                    number, i = running.pop(ref)
                    try:
                        answers[i] = (number, self._ray.get(ref))
                        self._idle.append(number)
                    except self._ray.exceptions.RayTaskError:
                        raise  # a mistake of ours
                    except self._ray.exceptions.RayError as error:
                        last_error = error
                        losses[i] += 1
                        self._replace(number, calls[i].tasks, error, losses[i])
                        waiting.insert(0, i)
        except BaseException:  # Ctrl-C among them: nobody waits for these answers any more
            for number, _ in running.values():
                self._remove(number)
            raise
        return answers

    def forget(self, key: int) -> None:
        """Has the workers drop the environments of a sampler."""
        if self._is_connected():
            for number in self._idle:
                self._actors[number].forget.remote(key)

    def close(self) -> None:
        """Ends the workers, and Ray if it was started here."""
        if self._is_connected():
            for number in list(self._actors):
                self._remove(number)
            if self._owns_ray:
                self._ray.shutdown()

    def _is_connected(self) -> bool:
        return self._ray.is_initialized() and self._ray.get_runtime_context().get_job_id() == self._session

    def _check_connected(self) -> None:
        if not self._is_connected():
            raise RuntimeError("this sampler's connection to Ray has ended (ray.shutdown()): make a new sampler")

    def _wait(self, timeout: float = _POLL, running: Sequence[Any] = ()) -> List[Any]:
        """Returns which of the calls, and of the starting workers, have an answer."""
        refs = [*running, *self._starting]
        return self._ray.wait(refs, num_returns=len(refs) if timeout == 0.0 else 1, timeout=timeout)[0] if refs else []

    def _start_one(self) -> None:
        number = next(self._numbers)
        kind = self._ray.remote(num_cpus=self._cpus, max_restarts=0, max_task_retries=0)(_make_actor_class())
        folders = [os.path.abspath(folder) for folder in sys.path]  # where the user's modules may be
        actor = kind.remote(max(1, math.floor(self._cpus)), folders)
        self._actors[number] = actor
        self._starting[actor.ready.remote()] = number

    def _has_started(self, ref: Any) -> Optional[Exception]:
        """Notes that a worker has started, or replaces it if it could not; then returns why."""
        number = self._starting.pop(ref)
        try:
            self._places[number] = self._ray.get(ref)
            self._idle.append(number)
            return None
        except self._ray.exceptions.RayError as error:
            self._remove(number)
            self._start_one()
            return error

    def _replace(self, number: int, tasks: range, error: Exception, num_losses: int) -> None:
        """Puts a new worker in the place of one that was lost."""
        what = f"Ray worker {number} ({self._places[number]}) was lost while it sampled {_text(tasks)}"
        self._remove(number)
        if num_losses >= MAX_LOSSES:
            raise EnvWorkerError(f"{what}, and is the last of {num_losses} lost over these tasks: the environment may "
                                 f"end its process. {_reason(error)}")
        logger.warn(f"{what}; another one samples them again, with the same random numbers. {_reason(error)}")
        self._start_one()

    def _remove(self, number: int) -> None:
        actor = self._actors.pop(number)
        self._places.pop(number, None)
        self._starting = {ref: other for ref, other in self._starting.items() if other != number}
        with contextlib.suppress(ValueError):
            self._idle.remove(number)
        self._ray.kill(actor, no_restart=True)


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray's reports home, which it announces at length
    try:
        import ray
    except ImportError:
        raise ImportError(
            'sampling on Ray needs the package ray: run `pip install "meta_policy_search[ray]"`'
        ) from None
    return ray


def _connect(ray: Any, options: RayOptions, cpus_per_worker: float) -> bool:
    """Connects this process to Ray, unless it is; returns whether that is ours to end."""
    if ray.is_initialized():
        _check_cluster(ray, options)
        return False
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    address = options.address or os.environ.get("RAY_ADDRESS") or "local"
    if address != "local":
        _check_address("RAY_ADDRESS" if options.address is None else "address", address)
        _join(ray, address, quiet)
        return True
    cores = available_cores()
    _check_cpus(options.num_workers, cpus_per_worker, cores, f"this process may use {cores} cores")
    ray.init(address="local", num_cpus=cores, include_dashboard=False, object_store_memory=_store_size(), **quiet)
    return True


def _check_cluster(ray: Any, options: RayOptions) -> None:
    """Raises `ValueError` if the address is not that of the cluster that this process is connected to."""
    current = ray.get_runtime_context().gcs_address
    if options.address not in (None, "auto", current):
        raise ValueError(f"address: expected {current!r}, 'auto' or None, as this process is connected to that "
                         f"cluster, got {options.address!r}")


def _check_cpus(num_workers: Optional[int], cpus_per_worker: float, cpus: float, there_are: str) -> int:
    """Returns how many workers to have, by default as many as there are CPUs for; raises `ValueError` if too many."""
    most = math.floor(cpus / cpus_per_worker + 1e-9)
    if most == 0:
        raise ValueError(f"cpus_per_worker: expected at most {cpus:g}, as {there_are}, got {cpus_per_worker:g}")
    if num_workers is not None and num_workers > most:
        raise ValueError(f"num_workers: expected at most {most}, as {there_are} and each worker takes "
                         f"cpus_per_worker={cpus_per_worker:g}, got {num_workers}")
    return most if num_workers is None else num_workers


def _join(ray: Any, address: str, quiet: Dict[str, Any]) -> None:
    if address != "auto":
        _check_reachable(address)
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError) as error:
        raise ConnectionError(f"address: could not join the Ray cluster at {address}: {error}") from error


def _check_reachable(address: str) -> None:
    """Raises `ConnectionError` unless something like a cluster answers at an address; Ray itself asks for minutes."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_TIMEOUT) as connection:
            if os.environ.get("RAY_USE_TLS", "0") in ("1", "true"):
                return
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, _SETTINGS, 0, 0, 0, 0, 0]))
            answer = connection.recv(9)
    except OSError as error:
        raise ConnectionError(f"address: expected that of a Ray cluster, but nothing answers at {address}: "
                              f"{error}") from error
    if answer[3:4] != bytes([_SETTINGS]):
        raise ConnectionError(f"address: expected that of a Ray cluster, but what answers at {address} is none")


_SETTINGS = 4  # type of the frame that HTTP/2, and so gRPC, begins with


def _check_address(name: str, address: Any) -> str:
    if not isinstance(address, str):
        raise TypeError(f"{name}: expected a string such as 'host:6379', got {address!r}")
    host, _, port = address.rpartition(":")
    if address not in ("auto", "local") and not (host and "/" not in host and port.isdecimal()):
        raise ValueError(f"{name}: expected 'host:port' of a Ray cluster, 'auto' or 'local', got {address!r}")
    return address


def _store_size() -> int:
    """Returns how large the object store of a local Ray may become, bytes; memory is taken as it is filled."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    room = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else memory
    return int(max(_SMALLEST_STORE, min(_LARGEST_STORE, memory // 5, room * 4 // 5)))


def _reason(error: Optional[Exception]) -> str:
    """Returns what Ray says in a line."""
    lines = [] if error is None else [line.strip() for line in str(error).splitlines()]
    said = " ".join(line for line in lines if line and not line.startswith(_IDENTIFIERS))
    return f"{type(error).__name__}: {said[:300]}" + ("..." if len(said) > 300 else "")


_IDENTIFIERS = ("actor_id:", "class_name:", "ip:", "name:", "namespace:", "pid:")


def _text(tasks: range) -> str:
    return tasks_text(tasks.start, tasks.stop - 1)


# In workers ------------------------------------------------------------------------------------------------------


def _make_actor_class() -> type:
    """Returns the class of Ray's actors.

    Ray sends a class that is made in a function by value. So a worker can say how many threads NumPy has before
    anything loads NumPy, and where modules are before it looks for this one.
    """
    thread_variables, module = THREAD_VARIABLES, __name__

    class MetaPolicySearchWorker:
        def __init__(self, num_threads: int, folders: List[str]) -> None:
            import importlib
            import os
            import sys

            os.environ.update(dict.fromkeys(thread_variables, str(num_threads)))
            sys.path += [folder for folder in folders if folder not in sys.path]
            self._worker = importlib.import_module(module).Worker()

        def ready(self) -> str:
            return self._worker.ready()

        def collect(self, *arguments: Any) -> Any:
            return self._worker.collect(*arguments)

        def forget(self, key: int) -> None:
            self._worker.forget(key)

    return MetaPolicySearchWorker


class Worker:
    """What runs in a worker."""

    def __init__(self) -> None:
        self._executors: Dict[Tuple, Any] = {}  # by sampler, first task and number of tasks
        self._versions: Dict[Tuple, int] = {}  # of the tasks that these have

    def ready(self) -> str:
        """Says where it runs."""
        return f"process {os.getpid()} on {socket.gethostname()}"

    def collect(self, key: int, env: Sequence[Any], sizes: Tuple[int, int], version: int, first_task: int,
                tasks: bytes, packed: Tuple[bytes, List[np.ndarray]]) -> Any:
        """Collects a share of a round.

        Args:
            key: number of the sampler.
            env: list of the reference to the pickled environment.
            sizes: `envs_per_task` and `max_path_length`.
            version: number of times that the sampler's tasks have been set.
            first_task: number of the first task of the share.
            tasks: these tasks, pickled.
            packed: round and actor.

        Returns:
            A list of `Collected`, packed; or a `Failure`.
        """
        try:
            round_, actor = _unpack(*packed)
            share_tasks = pickle.loads(tasks)
            share = range(first_task, first_task + len(share_tasks))
            executor = self._executor((key, share), env, sizes)
            if self._versions.get((key, share)) != version:
                executor.set_tasks(share_tasks)
                self._versions[key, share] = version
            parts = collect(executor, round_, actor.for_tasks(share.start, share.stop), share)
            return _pack([part.without_gaps() for part in parts])
        except (Exception, SystemExit) as error:
            return failure_of(error)

    def _executor(self, place: Tuple[int, range], env: Sequence[Any], sizes: Tuple[int, int]) -> Any:
        """Returns the environments of a sampler's tasks."""
        if place not in self._executors:
            import ray

            executor = make_local_executor(pickle.loads(ray.get(env[0])), len(place[1]), *sizes)
            executor.first_task = place[1].start
            self._executors[place] = executor
        return self._executors[place]

    def forget(self, key: int) -> None:
        """Drops the environments of a sampler."""
        for place in [place for place in self._executors if place[0] == key]:
            self._executors.pop(place).close()
            self._versions.pop(place, None)


# On the way between them -----------------------------------------------------------------------------------------


def _pack(value: Any) -> Tuple[bytes, List[np.ndarray]]:
    """Pickles a value; arrays in it become arrays of bytes, which share their memory."""
    buffers: List[pickle.PickleBuffer] = []
    data = cloudpickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return data, [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]


def _unpack(data: bytes, buffers: Sequence[np.ndarray], copy: bool = False) -> Any:
    """Reverses `_pack`. Without `copy`, arrays share memory with the object store, and cannot be written to."""
    return pickle.loads(data, buffers=[buffer.copy() if copy else buffer for buffer in buffers])


def _num_bytes(data: bytes, buffers: Sequence[np.ndarray]) -> int:
    return len(data) + sum(buffer.nbytes for buffer in buffers)
