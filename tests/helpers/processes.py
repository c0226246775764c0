"""Helpers of tests that start scripts and look for their child processes."""
import multiprocessing.resource_tracker
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
from joblib.externals.loky.backend import resource_tracker

ROOT = Path(__file__).resolve().parent.parent.parent


def is_running(process):
    """Returns whether a process runs; a zombie process does not count."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def workers_of(process=None):
    """Returns the running child processes, except the resource trackers of `multiprocessing` and `loky`."""
    trackers = {module._resource_tracker._pid for module in (multiprocessing.resource_tracker, resource_tracker)}
    return [child for child in (process or psutil.Process()).children(recursive=True)
            if child.pid not in trackers and is_running(child)]


def assert_gone(processes, timeout=30.0):
    """Checks that the processes end within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while any(map(is_running, processes)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(is_running, processes))


def start(*arguments, environ=None, **options):
    """Starts Python with this checkout on its path, in a separate process group, as a shell does."""
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env={**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})}, **options)


def start_script(folder, text, **environ):
    """Starts a script; see `start`."""
    path = folder / "script.py"
    path.write_text(textwrap.dedent(text))
    return start(path, environ=environ, stdin=subprocess.PIPE)


def run_script(folder, text, **environ):
    """Runs a script; returns its output."""
    with start_script(folder, text, **environ) as process:
        out, err = process.communicate(timeout=280)
    assert process.returncode == 0, err
    return out
