"""What runs in a worker, and how values travel to it and back."""
import os
import pickle
import socket
from typing import Any, Dict, List, NamedTuple, Tuple, Union

import cloudpickle
import numpy as np

from meta_policy_search.samplers.errors import FAULTS, Failure, failure_of
from meta_policy_search.samplers.executors.base import MetaEnvExecutor
from meta_policy_search.samplers.executors.local import make_local_executor
from meta_policy_search.samplers.rollout_loop import collect_shares
from meta_policy_search.utils.threads import THREAD_VARIABLES


class Packed(NamedTuple):
    """A pickled value with the arrays in it beside it: Ray need not copy these."""

    data: bytes
    buffers: List[np.ndarray]  # uint8, the memory of the arrays in the value

    @property
    def num_bytes(self) -> int:
        """Size of the whole."""
        return len(self.data) + sum(buffer.nbytes for buffer in self.buffers)

    def unpack(self, copy: bool = False) -> Any:
        """Returns the value. Without `copy`, its arrays share memory with the buffers, and cannot be written to."""
        return pickle.loads(self.data, buffers=[buffer.copy() if copy else buffer for buffer in self.buffers])


def pack(value: Any) -> Packed:
    """Returns a value as `Packed`; the buffers share memory with its arrays."""
    buffers: List[pickle.PickleBuffer] = []
    data = cloudpickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return Packed(data, [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers])


class Assignment(NamedTuple):
    """The tasks that one worker samples in a round, and what it needs to have environments for them."""

    tasks: range  # their numbers
    values: bytes  # the tasks themselves, pickled
    version: int  # how often the sampler's tasks have been set
    sampler: int  # number of the sampler
    env: List[Any]  # the reference to the pickled environment, in a list, so that Ray does not fetch it for each call
    envs_per_task: int
    max_path_length: int


class Worker:
    """Collects shares of rounds, for any sampler of the process that started it."""

    def __init__(self) -> None:
        self._executors: Dict[Tuple[int, range], MetaEnvExecutor] = {}  # by sampler and tasks
        self._versions: Dict[Tuple[int, range], int] = {}  # of the tasks that these have

    def ready(self) -> str:
        """Says where it runs."""
        return f"process {os.getpid()} on {socket.gethostname()}"

    def collect(self, share: Assignment, request_and_actor: Packed) -> Union[Packed, Failure]:
        """Collects the paths of some tasks; returns a list of `rollout_loop.Share`, packed, or what went wrong."""
        try:
            request, actor = request_and_actor.unpack()
            actor = actor.for_tasks(share.tasks.start, share.tasks.stop)
            return pack(collect_shares(self._executor(share), request, actor, share.tasks))
        except FAULTS as error:
            return failure_of(error)

    def _executor(self, share: Assignment) -> MetaEnvExecutor:
        """Returns environments that have the tasks of a share."""
        key = (share.sampler, share.tasks)
        if key not in self._executors:
            import ray  # an extra

            env = pickle.loads(ray.get(share.env[0]))
            executor = make_local_executor(env, len(share.tasks), share.envs_per_task, share.max_path_length)
            executor.first_task = share.tasks.start
            self._executors[key] = executor
        if self._versions.get(key) != share.version:
            self._executors[key].set_tasks(pickle.loads(share.values))
            self._versions[key] = share.version
        return self._executors[key]

    def forget(self, sampler: int) -> None:
        """Drops the environments of a sampler."""
        for key in [key for key in self._executors if key[0] == sampler]:
            self._executors.pop(key).close()
            self._versions.pop(key, None)


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

        def ready(self) -> str:
            return self._worker.ready()

        def collect(self, *arguments: Any) -> Any:
            return self._worker.collect(*arguments)

        def forget(self, sampler: int) -> None:
            self._worker.forget(sampler)

    return MetaPolicySearchWorker
