"""The connection of this process to Ray: to a cluster that runs, or to one started on this machine."""
import contextlib
import logging
import math
import os
import shutil
import socket
from typing import Any, Dict, Iterator, Optional

from meta_policy_search.samplers.ray.options import RayOptions, check_address
from meta_policy_search.utils.threads import available_cores

CONNECT_TIMEOUT = 5.0
"""Seconds that a cluster may take to answer at its address."""

_LARGEST_STORE = 4 << 30  # bytes; a round of 40 tasks x 20 paths x 200 steps of Humanoid takes 0.6 GB
_SMALLEST_STORE = 80 << 20  # Ray refuses less than 75 MiB
_SETTINGS = 4  # type of the frame that HTTP/2, and so gRPC, begins with


def import_ray() -> Any:
    """Returns the package ray; raises `ImportError` that says what to install."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray's reports home, which it announces at length
    try:
        import ray
    except ImportError:
        raise ImportError('sampling on Ray needs the package ray: run `pip install '
                          '"meta_policy_search[ray]"`') from None
    return ray


def connect(ray: Any, options: RayOptions, cpus_per_worker: float) -> bool:
    """Connects this process to Ray, unless it is; returns whether that is ours to end.

    Raises:
        ConnectionError: there is no cluster at the address.
        ValueError: this machine has too few CPUs, or the process is connected to another cluster.
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
    cores = available_cores()
    check_cpus(options.num_workers, cpus_per_worker, cores, f"this process may use {cores} cores")
    with _on_loopback(ray):
        ray.init(address="local", num_cpus=cores, include_dashboard=False, object_store_memory=_store_size(), **quiet)
    return True


def check_cluster(ray: Any, options: RayOptions) -> None:
    """Raises `ValueError` if the address is not that of the cluster that this process is connected to."""
    current = ray.get_runtime_context().gcs_address
    if options.address not in (None, "auto", current):
        raise ValueError(f"address: expected {current!r}, 'auto' or None, as this process is connected to that "
                         f"cluster, got {options.address!r}")


def check_cpus(num_workers: Optional[int], cpus_per_worker: float, cpus: float, there_are: str) -> int:
    """Returns how many workers to have, by default as many as there are CPUs for; raises `ValueError` if too many."""
    most = math.floor(cpus / cpus_per_worker + 1e-9)
    if most == 0:
        raise ValueError(f"cpus_per_worker: expected at most {cpus:g}, as {there_are}, got {cpus_per_worker:g}")
    if num_workers is not None and num_workers > most:
        raise ValueError(f"num_workers: expected at most {most}, as {there_are} and each worker takes "
                         f"cpus_per_worker={cpus_per_worker:g}, got {num_workers}")
    return most if num_workers is None else num_workers


@contextlib.contextmanager
def _on_loopback(ray: Any) -> Iterator[None]:
    """Has a Ray that is started within listen to this machine alone, as it does by itself on macOS and Windows.

    Ray has no argument for that: it takes `_node_ip_address="127.0.0.1"` for the machine's address. The environment
    variable behind this constant, `RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER`, is read when `ray` is imported, which may have
    been long ago, and would keep this process from joining clusters later.
    """
    constants = ray._private.ray_constants
    before = constants.ENABLE_RAY_CLUSTER
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


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


def _store_size() -> int:
    """Returns how large the object store of a local Ray may become, bytes; memory is taken as it is filled."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    room = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else memory
    return int(max(_SMALLEST_STORE, min(_LARGEST_STORE, memory // 5, room * 4 // 5)))
