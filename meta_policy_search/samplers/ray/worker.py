"""Code that runs in Ray workers."""
import operator
import os
import pickle
import socket
from typing import Any, Dict, List, Tuple, Union

from meta_policy_search.samplers.errors import ENV_EXCEPTIONS, EnvWorkerError, worker_error
from meta_policy_search.samplers.rollout_loop import Share, collect_shares
from meta_policy_search.samplers.vectorized_env_executor.base import MetaEnvExecutor
from meta_policy_search.samplers.vectorized_env_executor.local import make_local_executor
from meta_policy_search.utils.threads import THREAD_VARIABLES


class Worker:
    """Collects paths for all samplers of the process that started the worker."""

    def __init__(self) -> None:
        self._executors: Dict[Tuple[int, range], MetaEnvExecutor] = {}  # by sampler id and tasks
        self._values: Dict[Tuple[int, range], bytes] = {}  # pickled tasks of each executor

    def ready(self) -> str:
        """Returns the process id and host name of the worker."""
        return f"process {os.getpid()} on {socket.gethostname()}"

    def collect(self, tasks: range, values: bytes, sampler: int, env: List[Any], sizes: Tuple[int, int],
                request: bytes) -> Union[List[Share], EnvWorkerError]:
        """Collects the paths of some tasks.

        Args:
            tasks: indices of the tasks.
            values: the tasks, pickled.
            sampler: id of the sampler.
            env: list with the reference to the pickled environment. Ray does not resolve references inside a list, so
                the environment is only fetched when it is needed.
            sizes: environments per task, and maximum number of steps of a path.
            request: the pickled tuple of: number of paths per task; function that returns the random generator of each
                path; actor for all tasks of the sampler.

        Returns:
            The paths, or the error.
        """
        try:
            num_rollouts, path_rng, actor = pickle.loads(request)
            executor = self._executor(tasks, values, sampler, env, sizes)
            return collect_shares(executor, num_rollouts, path_rng, actor.for_tasks(tasks.start, tasks.stop), tasks)
        except ENV_EXCEPTIONS as error:
            return worker_error(error)

    def _executor(self, tasks: range, values: bytes, sampler: int, env: List[Any], sizes: Tuple[int, int]
                  ) -> MetaEnvExecutor:
        """Returns an executor whose environments have the given tasks."""
        key = (sampler, tasks)
        if key not in self._executors:
            import ray  # optional dependency

            self._executors[key] = make_local_executor(pickle.loads(ray.get(env[0])), len(tasks), *sizes, tasks.start)
        if self._values.get(key) != values:
            self._executors[key].set_tasks(pickle.loads(values))
            self._values[key] = values
        return self._executors[key]

    def forget(self, sampler: int) -> None:
        """Closes the environments of a sampler."""
        for key in [key for key in self._executors if key[0] == sampler]:
            self._executors.pop(key).close()
            self._values.pop(key, None)


def make_worker_class() -> type:
    """Returns the class for Ray actors, each of which holds a `Worker`.

    Ray transfers a class that is defined in a function by value. Therefore the constructor can set the number of NumPy
    threads before NumPy is imported, and extend the module search path before this module is imported.
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
