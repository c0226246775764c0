"""What runs in a worker."""
import operator
import os
import pickle
import socket
from typing import Any, Dict, List, Tuple, Union

from meta_policy_search.samplers.errors import FAULTS, EnvWorkerError, worker_error
from meta_policy_search.samplers.rollout_loop import Share, collect_shares
from meta_policy_search.samplers.vectorized_env_executor.base import MetaEnvExecutor, load_env
from meta_policy_search.samplers.vectorized_env_executor.local import make_local_executor
from meta_policy_search.utils.threads import THREAD_VARIABLES


class Worker:
    """Collects paths for any sampler of the process that started it."""

    def __init__(self) -> None:
        self._executors: Dict[Tuple[int, range], MetaEnvExecutor] = {}  # by sampler and tasks
        self._values: Dict[Tuple[int, range], bytes] = {}  # tasks that these have, pickled

    def ready(self) -> str:
        """Returns where it runs."""
        return f"process {os.getpid()} on {socket.gethostname()}"

    def collect(self, tasks: range, values: bytes, sampler: int, env: List[Any], sizes: Tuple[int, int],
                request: bytes) -> Union[List[Share], EnvWorkerError]:
        """Collects the paths of some tasks.

        Args:
            tasks: their numbers.
            values: the tasks themselves, pickled.
            sampler: number of the sampler.
            env: the reference to the pickled environment, in a list, so that Ray does not fetch it for each call.
            sizes: environments per task, and maximum steps of a path.
            request: paths per task, what makes their generators, and what acts in all tasks of the sampler; pickled.

        Returns:
            The paths, or the error.
        """
        try:
            num_rollouts, path_rng, actor = pickle.loads(request)
            executor = self._executor(tasks, values, sampler, env, sizes)
            return collect_shares(executor, num_rollouts, path_rng, actor.for_tasks(tasks.start, tasks.stop), tasks)
        except FAULTS as error:
            return worker_error(error)

    def _executor(self, tasks: range, values: bytes, sampler: int, env: List[Any], sizes: Tuple[int, int]
                  ) -> MetaEnvExecutor:
        """Returns environments that have these tasks."""
        key = (sampler, tasks)
        if key not in self._executors:
            import ray  # an extra

            self._executors[key] = make_local_executor(load_env(ray.get(env[0])), len(tasks), *sizes, tasks.start)
        if self._values.get(key) != values:
            self._executors[key].set_tasks(pickle.loads(values))
            self._values[key] = values
        return self._executors[key]

    def forget(self, sampler: int) -> None:
        """Drops the environments of a sampler."""
        for key in [key for key in self._executors if key[0] == sampler]:
            self._executors.pop(key).close()
            self._values.pop(key, None)


def make_worker_class() -> type:
    """Returns the class of Ray's actors, a `Worker` each.

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

        def call(self, method: str, *arguments: Any) -> Any:
            return operator.methodcaller(method, *arguments)(self._worker)

    return MetaPolicySearchWorker
