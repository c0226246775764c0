"""Has the paths of one sampler collected on Ray."""
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

_NUMBERS = itertools.count()  # of samplers


class RayExecutor:
    """Divides the tasks of a sampler among workers of this process's pool, which collect whole paths.

    Args:
        env, meta_batch_size, envs_per_task, max_path_length: as for `MetaEnvExecutor`.
        options: which cluster.

    Attributes:
        tasks: what `set_tasks` was given last; None before that.
        num_workers: how many workers it uses.

    Raises:
        ImportError: Ray is not installed.
        ConnectionError: there is no cluster at the address.
        ValueError: the cluster has fewer CPUs than asked for.
        TypeError: `env` cannot be pickled.
        EnvWorkerError: the workers did not start.
    """

    def __init__(self, env: MetaEnv, meta_batch_size: int, envs_per_task: int, max_path_length: int,
                 options: RayOptions) -> None:
        pickled = pickle_env(env, for_workers=True)
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
            self._env = self._pool.put(pickled)  # once for all workers
        except BaseException:
            self.close()
            raise

    def set_tasks(self, tasks: Sequence[Task]) -> None:
        """Sets the tasks of the rounds to come; raises `ValueError` unless there are `meta_batch_size` of them."""
        if len(tasks) != self._meta_batch_size:
            raise ValueError(f"tasks: expected meta_batch_size={self._meta_batch_size} of them, got {len(tasks)}")
        self.tasks = list(tasks)

    def collect(self, num_rollouts: int, path_rng: PathRng, actor: Actor) -> Collection:
        """Collects paths in all tasks.

        Args:
            num_rollouts: paths of each task.
            path_rng: makes the generator of each path.
            actor: acts in all tasks.

        Raises:
            TypeError: the actor cannot be divided among workers.
            ValueError: an observation, reward or action is not finite; names task, path and step.
            EnvWorkerError: the environment failed, and names task, path and step; or workers were lost, and could not
                be started again in time, or again and again over the same tasks.
            RuntimeError: this is closed, or Ray was shut down.
        """
        if not self._release.alive:
            raise RuntimeError(f"this {type(self).__name__} is closed")
        if not actor.can_divide:
            raise TypeError("policy: expected one whose make_actor() gives an Actor with can_divide and for_tasks, as "
                            "Ray's workers act without TensorFlow, each for some of the tasks; sampling in this "
                            "process or in worker processes (parallel=False or True) takes any policy")
        assert self.tasks is not None, "the sampler sets them"
        calls = {tasks: (cloudpickle.dumps(self.tasks[tasks.start:tasks.stop]), self._number, [self._env], self._sizes)
                 for tasks in divide(range(self._meta_batch_size), self.num_workers)}
        request = cloudpickle.dumps((num_rollouts, path_rng, actor))
        answers = self._pool.collect(calls, request, self.num_workers, self._timeout)
        shares: List[Share] = []
        for tasks, (number, answer) in answers.items():
            if isinstance(answer, EnvWorkerError):
                raise answer.by(f"Ray worker {number} ({tasks_text(tasks.start, tasks.stop - 1)})")
            shares += copy.deepcopy(answer)  # Ray's arrays cannot be written to
        return join_shares(shares)

    def close(self) -> None:
        """Ends the workers, if no other sampler uses them, and Ray, if it was started for them."""
        self._release()
