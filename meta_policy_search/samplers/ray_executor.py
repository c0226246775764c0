"""Executor that collects paths on a Ray cluster, and its options.

Sampling the paths of some tasks is a Ray task. Ray starts workers, transfers objects between machines, and repeats the
tasks of lost workers. Ray tasks are stateless: each one receives the environment, the tasks, and the part of the actor
that acts in its tasks. Each path has a separate generator, so a repeated Ray task collects the same paths. Workers run
the same code as the worker processes of `MetaParallelEnvExecutor` and do not import TensorFlow.
"""
import dataclasses
import itertools
import logging
import math
import os
import socket
import sys
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

import cloudpickle

from meta_policy_search.actors.actor import Actor
from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.envs.normalized_env import Averages
from meta_policy_search.samplers.errors import EnvWorkerError, WorkerDiedError, tasks_text
from meta_policy_search.samplers.rollout_loop import PathRng, TaskRollouts
from meta_policy_search.samplers.vectorized_env_executor import worker
from meta_policy_search.samplers.vectorized_env_executor.base import MetaEnvExecutor, pickle_env
from meta_policy_search.utils.checks import check_choice, check_positive, check_positive_int
from meta_policy_search.utils.threads import THREAD_VARIABLES, available_cores, divide

MAX_LOSSES = 3
"""Number of workers that may be lost while sampling the same tasks before an error is raised."""

_POLL = 1.0  # interval between checks of the cluster while waiting for paths, s
_CONNECT_TIMEOUT = 5.0  # s
_SAMPLERS = itertools.count()  # ids of executors


@dataclasses.dataclass(frozen=True)
class RayOptions:
    """Options for sampling on a Ray cluster: `MetaSampler(parallel=RayOptions(...))`.

    `parallel="ray"` is equivalent to `RayOptions()`, and `parallel={"num_workers": 2}` to `RayOptions(num_workers=2)`.
    For the same seed, the paths are bit-identical to sampling in this process, for any number of workers and also after
    the loss of workers. (Different processor models may round differently.) The policy must provide a NumPy actor that
    can be divided among workers. All policies of this package provide one.

    The constructor only checks the arguments. The first use of a sampler with these options raises `ImportError` if Ray
    is not installed, `ConnectionError` if there is no cluster at the address, `ValueError` if the cluster has too few
    CPUs, and `EnvWorkerError` if no worker starts in time.

    Args:
        address: `host:port` of a cluster that includes this machine, or `'auto'` for a cluster that runs on this
            machine. None (default): the environment variable `RAY_ADDRESS`; if it is not set, a local Ray is started
            and runs until this process ends. If this process is already connected to Ray, samplers use this connection.
        num_workers: maximum number of workers; no sampler uses more workers than it has tasks. None (default): the
            maximum that the CPUs of the cluster permit.
        cpus_per_worker: number of CPUs that Ray reserves per worker. A worker computes with this number of threads (at
            least one), matrix operations with one. Default: 1.
        worker_timeout: time limit in seconds for the start of a worker, also after all workers are lost; default 60.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range.
    """

    address: Optional[str] = None
    num_workers: Optional[int] = None
    cpus_per_worker: float = 1.0
    worker_timeout: float = 60.0

    def __post_init__(self) -> None:
        if not isinstance(self.address, (str, type(None))):
            raise TypeError(f"address: expected a string such as 'host:6379' or None, got {self.address!r}")
        if self.num_workers is not None:
            check_positive_int("num_workers", self.num_workers)
        check_positive("cpus_per_worker", self.cpus_per_worker)
        check_positive("worker_timeout", self.worker_timeout)


Parallel = Union[bool, str, Mapping[str, Any], RayOptions]
"""The argument `parallel` of `MetaSampler`; a mapping, such as that of a JSON file, has arguments of `RayOptions`."""


def check_parallel(parallel: Any) -> Union[bool, RayOptions]:
    """Returns the argument `parallel` of `MetaSampler`, with `'ray'` and mappings converted to `RayOptions`.

    Raises:
        TypeError: a value of a mapping has the wrong type.
        ValueError: `parallel` is not a valid choice, or a mapping has another name than the arguments of `RayOptions`.
    """
    if isinstance(parallel, RayOptions):
        return parallel
    if isinstance(parallel, Mapping):
        names = [field.name for field in dataclasses.fields(RayOptions)]
        return RayOptions(**{check_choice("parallel", name, names): value for name, value in parallel.items()})
    if isinstance(parallel, int) and not isinstance(parallel, bool):
        raise ValueError("parallel: expected True (one process per core), False, 'ray' or options of Ray, such as "
                         f"{{'num_workers': {parallel}}}, got {parallel}")
    return RayOptions() if check_choice("parallel", parallel, (False, True, "ray")) == "ray" else parallel


class RayExecutor(MetaEnvExecutor):
    """Divides the tasks of a sampler among Ray workers, which collect whole paths.

    Args:
        env, meta_batch_size, envs_per_task, max_path_length: see `MetaEnvExecutor`.
        options: options of the cluster.

    Attributes:
        num_workers: maximum number of workers used.

    Raises:
        ImportError: Ray is not installed.
        ConnectionError: there is no cluster at the address.
        ValueError: the cluster has too few CPUs.
        TypeError: `env` cannot be pickled.
        EnvWorkerError: no worker started in time.
    """

    logs_rllib_names = True

    def __init__(self, env: MetaEnv, meta_batch_size: int, envs_per_task: int, max_path_length: int,
                 options: RayOptions) -> None:
        super().__init__(env, meta_batch_size, envs_per_task, max_path_length)
        pickled = pickle_env(env)
        self._ray, self._id, self._timeout = connect(options), next(_SAMPLERS), options.worker_timeout
        self._session, self._cpus = self._ray.get_runtime_context().get_job_id(), options.cpus_per_worker
        cpus = self._num_cpus()
        if cpus < self._cpus:
            raise ValueError(f"cpus_per_worker: expected at most {cpus:g}, the number of CPUs of the cluster, got "
                             f"{self._cpus:g}")
        limit = math.floor(cpus / self._cpus + 1e-9) if options.num_workers is None else options.num_workers
        self.num_workers = min(limit, meta_batch_size)
        self._call = self._ray.remote(num_cpus=self._cpus, max_retries=MAX_LOSSES - 1)(
            worker_function(max(1, math.floor(self._cpus))))
        self._start_workers()
        self._pickled_env = self._ray.put(pickled)  # stored once for all workers

    def _start_workers(self) -> None:
        refs = [self._call.remote("is_ready") for _ in range(self.num_workers)]
        try:
            started, _ = self._ray.wait(refs, num_returns=1, timeout=self._timeout)
            self._ray.get(started)
        except self._ray.exceptions.RayError as error:
            raise EnvWorkerError(f"a Ray worker failed to start: {_reason(error)}") from error
        if not started:
            self._cancel(refs)
            raise EnvWorkerError(f"no Ray worker started within {self._timeout:g} s (worker_timeout): other programs "
                                 "may use the CPUs of the cluster")

    def collect_rollouts(self, num_rollouts: int, path_rng: PathRng, actor: Actor,
                         averages: Averages) -> List[TaskRollouts]:
        """Collects paths in all tasks.

        Raises:
            TypeError: the actor cannot be divided among workers.
            ValueError: an observation, reward or action is not finite; the message names task, path and step.
            EnvWorkerError: the environment raised an error (the message names task, path and step); several workers
                were lost while sampling the same tasks; or all machines were lost and none was added in time.
            RuntimeError: the executor is closed, or Ray was shut down.
        """
        if not self._ray.is_initialized() or self._ray.get_runtime_context().get_job_id() != self._session:
            raise RuntimeError("the connection to Ray has ended (ray.shutdown()): create a new sampler")
        if not actor.can_divide:
            raise TypeError("policy: expected a policy whose make_actor() returns an Actor with can_divide and "
                            "for_tasks, because Ray workers act without TensorFlow, each for some of the tasks; use "
                            "parallel=False or parallel=True, which support every policy")
        assert self.tasks is not None, "samplers call set_tasks first"
        parts = divide(range(self.meta_batch_size), self.num_workers)
        refs = [self._call.remote(
            "collect_on_ray", self._id, [self._pickled_env], (part, self.envs_per_task, self.max_path_length),
            cloudpickle.dumps((self.tasks[part.start:part.stop], num_rollouts, path_rng,
                               actor.for_tasks(part.start, part.stop), averages))) for part in parts]
        rollouts: List[TaskRollouts] = []
        try:
            self._wait(refs)
            for part, ref in zip(parts, refs):
                rollouts += self._result(part, ref)
        except BaseException:  # also Ctrl-C: the workers must not continue with calls whose results are not used
            self._cancel(refs)
            raise
        return rollouts

    def _wait(self, refs: Sequence[Any]) -> None:
        """Waits for all results; raises `EnvWorkerError` if the cluster has no machine for workers for too long."""
        deadline = math.inf
        while refs:
            _, refs = self._ray.wait(refs, num_returns=len(refs), timeout=_POLL)
            if self._num_cpus() >= self._cpus:
                deadline = math.inf
            elif time.monotonic() > deadline:
                raise EnvWorkerError(f"all Ray workers were lost and none could be restarted within {self._timeout:g} "
                                     "s (worker_timeout)")
            else:
                deadline = min(deadline, time.monotonic() + self._timeout)

    def _result(self, part: range, ref: Any) -> List[TaskRollouts]:
        name = tasks_text(part)
        try:
            pickled = self._ray.get(ref)
        except self._ray.exceptions.RayError as error:
            raise WorkerDiedError(f"{MAX_LOSSES} Ray workers were lost while they sampled {name}: the environment may "
                                  f"end its process. {_reason(error)}") from error
        return worker.load_result(pickled, f"Ray worker ({name})")

    def _cancel(self, refs: Sequence[Any]) -> None:
        """Ends the workers of unfinished calls."""
        for ref in refs:
            self._ray.cancel(ref, force=True)

    def _num_cpus(self) -> float:
        return self._ray.cluster_resources().get("CPU", 0.0)


def worker_function(num_threads: int) -> Callable[..., Any]:
    """Returns the function that Ray workers run: it calls a function of the module `worker` by its name.

    Ray transfers a nested function by value. Therefore it can set the number of threads before a worker imports NumPy,
    and extend the module search path before the worker imports the package and the user's modules.
    """
    module, variables = worker.__name__, dict.fromkeys(THREAD_VARIABLES, str(num_threads))
    folders = [os.path.abspath(folder) for folder in sys.path]

    def call(name: str, *args: Any) -> Any:
        import importlib
        import os
        import sys

        if module not in sys.modules:
            os.environ.update(variables)
        sys.path[:] = dict.fromkeys([*folders, *sys.path])  # earlier samplers may have had other folders
        return vars(importlib.import_module(module))[name](*args)

    return call


def connect(options: RayOptions) -> Any:
    """Connects this process to Ray if it is not connected; returns the package `ray`.

    Raises:
        ImportError: Ray is not installed; the message contains the command that installs it.
        ConnectionError: there is no cluster at the address.
        ValueError: the process is connected to another cluster.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # disables usage reports and the long message about them
    try:
        import ray
    except ImportError:
        raise ImportError('sampling on Ray requires the package ray: run `pip install "ray>=2.40"`') from None
    if ray.is_initialized():
        current = ray.get_runtime_context().gcs_address
        if options.address not in (None, "auto", current, _joined.get(current)):
            raise ValueError(f"address: expected {current!r} (the cluster this process is connected to), 'auto' or "
                             f"None, got {options.address!r}")
        return ray
    address = options.address or os.environ.get("RAY_ADDRESS") or "local"
    if address == "local":
        _start_local(ray)
    else:
        _join(ray, address)
        _joined[ray.get_runtime_context().gcs_address] = address
    return ray


_joined: Dict[str, str] = {}
"""Addresses of the clusters that this process has joined, as they were given, by Ray's address of the cluster."""

_QUIET = {"log_to_driver": False, "logging_level": logging.ERROR}


def _start_local(ray: Any) -> None:
    """Starts Ray on this machine.

    Ray listens only on this machine, which is its default on macOS and Windows. Ray has no argument for this:
    `_node_ip_address="127.0.0.1"` sets the address of the machine, and the environment variable of the constant is
    only read at import. The constant is restored, so that this process can join clusters later.
    """
    constants = ray._private.ray_constants
    before, constants.ENABLE_RAY_CLUSTER = constants.ENABLE_RAY_CLUSTER, False
    try:
        ray.init(address="local", num_cpus=available_cores(), include_dashboard=False, **_QUIET)
    finally:
        constants.ENABLE_RAY_CLUSTER = before


def _join(ray: Any, address: str) -> None:
    """Joins the cluster at `address`; raises `ConnectionError` if this fails."""
    try:
        if address != "auto":  # Ray itself would retry for minutes
            host, _, port = address.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_TIMEOUT).close()
        ray.init(address=address, **_QUIET)
    except (OSError, RuntimeError, ValueError) as error:
        raise ConnectionError(f"address: expected 'auto' or 'host:port' of a Ray cluster, got {address!r}: {error}"
                              ) from error


def _reason(error: Exception) -> str:
    """Returns Ray's error message in one line, at most 300 characters."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
