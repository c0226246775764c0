"""One process writes to a run folder, no two runs share one, and the last snapshot is the last one by any clock."""
import contextlib
import datetime
import errno
import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments import cem, command, record, vpg_maml
from meta_policy_search import run_folder
from meta_policy_search.utils import logger, snapshotter
from meta_policy_search.utils.files import is_locked, lock_folder
from meta_policy_search.utils.snapshotter import Snapshotter, list_snapshots, load_snapshot

ROOT = Path(__file__).resolve().parent.parent.parent
SMALL = ["--smoke", "--env", "MetaPointEnv", "--log_formats", "csv", "--plot_gap", "0"]
HOLD = """
import sys, time
from meta_policy_search.utils import logger
logger.configure(sys.argv[1], ["csv"], overwrite=True)
print("ready", flush=True)
time.sleep(300)
"""


def start(*arguments, **options):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, *map(str, arguments)], env=env, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **options)


@pytest.fixture
def holder(tmp_path):
    """Another process that logs to the folder `run`."""
    process = start("-c", HOLD, tmp_path / "run")
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()


def mistake(capsys, script, *arguments):
    """Returns what an experiment says about a mistake: one line, and exit status 2."""
    with pytest.raises(SystemExit) as stop:
        script.main([str(argument) for argument in arguments])
    errors = capsys.readouterr().err
    assert stop.value.code == 2 and errors.count("\n") == 1
    return errors


# One writer --------------------------------------------------------------------------------------------------------


def test_a_folder_that_another_process_writes_to_is_refused_with_its_name(holder, tmp_path, capsys):
    """Given a process that logs to a folder, then neither Python nor a script can; when it is killed, both can."""
    named = f"got {tmp_path / 'run'}, which process {holder.pid} on {socket.gethostname()} writes to"
    with pytest.raises(ValueError, match=re.escape(named)):
        logger.configure(tmp_path / "run", ["csv"])
    assert named in mistake(capsys, cem, *SMALL, "--dump_path", tmp_path / "run")
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    logger.configure(tmp_path / "run", ["csv"])
    assert sorted(os.listdir(tmp_path / "run")) == [".lock", "progress.csv"]


def test_a_run_is_not_resumed_while_it_goes_on(tmp_path, capsys):
    """Given a run under way, then `--resume` of it changes nothing."""
    assert cem.main([*SMALL, "--n_itr", "1", "--dump_path", str(tmp_path / "run")]) == 0
    before = (tmp_path / "run" / "progress.csv").read_bytes()
    child = start("-c", "import sys, time\nfrom meta_policy_search.utils.files import lock_folder\n"
                  "lock = lock_folder(sys.argv[1])\nlock.__enter__()\nprint('ready', flush=True)\ntime.sleep(300)",
                  tmp_path / "run")
    try:
        assert child.stdout.readline() == "ready\n"
        said = mistake(capsys, cem, "--resume", tmp_path / "run", "--n_itr", 3)
        assert f"process {child.pid}" in said and (tmp_path / "run" / "progress.csv").read_bytes() == before
    finally:
        child.kill()
        child.communicate()
    assert cem.main(["--resume", str(tmp_path / "run"), "--n_itr", "3"]) == 0


def can_lock(folder):
    """Returns whether another process can lock a folder."""
    program = "import sys\nfrom meta_policy_search.utils.files import lock_folder\nlock_folder(sys.argv[1]).__enter__()"
    errors = start("-c", program, folder).communicate()[1]
    assert not errors or "no other process" in errors, errors
    return not errors


def test_a_process_can_configure_its_folder_again_and_gives_it_back(tmp_path):
    """Given a folder that is configured twice, and once more within a scope, then `reset` releases it."""
    logger.configure(tmp_path, ["csv"])
    logger.configure(tmp_path, ["csv"], overwrite=True)
    with logger.scoped_configure(tmp_path, ["csv"], overwrite=True):
        assert not can_lock(tmp_path)
    with pytest.raises(ValueError, match="format_strs"):
        logger.configure(tmp_path, ["nothing"])
    assert not can_lock(tmp_path)
    logger.reset()
    assert can_lock(tmp_path)
    logger.configure(tmp_path, ["csv"], overwrite=True)
    logger.configure(tmp_path / "other", ["csv"])
    assert can_lock(tmp_path) and not can_lock(tmp_path / "other")


def test_a_forked_process_does_not_hold_the_lock(tmp_path):
    """Given a forked child process, then it cannot lock the folder of its parent, and does not keep it locked."""
    read, write = os.pipe()
    with contextlib.ExitStack() as lock:
        lock.enter_context(lock_folder(tmp_path))
        pid = os.fork()
        if pid == 0:
            try:
                lock.close()  # no effect: the parent holds this lock
                with lock_folder(tmp_path):
                    os.write(write, b"locked")
            except BaseException as error:
                os.write(write, str(error).encode())
            time.sleep(300)
            os._exit(0)
        try:
            assert f"which process {os.getpid()} on {socket.gethostname()} writes to" in os.read(read, 1000).decode()
            assert not can_lock(tmp_path)
            lock.close()
            assert can_lock(tmp_path)
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def test_a_folder_is_locked_until_each_of_its_locks_is_released(tmp_path):
    with lock_folder(tmp_path):
        with lock_folder(tmp_path / ".." / tmp_path.name):
            assert (tmp_path / ".lock").read_text() == f"process {os.getpid()} on {socket.gethostname()}"
        assert is_locked(tmp_path)
    assert not is_locked(tmp_path)


def test_looking_for_a_lock_leaves_no_file_and_takes_no_lock(tmp_path):
    """Given many processes that list runs, then none of them sees the lock of another one."""
    assert not is_locked(tmp_path) and not is_locked(tmp_path / "missing") and os.listdir(tmp_path) == []
    with lock_folder(tmp_path):
        pass
    with open(tmp_path / ".lock") as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # as `is_locked` of another process does
        assert not is_locked(tmp_path)


def test_a_file_system_without_locks_is_used_with_a_warning(tmp_path, monkeypatch):
    def flock(descriptor, operation):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.warns(UserWarning, match="cannot be locked.*no other process writes to it"), lock_folder(tmp_path):
        assert not is_locked(tmp_path)


def test_runs_that_begin_in_the_same_second_have_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_folder, "now", lambda: datetime.datetime(2026, 1, 2, 3, 4, 5))
    folders = [run_folder.make_run_folder("cem", "MetaPointEnv", 7) for _ in range(3)]
    assert [os.path.basename(folder) for folder in folders] == [
        "2026-01-02_03-04-05_seed7", "2026-01-02_03-04-05_seed7_2", "2026-01-02_03-04-05_seed7_3"]
    assert all(os.path.isdir(folder) for folder in folders)


# Snapshots ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["last", "all", "last_gap"])
def test_a_clock_that_is_set_back_changes_no_order(mode, tmp_path, monkeypatch):
    """Given a clock that loses an hour during a run, and again before it is resumed, then the last snapshot is last."""
    now = [10**18]
    monkeypatch.setattr(snapshotter.time, "time_ns", lambda: now[0])
    for itr in range(6):
        if itr % 2 == 0:  # another process
            saving = Snapshotter(tmp_path, mode, gap=2)
        saving.save(itr, {"itr": itr})
        assert load_snapshot(tmp_path)["itr"] == list_snapshots(tmp_path)[-1].itr == itr
        now[0] -= 3600 * 10**9


@pytest.mark.parametrize("name, is_in_the_way", [("params.pkl", True), ("params.prev.pkl", False), ("itr_7.pkl", True),
                                                 ("itr_2.pkl", False)])
def test_of_damaged_snapshots_those_count_that_are_later_by_their_name(name, is_in_the_way, tmp_path):
    """Given a whole snapshot of iteration 5 and a damaged file with an old time of change, then the time is nothing."""
    Snapshotter(tmp_path, "all").save(5, {"itr": 5})
    (tmp_path / name).write_bytes(b"x")
    os.utime(tmp_path / name, (1, 1) if is_in_the_way else None)
    if not is_in_the_way:
        assert load_snapshot(tmp_path)["itr"] == 5
        return
    with pytest.raises(snapshotter.SnapshotError, match=rf"{name} is damaged.*itr_5\.pkl \(iteration 5\)"):
        load_snapshot(tmp_path)


# Going on ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", [cem, vpg_maml], ids=["cem", "vpg_maml"])
@pytest.mark.thorough
def test_a_run_with_worker_processes_goes_on_without_them_and_the_other_way_round(script, tmp_path):
    """Given flags that change no number, then `--resume` takes them, and the run is what it would have been."""
    def rows(folder):
        lines = [line.split(",") for line in (folder / "progress.csv").read_text().splitlines()]
        return [[cell for name, cell in zip(lines[0], line) if "Time" not in name] for line in lines]

    assert script.main([*SMALL, "--n_itr", "3", "--dump_path", str(tmp_path / "whole")]) == 0
    assert script.main([*SMALL, "--n_itr", "1", "--parallel", "--dump_path", str(tmp_path / "run")]) == 0
    assert script.main(["--resume", str(tmp_path / "run"), "--n_itr", "2", "--no-parallel"]) == 0
    assert script.main(["--resume", str(tmp_path / "run"), "--n_itr", "3", "--parallel"]) == 0
    assert rows(tmp_path / "run") == rows(tmp_path / "whole")


def test_what_was_said_of_a_ray_cluster_is_forgotten_without_it():
    recorded = {"env": "MetaPointEnv", "parallel": "ray", "ray_address": "auto", "ray_workers": 3}
    assert record.resumed_config(cem.Config, recorded, {"parallel": False}).parallel is False
    assert record.resumed_config(cem.Config, {**recorded, "ray_workers": None}, {"ray_workers": 2}).ray_workers == 2


def test_an_interruption_before_the_logger_is_configured_names_the_snapshot(tmp_path, monkeypatch, capsys):
    """Given Ctrl-C while `--resume` reads the snapshot, then it says how to go on."""
    folder = tmp_path / "run"
    assert cem.main([*SMALL, "--n_itr", "2", "--dump_path", str(folder)]) == 0

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(record, "resumed_config", interrupt)
    capsys.readouterr()
    assert cem.main(["--resume", str(folder), "--n_itr", "3"]) == command.INTERRUPTED
    assert re.fullmatch(r"To resume after iteration 1: python .*cem\.py --resume .*run\n", capsys.readouterr().out)


# Pictures, and files of settings -----------------------------------------------------------------------------------


def test_a_picture_that_cannot_be_drawn_ends_nothing(tmp_path, monkeypatch, capsys):
    """Given a drawing that fails in a way that nobody has thought of, then there is a warning, and training goes on."""
    def fail(folder):
        raise IndexError("list index out of range")

    monkeypatch.setattr(command, "plot_learning_curve", fail)
    arguments = ["--smoke", "--env", "MetaPointEnv", "--plot_gap", "1", "--dump_path", str(tmp_path / "run")]
    assert vpg_maml.main([*arguments, "--log_formats", "line", "csv"]) == 0
    said = capsys.readouterr().out
    assert said.count("warning: could not draw the learning curve: IndexError('list index out of range')") == 3
    assert len((tmp_path / "run" / "progress.csv").read_text().splitlines()) == 3


def test_a_folder_whose_name_is_no_text_gets_its_run_and_its_picture(tmp_path, monkeypatch, capsys):
    """Given a name with a byte that is not UTF-8, a dollar and a brace, then training and drawing work."""
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9 $x_{")
    arguments = ["--smoke", "--env", "MetaPointEnv", "--plot_gap", "1", "--dump_path", folder]
    assert cem.main(arguments) == 0
    said = capsys.readouterr().out
    assert "warning" not in said and "Run folder: " in said
    assert {"learning_curve.png", "progress.csv", "params.pkl"} <= set(os.listdir(folder))


def test_settings_that_are_nested_deep_are_one_line(tmp_path, capsys):
    nested = '{"a": ' * 200_000 + "1" + "}" * 200_000
    (tmp_path / "settings.json").write_text('{"env_kwargs": ' + nested + "}")
    for flag, value in {"--config_file": tmp_path / "settings.json", "--env_kwargs": nested}.items():
        said = mistake(capsys, cem, flag, value, "--dump_path", tmp_path / "run")
        assert len(said) < 500 and ("settings.json" in said or "env_kwargs: expected" in said)
        assert not (tmp_path / "run").exists()
