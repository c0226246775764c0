"""Runs commands in this process."""
from concurrent.futures import Future

import pytest

from meta_policy_search import parallel_runs
from meta_policy_search.cli.main import main
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger


def run(name, arguments):
    """Runs the command `name`; returns the exit status."""
    return main([name, *map(str, arguments)])


def mistake(main, capsys, *arguments):
    """Returns the error message of a command: one line, with exit status 2; the default environment may be named first.
    """
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    output = capsys.readouterr()
    assert (stop.value.code, output.err.count("\n")) == (2, 1)
    assert output.out == "" or output.out.startswith("--env was not given")
    return output.err


def train(script, folder, *arguments):
    """Trains a short run with a script, for fixtures of a module; returns the folder."""
    logger.reset()
    with tf.Graph().as_default() as graph:
        assert script.main(["--smoke", "--dump_path", str(folder), *map(str, arguments)]) == 0
    for session in graph.get_collection("meta_policy_search/session"):
        session.close()
    return folder


class ExecutorInThisProcess:
    """Process pool of one task that runs in this process, which has loaded TensorFlow already."""

    def __init__(self, max_workers, env):
        pass

    def submit(self, function, *arguments):
        future = Future()
        future.set_result(function(*arguments))
        return future

    def shutdown(self, **how):
        pass


def train_members_here(monkeypatch):
    """Makes `compare` and sweeps train their runs in this process, for tests of everything but the processes."""
    monkeypatch.setattr(parallel_runs, "ProcessPoolExecutor", ExecutorInThisProcess)
    monkeypatch.setattr(parallel_runs, "_end_with", lambda parent: None)  # this process is not a child
