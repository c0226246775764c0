"""Tests sweeps: grids, parallel runs, repeated calls, failures, Ctrl-C, kills and invalid arguments."""
import functools
import json
import os
import re
import shlex
import signal
import time

import psutil
import pytest

from meta_policy_search import comparison
from meta_policy_search.cli.main import main, make_parser
from meta_policy_search.cli.train import INTERRUPTED
from meta_policy_search.utils.files import lock_folder
from meta_policy_search.utils.snapshotter import save_snapshot
from tests.helpers import commands
from tests.helpers.processes import ROOT, assert_gone, start
from tests.helpers.runs import read_csv

mistake = functools.partial(commands.mistake, functools.partial(commands.run, "sweep"))
SWEEP = "-m", "meta_policy_search", "sweep", "--processes", 2
SMALL = {"env": "MetaPointEnv", "n_samples": 20, "batch_size": 5, "max_path_length": 5, "n_itr": 2}


@pytest.fixture(autouse=True)
def package_on_the_path(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def write_grid(folder, grid, algorithm="cem", **settings):
    path = folder / "grid.json"
    path.write_text(json.dumps({"algorithm": algorithm, "settings": {**SMALL, **settings}, "grid": grid}))
    return path


def statuses(folder):
    return {row["run"]: row["status"] for row in read_csv(folder / "summary.csv")}


def wait_for(condition):
    deadline = time.monotonic() + 120.0
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.02)


def test_every_combination_is_run_and_failures_are_reported(tmp_path, monkeypatch, capsys):
    """If two of four runs fail, the other two finish, and the next call retries the failed ones."""
    commands.train_members_here(monkeypatch)
    grid = write_grid(tmp_path, {"best_frac": [0.5, 0.01], "seed": [1, 2]})
    output = tmp_path / "runs"
    arguments = [str(grid), "--output", str(output), "--processes", "2"]
    assert main(["sweep", *arguments]) == 1
    said = capsys.readouterr().out
    names = [f"best_frac={fraction},seed={seed}" for fraction in (0.5, 0.01) for seed in (1, 2)]
    assert f"0 of 4 runs complete; 2 at a time; runs in {output}" in said
    for name in names[:2]:
        assert len(read_csv(output / name / "progress.csv")) == 2
        settings = json.loads((output / name / "params.json").read_text())["settings"]
        assert settings["n_samples"] == 20 and name == f"best_frac={settings['best_frac']},seed={settings['seed']}"
    for name in names[2:]:
        assert re.search(rf"{name}: failed \(. of 4\)\n", said)
    assert "    ValueError: best_frac: expected at least 1 / n_samples = 0.05" in said
    table = read_csv(output / "summary.csv")
    assert [row["run"] for row in table] == names and [row["status"] for row in table] == ["done"] * 2 + ["failed"] * 2
    assert [row["seed"] for row in table] == ["1", "2", "1", "2"]
    assert [row["best_frac"] for row in table] == ["0.5", "0.5", "0.01", "0.01"]
    for row in table[:2]:
        returns = [float(line["AverageReturn"]) for line in read_csv(output / row["run"] / "progress.csv")]
        assert float(row["return"]) == pytest.approx(returns[-1]) and row["iterations"] == "2"
    assert table[2]["return"] == "" and table[2]["iterations"] == "0"
    mean = sum(float(row["return"]) for row in table[:2]) / 2
    assert re.search(rf"\nbest_frac=0.5 +{mean:.2f} .* 2 of 2\nbest_frac=0.01 +0 of 2\n", said)

    before = {name: (output / name / "progress.csv").stat().st_mtime_ns for name in names[:2]}
    assert f"{output} already contains runs. Continue them with resume=True (--resume" in mistake(capsys, *arguments)
    assert main(["sweep", *arguments, "--resume"]) == 1
    said = capsys.readouterr().out
    assert "2 of 4 runs complete" in said and f"{names[0]}: starts" not in said and f"{names[2]}: starts" in said
    assert {name: (output / name / "progress.csv").stat().st_mtime_ns for name in names[:2]} == before


def test_failure_of_all_runs_is_an_error(tmp_path, monkeypatch, capsys):
    commands.train_members_here(monkeypatch)
    grid = write_grid(tmp_path, {"seed": [1, 2]}, best_frac=0.01)
    assert main(["sweep", str(grid), "--output", str(tmp_path / "runs")]) == 1
    said = capsys.readouterr().out
    assert said.endswith(f"all runs failed; their errors are printed above, their folders are in {tmp_path / 'runs'}\n")
    assert said.count("best_frac: expected at least 1 / n_samples = 0.05") == 2
    assert statuses(tmp_path / "runs") == {"seed=1": "failed", "seed=2": "failed"}


def test_sweep_over_algorithms(tmp_path, monkeypatch, capsys):
    """A setting is passed to the algorithms that have it."""
    commands.train_members_here(monkeypatch)
    grid = tmp_path / "algorithms.json"
    grid.write_text(json.dumps({"settings": {**SMALL, "extra_std": 2.0}, "grid": {"algo": ["cem", "cma_es"]}}))
    assert main(["sweep", str(grid), "--output", str(tmp_path / "runs")]) == 0
    assert [row["algo"] for row in read_csv(tmp_path / "runs" / "summary.csv")] == ["cem", "cma_es"]
    assert "extra_std: not a setting of cma_es, which ignores it" in capsys.readouterr().out


@pytest.mark.thorough
def test_meta_learning_algorithms(tmp_path, monkeypatch, capsys):
    """A grid without varied settings has one run, and the table lists pre-update and post-update returns."""
    commands.train_members_here(monkeypatch)
    grid = tmp_path / "one.json"
    settings = {"env": "MetaPointEnv", "n_itr": 1, "meta_batch_size": 2, "rollouts_per_meta_task": 2,
                "max_path_length": 5, "hidden_sizes": [8]}
    grid.write_text(json.dumps({"algorithm": "vpg_maml", "settings": settings, "grid": {}}))
    assert main(["sweep", str(grid), "--output", str(tmp_path / "runs")]) == 0
    (row,) = read_csv(tmp_path / "runs" / "summary.csv")
    (iteration,) = read_csv(tmp_path / "runs" / "run" / "progress.csv")
    assert row["run"] == "run" and row["status"] == "done"
    assert float(row["return after adaptation"]) == float(iteration["Step_1-AverageReturn"])
    assert float(row["return before adaptation"]) == float(iteration["Step_0-AverageReturn"])


@pytest.mark.thorough
def test_files_of_users_and_of_runs_that_did_not_start(tmp_path, monkeypatch, capsys):
    """Other files are kept; a run starts if its process was killed before the first row.

    A folder with a snapshot that no run wrote is not changed, and its run fails.
    """
    commands.train_members_here(monkeypatch)
    output = tmp_path / "runs"
    for seed in (1, 2, 3):
        (output / f"seed={seed}").mkdir(parents=True)
    (output / "seed=1" / "notes.txt").write_text("mine")
    (output / "seed=2" / "progress.csv").touch()
    (output / "seed=2" / "log.txt").write_text("Logging to here")
    save_snapshot(output / "seed=3", 3, {"itr": 3})
    before = {path.name: path.read_bytes() for path in (output / "seed=3").iterdir()}
    assert main(["sweep", str(write_grid(tmp_path, {"seed": [1, 2, 3]})), "--output", str(output), "--resume"]) == 1
    assert statuses(output) == {"seed=1": "done", "seed=2": "done", "seed=3": "failed"}
    assert (output / "seed=1" / "notes.txt").read_text() == "mine"
    assert len(read_csv(output / "seed=2" / "progress.csv")) == 2
    assert {path.name: path.read_bytes() for path in (output / "seed=3").iterdir() if path.name != ".lock"} == before


def test_command_of_the_sweeps_page_has_existing_flags():
    page = (ROOT / "docs" / "sweeps.rst").read_text()
    (arguments,) = re.findall(r"^    meta-policy-search sweep (.+)$", page, flags=re.MULTILINE)
    assert make_parser("sweep").parse_args(shlex.split(arguments)).processes == 2


def test_example_is_a_valid_grid(tmp_path, monkeypatch):
    monkeypatch.setattr(comparison, "train_all", lambda output, runs, *how: (example.update(runs) or [], True))
    example = {}
    grid = ROOT / "experiments" / "configs" / "sweep_point.json"
    assert main(["sweep", str(grid), "--output", str(tmp_path)]) == INTERRUPTED
    first = example["inner_lr=0.05,seed=1"]
    assert len(example) == 9 and (first["algo"], first["env"]) == ("trpo_maml", "MetaPointEnvCornerGoals")


@pytest.mark.slow
def test_interruption_ends_all_runs_and_the_next_call_resumes_them(tmp_path, monkeypatch, capsys):
    """A signal ends two started runs and one waiting run; the next call finishes all three."""
    grid, output = write_grid(tmp_path, {"seed": [1, 2, 3]}, n_itr=200), tmp_path / "runs"
    process = start(*SWEEP, grid, "--output", output)
    wait_for(lambda: all((output / f"seed={seed}" / "params.pkl").exists() for seed in (1, 2)))
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=90)
    assert process.returncode == INTERRUPTED and errors == ""
    assert "Stopping the runs" in said and f"Interrupted. To continue, repeat the call with folder='{output}'" in said
    assert len(children) >= 2
    assert_gone(children, timeout=10.0)
    assert set(statuses(output).values()) == {"not done"} and not (output / "seed=3").exists()

    commands.train_members_here(monkeypatch)
    assert main(["sweep", str(grid), "--output", str(output), "--resume"]) == 0
    said = capsys.readouterr().out
    assert "seed=1: resumes" in said and "seed=3: starts" in said
    for seed in (1, 2, 3):
        assert [int(row["Epoch"]) for row in read_csv(output / f"seed={seed}" / "progress.csv")] == list(range(200))
    assert set(statuses(output).values()) == {"done"}


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
@pytest.mark.thorough
def test_runs_end_with_a_killed_sweep_and_the_next_sweep_continues(number, tmp_path, monkeypatch):
    """After a sweep is killed, its run ends too, and the finished run has every row once."""
    grid, output = write_grid(tmp_path, {"seed": [1]}, n_itr=250), tmp_path / "runs"
    progress = output / "seed=1" / "progress.csv"
    process = start(*SWEEP, grid, "--output", output)
    wait_for(lambda: progress.exists() and len(progress.read_text().splitlines()) > 3)
    children = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, number)
    process.communicate()
    assert_gone(children, timeout=10.0)
    with lock_folder(output / "seed=1"):
        pass
    commands.train_members_here(monkeypatch)
    assert main(["sweep", str(grid), "--output", str(output), "--resume"]) == 0
    assert [int(row["Epoch"]) for row in read_csv(progress)] == list(range(250))


def test_sweep_does_not_run_twice_at_once(tmp_path, capsys):
    """A second sweep reports the running sweep in one line and changes nothing."""
    (tmp_path / "runs").mkdir()
    program = ("import sys, time\nfrom meta_policy_search.utils.files import lock_folder\n"
               "lock = lock_folder(sys.argv[1])\nlock.__enter__()\nprint('ready', flush=True)\ntime.sleep(300)")
    with start("-c", program, tmp_path / "runs") as first:
        assert first.stdout.readline() == "ready\n"
        error = mistake(capsys, write_grid(tmp_path, {"seed": [1]}), "--output", tmp_path / "runs")
        first.kill()
    assert f"process {first.pid} on " in error and os.listdir(tmp_path / "runs") == [".lock"]


@pytest.mark.parametrize("content, message", [
    ([], "expected a JSON object, got list"),
    ({"algorithm": "cem", "setting": {}, "grid": {}}, "(objects) and no others, got {'algorithm': 'cem', 'grid': {}, "
     "'setting': {}}; did you mean 'settings'?"),
    ({"settings": {}, "grid": {"seed": [1]}}, "with the keys algorithm (a name; omitted if the grid contains algo), "),
    ({"algorithm": "cem", "settings": {}, "grid": {"algo": ["cem"]}}, "expected an object with the keys algorithm"),
    ({"algorithm": "gone:CEM", "settings": {}, "grid": {}}, "got 'gone:CEM': ModuleNotFoundError: No module named"),
    ({"algorithm": "cem", "settings": {"folder": "x"}, "grid": {}}, "expected no folder; use the flag --output"),
    ({"algorithm": "cem", "settings": {**SMALL, "seed": 1}, "grid": {"seed": [1]}},
     "seed: expected no value for a setting"),
    ({"algorithm": "cem", "settings": SMALL, "grid": {"seed": [1, 2, 1]}},
     "grid: expected values that differ, got seed"),
])
def test_invalid_grids_are_reported_before_anything_starts(content, message, tmp_path, capsys):
    path = tmp_path / "grid.json"
    path.write_text(json.dumps(content))
    said = mistake(capsys, path, "--output", tmp_path / "runs")
    assert said.startswith("meta-policy-search sweep: error: ") and str(path) in said and message in said
    assert not (tmp_path / "runs").exists()


def test_other_invalid_arguments_are_reported(tmp_path, capsys):
    assert "could not read" in mistake(capsys, tmp_path / "gone.json")
    grid = write_grid(tmp_path, {"seed": [1]})
    assert "grid.json: processes: expected an integer of at least 1, got 0" in mistake(capsys, grid, "--processes", 0)
    (tmp_path / "file").touch()
    assert "file" in mistake(capsys, grid, "--output", tmp_path / "file")
