"""The worker processes of `MetaParallelEnvExecutor`: how they are started and stopped, and what runs in them.

A worker is a fresh Python interpreter that imports this module and nothing of the script that started it, so a
script needs no `__main__` guard, and what a worker needs (NumPy, gym, the environment's own modules; no
TensorFlow) is loaded in a few tenths of a second. What the user may have made travels as `cloudpickle` bytes
(environments, tasks, env_infos): they carry classes of a script or a notebook by value, where plain pickle would
look for them in the other process.

The two ends talk over a socket pair, one request and one answer at a time: a request is `(command, *args)`, an
answer `(True, result)` or `(False, EnvWorkerError)`. The command is "build", "close" or a method of the worker's
executor. A worker ends when the parent requests it or has ended, for whatever reason. Ctrl-C reaches only the parent.
"""
import contextlib
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
from meta_policy_search.samplers.vectorized_env_executor.base import load_env
from meta_policy_search.samplers.vectorized_env_executor.local import make_local_executor
from meta_policy_search.utils.threads import THREAD_VARIABLES

_START = ("import sys; fd = int(sys.argv[1]); sys.path[:] = sys.argv[2:]; del sys.argv[1:]; "
          f"from {__name__} import main; main(fd)")
_GRACE = 2.0  # seconds that a worker may take to close its environments before it is killed


class WorkerProcess:
    """A worker as seen from the parent. Starting one returns at once, before the interpreter is up."""

    def __init__(self) -> None:
        self.connection, theirs = Pipe()
        environ = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")}
        command = [sys.executable, "-c", _START, str(theirs.fileno()), *sys.path]
        try:
            self.process = subprocess.Popen(  # in a session of its own, which Ctrl-C does not reach
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], env=environ, start_new_session=True)
        except BaseException:  # Ctrl-C among them: a worker that has started ends when its pipe is closed
            self.connection.close()
            raise
        finally:
            theirs.close()

    def send(self, *request: Any) -> None:
        """Sends `(command, *args)`; raises `OSError` if the worker is gone."""
        self.connection.send_bytes(cloudpickle.dumps(request))

    def receive(self) -> Any:
        """Returns `(succeeded, result or EnvWorkerError)`; raises `EOFError` or `OSError` if the worker is gone."""
        return pickle.loads(self.connection.recv_bytes())

    def has_died(self) -> bool:
        """Whether the process has ended and left no answer behind."""
        return self.process.poll() is not None and not self.connection.poll()

    def exit_code(self) -> Optional[int]:
        """Returns how a process that is ending has ended: a signal is a negative number, None is still running."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=_GRACE)
        return self.process.returncode


def stop_workers(workers: List[WorkerProcess], owner: int) -> None:
    """Ends all `workers` and empties the list: asks them first, kills those that do not comply within seconds.

    `owner` is the id of the process that started them: in a fork of it, which holds copies, nothing happens.
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
            worker.process.wait(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass
        finally:
            worker.process.kill()  # without effect on a process that has ended
            worker.process.wait()
            worker.connection.close()


def main(fd: int) -> None:
    """Runs a worker until it is told to end, or its parent is gone; `fd` is its end of the pipe."""
    os.set_inheritable(fd, False)  # a program that an environment starts must not keep the pipe open
    threading.Thread(target=exit_after_parent, args=(fd, _GRACE), daemon=True).start()
    connection = Connection(fd)
    executor: Any = None
    with contextlib.suppress(EOFError, OSError):  # the parent is gone
        while True:
            request = connection.recv_bytes()
            try:
                command, *args = pickle.loads(request)
                if command == "close":
                    break
                if command == "build":
                    env, *sizes = args
                    executor, result = make_local_executor(load_env(env), *sizes), None
                else:
                    result = getattr(executor, command)(*args)
                answer = cloudpickle.dumps((True, result))
            except BaseException as error:  # also SystemExit: the parent is waiting for an answer
                answer = cloudpickle.dumps((False, worker_error(error)))
            connection.send_bytes(answer)
    if executor is not None:
        executor.close()


def exit_after_parent(fd: int, grace: float) -> None:
    """Waits until the other end of a pipe is closed; ends a process that goes on for `grace` seconds after that.

    One that waits for a request ends by itself; one caught in a step that never returns would stay behind.
    """
    hang_up = select.poll()
    hang_up.register(fd, 0)  # a hang-up is reported whether asked for or not, and nothing else is
    hang_up.poll()
    time.sleep(grace)
    os._exit(1)
