"""Options for sampling on a Ray cluster, and the connection of this process to the cluster."""
import dataclasses
import logging
import os
import shutil
import socket
from typing import Any, Dict, Mapping, Optional, Union

from meta_policy_search.utils.checks import check_choice, check_positive, check_positive_int
from meta_policy_search.utils.threads import available_cores, total_memory

_SETTINGS = 4  # type of the first HTTP/2 frame, which gRPC uses

CONNECT_TIMEOUT = 5.0
"""Timeout for the first answer of a cluster, s."""


@dataclasses.dataclass(frozen=True)
class RayOptions:
    """Options for sampling on a Ray cluster: `MetaSampler(parallel=RayOptions(...))`.

    `parallel="ray"` is equivalent to `RayOptions()`, and `parallel={"num_workers": 2}` to `RayOptions(num_workers=2)`.
    For the same seed, the paths are bit-identical to sampling in this process, for any number of workers and also after
    the loss of workers. (Different processor models may round differently.) The policy must provide a NumPy actor that
    can be divided among workers. All policies of this package provide one.

    The constructor only checks the arguments. A sampler with these options raises `ImportError` if Ray is not
    installed, `ConnectionError` if there is no cluster at the address, `ValueError` if the cluster has too few CPUs,
    and `EnvWorkerError` if the workers do not start in time.

    Args:
        address: `host:port` of a cluster that includes this machine, or `'auto'` for a cluster that runs on this
            machine. None (default): the environment variable `RAY_ADDRESS`; if it is not set, a local Ray is started
            and runs as long as samplers exist. If this process is already connected to Ray, samplers use this
            connection and do not close it.
        num_workers: maximum number of workers; no sampler uses more workers than it has tasks. None (default): the
            maximum that the CPUs of the cluster permit.
        cpus_per_worker: number of CPUs that Ray reserves per worker. A worker computes with this number of threads (at
            least one). None (default): 1.
        worker_timeout: time limit in seconds for the start of workers and, if all workers are lost, for the restart of
            one; default 60.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range, or the address is malformed.
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
        known = [field.name for field in dataclasses.fields(RayOptions)]
        return RayOptions(**{check_choice("parallel", name, known): value for name, value in parallel.items()})
    return RayOptions() if check_choice("parallel", parallel, (False, True, "ray")) == "ray" else parallel


def check_address(name: str, address: Any) -> str:
    """Checks the format of a cluster address and returns it.

    Raises:
        TypeError: the address is not a string.
        ValueError: the address is malformed.
    """
    if not isinstance(address, str):
        raise TypeError(f"{name}: expected a string such as 'host:6379', got {address!r}")
    host, _, port = address.rpartition(":")
    if address not in ("auto", "local") and not (host and "/" not in host and port.isdecimal()):
        raise ValueError(f"{name}: expected 'host:port' of a Ray cluster, 'auto' or 'local', got {address!r}")
    return address


def import_ray() -> Any:
    """Imports and returns the package `ray`.

    Raises:
        ImportError: Ray is not installed; the message contains the command that installs it.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # disables usage reports and the long message about them
    try:
        import ray
    except ImportError:
        raise ImportError('sampling on Ray requires the package ray: run `pip install '
                          '"meta_policy_search[ray]"`') from None
    return ray


def connect(ray: Any, options: RayOptions) -> bool:
    """Connects this process to Ray if it is not connected.

    Returns:
        True if this call created the connection, so that the caller has to end it.

    Raises:
        ConnectionError: there is no cluster at the address.
        ValueError: the process is connected to another cluster, or the address is malformed.
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
    # Makes Ray listen only on this machine, which is its default on macOS and Windows. Ray has no argument for this:
    # `_node_ip_address="127.0.0.1"` sets the address of the machine. The environment variable of this constant,
    # `RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER`, is only read at import. The constant is restored, so that this process can
    # join clusters later.
    constants = ray._private.ray_constants
    before, constants.ENABLE_RAY_CLUSTER = constants.ENABLE_RAY_CLUSTER, False
    try:
        ray.init(address="local", num_cpus=available_cores(), object_store_memory=_store_size(),
                 include_dashboard=False, **quiet)
    finally:
        constants.ENABLE_RAY_CLUSTER = before
    return True


def _store_size() -> int:
    """Returns the size of the object store of a local Ray, bytes (Ray's default: 30% of the memory)."""
    memory = total_memory()
    room = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else memory
    return max(80 << 20, min(4 << 30, memory // 5, room * 4 // 5))  # Ray requires at least 75 MiB


def check_cluster(ray: Any, options: RayOptions) -> None:
    """Raises `ValueError` if `options.address` is not the address of the connected cluster."""
    current = ray.get_runtime_context().gcs_address
    if options.address not in (None, "auto", current):
        raise ValueError(f"address: expected {current!r} (the cluster this process is connected to), 'auto' or None, "
                         f"got {options.address!r}")


def _join(ray: Any, address: str, quiet: Dict[str, Any]) -> None:
    """Joins the cluster at `address`; raises `ConnectionError` if this fails.

    Checks first that an HTTP/2 server answers at the address, because Ray itself would retry for minutes.
    """
    if address != "auto":
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_TIMEOUT) as connection:
                connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, _SETTINGS, 0, 0, 0, 0, 0]))
                frame = connection.recv(9)
        except OSError as error:
            raise ConnectionError(f"address: expected the address of a Ray cluster, got no answer at {address}: "
                                  f"{error}") from error
        if frame[3:4] != bytes([_SETTINGS]) and os.environ.get("RAY_USE_TLS", "0") not in ("1", "true"):
            raise ConnectionError(f"address: expected the address of a Ray cluster, got another service at {address}")
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError) as error:
        raise ConnectionError(f"address: could not join the Ray cluster at {address}: {error}") from error
