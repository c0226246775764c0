"""Where to sample in parallel: the options of a Ray cluster, and the connection of this process to it."""
import dataclasses
import logging
import os
import shutil
import socket
from typing import Any, Dict, Optional, Union

from meta_policy_search.utils.checks import check_choice, check_positive, check_positive_int
from meta_policy_search.utils.threads import available_cores, total_memory

_SETTINGS = 4  # type of the first HTTP/2 frame, and so of gRPC

CONNECT_TIMEOUT = 5.0
"""Seconds that a cluster may take to answer at its address."""


@dataclasses.dataclass(frozen=True)
class RayOptions:
    """Which Ray cluster to sample on, and how much of it: `MetaSampler(parallel=RayOptions(...))`.

    `parallel="ray"` is short for `RayOptions()`. For one seed the paths are those of sampling in this process, bit for
    bit, for any number of workers, also where workers are lost and their tasks sampled again. (Processors of different
    makes may round differently.) The policy must have a NumPy form that can be divided among workers, as the policies
    of this package do.

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
        ValueError: a number out of range, or an address of another form. The sampler that is given the options raises
            it too, where the cluster has fewer CPUs than asked for; `ImportError`, where Ray is not installed;
            `ConnectionError`, where there is no cluster at the address; and `EnvWorkerError`, where the workers did
            not start in time.
    """

    address: Optional[str] = None
    num_workers: Optional[int] = None
    cpus_per_worker: Optional[float] = None
    worker_timeout: float = 60.0

    def __post_init__(self) -> None:
        if self.address is not None:
            check_address("address", self.address)
        if self.num_workers is not None:
            check_positive_int("num_workers", self.num_workers)
        if self.cpus_per_worker is not None:
            check_positive("cpus_per_worker", self.cpus_per_worker)
        check_positive("worker_timeout", self.worker_timeout)


def check_parallel(parallel: Any) -> Union[bool, RayOptions]:
    """Returns `parallel` with `'ray'` as `RayOptions`; raises `ValueError` unless it is a choice of `MetaSampler`'s."""
    if isinstance(parallel, RayOptions):
        return parallel
    return RayOptions() if check_choice("parallel", parallel, (False, True, "ray")) == "ray" else parallel


def check_address(name: str, address: Any) -> str:
    """Returns an address of a cluster; raises `TypeError` or `ValueError` if it has not the form of one."""
    if not isinstance(address, str):
        raise TypeError(f"{name}: expected a string such as 'host:6379', got {address!r}")
    host, _, port = address.rpartition(":")
    if address not in ("auto", "local") and not (host and "/" not in host and port.isdecimal()):
        raise ValueError(f"{name}: expected 'host:port' of a Ray cluster, 'auto' or 'local', got {address!r}")
    return address


def import_ray() -> Any:
    """Returns the package ray; raises `ImportError` that says what to install."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray's reports home, which it announces at length
    try:
        import ray
    except ImportError:
        raise ImportError('sampling on Ray needs the package ray: run `pip install '
                          '"meta_policy_search[ray]"`') from None
    return ray


def connect(ray: Any, options: RayOptions) -> bool:
    """Connects this process to Ray, unless it is; returns whether that is ours to end.

    Raises:
        ConnectionError: there is no cluster at the address.
        ValueError: the process is connected to another cluster.
    """
    if ray.is_initialized():
        check_cluster(ray, options)
        return False
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    address = options.address or os.environ.get("RAY_ADDRESS") or "local"
    if address != "local":
        check_address("RAY_ADDRESS" if options.address is None else "address", address)
        _join(ray, address, quiet)
        return True
    # Has Ray listen to this machine alone, as it does by itself on macOS and Windows. Ray has no argument for that: it
    # takes `_node_ip_address="127.0.0.1"` for the machine's address. It reads the environment variable behind this
    # constant, `RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER`, when it is imported, and it must not keep this process from joining
    # clusters later.
    constants = ray._private.ray_constants
    before, constants.ENABLE_RAY_CLUSTER = constants.ENABLE_RAY_CLUSTER, False
    try:
        ray.init(address="local", num_cpus=available_cores(), object_store_memory=_store_size(),
                 include_dashboard=False, **quiet)
    finally:
        constants.ENABLE_RAY_CLUSTER = before
    return True


def _store_size() -> int:
    """Returns how many bytes the object store of a local Ray may take (Ray's default: 30% of the memory)."""
    memory = total_memory()
    room = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else memory
    return max(80 << 20, min(4 << 30, memory // 5, room * 4 // 5))  # Ray refuses less than 75 MiB


def check_cluster(ray: Any, options: RayOptions) -> None:
    """Raises `ValueError` if the address is not that of the cluster that this process is connected to."""
    current = ray.get_runtime_context().gcs_address
    if options.address not in (None, "auto", current):
        raise ValueError(f"address: expected {current!r}, 'auto' or None, as this process is connected to that "
                         f"cluster, got {options.address!r}")


def _join(ray: Any, address: str, quiet: Dict[str, Any]) -> None:
    """Joins a cluster; raises `ConnectionError` unless HTTP/2 is spoken at its address. Ray retries for minutes."""
    if address != "auto":
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_TIMEOUT) as connection:
                connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, _SETTINGS, 0, 0, 0, 0, 0]))
                answer = connection.recv(9)
        except OSError as error:
            raise ConnectionError(f"address: expected that of a Ray cluster, but nothing answers at {address}: "
                                  f"{error}") from error
        if answer[3:4] != bytes([_SETTINGS]) and os.environ.get("RAY_USE_TLS", "0") not in ("1", "true"):
            raise ConnectionError(f"address: expected that of a Ray cluster, but what answers at {address} is none")
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError) as error:
        raise ConnectionError(f"address: could not join the Ray cluster at {address}: {error}") from error
