"""Runs that stop, are killed or fail resume in another process and equal uninterrupted runs.

Processes are forked from two interpreters that have loaded all modules (helpers/fork_server.py), because loading takes
seconds. The interpreter that started a run never resumes it.
"""
import csv
import importlib.util
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search.meta_trainer import EarlyStopping
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.snapshotter import list_snapshots, load_snapshot, snapshot_paths
from tests.helpers.runs import assert_same

ROOT = Path(__file__).resolve().parent.parent
pytestmark = [pytest.mark.thorough, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]

FORMATS = ("--log_formats", "csv", "json", *["tensorboard"] * (importlib.util.find_spec("tensorboard") is not None),
           "--plot_gap", "0")
ALGORITHMS = {  # covers every kind of state of a run
    "pro_mp": ["--adaptive_inner_kl_penalty", "--anneal_factor", "0.9", "--num_minibatches", "2",
               "--num_ppo_steps", "2", "--trainable_inner_step_size"],
    "maml_trpo": [],
    "e_maml": ["--trainable_inner_step_size"],
}
TINY = ("--smoke", "--env", "MetaPointEnvCorner", "--env_kwargs", '{"reward_type": "dense"}', "--hidden_sizes",
        *FORMATS)
CEM = ("--smoke", "--hidden_sizes", "--env", "MetaPointEnv", "--snapshot_gap", "3", *FORMATS)
NUM_KILLS = 20


class Server:
    """An interpreter that starts experiments in forked processes."""

    def __init__(self):
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen([sys.executable, ROOT / "tests/helpers/fork_server.py"], env=env, text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.is_ready = False

    def start(self, script, *arguments, output, **options):
        """Starts an experiment; returns its process id."""
        if not self.is_ready:
            assert self.process.stdout.readline() == "ready\n"
            self.is_ready = True
        arguments = [str(argument) for argument in arguments]
        return self.ask(start={"script": script, "arguments": arguments, "output": str(output), **options})

    def wait(self, pid):
        """Waits until an experiment ends; returns its exit status, negative for a signal."""
        return self.ask(wait=pid)

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def close(self):
        """Stops the interpreter."""
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def servers():
    """Two interpreters, which load concurrently."""
    both = Server(), Server()
    yield both
    for server in both:
        server.close()


@pytest.fixture(scope="module")
def run(servers, tmp_path_factory):
    """Runs an experiment to its end and returns its output; calls alternate between the interpreters."""
    turns, output = itertools.cycle(servers), tmp_path_factory.mktemp("outputs") / "output.txt"

    def run(script, *arguments, status=0, **options):
        output.write_text("")
        server = next(turns)
        ended = server.wait(server.start(script, *arguments, output=output, **options))
        text = output.read_text()
        assert ended == status, text
        return text

    return run


# Comparisons -----------------------------------------------------------------------------------------------------


def csv_rows(folder):
    """Returns the rows of `progress.csv` as text without times; checks that all rows are complete."""
    text = Path(folder, "progress.csv").read_text()
    assert text == "" or text.endswith("\n")
    return [without_times(row) for row in csv.DictReader(text.splitlines())]


def json_rows(folder):
    return [without_times(json.loads(line)) for line in Path(folder, "progress.json").read_text().splitlines()]


def curves(folder):
    """Returns the points of all event files by tag as `(step, value)`; a start event discards later points."""
    points = {}
    for path in sorted(Path(folder).glob("tensorboard/*")):
        for event in tf.train.summary_iterator(str(path)):
            if event.HasField("session_log"):
                points = {tag: [point for point in of_tag if point[0] < event.step] for tag, of_tag in points.items()}
            for value in event.summary.value:
                points.setdefault(value.tag, []).append((event.step, value.simple_value))
    return without_times(points)


def without_times(row):
    return {key: value for key, value in row.items() if "Time" not in key}


def state(folder):
    """Returns the content of the last snapshot without times and constructor arguments."""
    with tf.Graph().as_default():
        snapshot = load_snapshot(folder)
    state = {key: value for key, value in snapshot["state"].items() if key not in ("time", "spec")}
    parts = {"itr": snapshot["itr"], "state": state}
    if "algo" in snapshot:  # snapshot of a `LocalRunner`
        plain = (bool, int, float, str, np.ndarray, list, tuple, dict)
        parts["algo"] = {key: value for key, value in vars(snapshot["algo"]).items() if isinstance(value, plain)}
        parts["params"] = snapshot["policy"].get_flat_params()
    if hasattr(snapshot["baseline"], "get_param_values"):
        parts["baseline"] = snapshot["baseline"].get_param_values()
    return parts


def assert_same_run(folder, whole):
    """Compares rows, curves and the last snapshots of two runs."""
    assert csv_rows(folder) == csv_rows(whole)
    assert_same(json_rows(folder), json_rows(whole), "progress.json")
    assert_same(curves(folder), curves(whole), "curves")
    assert_same(state(folder), state(whole))


# Stopping --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole_run(run, tmp_path_factory):
    """Returns a function that returns the folder of an uninterrupted run of six iterations of an algorithm."""
    def whole_run(name):
        if not (parent / name).exists():
            run(name, *TINY, *ALGORITHMS[name], "--n_itr", 6, "--dump_path", parent / name)
        return parent / name

    parent = tmp_path_factory.mktemp("whole")
    return whole_run


QUICK = {("pro_mp", ()), ("e_maml", ("--parallel",))}


@pytest.mark.parametrize("name, flags", [
    pytest.param(*pair, marks=() if pair in QUICK else pytest.mark.slow)
    for pair in itertools.product(ALGORITHMS, [(), ("--parallel",)])
])
def test_resumed_run_of_3_and_3_iterations_equals_6_iterations(name, flags, whole_run, run, tmp_path):
    flags = [*TINY, *ALGORITHMS[name], "--dump_path", tmp_path / "run", *flags, "--resume"]
    run(name, *flags, "--n_itr", 3)
    assert len(csv_rows(tmp_path / "run")) == 3
    run(name, *flags, "--n_itr", 6)
    assert_same_run(tmp_path / "run", whole_run(name))


def test_compared_state_is_complete(whole_run):
    """A snapshot of ProMP with all trainable parts has weights, optimizer moments, step sizes and random states."""
    content = state(whole_run("pro_mp"))["state"]
    assert set(content) == {"version", "stopped", "callbacks", "algo", "sampler", "sample_processor", "policy_params",
                            "policy", "env", "averages", "assigned", "seeding", "random",
                            "numpy_random"}
    moments = content["algo"]["optimizer"]["variables"]
    assert len(moments) > 2 * len(content["policy_params"]) and any(np.any(value) for value in moments.values())
    steps = list(content["algo"]["log_step_sizes"].values())
    assert any(np.ptp(value) > 0 for value in steps)
    changed = state(whole_run("pro_mp"))
    next(iter(changed["state"]["algo"]["optimizer"]["variables"].values())).flat[0] += 1e-6
    with pytest.raises(AssertionError, match=r"\['state'\]\['algo'\]\['optimizer'\]\['variables'\]"):
        assert_same(changed, state(whole_run("pro_mp")))


# Killing ---------------------------------------------------------------------------------------------------------


class Victim:
    """A run that is killed repeatedly; its folder is checked after each kill.

    Args:
        servers: interpreters that start its processes.
        folder: run folder.
        script: name of the experiment.
        flags: flags of the experiment.
        whole: folder of the same run without interruptions.
    """

    def __init__(self, servers, folder, script, flags, whole):
        self.servers, self.folder, self.script, self.flags = itertools.cycle(servers), folder, script, flags
        self.csv_rows, self.json_rows = csv_rows(whole), json_rows(whole)
        self.output = folder.parent / "output.txt"

    def start(self, **options):
        server, flags = next(self.servers), [*self.flags, "--dump_path", self.folder, "--resume"]
        return server, server.start(self.script, *flags, output=self.output, **options)

    def kill_at_operation(self, number):
        """Kills the process at this file operation, counted from its start."""
        server, pid = self.start(kill_at=number)
        assert server.wait(pid) == -signal.SIGKILL, self.output.read_text()
        self.check()

    def kill_after(self, rows, seconds):
        """Kills the process a given time after it has written a given number of rows."""
        server, pid = self.start()
        size, written = self.size(), 0
        deadline = time.monotonic() + 60
        while written < rows and time.monotonic() < deadline:
            time.sleep(0.0005)
            before, size = size, self.size()
            written += size > before
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
        assert server.wait(pid) == -signal.SIGKILL, self.output.read_text()
        self.check()

    def size(self):
        path = self.folder / "progress.csv"
        return path.stat().st_size if path.exists() else 0

    def check(self):
        """Checks that no row is lost or duplicated, and that the last snapshot belongs to the last row."""
        names = ("params.json", "progress.csv", "progress.json")
        if not all((self.folder / name).exists() for name in names):
            assert self.size() == 0 and not snapshot_paths(self.folder)  # before the first row
            return
        rows = csv_rows(self.folder)
        assert rows == self.csv_rows[: len(rows)]
        assert_same(json_rows(self.folder), self.json_rows[: len(json_rows(self.folder))])
        saved = load_snapshot(self.folder)["itr"] + 1 if snapshot_paths(self.folder) else 0
        for count in (len(rows), len(json_rows(self.folder))):  # a kill may happen between truncating two files
            assert saved <= count <= saved + 1
        for path in list_snapshots(self.folder):
            load_snapshot(path)

    def finish(self):
        """Resumes the run until its end."""
        server, pid = self.start()
        assert server.wait(pid) == 0, self.output.read_text()


def kill_often(victim, num_kills, operations, rows, seconds, seed):
    """Kills the run at random: alternately at an early file operation and after a random time."""
    rng = np.random.default_rng(seed)
    for i in range(num_kills):
        if i % 2:
            victim.kill_at_operation(int(rng.integers(operations)))
        else:
            victim.kill_after(int(rng.integers(rows)), rng.uniform(0, seconds))


@pytest.mark.slow
@pytest.mark.parametrize("num_kills", [8, pytest.param(NUM_KILLS, marks=pytest.mark.slow)])
def test_killed_search_equals_uninterrupted_run(num_kills, servers, run, tmp_path):
    """Epochs take milliseconds, so that most of the time is spent on writing rows and snapshots."""
    flags = [*CEM, "--n_itr", 5 * num_kills]
    run("cem", *flags, "--dump_path", tmp_path / "whole")
    victim = Victim(servers, tmp_path / "run", "cem", flags, tmp_path / "whole")
    kill_often(victim, num_kills, operations=40, rows=4, seconds=0.02, seed=1)
    assert 0 < len(csv_rows(tmp_path / "run")) < 5 * num_kills
    victim.finish()
    assert_same_run(tmp_path / "run", tmp_path / "whole")


@pytest.mark.parametrize("num_kills", [3, pytest.param(NUM_KILLS, marks=pytest.mark.slow)])
def test_killed_tensorflow_run_equals_uninterrupted_run(num_kills, servers, run, tmp_path):
    flags = [*TINY, "--n_itr", 3 * num_kills]
    run("vpg_maml", *flags, "--dump_path", tmp_path / "whole")
    victim = Victim(servers, tmp_path / "run", "vpg_maml", flags, tmp_path / "whole")
    kill_often(victim, num_kills, operations=30, rows=3, seconds=0.05, seed=2)
    victim.finish()
    assert_same_run(tmp_path / "run", tmp_path / "whole")


# Failing ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def six_epochs(run, tmp_path_factory):
    """A run of six epochs without TensorFlow; tests must not change its folder."""
    folder = tmp_path_factory.mktemp("six_epochs") / "run"
    run("cem", *CEM, "--n_itr", 6, "--dump_path", folder)
    return folder


@pytest.fixture
def three_epochs(run, tmp_path):
    """The first three epochs of the run of six epochs."""
    run("cem", *CEM, "--n_itr", 3, "--dump_path", tmp_path / "run")
    return tmp_path / "run"


def test_full_disk_raises_a_clear_error_and_keeps_saved_files(run, three_epochs, six_epochs):
    """A run ends if a file cannot grow to the size of a snapshot, and resumes when it can."""
    size = (three_epochs / "params.pkl").stat().st_size
    flags = [*CEM, "--n_itr", 6, "--dump_path", three_epochs, "--resume"]
    text = run("cem", *flags, status=1, largest_file=size - 1)
    (how_to_go_on, error) = text.splitlines()[-2:]
    assert error.startswith(f"cem.py: error: could not write the snapshot {three_epochs}/itr_3.pkl: ")
    assert "File too large" in error and error.endswith(f"{three_epochs}/params.pkl (iteration 2)")
    assert re.match(r"To resume after iteration 2: meta-policy-search resume .*run, or in Python", how_to_go_on)
    assert load_snapshot(three_epochs)["itr"] == 2
    run("cem", *flags)
    assert_same_run(three_epochs, six_epochs)


@pytest.mark.slow
def test_deleted_folder_raises_a_clear_error(servers, tmp_path):
    """A run whose folder is deleted ends with one line that names the file it could not write."""
    server, folder = servers[0], tmp_path / "run"
    pid = server.start("cem", *CEM, "--n_itr", 100_000, "--dump_path", folder, output=tmp_path / "output.txt")
    while not (folder / "itr_3.pkl").exists():
        time.sleep(0.01)
    folder.rename(tmp_path / "elsewhere")
    assert server.wait(pid) == 1
    how_to_go_on, error = (tmp_path / "output.txt").read_text().splitlines()[-2:]
    assert re.match(rf"cem.py: error: .*{folder}/.*", error) and "No such file" in error
    assert how_to_go_on == "There is no snapshot, so there is nothing to resume"
    assert load_snapshot(tmp_path / "elsewhere")["itr"] >= 1
    assert not folder.exists()


# Options and callbacks of a resumed run ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """A run with evaluations and pictures in every iteration; tests must not change its folder."""
    folder = tmp_path_factory.mktemp("evaluated") / "run"
    return mps.train("MetaPointEnvCornerGoals", n_itr=2, dump_path=folder, eval_every=1, eval_tasks=2, plot_gap=1,
                     meta_batch_size=2, rollouts_per_meta_task=2, max_path_length=5, hidden_sizes=(4,),
                     callbacks=[EarlyStopping(f"Step_{i}-AverageReturn", 50) for i in range(2)], log_formats=["csv"])


@pytest.mark.parametrize("options, error, message", [
    ({"eval_every": 0}, ValueError, r"eval_every 1 \(run\), 0 \(now\): a resumed run keeps its"),
    ({"eval_tasks": 5}, ValueError, r"eval_tasks 2 \(run\), 5 \(now\)"),
    ({"plot_gap": "x"}, TypeError, "plot_gap: expected an integer of at least 0, got 'x'"),
    ({"callbacks": [EarlyStopping("Step_1-AverageReturn", 70)]}, ValueError,
     "callbacks: expected 2 callbacks EarlyStopping in their order, as in the run, or none, got 1"),
])
def test_options_without_effect_are_refused(options, error, message, evaluated):
    with pytest.raises(error, match=message):
        mps.load_run(evaluated.folder).resume(3, **options)


def test_pictures_can_be_omitted_without_a_warning(evaluated, tmp_path):
    folder = shutil.copytree(evaluated.folder, tmp_path / "run")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert len(mps.load_run(folder).resume(3, plot_gap=None, eval_every=1).progress["Itr"]) == 3


def test_a_resumed_run_is_as_long_as_the_last_call_intended(tmp_path):
    """Given that a longer call was killed before its next snapshot."""
    settings = {"meta_batch_size": 2, "rollouts_per_meta_task": 2, "max_path_length": 3, "progress_bar": False}
    run = mps.train("MetaPointEnvNavigation", n_itr=2, dump_path=tmp_path / "run", **settings)
    path = run.folder + "/params.json"
    params = json.loads(Path(path).read_text())
    params["settings"]["n_itr"] = 4
    Path(path).write_text(json.dumps(params))
    resumed = mps.load_run(run.folder).resume()
    assert resumed.trainer.itr == 4
    resumed.resume(n_itr=5)
    assert "n_itr" in json.loads(Path(path).read_text())["given"]
