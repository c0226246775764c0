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
import math
import operator
import os
import pickle
import select
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Connection, Pipe
from typing import Any, Callable, Dict, List, Sequence, Tuple

import cloudpickle

from meta_policy_search.samplers.errors import EnvWorkerError, NotFiniteError, worker_error
from meta_policy_search.samplers.vectorized_env_executor.base import MetaEnvExecutor
from meta_policy_search.samplers.vectorized_env_executor.local import make_local_executor
from meta_policy_search.utils.snapshotter import Unpickler
from meta_policy_search.utils.threads import THREAD_VARIABLES, one_blas_thread

_START = ("import sys; fd = int(sys.argv[1]); sys.path[:] = sys.argv[2:]; del sys.argv[1:]; "
          f"from {__name__} import main; main(fd)")
GRACE = 2.0  # time for a worker to close its environments before it is killed, s


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
        if isinstance(result, EnvWorkerError):
            result = type(result)(f"{worker}: {result}", result.env_ids or env_ids)
        raise result
    return result


class WorkerProcess:
    """Handle of a worker in the parent process. The constructor does not wait until the worker has started."""

    def __init__(self) -> None:
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

    def __reduce__(self) -> Any:
        raise TypeError("worker processes cannot be copied: use parallel=False")

    def has_ended(self) -> bool:
        """Returns whether the process has ended; if so, `process.returncode` is its exit code.

        The exit code is 0 if an interrupted call has already read it. `Popen.poll` and `Popen.wait` use a lock that
        Ctrl-C can leave locked, and every later call then hangs.
        """
        if self.process.returncode is None:
            try:
                pid, status = os.waitpid(self.process.pid, os.WNOHANG)
                self.process.returncode = os.waitstatus_to_exitcode(status) if pid else None
            except ChildProcessError:
                self.process.returncode = 0
        return self.process.returncode is not None

    def wait_for_end(self, timeout: float) -> None:
        """Waits up to `timeout` seconds for the end of the process."""
        deadline = time.monotonic() + timeout
        while not self.has_ended() and time.monotonic() < deadline:
            time.sleep(0.002)


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
    deadline = time.monotonic() + GRACE
    while workers:
        worker = workers.pop()
        try:
            worker.wait_for_end(deadline - time.monotonic())
        finally:
            worker.process.kill()  # no effect on an ended process
            worker.wait_for_end(math.inf)


def main(fd: int) -> None:
    """Runs a worker until it receives an empty request or its parent ends; `fd` is the worker's end of the pipe."""
    os.set_inheritable(fd, False)  # programs started by an environment must not keep the pipe open
    threading.Thread(target=exit_after_parent, args=(fd, GRACE), daemon=True).start()
    connection = Connection(fd)
    executor: Any = None

    def run(request: bytes) -> Any:
        nonlocal executor
        command, *args = pickle.loads(request)
        if command == "build":
            executor = build_executor(*args)
            executor.is_interrupted = connection.poll  # true after the empty request and after the end of the parent
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


def build_executor(pickled_env: bytes, tasks: range, envs_per_task: int, max_path_length: int) -> MetaEnvExecutor:
    """Creates the executor of a worker; `tasks` are the indices of its tasks."""
    return make_local_executor(pickle.loads(pickled_env), len(tasks), envs_per_task, max_path_length, tasks.start)


MAX_EXECUTORS = 4
_executors: Dict[Tuple[int, int], MetaEnvExecutor] = {}  # of a Ray worker, by sampler and number of tasks


def is_ready() -> bool:
    """Returns True, to show that a Ray worker runs."""
    return True


@one_blas_thread()
def collect_on_ray(sampler: int, env: List[Any], sizes: Tuple[range, int, int], request: bytes) -> bytes:
    """Collects the paths of some tasks in a Ray worker.

    A worker keeps its last `MAX_EXECUTORS` executors for later calls.

    Args:
        sampler: id of the sampler.
        env: list with the reference to the pickled environment. Ray does not resolve references inside a list, so the
            environment is only fetched when it is needed.
        sizes: indices of the tasks, environments per task, and maximum number of steps of a path.
        request: the tasks and the arguments of `collect_rollouts`, pickled.

    Returns:
        A list of `TaskRollouts` or the error, see `pickle_result`.
    """
    def run() -> Any:
        key = sampler, len(sizes[0])
        executor = _executors.pop(key, None)
        if executor is None:
            import ray  # optional dependency

            executor = build_executor(ray.get(env[0]), *sizes)
            while len(_executors) >= MAX_EXECUTORS:
                _executors.pop(next(iter(_executors))).close()
        _executors[key] = executor
        executor.first_task = sizes[0].start
        tasks, *arguments = pickle.loads(request)
        executor.set_tasks(tasks)
        return executor.collect_rollouts(*arguments)

    return pickle_result(run)
