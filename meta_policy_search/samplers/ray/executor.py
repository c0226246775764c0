"""Executor that collects the paths of one sampler on Ray."""
import copy
import itertools
import os
import weakref
from typing import List, Optional, Sequence

import cloudpickle

from meta_policy_search.actors.actor import Actor
from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.samplers.errors import EnvWorkerError, tasks_text
from meta_policy_search.samplers.ray.connection import RayOptions
from meta_policy_search.samplers.ray.pool import WorkerPool
from meta_policy_search.samplers.rollout_loop import Collection, PathRng, Share, join_shares
from meta_policy_search.samplers.vectorized_env_executor.base import pickle_env
from meta_policy_search.types import Task
from meta_policy_search.utils.threads import divide

_NUMBERS = itertools.count()  # ids of samplers


class RayExecutor:
    """Divides the tasks of a sampler among the Ray workers of this process, which collect whole paths.

    Args:
        env, meta_batch_size, envs_per_task, max_path_length: see `MetaEnvExecutor`.
        options: options of the cluster.

    Attributes:
        tasks: tasks of the last `set_tasks`; None before the first call.
        num_workers: number of workers used.

    Raises:
        ImportError: Ray is not installed.
        ConnectionError: there is no cluster at the address.
        ValueError: the cluster has too few CPUs.
        TypeError: `env` cannot be pickled.
        EnvWorkerError: the workers did not start in time.
    """

    def __init__(self, env: MetaEnv, meta_batch_size: int, envs_per_task: int, max_path_length: int,
                 options: RayOptions) -> None:
        pickled = pickle_env(env)
        self._sizes = (envs_per_task, max_path_length)
        self._meta_batch_size = meta_batch_size
        self._timeout = options.worker_timeout
        self.tasks: Optional[List[Task]] = None
        self._pool = WorkerPool.open(options)
        self._number = next(_NUMBERS)
        self._release = weakref.finalize(self, WorkerPool.release, self._pool, self._number, os.getpid())
        try:
            self.num_workers = min(self._pool.check_num_workers(options.num_workers), meta_batch_size)
            self._pool.start(self.num_workers, self._timeout)
            self._env = self._pool.put(pickled)  # stored once for all workers
        except BaseException:
            self.close()
            raise

    def set_tasks(self, tasks: Sequence[Task]) -> None:
        """Sets the tasks for the following calls of `collect`.

        Raises:
            ValueError: the number of tasks is not `meta_batch_size`.
        """
        if len(tasks) != self._meta_batch_size:
            raise ValueError(f"tasks: expected meta_batch_size={self._meta_batch_size} tasks, got {len(tasks)}")
        self.tasks = list(tasks)

    def collect(self, num_rollouts: int, path_rng: PathRng, actor: Actor) -> Collection:
        """Collects paths in all tasks.

        Args:
            num_rollouts: number of paths per task.
            path_rng: function that returns the generator of each path.
            actor: actor for all tasks.

        Raises:
            TypeError: the actor cannot be divided among workers.
            ValueError: an observation, reward or action is not finite; the message names task, path and step.
            EnvWorkerError: the environment raised an error (the message names task, path and step); several workers
                were lost while sampling the same tasks; or all workers were lost and none restarted in time.
            RuntimeError: the executor is closed, or Ray was shut down.
        """
        if not self._release.alive:
            raise RuntimeError(f"{type(self).__name__} is closed: create a new one")
        if not actor.can_divide:
            raise TypeError("policy: expected a policy whose make_actor() returns an Actor with can_divide and "
                            "for_tasks, because Ray workers act without TensorFlow, each for some of the tasks; use "
                            "parallel=False or parallel=True, which support every policy")
        assert self.tasks is not None, "samplers call set_tasks first"
        calls = {tasks: (cloudpickle.dumps(self.tasks[tasks.start:tasks.stop]), self._number, [self._env], self._sizes)
                 for tasks in divide(range(self._meta_batch_size), self.num_workers)}
        request = cloudpickle.dumps((num_rollouts, path_rng, actor))
        answers = self._pool.collect(calls, request, self.num_workers, self._timeout)
        shares: List[Share] = []
        for tasks, (number, answer) in answers.items():
            if isinstance(answer, EnvWorkerError):
                raise answer.by(f"Ray worker {number} ({tasks_text(tasks.start, tasks.stop - 1)})")
            shares += copy.deepcopy(answer)  # Ray returns read-only arrays
        return join_shares(shares)

    def close(self) -> None:
        """Ends the workers if no other sampler uses them, and Ray if it was started for them."""
        self._release()
