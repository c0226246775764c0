"""Workers that step the environments of some tasks: worker processes of `MetaParallelEnvExecutor`, and Ray workers.

A worker process is a new Python interpreter that imports this module, but not the script that started it. Therefore
scripts need no `__main__` guard, and a worker starts within a few tenths of a second: it imports NumPy, gym and the
modules of the environment, but not TensorFlow. Objects that may be defined by the user (environments, tasks, env_infos)
are sent as `cloudpickle` bytes, which contain classes of scripts and notebooks by value. Plain pickle would have to
import them.

Parent and worker process communicate over a socket pair, one request and one result at a time. A request is
`(command, *args)`: "build" or a method of the worker's executor. An empty request ends the worker. A worker process
also ends when its parent has ended for any reason. In both cases, it stops collecting paths after the current step.
Ctrl-C reaches only the parent. Both kinds of workers return the bytes of `pickle_result`.
"""
import contextlib
import io
import operator
import os
import pickle
import select
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Connection, Pipe
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import cloudpickle

from meta_policy_search.samplers.errors import EnvWorkerError, NotFiniteError, worker_error
from meta_policy_search.samplers.vectorized_env_executor.base import SteppingExecutor
from meta_policy_search.samplers.vectorized_env_executor.local import make_local_executor
from meta_policy_search.utils.processes import has_ended, wait_for_end
from meta_policy_search.utils.snapshotter import Unpickler
from meta_policy_search.utils.threads import THREAD_VARIABLES

_START = ("import sys; fd = int(sys.argv[1]); sys.path[:] = sys.argv[2:]; del sys.argv[1:]; "
          f"from {__name__} import main; main(fd)")
_GRACE = 2.0  # time for a worker to close its environments before it is killed, s


def pickle_result(function: Callable[..., Any], *args: Any) -> bytes:
    """Calls a function; returns its result, or the exception that it raised, as bytes for `load_result`."""
    try:
        return cloudpickle.dumps((True, function(*args)))
    except NotFiniteError as error:  # its message is complete
        return cloudpickle.dumps((False, error))
    except BaseException as error:  # also SystemExit, because the parent waits for a result
        return cloudpickle.dumps((False, worker_error(error)))


def load_result(pickled: bytes, worker: str, env_ids: Sequence[int] = ()) -> Any:
    """Returns the result of a worker.

    Args:
        pickled: bytes of `pickle_result`.
        worker: name of the worker and its tasks for error messages.
        env_ids: environments of the worker.

    Raises:
        NotFiniteError: an observation, reward or action is not finite.
        EnvWorkerError: the worker raised another error.
    """
    succeeded, result = Unpickler(io.BytesIO(pickled)).load()
    if not succeeded:
        raise result.by(worker, env_ids) if isinstance(result, EnvWorkerError) else result
    return result


class WorkerProcess:
    """Handle of a worker in the parent process. The constructor does not wait until the worker has started."""

    def __init__(self) -> None:
        self.has_environments = False  # the first result says that they are built
        self.connection, theirs = Pipe()
        environ = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")}
        command = [sys.executable, "-c", _START, str(theirs.fileno()), *sys.path]
        try:
            self.process = subprocess.Popen(  # a new session, so that Ctrl-C does not reach the worker
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], env=environ, start_new_session=True)
        except BaseException:  # also Ctrl-C; a worker that has already started ends when its pipe is closed
            self.connection.close()
            raise
        finally:
            theirs.close()

    def send(self, *request: Any) -> None:
        """Sends `(command, *args)`; raises `OSError` if the worker has ended."""
        self.connection.send_bytes(cloudpickle.dumps(request))

    def receive(self) -> bytes:
        """Returns the result as bytes for `load_result`; raises `EOFError` or `OSError` if the worker has ended."""
        pickled = self.connection.recv_bytes()
        self.has_environments = True
        return pickled

    def has_died(self) -> bool:
        """Returns whether the process has ended without leaving a result."""
        return has_ended(self.process) and not self.connection.poll()

    def exit_code(self) -> Optional[int]:
        """Returns the exit code of an ending process: negative for a signal, None if it is still running after 2 s."""
        wait_for_end(self.process, _GRACE)
        return self.process.returncode


def stop_workers(workers: List[WorkerProcess], owner: int) -> None:
    """Ends all `workers` and empties the list. Workers that do not close their environments in 2 seconds are killed.

    `owner` is the id of the process that started the workers. A call in a fork of this process does nothing.
    """
    if os.getpid() != owner:
        return
    for worker in workers:
        with contextlib.suppress(OSError):
            worker.connection.send_bytes(b"")
        worker.connection.close()  # ends a worker that is sending a result
    deadline = time.monotonic() + _GRACE
    while workers:
        worker = workers.pop()
        try:
            if worker.has_environments:
                wait_for_end(worker.process, deadline - time.monotonic())
        finally:
            worker.process.kill()  # no effect on an ended process
            wait_for_end(worker.process)


def main(fd: int) -> None:
    """Runs a worker until it receives an empty request or its parent ends; `fd` is the worker's end of the pipe."""
    os.set_inheritable(fd, False)  # programs started by an environment must not keep the pipe open
    threading.Thread(target=exit_after_parent, args=(fd, _GRACE), daemon=True).start()
    connection, incoming = Connection(fd), select.poll()
    incoming.register(fd, select.POLLIN)
    polling = threading.Lock()  # several threads of the executor may ask
    executor: Any = None

    def is_interrupted() -> bool:
        with polling:
            return bool(incoming.poll(0))  # the empty request, or the end of the parent

    def run(request: bytes) -> Any:
        nonlocal executor
        command, *args = pickle.loads(request)
        if command == "build":
            executor = build_executor(*args)
            executor.is_interrupted = is_interrupted
            return None
        return operator.methodcaller(command, *args)(executor)

    with contextlib.suppress(EOFError, OSError):  # the parent has ended
        while request := connection.recv_bytes():
            connection.send_bytes(pickle_result(run, request))
    if executor is not None:
        executor.close()


def exit_after_parent(fd: int, grace: float) -> None:
    """Waits until the other end of a pipe is closed; ends this process if it still runs `grace` seconds later.

    A worker that waits for a request ends earlier. This function also ends a worker in a step that never returns.
    """
    hang_up = select.poll()
    hang_up.register(fd, 0)  # event mask 0: `poll` waits only for the other end to be closed
    hang_up.poll()
    time.sleep(grace)
    os._exit(1)


def build_executor(pickled_env: bytes, tasks: range, envs_per_task: int, max_path_length: int) -> SteppingExecutor:
    """Creates the executor of a worker; `tasks` are the indices of its tasks."""
    return make_local_executor(pickle.loads(pickled_env), len(tasks), envs_per_task, max_path_length, tasks.start)


Executors = Dict[Tuple[int, range], Tuple[bytes, SteppingExecutor]]
"""Executors of a Ray worker and their pickled tasks, by id of the sampler and indices of the tasks."""


def collect_on_ray(executors: Executors, sampler: int, env: List[Any], sizes: Tuple[range, int, int], tasks: bytes,
                   request: bytes) -> bytes:
    """Collects the paths of some tasks in a Ray worker.

    Args:
        executors: executors of the worker, updated by this function.
        sampler: id of the sampler.
        env: list with the reference to the pickled environment. Ray does not resolve references inside a list, so the
            environment is only fetched when it is needed.
        sizes: indices of the tasks, environments per task, and maximum number of steps of a path.
        tasks: the tasks, pickled.
        request: the arguments of `collect_rollouts`, pickled.

    Returns:
        A list of `TaskRollouts` or the error, see `pickle_result`.
    """
    def run() -> Any:
        key = (sampler, sizes[0])
        previous, executor = executors[key] if key in executors else (b"", None)
        if executor is None:
            import ray  # optional dependency

            executor = build_executor(ray.get(env[0]), *sizes)
        executors[key] = (b"", executor)
        if tasks != previous:
            executor.set_tasks(pickle.loads(tasks))
        executors[key] = (tasks, executor)
        return executor.collect_rollouts(*pickle.loads(request))

    return pickle_result(run)


def make_ray_worker() -> type:
    """Returns the class of Ray workers, which collect paths for all samplers of the process that started them.

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
            self._collect = importlib.import_module(module).collect_on_ray
            self._executors: Executors = {}

        def ready(self) -> str:
            """Returns the process id and host name of the worker."""
            import os
            import socket

            return f"process {os.getpid()} on {socket.gethostname()}"

        def collect(self, *args: Any) -> bytes:
            return self._collect(self._executors, *args)

        def forget(self, sampler: int) -> None:
            """Closes the environments of a sampler."""
            for key in [key for key in self._executors if key[0] == sampler]:
                self._executors.pop(key)[1].close()

    return MetaPolicySearchWorker
