"""Tests the table of runs: filters, sorting, states, and the commands that resume runs."""
import datetime
import functools
import json
import os
import re
import shlex
from pathlib import Path

import pytest

import meta_policy_search as mps
from meta_policy_search import run_folder
from meta_policy_search.cli import runs
from meta_policy_search.cli.main import main
from meta_policy_search.utils.files import is_locked, lock_folder
from tests.helpers import commands
from tests.helpers.runs import write_rows

mistake = functools.partial(commands.mistake, functools.partial(commands.run, "runs"))
YESTERDAY = run_folder.now() - datetime.timedelta(days=1)
META = ("Itr", "Step_0-AverageReturn", "Step_1-AverageReturn", "AdaptationGain", "AdaptationGainCI95")


def write_run(folder, rows=3, gain=1.0, algorithm="promp", columns=META, days=0, snapshot_mode="none", **settings):
    """Writes a run by hand with an age in days; its post-update return is `gain`."""
    write_rows(folder, {name: [gain if name in ("AdaptationGain", "Step_1-AverageReturn") else 0] * rows
                        for name in columns if rows})
    settings = {"env": "MetaPointEnv", "seed": 1, "n_itr": 3, **settings}
    started = (run_folder.now() - datetime.timedelta(days=days)).isoformat(timespec="seconds")
    run_folder.write_params(folder, {"algorithm": algorithm, "settings": settings, "started": started,
                                     "options": {"snapshot_mode": snapshot_mode}})
    return folder


@pytest.fixture
def three(tmp_path, monkeypatch):
    """Returns runs in `data`: from four days ago, from today, and an interrupted one in between."""
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "data" / "a", gain=2.0, days=4)
    write_run(tmp_path / "data" / "b", gain=3.5, env="HalfCheetahRandDirecEnv", seed=7)
    write_run(tmp_path / "data" / "c", rows=1, gain=-1.0, days=1, snapshot_mode="last")


def shown(capsys, *arguments):
    """Returns the printed output."""
    capsys.readouterr()
    assert main(["runs", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def listed(capsys, *arguments):
    """Returns the names of the listed folders in order."""
    return [Path(run["folder"]).name for run in json.loads(shown(capsys, *arguments, "--json"))]


def only_run(capsys):
    (run,) = json.loads(shown(capsys, "--json"))
    return run


def resume(run):
    """Runs the command that `runs` prints for a run."""
    program, *command = shlex.split(run["resume"])
    assert program == "meta-policy-search" and main(command) == 0


def test_the_table(three, capsys):
    today = f"{run_folder.now():%Y-%m-%d}"
    header, a, c, b, *rest = shown(capsys).splitlines()
    assert header.split() == runs.HEADER
    assert re.fullmatch(r"promp +MetaPointEnv +1  \S+ \S+ +3/3 +\+2.00 +2.00  finished +data/a", a)
    assert re.fullmatch(r"promp +MetaPointEnv +1  \S+ \S+ +1/3 +-1.00 +-1.00  interrupted +data/c", c)
    assert re.fullmatch(rf"promp +HalfCheetahRandDirecEnv +7  {today} \S+ +3/3 +\+3.50 +3.50  finished +data/b", b)
    assert rest == []  # no snapshot


def test_long_folders_are_on_lines_below_the_runs(three, tmp_path, capsys):
    folder = Path("data") / ("x" * 60)
    write_run(tmp_path / folder)
    lines = shown(capsys).splitlines()
    assert max(map(len, lines)) <= runs.WIDTH and lines[1] == "    folder"
    assert lines[3::2] == [f"    {name}" for name in ("data/a", "data/c", "data/b", folder)]


@pytest.mark.parametrize("arguments, expected", [
    ([], ["a", "c", "b"]),
    (["--since", f"{YESTERDAY:%Y-%m-%d}"], ["c", "b"]),
    (["--since", f"{YESTERDAY:%d %b %Y}"], ["c", "b"]),
    (["--since", f"{YESTERDAY + datetime.timedelta(hours=6):%Y-%m-%d %H:%M}"], ["b"]),
    (["--env", "meta-point*"], ["a", "c"]),
    (["--algorithm", "ProMP", "--state", "finished"], ["a", "b"]),
    (["--state", "running"], []),
    (["--sort", "return", "--state", "finished"], ["a", "b"]),
    (["--sort", "gain"], ["c", "a", "b"]),
    (["data/b", "data/a"], ["a", "b"]),
])
def test_filters_and_sorting(arguments, expected, three, capsys):
    assert listed(capsys, *arguments) == expected


def test_missing_parts_of_a_time_are_those_of_today():
    today = run_folder.now()
    assert runs.time("23 Nov").replace(tzinfo=None) == datetime.datetime(today.year, 11, 23)
    assert runs.time("10:30").replace(tzinfo=None) == datetime.datetime(today.year, today.month, today.day, 10, 30)


def test_run_that_began_after_earlier_iterations_is_finished(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "data" / "a", rows=2, start_itr=4, n_itr=6)
    write_run(tmp_path / "data" / "b", rows=1, start_itr=4, n_itr=6)
    assert listed(capsys, "--state", "finished") == ["a"]


def test_run_without_a_snapshot_cannot_be_resumed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "data" / "a", rows=0, snapshot_mode="last")
    assert {"state": "interrupted", "resume": None}.items() <= only_run(capsys).items()


def test_json_has_all_fields(three, capsys):
    (run,) = json.loads(shown(capsys, "--json", "data/b"))
    params = run_folder.read_params("data/b")
    assert run == {
        "folder": "data/b", "algorithm": "promp", "environment": "HalfCheetahRandDirecEnv", "seed": 7,
        "started": params["started"], "ended": None, "error": None, "iterations": 3, "n_itr": 3, "gain": 3.5,
        "return": 3.5, "state": "finished", "resume": None}


@pytest.mark.parametrize("arguments, message", [
    (["nowhere"], "got nowhere, which does not exist"),
    (["--since", "yesterday"], "argument --since: expected a time such as 2026-11-20 or 10:30, got 'yesterday'"),
    (["--since", "2999-01-01"], "argument --since: expected a time in the past, got '2999-01-01'"),
    (["--sort", "seed"], "invalid choice: 'seed'"),
])
def test_invalid_arguments_are_reported(arguments, message, three, capsys):
    assert message in mistake(capsys, *arguments)


def test_folder_without_matching_runs(three, tmp_path, monkeypatch, capsys):
    message = "None of 3 runs matches. To match a part of a name, use *, as in --env 'HalfCheetah*'\n"
    assert shown(capsys, "--state", "running") == shown(capsys, "--env", "Meta") == message
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert shown(capsys) == "No runs in data\n" and shown(capsys, "--json") == "[]\n"


def test_other_columns_and_damaged_files(tmp_path, capsys):
    """A search run, rows of a custom script and runs with damaged files are listed with the available information."""
    write_run(tmp_path / "search", algorithm="cem", columns=("Epoch", "AverageReturn"))
    write_run(tmp_path / "own", columns=("Loss",))
    (tmp_path / "own" / "params.json").unlink()
    (write_run(tmp_path / "damaged") / "params.json").write_text("{")
    write_run(tmp_path / "begun", rows=0)
    write_run(tmp_path / "python", algorithm="ProMP", snapshot_mode=None)
    write_run(tmp_path / "foreign", rows=1, algorithm="../setup", n_itr=None)
    assert main(["runs", str(tmp_path), "--json"]) == 0
    output = capsys.readouterr()
    found = {Path(run["folder"]).name: run for run in json.loads(output.out)}
    assert (found["search"]["gain"], found["search"]["return"], found["search"]["state"]) == (None, 0.0, "finished")
    assert (found["own"]["iterations"], found["own"]["algorithm"], found["own"]["return"]) == (3, None, None)
    assert (found["own"]["state"], found["own"]["resume"]) == ("unknown", None)
    assert (found["begun"]["iterations"], found["begun"]["state"], found["begun"]["gain"]) == (0, "interrupted", None)
    assert (found["python"]["algorithm"], found["python"]["state"]) == ("ProMP", "finished")
    assert found["damaged"]["gain"] == 1.0 and found["damaged"]["started"] is None
    assert (found["foreign"]["state"], found["foreign"]["resume"]) == ("interrupted", None)
    assert output.err.count("\n") == 1 and "damaged: could not read " in output.err
    assert "3/?" in shown(capsys, tmp_path / "own")


@pytest.mark.parametrize("change", [
    {"started": "yesterday"}, {"started": None}, {"started": 5}, {"started": "0001-01-01"}, {"algorithm": 5},
    {"settings": 3}, {"settings": None}, {"settings": {"env": 5}}, {"settings": {"seed": [1]}},
    {"settings": {"n_itr": "many"}}, {"options": []},
])
def test_a_run_with_wrong_entries_does_not_hide_the_others(change, tmp_path, capsys):
    write_run(tmp_path / "good", seed=4)
    params = run_folder.read_params(str(write_run(tmp_path / "bad")))
    run_folder.write_params(str(tmp_path / "bad"), {**params, **change})
    for sort in ("started", "gain"):
        bad, good = sorted(json.loads(shown(capsys, tmp_path, "--sort", sort, "--json")), key=lambda run: run["folder"])
        assert bad["gain"] == 1.0 and None in (bad["algorithm"], bad["started"])
        assert (good["seed"], good["state"]) == (4, "finished")
    assert "\n" in shown(capsys, tmp_path)


def test_text_from_files_has_no_control_characters(tmp_path, capsys):
    """Escape sequences in a settings file could otherwise change the title or the colors of the terminal."""
    folder = write_run(tmp_path / "a\x1b[31m", algorithm="x\x1b]0;title\x07", env="\u202ereversed\x9b2J")
    write_run(tmp_path / "b")
    main(["runs", str(tmp_path)])
    main(["plot", str(tmp_path)])
    (folder / "params.json").write_text('{"seed\\u001b[2J": ')
    main(["runs", str(tmp_path)])
    with pytest.raises(SystemExit):
        main(["plot", str(folder)])
    output = capsys.readouterr()
    assert "x\\x1b]0;title" in output.out and "a\\x1b[31m" in output.err
    assert all(c.isprintable() or c == "\n" for c in output.out + output.err)


@pytest.mark.thorough
def test_run_made_in_python_fails_stops_and_is_resumed(tmp_path, monkeypatch, capsys):
    """An error ends it, a callback stops it, and Ctrl-C interrupts it."""
    def fail(trainer, row):
        if trainer.itr == 1:
            raise ZeroDivisionError

    def press(trainer, row):
        if trainer.itr == 3:
            raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    tiny = {"meta_batch_size": 2, "rollouts_per_meta_task": 2, "max_path_length": 5, "hidden_sizes": ()}
    with pytest.raises(ZeroDivisionError):
        mps.train("MetaPointEnvCorner", "vpg_maml", 9, dump_path="data/run", callbacks=[fail], **tiny)
    assert {"state": "failed", "iterations": 1, "error": "ZeroDivisionError"}.items() <= only_run(capsys).items()
    mps.load_run("data/run").resume(callbacks=[lambda *_: True])
    assert {"state": "stopped", "iterations": 2, "n_itr": 9, "error": None, "resume": None}.items() <= (
        only_run(capsys).items())
    mps.load_run("data/run").resume(n_itr=4, callbacks=[press])
    run = only_run(capsys)
    assert (run["state"], run["iterations"]) == ("interrupted", 3)
    assert run["started"] <= run["ended"] <= run_folder.now().isoformat()
    with lock_folder("data/run"):
        assert {"state": "running", "resume": None}.items() <= only_run(capsys).items()
    resume(run)
    assert listed(capsys, "--state", "finished") == ["run"]


def test_starting_run_waits_for_a_concurrent_lock_check(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    looking = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    monkeypatch.setattr("time.sleep", lambda seconds: os.close(looking))
    with lock_folder(tmp_path):
        assert is_locked(tmp_path)
