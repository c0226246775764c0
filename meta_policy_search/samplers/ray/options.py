"""How to sample in parallel: what samplers, evaluators and scripts take for `parallel`."""
import dataclasses
from typing import Any, Optional, Union

from meta_policy_search.utils.checks import check_choice, check_positive, check_positive_int


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
