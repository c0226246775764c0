"""Worker processes of `MetaParallelEnvExecutor`: their start, their end, and the code that runs in them.

A worker is a new Python interpreter that imports this module, but not the script that started it. Therefore scripts
need no `__main__` guard, and a worker starts within a few tenths of a second: it imports NumPy, gym and the modules of
the environment, but not TensorFlow. Objects that may be defined by the user (environments, tasks, env_infos) are sent
as `cloudpickle` bytes, which contain classes of scripts and notebooks by value. Plain pickle would have to import them.

Parent and worker communicate over a socket pair, one request and one answer at a time. A request is `(command, *args)`;
an answer is `(True, result)` or `(False, EnvWorkerError)`. The command is "build", "close" or a method of the worker's
executor. A worker ends at the command "close", and when the parent has ended for any reason. Ctrl-C reaches only the
parent.
"""
import contextlib
import io
import os
import pickle
import select
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Connection, Pipe
from typing import Any, List, Optional

import cloudpickle

from meta_policy_search.samplers.errors import worker_error
from meta_policy_search.samplers.vectorized_env_executor.local import make_local_executor
from meta_policy_search.utils.processes import has_ended, wait_for_end
from meta_policy_search.utils.snapshotter import Unpickler
from meta_policy_search.utils.threads import THREAD_VARIABLES

_START = ("import sys; fd = int(sys.argv[1]); sys.path[:] = sys.argv[2:]; del sys.argv[1:]; "
          f"from {__name__} import main; main(fd)")
_GRACE = 2.0  # time for a worker to close its environments before it is killed, s


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

    def send(self, *request: Any) -> None:
        """Sends `(command, *args)`; raises `OSError` if the worker has ended."""
        self.connection.send_bytes(cloudpickle.dumps(request))

    def receive(self) -> Any:
        """Returns `(succeeded, result or EnvWorkerError)`; raises `EOFError` or `OSError` if the worker has ended."""
        return Unpickler(io.BytesIO(self.connection.recv_bytes())).load()

    def has_died(self) -> bool:
        """Returns whether the process has ended without leaving an answer."""
        return has_ended(self.process) and not self.connection.poll()

    def exit_code(self) -> Optional[int]:
        """Returns the exit code of an ending process: negative for a signal, None if it is still running after 2 s."""
        wait_for_end(self.process, _GRACE)
        return self.process.returncode


def stop_workers(workers: List[WorkerProcess], owner: int) -> None:
    """Ends all `workers` and empties the list. Workers that do not close within 2 seconds are killed.

    `owner` is the id of the process that started the workers. A call in a fork of this process does nothing.
    """
    if os.getpid() != owner:
        return
    for worker in workers:
        with contextlib.suppress(OSError):
            worker.send("close")
    deadline = time.monotonic() + _GRACE
    while workers:
        worker = workers.pop()
        try:
            wait_for_end(worker.process, deadline - time.monotonic())
        finally:
            worker.process.kill()  # no effect on an ended process
            wait_for_end(worker.process)
            worker.connection.close()


def main(fd: int) -> None:
    """Runs a worker until it receives "close" or its parent ends; `fd` is the worker's end of the pipe."""
    os.set_inheritable(fd, False)  # programs started by an environment must not keep the pipe open
    threading.Thread(target=exit_after_parent, args=(fd, _GRACE), daemon=True).start()
    connection = Connection(fd)
    executor: Any = None
    with contextlib.suppress(EOFError, OSError):  # the parent has ended
        while True:
            request = connection.recv_bytes()
            try:
                command, *args = pickle.loads(request)
                if command == "close":
                    break
                if command == "build":
                    env, *sizes = args
                    executor, result = make_local_executor(pickle.loads(env), *sizes), None
                else:
                    result = getattr(executor, command)(*args)
                answer = cloudpickle.dumps((True, result))
            except BaseException as error:  # also SystemExit, because the parent waits for an answer
                answer = cloudpickle.dumps((False, worker_error(error)))
            connection.send_bytes(answer)
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
