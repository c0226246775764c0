"""Tests sweeps: grids, parallel runs, repeated calls, failures, Ctrl-C and invalid arguments."""
import csv
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from meta_policy_search import parallel_runs
from meta_policy_search.cli import sweep
from meta_policy_search.cli.train import INTERRUPTED
from meta_policy_search.utils.threads import VARIABLE

ROOT = Path(__file__).resolve().parent.parent.parent
SMALL = {"env": "MetaPointEnv", "n_samples": 20, "batch_size": 5, "max_path_length": 5, "n_itr": 2,
         "plot_gap": 0}


@pytest.fixture(autouse=True)
def package_on_the_path(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def write_grid(folder, grid, algorithm="cem", name="grid.json", **settings):
    path = folder / name
    path.write_text(json.dumps({"algorithm": algorithm, "settings": {**SMALL, **settings}, "grid": grid}))
    return path


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def mistake(capsys, *arguments):
    """Returns the error message: one line, with exit status 2."""
    with pytest.raises(SystemExit) as stop:
        sweep.main([str(argument) for argument in arguments])
    output = capsys.readouterr()
    assert (stop.value.code, output.out, output.err.count("\n")) == (2, "", 1)
    return output.err


# Sweeps ------------------------------------------------------------------------------------------------------------


def test_every_combination_is_run_and_failures_are_reported(tmp_path, capsys):
    """If two of four runs fail, the other two finish, and the next call retries the failed ones."""
    grid = write_grid(tmp_path, {"best_frac": [0.5, 0.01], "seed": [1, 2]})
    output = tmp_path / "runs"
    arguments = [str(grid), "--output", str(output), "--processes", "2"]
    assert sweep.main(arguments) == 1
    said = capsys.readouterr().out
    names = [f"best_frac={fraction},seed={seed}" for fraction in (0.5, 0.01) for seed in (1, 2)]
    assert f"0 of 4 runs complete; 2 at a time; runs in {output}" in said
    for name in names[:2]:
        assert len(rows(output / name / "progress.csv")) == 2
        settings = json.loads((output / name / "params.json").read_text())["settings"]
        assert settings["n_samples"] == 20 and name == f"best_frac={settings['best_frac']},seed={settings['seed']}"
    for name in names[2:]:
        assert re.search(rf"{name}: failed \(. of 4\)\n    ", said)
    assert said.count("    ValueError: best_frac: expected at least 1 / n_samples = 0.05") == 2
    table = rows(output / "summary.csv")
    assert [row["run"] for row in table] == names and [row["status"] for row in table] == ["done"] * 2 + ["failed"] * 2
    assert [row["seed"] for row in table] == ["1", "2", "1", "2"]
    assert [row["best_frac"] for row in table] == ["0.5", "0.5", "0.01", "0.01"]
    for row in table[:2]:
        returns = [float(line["AverageReturn"]) for line in rows(output / row["run"] / "progress.csv")]
        assert float(row["return"]) == pytest.approx(sum(returns) / 2) and row["iterations"] == "2"
        (line,) = [line for line in said.splitlines() if line.startswith(f"{row['run']} ")]
        assert line.split() == [row["run"], "done", "2", f"{float(row['return']):.3f}"]
    assert table[2]["return"] == "" and table[2]["iterations"] == "0"

    before = {name: (output / name / "progress.csv").stat().st_mtime_ns for name in names[:2]}
    assert sweep.main(arguments) == 1
    said = capsys.readouterr().out
    assert "2 of 4 runs complete" in said and f"{names[0]}: starts" not in said and f"{names[2]}: starts" in said
    assert {name: (output / name / "progress.csv").stat().st_mtime_ns for name in names[:2]} == before


@pytest.mark.thorough
def test_grid_with_more_iterations_extends_finished_runs(tmp_path, capsys):
    """Runs extended by a grid with more iterations equal uninterrupted runs."""
    arguments = ["--output", str(tmp_path / "runs")]
    assert sweep.main([str(write_grid(tmp_path, {"seed": [1]})), *arguments]) == 0
    grid = write_grid(tmp_path, {"seed": [1]}, n_itr=5)
    capsys.readouterr()
    assert sweep.main([str(grid), *arguments]) == 0
    assert "seed=1: resumes" in capsys.readouterr().out
    assert sweep.main([str(grid), "--output", str(tmp_path / "at_once")]) == 0
    resumed, at_once = (
        [{key: value for key, value in row.items() if "Time" not in key}
         for row in rows(tmp_path / folder / "seed=1" / "progress.csv")] for folder in ("runs", "at_once"))
    assert resumed == at_once and len(resumed) == 5
    assert sweep.main([str(grid), *arguments]) == 0
    assert "1 of 1 runs complete" in capsys.readouterr().out


@pytest.mark.thorough
def test_meta_learning_algorithms(tmp_path, capsys):
    """A grid without varied settings has one run, and the table lists pre-update and post-update returns."""
    grid = tmp_path / "one.json"
    settings = {"meta_batch_size": 2, "rollouts_per_meta_task": 2, "max_path_length": 10, "hidden_sizes": [8],
                "env": "MetaPointEnv", "n_itr": 1}
    grid.write_text(json.dumps({"algorithm": "vpg_maml", "settings": settings, "grid": {}}))
    assert sweep.main([str(grid), "--output", str(tmp_path / "runs")]) == 0
    (row,) = rows(tmp_path / "runs" / "summary.csv")
    (iteration,) = rows(tmp_path / "runs" / "run" / "progress.csv")
    assert row["run"] == "run" and row["status"] == "done"
    assert float(row["return after adaptation"]) == float(iteration["Step_1-AverageReturn"])
    assert float(row["return before adaptation"]) == float(iteration["Step_0-AverageReturn"])


def test_files_of_a_run_that_did_not_start_are_replaced(tmp_path):
    """The run starts anew if a process was killed before it wrote its settings."""
    folder = tmp_path / "runs" / "seed=1"
    folder.mkdir(parents=True)
    (folder / "progress.csv").touch()
    (folder / "log.txt").write_text("Logging to here")
    assert sweep.main([str(write_grid(tmp_path, {"seed": [1]})), "--output", str(tmp_path / "runs")]) == 0
    assert len(rows(folder / "progress.csv")) == 2


@pytest.mark.parametrize("count, processes, threads", [(8, 2, "4"), (8, 3, "2"), (2, 5, "1")])
def test_processes_share_the_cores(count, processes, threads, monkeypatch):
    monkeypatch.setattr(parallel_runs, "available_cores", lambda: count)
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "7")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    environ = parallel_runs._environment(processes)
    assert environ[VARIABLE] == environ["OMP_NUM_THREADS"] == threads
    assert environ["TF_NUM_INTRAOP_THREADS"] == "7"  # set by the user


@pytest.mark.parametrize("varied, name", [
    ({"inner_lr": 0.1, "seed": 1}, "inner_lr=0.1,seed=1"),
    ({"env": "MetaPointEnv", "hidden_sizes": [64, 32]}, "env=MetaPointEnv,hidden_sizes=64-32"),
    ({"hidden_sizes": []}, "hidden_sizes=none"),
    ({"env_kwargs": {"reward_type": "dense"}}, "env_kwargs=reward_type-dense"),
    ({"a": None, "b": True, "c": "../x y", "d": -0.5}, "a=none,b=true,c=..-x-y,d=-0.5"),
    ({}, "run"),
])
def test_folders_are_named_after_the_values(varied, name):
    assert sweep.name_of(varied) == name


def test_sweeps_page_is_correct(monkeypatch):
    """The commands of the page use existing flags, and the documented environment variables are set."""
    page = (ROOT / "docs" / "sweeps.rst").read_text()
    (arguments,) = re.findall(r"^    meta-policy-search sweep (.+)$", page, flags=re.MULTILINE)
    assert sweep.make_parser().parse_args(shlex.split(arguments)).processes == 2
    said = re.findall(r"``(\w+_THREADS)``", page)
    for name in said:
        monkeypatch.delenv(name, raising=False)
    assert {*said} == set(parallel_runs._environment(1))


def test_example_is_a_valid_grid(tmp_path):
    example, varied = sweep.read_grid(str(ROOT / "experiments" / "configs" / "sweep_point.json"), str(tmp_path))
    assert len(example) == len(varied) == 9 and example[0].algo == "trpo_maml"
    assert example[0].settings["env"] == "MetaPointEnvCorner" and example[0].name == "inner_lr=0.05,seed=1"


# Ctrl-C ------------------------------------------------------------------------------------------------------------


def wait_for(condition, seconds=90.0):
    """Waits until a condition is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.02)


def count_rows(folder):
    path = folder / "progress.csv"
    return len(path.read_text().splitlines()) - 1 if path.exists() else 0


@pytest.mark.thorough
def test_interruption_ends_all_runs_and_the_next_call_resumes_them(tmp_path):
    """A signal ends two started runs and one waiting run; the next call finishes all three."""
    grid = write_grid(tmp_path, {"seed": [1, 2, 3]}, n_itr=200)
    output = tmp_path / "runs"
    command = [sys.executable, "-m", "meta_policy_search", "sweep", str(grid), "--output", str(output),
               "--processes", "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: min(count_rows(output / "seed=1"), count_rows(output / "seed=2")) >= 3)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=90)
    assert process.returncode == INTERRUPTED and errors == ""
    assert "Stopping the runs" in said and "Interrupted; run the same command to resume" in said
    assert len(children) >= 2 and not any(child.is_running() and child.status() != "zombie" for child in children)
    assert [row["status"] for row in rows(output / "summary.csv")] == ["not done"] * 3
    assert not (output / "seed=3").exists()

    again = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "seed=1: resumes" in again.stdout and "seed=3: starts" in again.stdout
    for seed in (1, 2, 3):
        epochs = [int(row["Epoch"]) for row in rows(output / f"seed={seed}" / "progress.csv")]
        assert epochs == list(range(200))
    assert [row["status"] for row in rows(output / "summary.csv")] == ["done"] * 3


STUBBORN = """
import signal, time
import meta_policy_search as mps

class Stubborn(mps.CEM):
    def get_state(self):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        open("note", "w").close()
        time.sleep(300)
"""


def test_runs_that_ignore_ctrl_c_are_killed(tmp_path, monkeypatch, capsys):
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(parallel_runs, "GRACE", 0.3)
    before = {process.pid for process in psutil.Process().children(recursive=True)}

    def interrupt():
        wait_for((tmp_path / "note").exists)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    grid = write_grid(tmp_path, {"seed": [1]}, algorithm="stubborn:Stubborn")
    assert sweep.main([str(grid), "--output", str(tmp_path / "runs")]) == INTERRUPTED
    thread.join()
    started = [process for process in psutil.Process().children(recursive=True) if process.pid not in before]
    names = [" ".join(process.cmdline()) for process in started if process.status() != "zombie"]
    assert not [name for name in names if "tracker" not in name]


# Invalid arguments -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content, message", [
    ([], "expected a JSON object, got list"),
    ({"algorithm": "cem"}, "expected an object with the keys algorithm (a name), settings and grid"),
    ({"algorithm": 1, "settings": {}, "grid": {}}, "expected an object with the keys algorithm"),
    ({"algorithm": "gone", "settings": {}, "grid": {}}, "got 'gone'"),
    ({"algorithm": "gone:CEM", "settings": {}, "grid": {}}, "got 'gone:CEM': No module named 'gone'"),
    ({"algorithm": "cem", "settings": {"inner_lr": 1}, "grid": {}}, "unknown setting 'inner_lr' for CEM"),
    ({"algorithm": "cem", "settings": {}, "grid": {"sead": [1]}}, "'sead' for CEM; did you mean 'seed'?"),
    ({"algorithm": "cem", "settings": {}, "grid": {"seed": 1}}, "grid, seed: expected a list of at least one value"),
    ({"algorithm": "cem", "settings": {}, "grid": {"seed": []}}, "grid, seed: expected a list of at least one value"),
    ({"algorithm": "cem", "settings": {"seed": 1}, "grid": {"seed": [1]}}, "grid, seed: expected a setting that"),
    ({"algorithm": "cem", "settings": {}, "grid": {"seed": [1, 1]}}, "grid: expected values that differ, got seed=1"),
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
    assert "--processes: expected an integer of at least 1, got 0" in mistake(capsys, grid, "--processes", 0)
    (tmp_path / "file").touch()
    assert "file" in mistake(capsys, grid, "--output", tmp_path / "file")


def test_runs_with_other_settings_are_left_unchanged(tmp_path, capsys):
    output = tmp_path / "runs"
    assert sweep.main([str(write_grid(tmp_path, {"seed": [1]})), "--output", str(output)]) == 0
    shutil.copytree(output, tmp_path / "before")
    capsys.readouterr()
    for changed, difference in (({"n_samples": 25}, "n_samples 20 (run), 25"), ({"n_itr": 1}, "n_itr 2 (run), 1")):
        said = mistake(capsys, write_grid(tmp_path, {"seed": [1]}, **changed), "--output", output)
        assert f"{output / 'seed=1'} contains a run with different settings: {difference}" in said
    for path in output.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "before" / path.relative_to(output)).read_bytes()


def test_help_explains_all_flags(capsys):
    with pytest.raises(SystemExit) as stop:
        sweep.main(["--help"])
    text = capsys.readouterr().out
    assert stop.value.code == 0 and sweep.__doc__ in text and "--processes INT" in text
