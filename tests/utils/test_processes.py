"""Tests waiting for child processes, also after Ctrl-C at a moment that leaves the lock of `Popen` locked."""
import os
import subprocess
import sys
import time

import pytest

from meta_policy_search.samplers.vectorized_env_executor.worker import WorkerProcess, stop_workers
from meta_policy_search.utils.processes import has_ended, wait_for_end


def start(code):
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, start_new_session=True)


@pytest.mark.parametrize(("code", "exit_code"), [("", 0), ("raise SystemExit(3)", 3),
                                                 ("import os; os.kill(os.getpid(), 9)", -9)])
def test_end_and_exit_code_are_found(code, exit_code):
    process = start(code)
    assert wait_for_end(process)
    assert has_ended(process)
    assert process.returncode == exit_code


def test_wait_returns_at_the_timeout():
    process = start("import time; time.sleep(60)")
    started = time.monotonic()
    assert not wait_for_end(process, 0.2)
    assert 0.2 <= time.monotonic() - started < 10.0
    assert not has_ended(process)
    process.kill()
    assert wait_for_end(process)


def test_process_whose_exit_code_was_read_elsewhere_has_ended():
    process, other = start(""), start("")
    assert wait_for_end(process)
    process.returncode = None  # as if Ctrl-C came after `waitpid`
    assert has_ended(process)
    other.wait()
    assert has_ended(other)


def test_workers_end_if_the_lock_of_popen_stays_locked():
    worker = WorkerProcess()
    worker.process._waitpid_lock.acquire()  # as Ctrl-C in `Popen.poll` can leave it
    workers = [worker]
    stop_workers(workers, owner=os.getpid())
    assert not workers
    assert worker.process.returncode is not None
