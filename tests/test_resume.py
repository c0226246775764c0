"""Runs that stop, are killed or fail, and go on in another process as if nothing had happened.

Processes are forked from two interpreters that have everything loaded (helpers/fork_server.py), so that dozens of them
are affordable; a run is never gone on with by the interpreter that began it.
"""
import csv
import importlib.util
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from experiments.record import load_in_own_graph
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.snapshotter import list_snapshots, load_snapshot, snapshot_paths

ROOT = Path(__file__).resolve().parent.parent
pytestmark = [pytest.mark.thorough, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]

FORMATS = ("--log_formats", "csv", "json", *["tensorboard"] * (importlib.util.find_spec("tensorboard") is not None),
           "--plot_gap", "0")
ALGORITHMS = {  # with every kind of state that a run has
    "pro_mp": ["--adaptive_inner_kl_penalty", "--anneal_factor", "0.9", "--num_minibatches", "2",
               "--num_ppo_steps", "2", "--trainable_inner_step_size"],
    "maml_trpo": [],
    "e_maml": ["--trainable_inner_step_size"],
}
TINY = ("--smoke", "--env", "MetaPointEnvCorner", "--env_kwargs", '{"reward_type": "dense"}', "--hidden_sizes",
        *FORMATS)
CEM = ("--smoke", "--env", "MetaPointEnv", "--snapshot_gap", "3", *FORMATS)
NUM_KILLS = 20


class Server:
    """An interpreter that starts experiments in processes forked from it."""

    def __init__(self):
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen([sys.executable, ROOT / "tests/helpers/fork_server.py"], env=env, text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._is_ready = False

    def start(self, script, *arguments, output, **options):
        """Starts an experiment; returns its process id."""
        if not self._is_ready:
            assert self._process.stdout.readline() == "ready\n"
            self._is_ready = True
        arguments = [str(argument) for argument in arguments]
        return self._ask(start={"script": script, "arguments": arguments, "output": str(output), **options})

    def wait(self, pid):
        """Waits until an experiment has ended; returns its exit status, below zero for a signal."""
        return self._ask(wait=pid)

    def _ask(self, **request):
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self):
        """Ends the interpreter."""
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def servers():
    """Two interpreters, which load at the same time."""
    both = Server(), Server()
    yield both
    for server in both:
        server.close()


@pytest.fixture(scope="module")
def run(servers, tmp_path_factory):
    """Runs an experiment to its end and returns what it printed; every call in turn in the other interpreter."""
    turns, output = itertools.cycle(servers), tmp_path_factory.mktemp("outputs") / "output.txt"

    def run(script, *arguments, status=0, **options):
        output.write_text("")
        server = next(turns)
        ended = server.wait(server.start(script, *arguments, output=output, **options))
        text = output.read_text()
        assert ended == status, text
        return text

    return run


# What is compared ------------------------------------------------------------------------------------------------


def csv_rows(folder):
    """Returns the rows of `progress.csv` as they are written there, without times; all of them must be whole."""
    text = Path(folder, "progress.csv").read_text()
    assert text == "" or text.endswith("\n")
    return [without_times(row) for row in csv.DictReader(text.splitlines())]


def json_rows(folder):
    return [without_times(json.loads(line)) for line in Path(folder, "progress.json").read_text().splitlines()]


def curves(folder):
    """Returns the points of all event files by tag, `(step, value)` in the order of the files."""
    points = {}
    for path in sorted(Path(folder).glob("tensorboard/*")):
        for event in tf.train.summary_iterator(str(path)):
            for value in event.summary.value:
                points.setdefault(value.tag, []).append((event.step, value.simple_value))
    return without_times(points)


def without_times(row):
    return {key: value for key, value in row.items() if "Time" not in key}


def state(folder):
    """Returns all that the last snapshot of a run holds, but times and how its parts were built."""
    snapshot = load_in_own_graph(folder)
    state = {key: value for key, value in snapshot["state"].items() if key not in ("time", "outputs", "parts")}
    parts = {"itr": snapshot["itr"], "state": state}
    if "algo" in snapshot:  # of a `LocalRunner`
        parts["algo"] = {key: value for key, value in vars(snapshot["algo"]).items() if is_plain(value)}
        parts["params"] = snapshot["policy"].get_flat_params()
    if hasattr(snapshot["baseline"], "get_param_values"):
        parts["baseline"] = snapshot["baseline"].get_param_values()
    return parts


def is_plain(value):
    return isinstance(value, (bool, int, float, str, np.ndarray, list, tuple, dict))


def assert_equal(a, b, where="snapshot"):
    """Compares nested containers, their numbers bit for bit, and objects by what they say they are."""
    if isinstance(a, dict):
        assert list(a) == list(b), where
        for key in a:
            assert_equal(a[key], b[key], f"{where}[{key!r}]")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b)):
            assert_equal(x, y, f"{where}[{i}]")
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes(), where
    else:
        assert a == b or repr(a) == repr(b), where


def assert_same_run(folder, whole):
    """Compares rows, curves and the last snapshots of two runs."""
    assert csv_rows(folder) == csv_rows(whole)
    assert_equal(json_rows(folder), json_rows(whole), "progress.json")
    assert_equal(curves(folder), curves(whole), "curves")
    assert_equal(state(folder), state(whole))


# Stopping --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole_runs(servers, tmp_path_factory):
    """A run of six iterations of each algorithm, that nothing has interrupted."""
    parent = tmp_path_factory.mktemp("whole")
    started = [(server, server.start(name, *TINY, *flags, "--n_itr", 6, "--dump_path", parent / name,
                                     output=parent / f"{name}.txt"))
               for (name, flags), server in zip(ALGORITHMS.items(), itertools.cycle(servers))]
    assert [server.wait(pid) for server, pid in started] == [0] * len(started)
    return parent


EXECUTORS = ("iterative", "batched", "parallel")
QUICK = set(zip(ALGORITHMS, EXECUTORS))  # each algorithm once, and each executor


@pytest.mark.parametrize("name, executor", [
    pytest.param(*pair, marks=() if pair in QUICK else pytest.mark.slow)
    for pair in itertools.product(ALGORITHMS, EXECUTORS)
])
def test_three_iterations_and_three_in_a_new_process_equal_six(name, executor, whole_runs, run, tmp_path):
    run(name, *TINY, *ALGORITHMS[name], "--n_itr", 3, "--dump_path", tmp_path / "run", executor=executor)
    assert len(csv_rows(tmp_path / "run")) == 3
    run(name, "--resume", tmp_path / "run", "--n_itr", 6, executor=executor)
    assert_same_run(tmp_path / "run", whole_runs / name)


def test_what_is_compared_is_all_of_it(whole_runs):
    """Given ProMP with everything that it can learn, then its snapshot has weights, moments, steps and generators."""
    content = state(whole_runs / "pro_mp")["state"]
    assert set(content) == {"version", "settings", "algo", "sampler", "policy_params", "policy", "seeding", "random",
                            "numpy_random"}
    moments = content["algo"]["optimizer"]["variables"]
    assert len(moments) > 2 * len(content["policy_params"]) and any(np.any(value) for value in moments.values())
    steps = list(content["algo"]["log_step_sizes"].values())
    assert any(np.ptp(value) > 0 for value in steps)
    changed = state(whole_runs / "pro_mp")
    next(iter(changed["state"]["algo"]["optimizer"]["variables"].values())).flat[0] += 1e-6
    with pytest.raises(AssertionError, match=r"\['state'\]\['algo'\]\['optimizer'\]\['variables'\]"):
        assert_equal(changed, state(whole_runs / "pro_mp"))


# Killing ---------------------------------------------------------------------------------------------------------


class Victim:
    """A run that is killed again and again, and whose folder is looked at each time.

    Args:
        servers: where its processes are started.
        folder: of the run.
        script: name of the experiment.
        flags: its flags.
        whole: folder of the same run, which nothing has interrupted.
    """

    def __init__(self, servers, folder, script, flags, whole):
        self._servers, self._folder, self._script, self._flags = itertools.cycle(servers), folder, script, flags
        self._csv_rows, self._json_rows = csv_rows(whole), json_rows(whole)
        self._output = folder.parent / "output.txt"

    def _start(self, **options):
        has_begun = (self._folder / "params.json").exists()
        flags = ["--resume", self._folder] if has_begun else [*self._flags, "--dump_path", self._folder]
        server = next(self._servers)
        return server, server.start(self._script, *flags, output=self._output, **options)

    def kill_at_operation(self, number):
        """Kills it at one of its operations on files, counted from the start of the process."""
        server, pid = self._start(kill_at=number)
        assert server.wait(pid) == -signal.SIGKILL, self._output.read_text()
        self._check()

    def kill_after(self, rows, seconds):
        """Kills it so many seconds after the process has written so many rows."""
        server, pid = self._start()
        size, written = self._size(), 0
        deadline = time.monotonic() + 60
        while written < rows and time.monotonic() < deadline:
            time.sleep(0.0005)
            before, size = size, self._size()
            written += size > before
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
        assert server.wait(pid) == -signal.SIGKILL, self._output.read_text()
        self._check()

    def _size(self):
        path = self._folder / "progress.csv"
        return path.stat().st_size if path.exists() else 0

    def _check(self):
        """Checks that no row is lost or doubled, and that the last snapshot is whole and that of the last row."""
        if not (self._folder / "params.json").exists():
            assert self._size() == 0
            return
        rows = csv_rows(self._folder)
        assert rows == self._csv_rows[: len(rows)]
        assert_equal(json_rows(self._folder), self._json_rows[: len(json_rows(self._folder))])
        saved = load_snapshot(self._folder)["itr"] + 1 if snapshot_paths(self._folder) else 0
        for count in (len(rows), len(json_rows(self._folder))):  # a kill may come between two files that are cut back
            assert saved <= count <= saved + 1
        for snapshot in list_snapshots(self._folder):
            load_snapshot(snapshot.path)

    def finish(self):
        """Has it go on to its end."""
        server, pid = self._start()
        assert server.wait(pid) == 0, self._output.read_text()


def kill_often(victim, num_kills, operations, rows, seconds, seed):
    """Kills a run at random: every other time at one of its first operations on files, else after some time."""
    rng = np.random.default_rng(seed)
    for i in range(num_kills):
        if i % 2:
            victim.kill_at_operation(int(rng.integers(operations)))
        else:
            victim.kill_after(int(rng.integers(rows)), rng.uniform(0, seconds))


def test_twenty_kills_leave_no_trace(servers, run, tmp_path):
    """Given a run whose epochs take milliseconds, so that most of its time goes into rows and snapshots."""
    flags = [*CEM, "--n_itr", 100]
    run("cem", *flags, "--dump_path", tmp_path / "whole")
    victim = Victim(servers, tmp_path / "run", "cem", flags, tmp_path / "whole")
    kill_often(victim, NUM_KILLS, operations=40, rows=4, seconds=0.02, seed=1)
    assert 10 < len(csv_rows(tmp_path / "run")) < 100
    victim.finish()
    assert_same_run(tmp_path / "run", tmp_path / "whole")


def test_worker_processes_end_with_a_run_that_is_killed(servers, tmp_path):
    server = servers[0]
    pid = server.start("vpg_maml", *TINY, "--parallel", "--n_itr", 100_000, "--dump_path", tmp_path / "run",
                       output=tmp_path / "output.txt")
    while not (tmp_path / "run" / "progress.csv").exists() or not csv_rows(tmp_path / "run"):
        time.sleep(0.01)
    workers = psutil.Process(pid).children(recursive=True)
    assert workers
    os.kill(pid, signal.SIGKILL)
    server.wait(pid)
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert alive == []


@pytest.mark.parametrize("num_kills", [4, pytest.param(NUM_KILLS, marks=pytest.mark.slow)])
def test_kills_of_a_run_with_tensorflow_leave_no_trace(num_kills, servers, run, tmp_path):
    flags = [*TINY, "--n_itr", 3 * num_kills]
    run("vpg_maml", *flags, "--dump_path", tmp_path / "whole")
    victim = Victim(servers, tmp_path / "run", "vpg_maml", flags, tmp_path / "whole")
    kill_often(victim, num_kills, operations=30, rows=3, seconds=0.05, seed=2)
    victim.finish()
    assert_same_run(tmp_path / "run", tmp_path / "whole")




# Failing ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def six_epochs(run, tmp_path_factory):
    """A run of six epochs without TensorFlow; not to be written to."""
    folder = tmp_path_factory.mktemp("six_epochs") / "run"
    run("cem", *CEM, "--n_itr", 6, "--dump_path", folder)
    return folder


@pytest.fixture
def three_epochs(run, tmp_path):
    """The first half of it."""
    run("cem", *CEM, "--n_itr", 3, "--dump_path", tmp_path / "run")
    return tmp_path / "run"


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def test_a_full_disk_stops_with_a_clear_error_and_leaves_what_was_saved(run, three_epochs, six_epochs):
    """Given files that cannot grow to the size of a snapshot, then the run ends, and goes on when they can."""
    size = (three_epochs / "params.pkl").stat().st_size
    text = run("cem", "--resume", three_epochs, "--n_itr", 6, status=1, largest_file=size - 1)
    error, how_to_go_on = text.splitlines()[-2:]
    assert error.startswith(f"cem.py: error: could not write the snapshot {three_epochs}/itr_3.pkl: ")
    assert "File too large" in error and error.endswith(f"{three_epochs}/params.pkl (iteration 2)")
    assert re.fullmatch(r"To resume after iteration 2: python .*cem.py --resume .*run", how_to_go_on)
    assert load_snapshot(three_epochs)["itr"] == 2
    run("cem", "--resume", three_epochs)
    assert_same_run(three_epochs, six_epochs)


def test_a_folder_that_vanishes_stops_with_a_clear_error(servers, tmp_path):
    """Given a run whose folder is deleted, then it ends with a line that names the file that it could not write."""
    server, folder = servers[0], tmp_path / "run"
    pid = server.start("cem", *CEM, "--n_itr", 100_000, "--dump_path", folder, output=tmp_path / "output.txt")
    while not (folder / "params.prev.pkl").exists():
        time.sleep(0.01)
    folder.rename(tmp_path / "elsewhere")
    assert server.wait(pid) == 1
    error, how_to_go_on = (tmp_path / "output.txt").read_text().splitlines()[-2:]
    assert re.match(rf"cem.py: error: .*{folder}/.*", error) and "No such file" in error
    assert how_to_go_on == "There is no snapshot to resume from"
    assert load_snapshot(tmp_path / "elsewhere")["itr"] >= 1
    assert not folder.exists()
