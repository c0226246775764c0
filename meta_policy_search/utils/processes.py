"""Waiting for child processes in a way that Ctrl-C cannot break.

`Popen.poll` and `Popen.wait` use a lock. A `KeyboardInterrupt` directly after they acquire it leaves it locked, and
every later `Popen.wait()` of this process hangs. The functions of this module use no lock.
"""
import math
import os
import subprocess
import time


def has_ended(process: subprocess.Popen) -> bool:
    """Returns whether a child process has ended; if so, `process.returncode` is its exit code.

    The exit code is 0 if an interrupted call has already read it.
    """
    if process.returncode is None:
        try:
            pid, status = os.waitpid(process.pid, os.WNOHANG)
        except ChildProcessError:
            process.returncode = 0
        else:
            process.returncode = os.waitstatus_to_exitcode(status) if pid else None
    return process.returncode is not None


def wait_for_end(process: subprocess.Popen, timeout: float = math.inf) -> bool:
    """Waits up to `timeout` seconds for the end of a child process; returns whether it has ended."""
    deadline, delay = time.monotonic() + timeout, 0.0005
    while not has_ended(process) and time.monotonic() < deadline:
        time.sleep(min(delay, max(0.0, deadline - time.monotonic())))
        delay = min(2.0 * delay, 0.05)
    return process.returncode is not None
