"""Sweeps delete nothing, end together with their runs, do not run twice at once, and report consistent results."""
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

from meta_policy_search.cli import sweep
from meta_policy_search.utils.files import lock_folder
from meta_policy_search.utils.snapshotter import Snapshotter

ROOT = Path(__file__).resolve().parent.parent.parent
SMALL = {"env": "MetaPointEnv", "n_samples": 20, "batch_size": 5, "max_path_length": 5, "n_itr": 2,
         "plot_gap": 0}


@pytest.fixture(autouse=True)
def package_on_the_path(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def write_grid(folder, seeds, **settings):
    path = folder / "grid.json"
    path.write_text(json.dumps({"algorithm": "cem", "settings": {**SMALL, **settings}, "grid": {"seed": seeds}}))
    return str(path)


def table(folder):
    with open(folder / "summary.csv", newline="") as file:
        return {row["run"]: row["status"] for row in csv.DictReader(file)}


def wait_for(condition, seconds=120.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.02)


def has_ended(process):
    return not process.is_running() or process.status() == "zombie"


def test_folder_that_is_not_a_run_of_the_sweep_is_unchanged(tmp_path, capsys):
    """If a user folder with a snapshot has the name of a run, the run fails and no file is deleted."""
    folder = tmp_path / "runs" / "seed=1"
    (folder / "thesis").mkdir(parents=True)
    (folder / "thesis" / "chapter.txt").write_text("mine")
    Snapshotter(folder).save(3, {"itr": 3})
    before = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert sweep.main([write_grid(tmp_path, [1]), "--output", str(tmp_path / "runs")]) == 1
    assert {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    said = capsys.readouterr().out
    assert "seed=1: failed (1 of 1)" in said
    assert table(tmp_path / "runs") == {"seed=1": "failed"}


def test_other_files_in_a_run_folder_are_kept(tmp_path):
    folder = tmp_path / "runs" / "seed=1"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    assert sweep.main([write_grid(tmp_path, [1]), "--output", str(tmp_path / "runs")]) == 0
    assert (folder / "notes.txt").read_text() == "mine" and table(tmp_path / "runs") == {"seed=1": "done"}


def test_sweep_does_not_run_twice_at_once(tmp_path, capsys):
    """A second sweep reports the running sweep in one line and changes nothing."""
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


def test_run_whose_process_ends_early_has_failed(tmp_path, monkeypatch, capsys):
    """Table and exit status agree if a callback of another package ends the process."""
    (tmp_path / "leaving.py").write_text("import os\nimport meta_policy_search as mps\n\nclass Leaving(mps.CEM):\n"
                                         "    def get_state(self):\n        os._exit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "grid.json"
    path.write_text(json.dumps({"algorithm": "leaving:Leaving", "settings": SMALL, "grid": {"seed": [1]}}))
    assert sweep.main([str(path), "--output", str(tmp_path / "runs")]) == 1
    assert table(tmp_path / "runs") == {"seed=1": "failed"}
    assert "seed=1: failed (1 of 1)" in capsys.readouterr().out


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
@pytest.mark.thorough
def test_runs_end_with_a_killed_sweep_and_the_next_sweep_continues(number, tmp_path):
    """After a sweep is killed twice, its run ends too, and the finished run has every row once."""
    output = tmp_path / "runs"
    grid = write_grid(tmp_path, [1], n_itr=300)
    command = [sys.executable, "-m", "meta_policy_search", "sweep", grid, "--output", str(output)]
    progress = output / "seed=1" / "progress.csv"
    for count in (3, 20):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        wait_for(lambda: progress.exists() and len(progress.read_text().splitlines()) > count)  # noqa: B023
        children = psutil.Process(process.pid).children(recursive=True)
        os.kill(process.pid, number)
        process.wait()
        assert children
        wait_for(lambda: all(has_ended(child) for child in children), seconds=5)  # noqa: B023
        with lock_folder(output / "seed=1"):
            pass
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    with open(progress, newline="") as file:
        assert [int(row["Epoch"]) for row in csv.DictReader(file)] == list(range(300))
