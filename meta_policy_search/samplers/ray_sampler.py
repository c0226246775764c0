"""Collects paths on a Ray cluster."""
from typing import Any, Optional

from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.samplers.meta_sampler import MetaSampler
from meta_policy_search.samplers.ray.workers import RayOptions

__all__ = ["RayOptions", "RaySampler"]


class RaySampler(MetaSampler):
    """A `MetaSampler` whose paths are collected by workers on a Ray cluster.

    The same as `MetaSampler(..., parallel=RayOptions(...))`. For one seed the paths are those of a `MetaSampler`, bit
    for bit, for any number of workers, also where workers are lost and their tasks sampled again. (Processors of
    different makes may round differently.) The policy must have a NumPy form that can be divided among workers, as the
    policies of this package do.

    Args:
        env (MetaEnv): environment to sample in; it is copied.
        policy (MetaPolicy): policy that acts, with the parameters it has for each task.
        rollouts_per_meta_task (int): paths per task.
        meta_batch_size (int): number of tasks, the policy's.
        max_path_length (int): a path is cut off after so many steps.
        envs_per_task (int or None): paths of a task that are under way at the same time; default: all.
        address (str or None): of the cluster; see `RayOptions`.
        num_workers (int or None): number of workers; default: as many as the cluster has CPUs for.
        cpus_per_worker (float or None): CPUs, and threads, of each worker; default: 1.
        worker_timeout (float): seconds that workers may take to start; default: 60.

    Raises:
        ImportError: Ray is not installed.
        ConnectionError: there is no cluster at the address.
        ValueError: the cluster has fewer CPUs than asked for; else as for `MetaSampler`.
        TypeError: the policy cannot be sent to workers; else as for `MetaSampler`.
        EnvWorkerError: the workers did not start.
    """

    def __init__(
        self,
        env: MetaEnv,
        policy: Any,
        rollouts_per_meta_task: int,
        meta_batch_size: int,
        max_path_length: int,
        envs_per_task: Optional[int] = None,
        address: Optional[str] = None,
        num_workers: Optional[int] = None,
        cpus_per_worker: Optional[float] = None,
        worker_timeout: float = RayOptions.worker_timeout,
    ) -> None:
        options = RayOptions(address, num_workers, cpus_per_worker, worker_timeout)
        super().__init__(env, policy, rollouts_per_meta_task, meta_batch_size, max_path_length, envs_per_task, options)
