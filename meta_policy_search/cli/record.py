"""Finds and reads run folders, and checks whether a run can be resumed.

A run folder contains `params.json`, `progress.csv`, `log.txt`, snapshots, `learning_curve.png` and, with the setting
`diagnostics`, `diagnostics.png`.
"""
import contextlib
import dataclasses
import os
import shlex
from typing import Any, Container, Iterator, Mapping, Optional, Sequence

from meta_policy_search import run_folder
from meta_policy_search.cli.settings import PARALLEL_SETTINGS, ConfigT, RunConfig, make_config, read_json
from meta_policy_search.plotting import Progress, read_progress
from meta_policy_search.utils import logger
from meta_policy_search.utils.snapshotter import (
    check_same_version,
    list_snapshots,
    load_snapshot,
    snapshot_paths,
)

PARAMS_FILE = run_folder.PARAMS_FILE
PROGRESS_FILE = "progress.csv"
_PARAMS = {"algorithm": str, "settings": dict, "versions": dict, "machine": dict, "tensorflow_flags": dict,
           "resumed": list}
_MAY_DIFFER = (*PARALLEL_SETTINGS, "plot_gap", "progress_bar")  # they do not change the data of a run


# Reading ---------------------------------------------------------------------------------------------------------


def is_run(folder: str) -> bool:
    """Returns whether a folder contains the `params.json` of a run."""
    return os.path.exists(os.path.join(folder, PARAMS_FILE))


def read_params(folder: str) -> dict[str, Any]:
    """Reads `params.json` in a run folder; raises `ValueError` if it cannot be read."""
    if not is_run(folder):
        raise ValueError(f"{folder} contains no {PARAMS_FILE}" if os.path.isdir(folder) else f"{folder} does not exist")
    return read_json(os.path.join(folder, PARAMS_FILE))


def read_rows(folder: str) -> Progress:
    """Reads the columns of `progress.csv` in a run folder; returns an empty dict if there are no rows."""
    try:
        return read_progress(folder)
    except ValueError:
        return {}


def count_rows(folder: str) -> int:
    """Returns the number of iterations in the `progress.csv` of a run."""
    return len(next(iter(read_rows(folder).values()), ()))


def is_done(folder: str, settings: Mapping[str, Any]) -> bool:
    """Returns whether a run has completed all its iterations, or was stopped by a callback.

    If the snapshot mode saves the last iteration, the snapshot of that iteration must also exist.
    """
    with contextlib.suppress(ValueError):  # missing or unreadable `params.json`
        if read_params(folder).get("stopped"):
            return True
    if settings.get("start_itr", 0) + count_rows(folder) < settings["n_itr"]:
        return False
    if settings.get("snapshot_mode") not in ("all", "last", "last_gap"):
        return True
    snapshots = list_snapshots(folder)
    return bool(snapshots) and snapshots[-1].itr + 1 >= settings["n_itr"]


def find_runs(folders: Sequence[str]) -> list[str]:
    """Returns the given run folders and all run folders below the given folders, in order and without duplicates.

    Args:
        folders: run folders, or folders that contain runs at any depth.

    Raises:
        ValueError: a folder contains no run.
    """
    found: dict[str, None] = {}
    for folder in folders:
        runs = list(_runs_below(folder))
        if not runs:
            raise ValueError(f"run_folder: expected a run folder or a folder that contains runs, got {folder}, which "
                             + (f"contains no {PROGRESS_FILE}" if os.path.isdir(folder) else "does not exist"))
        found.update(dict.fromkeys(os.path.normpath(run) for run in runs))
    return list(found)


def find_run(folder: str) -> str:
    """Returns a run folder: the given folder, or the only run folder below it. Snapshot files are returned unchanged.

    Raises:
        ValueError: the folder is missing or contains no run; or it contains several runs, which the message lists.
    """
    if os.path.isfile(folder) or os.path.isdir(folder) and snapshot_paths(folder):
        return folder
    runs = find_runs([folder])
    if len(runs) > 1:
        raise ValueError(f"run_folder: expected one run, got {len(runs)}: {', '.join(runs)}")
    return runs[0]


def _runs_below(folder: str) -> Iterator[str]:
    for path, names, files in os.walk(folder):
        names.sort()
        if PROGRESS_FILE in files:
            names.clear()
            yield path


def check_is_unused(folder: str) -> None:
    """Raises `ValueError` if a folder contains files of a run or is not writable. Does not create the folder."""
    if is_run(folder):
        raise ValueError(f"--dump_path: expected a folder without an earlier run, got {folder}. To resume the "
                         f"earlier run: {resume_command(folder)}")
    existing = os.path.abspath(folder)
    while not os.path.exists(existing):
        existing = os.path.dirname(existing)
    if not (os.path.isdir(existing) and os.access(existing, os.W_OK)):
        raise ValueError(f"--dump_path: expected a writable folder, got {folder}")
    if os.path.isdir(folder):
        logger.check_is_unused(folder)


def shortest(path: str) -> str:
    """Returns the relative or the absolute form of a path, whichever is shorter."""
    return min(os.path.relpath(path), os.path.abspath(path), key=len)


# Resuming --------------------------------------------------------------------------------------------------------


def read_resumable_params(folder: str, algorithm: str) -> dict[str, Any]:
    """Reads `params.json` and checks that the run can be resumed.

    Args:
        folder: run folder.
        algorithm: name of the algorithm.

    Raises:
        ValueError: the run cannot be resumed; the message contains the reason.
    """
    try:
        params = read_params(folder)
    except ValueError as error:
        raise ValueError(f"--resume: expected the folder of a run, got {folder}: {error}") from error
    wrong = [name for name, of_type in _PARAMS.items() if not isinstance(params.get(name), of_type)]
    if wrong:
        raise ValueError(f"--resume: expected the folder of a run, got {folder}, whose {PARAMS_FILE} lacks "
                         f"{', '.join(wrong)}")
    if params.get("made_by") == run_folder.MADE_BY_TRAINER:
        raise ValueError(f"--resume: expected a run that the command line started, got {folder}, which a Python "
                         f"program started. Resume it with: {resume_command(folder)}")
    if params["algorithm"] != algorithm:
        raise ValueError(f"--resume: expected a run of {algorithm}, got {folder}, a run of {params['algorithm']}")
    check_same_version(f"--resume: the run in {folder}", params["versions"].get("meta_policy_search"))
    return params


def resumed_config(config_class: type[ConfigT], recorded: dict[str, Any], given: dict[str, Any]) -> ConfigT:
    """Returns the settings of a resumed run: the recorded settings, updated by the given settings.

    Only a larger `n_itr` and settings without effect on the data (parallel sampling, plots, progress bar) may differ.

    Args:
        config_class: settings class.
        recorded: settings in `params.json`.
        given: settings from the command line.

    Raises:
        ValueError: another given setting differs; the message lists all differences.
    """
    before = make_config(config_class, recorded)
    if "parallel" in given:  # replaces all recorded settings of parallel sampling
        recorded = {name: value for name, value in recorded.items() if name not in PARALLEL_SETTINGS}
    config = make_config(config_class, {**recorded, **given})
    differing = differences(before, config, set(given) - set(_MAY_DIFFER))
    if differing:
        raise ValueError(f"resume: expected the settings of the run (n_itr may be increased), but {differing}")
    return config


def differences(before: RunConfig, now: RunConfig, names: Optional[Container[str]] = None) -> str:
    """Formats the settings in which two runs differ.

    A larger `n_itr` does not count as a difference, unless the learning rate depends on it.

    Args:
        before: settings of the earlier run.
        now: settings of the later run.
        names: names of the settings to compare; default None, all settings.
    """
    is_scheduled = vars(before).get("learning_rate_schedule") == "linear"
    pairs = {field.name: (vars(before)[field.name], vars(now)[field.name]) for field in dataclasses.fields(now)
             if names is None or field.name in names}
    return "; ".join(f"{name} was {old!r}, is {new!r}" for name, (old, new) in pairs.items()
                     if old != new and not (name == "n_itr" and old < new and not is_scheduled))


def ended_before_first_snapshot(folder: str, snapshot_mode: str) -> bool:
    """Returns whether a run ended before its first snapshot (every mode except `none` saves the first iteration)."""
    return snapshot_mode != "none" and not snapshot_paths(folder) and count_rows(folder) <= 1


def load_in_own_graph(folder: str) -> dict[str, Any]:
    """Loads the last snapshot of a run, with its policy in a separate graph.

    The default graph then contains only the parts of the resumed training, as in the original process.
    """
    from meta_policy_search.tf_compat import tf

    with tf.Graph().as_default():
        return load_snapshot(folder)


def resume_hint(folder: Optional[str]) -> str:
    """Returns a sentence with the command that resumes a run. `folder` is None if the run has no folder yet."""
    if folder is None or not os.path.isdir(folder) or not (snapshots := list_snapshots(folder)):
        return "There is no snapshot to resume from"
    return f"To resume after iteration {snapshots[-1].itr}: {resume_command(folder)}"


def resume_command(folder: str) -> str:
    """Returns the command line that resumes a run."""
    return shlex.join(["meta-policy-search", "resume", shortest(folder)])


def describe_process(command: list[str]) -> dict[str, Any]:
    """Calls `run_folder.describe_process` with the git revision of this folder."""
    return run_folder.describe_process(command, os.path.dirname(os.path.abspath(__file__)))
