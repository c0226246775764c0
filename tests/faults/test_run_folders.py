"""Run folders are unique and have a single writer, and the order of snapshots is independent of clocks."""
import datetime
import errno
import fcntl
import os
import re
import signal
import socket
import subprocess

import pytest

import meta_policy_search as mps
from experiments import cem, vpg_maml
from meta_policy_search import run_folder
from meta_policy_search.plotting import curves
from meta_policy_search.run import Run
from meta_policy_search.utils import logger
from meta_policy_search.utils.files import atomic_path, is_locked, lock_folder
from meta_policy_search.utils.snapshotter import save_snapshot
from tests.helpers.commands import mistake
from tests.helpers.processes import start

SMALL = ["--smoke", "--env", "MetaPointEnv", "--log_formats", "csv", "--plot_gap", "0"]
HOLD = """
import sys, time
from meta_policy_search.run import Run
from meta_policy_search.utils import logger
logger.configure(sys.argv[1], ["csv"], overwrite=True)
print("ready", flush=True)
time.sleep(300)
"""


@pytest.fixture
def holder(tmp_path):
    """Starts another process that logs to the folder `run`."""
    process = start("-c", HOLD, tmp_path / "run")
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.thorough
def test_folder_used_by_another_process_is_refused_with_the_process_id(holder, tmp_path, capsys):
    """Neither Python nor a script can use or resume the folder of a running process until it is killed."""
    named = f"{tmp_path / 'run'}: process {holder.pid} on {socket.gethostname()} writes to this folder"
    with pytest.raises(ValueError, match=re.escape(named)):
        logger.configure(tmp_path / "run", ["csv"])
    assert named in mistake(cem.main, capsys, *SMALL, "--dump_path", tmp_path / "run")
    save_snapshot(tmp_path / "run", 0, {})
    with pytest.raises(ValueError, match=re.escape(named)):
        Run(None, tmp_path / "run").resume()
    os.remove(tmp_path / "run" / "params.pkl")
    assert is_locked(tmp_path / "run")
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert not is_locked(tmp_path / "run")
    logger.configure(tmp_path / "run", ["csv"])
    assert sorted(os.listdir(tmp_path / "run")) == [".lock", "progress.csv"]


def can_lock(folder):
    """Returns whether another process can lock a folder."""
    program = "import sys\nfrom meta_policy_search.utils.files import lock_folder\nlock_folder(sys.argv[1]).__enter__()"
    errors = start("-c", program, folder).communicate()[1]
    assert not errors or "writes to this folder" in errors, errors
    return not errors


def test_process_can_configure_its_folder_again_and_releases_it(tmp_path):
    """`reset` releases a folder that was configured twice and once more within a scope."""
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


def test_lock_check_creates_no_file_and_takes_no_lock(tmp_path):
    """Many processes that list runs do not see each other's lock checks as locks."""
    assert not is_locked(tmp_path) and not is_locked(tmp_path / "missing") and os.listdir(tmp_path) == []
    with lock_folder(tmp_path):
        pass
    with open(tmp_path / ".lock") as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # like `is_locked` in another process
        assert not is_locked(tmp_path)


def test_file_system_without_locks_is_used_with_a_warning(tmp_path, monkeypatch):
    def flock(descriptor, operation):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.warns(UserWarning, match="cannot lock .*no other process writes to it"), lock_folder(tmp_path):
        assert not is_locked(tmp_path)


@pytest.mark.parametrize("folder, error", [("", ValueError), (3, TypeError)])
def test_folder_that_is_no_path_is_refused(folder, error):
    for argument, use in (("dump_path", run_folder.check_is_unused), ("dir", logger.configure)):
        with pytest.raises(error, match=f"{argument}: expected a "):
            use(folder)


def test_runs_started_in_the_same_second_have_separate_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_folder, "now", lambda: datetime.datetime(2026, 1, 2, 3, 4, 5))
    folders = [run_folder.make_run_folder("cem", "MetaPointEnv", 7) for _ in range(3)]
    assert [os.path.basename(folder) for folder in folders] == [
        "2026-01-02_03-04-05_seed7", "2026-01-02_03-04-05_seed7_2", "2026-01-02_03-04-05_seed7_3"]
    assert all(os.path.isdir(folder) for folder in folders)


def test_failed_figure_does_not_end_training(tmp_path, monkeypatch, capsys):
    """An unexpected error while plotting leads to a warning, and training continues."""
    def fail(folder):
        raise IndexError("list index out of range")

    monkeypatch.setattr(curves, "plot_learning_curve", fail)
    arguments = ["--smoke", "--env", "MetaPointEnv", "--plot_gap", "1", "--dump_path", str(tmp_path / "run")]
    assert vpg_maml.main([*arguments, "--log_formats", "line", "csv"]) == 0
    said = capsys.readouterr().out
    assert said.count("warning: could not draw the learning curve: list index out of range") == 2
    assert len((tmp_path / "run" / "progress.csv").read_text().splitlines()) == 3


def test_folder_name_with_special_characters_works(tmp_path, monkeypatch, capsys):
    """Training and plotting work in a folder whose name has a byte that is not UTF-8, a dollar sign and a brace."""
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9 $x_{")
    arguments = ["--smoke", "--env", "MetaPointEnv", "--plot_gap", "1", "--dump_path", folder]
    assert cem.main(arguments) == 0
    said = capsys.readouterr().out
    assert "warning" not in said and "Run folder: " in said
    assert {"learning_curve.png", "progress.csv", "params.pkl"} <= set(os.listdir(folder))


def test_git_monitor_of_the_folder_is_not_run(tmp_path):
    """The revision of a repository is found, but its configuration runs no command."""
    def git(*arguments):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=tmp_path, check=True)

    (tmp_path / "hook.sh").write_text("#!/bin/sh\ntouch was_run\n")
    (tmp_path / "hook.sh").chmod(0o755)
    git("init", "-q")
    git("add", "hook.sh")
    git("commit", "-qm", "first")
    git("config", "core.fsmonitor", str(tmp_path / "hook.sh"))
    assert re.fullmatch("[0-9a-f]{40}", run_folder._git_revision(str(tmp_path)))
    assert not (tmp_path / "was_run").exists()


def test_runs_behind_links_are_found_once(tmp_path):
    for name in ("results/seed=2", "scratch/one"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "progress.csv").write_text("Itr\n0\n")
    (tmp_path / "results" / "link").symlink_to(tmp_path / "scratch")
    (tmp_path / "scratch" / "cycle").symlink_to(tmp_path / "results")
    found = [os.path.relpath(run, tmp_path) for run in run_folder.find_runs([str(tmp_path / "results")])]
    assert found == ["results/link/one", "results/seed=2"]


@pytest.mark.thorough
def test_changed_file_of_a_module_is_reported(tmp_path, monkeypatch, capsys):
    """`params.json` contains the hash of the file; a difference is a warning, not an error."""
    (tmp_path / "changing_envs.py").write_text("import meta_policy_search as mps\nEnv = mps.MetaPointEnvCorner\n")
    monkeypatch.syspath_prepend(tmp_path)
    settings = {"env": "changing_envs:Env", "algo": "vpg_maml", "dump_path": tmp_path / "run", "meta_batch_size": 2,
                "rollouts_per_meta_task": 2, "max_path_length": 5, "hidden_sizes": (4,)}
    mps.train(n_itr=1, **settings)
    with open(tmp_path / "changing_envs.py", "a") as file:
        file.write("# changed\n")
    mps.train(n_itr=2, resume=True, **settings)
    assert capsys.readouterr().out.count("SHA-256 of changing_envs.py '") == 1


def test_another_module_of_the_same_name_is_reported(capsys):
    one, other = ({"modules": {"mine": {"file": "mine.py", "sha256": digit * 64}}} for digit in "ab")
    run_folder.warn_of_changes(one, other)
    assert "SHA-256 of mine.py 'aaaaaaaa' (before), 'bbbbbbbb' (now)" in capsys.readouterr().out
    other["modules"]["mine"]["file"] = "worker.py"  # such as `__main__` of another program
    run_folder.warn_of_changes(one, other)
    assert not capsys.readouterr().out


def test_error_without_a_file_name_names_the_file(tmp_path):
    with pytest.raises(OSError, match="No space left on device: .*picture.svg"), atomic_path(tmp_path / "picture.svg"):
        raise OSError(errno.ENOSPC, "No space left on device")
