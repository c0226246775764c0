"""Sweeps delete nothing, end with all their runs, do not run twice at once; exit status and table say the same."""
import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from experiments import sweep
from meta_policy_search.utils.files import lock_folder
from meta_policy_search.utils.snapshotter import Snapshotter

ROOT = Path(__file__).resolve().parent.parent.parent
SMALL = {"env": "MetaPointEnv", "n_samples": 20, "rollouts_per_candidate": 1, "max_path_length": 5, "n_itr": 2,
         "plot_gap": 0}


@pytest.fixture(autouse=True)
def package_on_the_path(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def write_grid(folder, seeds, **settings):
    path = folder / "grid.json"
    path.write_text(json.dumps({"script": "cem.py", "settings": {**SMALL, **settings}, "grid": {"seed": seeds}}))
    return str(path)


def table(folder):
    with open(folder / "summary.csv", newline="") as file:
        return {row["run"]: row["status"] for row in csv.DictReader(file)}


def wait_for(condition, seconds=120.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.02)


def test_a_folder_that_is_no_run_of_the_sweep_stays_as_it_is(tmp_path, capsys):
    """Given somebody's folder under the name of a run, with a snapshot, then the run fails and nothing is gone."""
    folder = tmp_path / "runs" / "seed=1"
    (folder / "thesis").mkdir(parents=True)
    (folder / "thesis" / "chapter.txt").write_text("mine")
    Snapshotter(folder).save(3, {"itr": 3})
    before = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert sweep.main([write_grid(tmp_path, [1]), "--output", str(tmp_path / "runs")]) == 1
    (folder / ".lock").unlink()
    assert {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    said = capsys.readouterr().out
    assert "seed=1: failed with status 2" in said and f"got {folder}, which contains params.pkl" in said
    assert table(tmp_path / "runs") == {"seed=1": "failed"}


def test_files_of_others_in_a_folder_of_the_sweep_stay(tmp_path):
    folder = tmp_path / "runs" / "seed=1"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    assert sweep.main([write_grid(tmp_path, [1]), "--output", str(tmp_path / "runs")]) == 0
    assert (folder / "notes.txt").read_text() == "mine" and table(tmp_path / "runs") == {"seed=1": "done"}


def test_settings_that_an_earlier_sweep_wrote_are_replaced(tmp_path, monkeypatch):
    """Given a run that failed before it began, when the grid is changed, then it gets the new settings."""
    arguments = ["--output", str(tmp_path / "runs")]
    with monkeypatch.context() as patch:
        patch.setattr(sweep, "command", lambda *arguments: [sys.executable, "-c", "exit(1)"])
        assert sweep.main([write_grid(tmp_path, [1]), *arguments]) == 1
    assert sweep.main([write_grid(tmp_path, [1], n_itr=1), *arguments]) == 0
    assert json.loads((tmp_path / "runs" / "seed=1.json").read_text())["n_itr"] == 1


def test_the_same_sweep_does_not_run_twice_at_once(tmp_path, capsys):
    """Given a sweep under way, then the second one names it in a line, and nothing happens."""
    (tmp_path / "runs").mkdir()
    program = ("import sys, time\nfrom meta_policy_search.utils.files import lock_folder\n"
               "lock = lock_folder(sys.argv[1])\nlock.__enter__()\nprint('ready', flush=True)\ntime.sleep(300)")
    first = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "runs")], stdout=subprocess.PIPE, text=True)
    try:
        assert first.stdout.readline() == "ready\n"
        with pytest.raises(SystemExit) as stop:
            sweep.main([write_grid(tmp_path, [1]), "--output", str(tmp_path / "runs")])
        said = capsys.readouterr().err
        assert stop.value.code == 2 and said.count("\n") == 1 and f"process {first.pid} on " in said
        assert os.listdir(tmp_path / "runs") == [".lock"]
    finally:
        first.kill()
        first.communicate()


def test_a_run_that_ends_without_a_word_and_without_its_iterations_has_failed(tmp_path, monkeypatch, capsys):
    """Given a script that ends with status 0 before its time, then table and exit status say the same."""
    monkeypatch.setattr(sweep, "command", lambda *arguments: [sys.executable, "-c", "print('bye')"])
    assert sweep.main([write_grid(tmp_path, [1]), "--output", str(tmp_path / "runs")]) == 1
    assert table(tmp_path / "runs") == {"seed=1": "failed"}
    assert "    bye" in capsys.readouterr().out


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
@pytest.mark.thorough
def test_runs_end_with_a_sweep_that_is_killed_and_the_next_one_goes_on(number, tmp_path):
    """Given a sweep that is killed twice, then its run ends too, and in the end every row is there once."""
    output = tmp_path / "runs"
    grid = write_grid(tmp_path, [1], n_itr=300)
    command = [sys.executable, str(ROOT / "experiments" / "sweep.py"), grid, "--output", str(output)]
    progress = output / "seed=1" / "progress.csv"
    for count in (3, 20):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        wait_for(lambda: progress.exists() and len(progress.read_text().splitlines()) > count)  # noqa: B023
        (child,) = psutil.Process(process.pid).children()
        os.kill(process.pid, number)
        process.wait()
        wait_for(lambda: not psutil.pid_exists(child.pid) or child.status() == "zombie", seconds=5)  # noqa: B023
        with lock_folder(output / "seed=1"):
            pass
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    with open(progress, newline="") as file:
        assert [int(row["Epoch"]) for row in csv.DictReader(file)] == list(range(300))
