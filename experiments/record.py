"""Run folders: finds and reads them, and decides whether and how a run can be resumed.

A run folder holds `params.json`, `progress.csv`, `log.txt`, snapshots, `learning_curve.png` and, with the setting
`diagnostics`, `diagnostics.png`.
"""
import contextlib
import dataclasses
import json
import os
import shlex
from typing import Any, Container, Iterator, Mapping, Optional, Sequence

from experiments.settings import PARALLEL_SETTINGS, ConfigT, RunConfig, make_config, read_json
from meta_policy_search import run_folder
from meta_policy_search.plotting import Progress, read_progress
from meta_policy_search.utils.snapshotter import (
    check_same_version,
    list_snapshots,
    load_snapshot,
    snapshot_paths,
)

PARAMS_FILE = run_folder.PARAMS_FILE
PROGRESS_FILE = "progress.csv"
_PARAMS = {"script": str, "settings": dict, "versions": dict, "machine": dict, "tensorflow_flags": dict,
           "resumed": list}
_MAY_DIFFER = (*PARALLEL_SETTINGS, "plot_gap", "progress_bar")  # they do not change the data of a run


# Reading ---------------------------------------------------------------------------------------------------------


def is_run(folder: str) -> bool:
    """Returns whether a folder holds the `params.json` of a run."""
    return os.path.exists(os.path.join(folder, PARAMS_FILE))


def read_params(folder: str) -> dict[str, Any]:
    """Returns the content of `params.json` in a run folder; raises `ValueError` if it cannot be read."""
    return read_json(os.path.join(folder, PARAMS_FILE))


def read_rows(folder: str) -> Progress:
    """Returns the columns of `progress.csv` in a run folder; an empty dict if there is no row yet."""
    try:
        return read_progress(folder)
    except ValueError:
        return {}


def count_rows(folder: str) -> int:
    """Returns how many iterations of a run are in its `progress.csv`."""
    return len(next(iter(read_rows(folder).values()), ()))


def is_done(folder: str, settings: Mapping[str, Any]) -> bool:
    """Returns whether a run has done all its iterations, or was stopped by a callback.

    If the run takes a snapshot of its last iteration, that must exist, too.
    """
    with contextlib.suppress(ValueError):  # there is no `params.json`, or it cannot be read
        if read_params(folder).get("stopped"):
            return True
    if count_rows(folder) < settings["n_itr"]:
        return False
    if settings.get("snapshot_mode") not in ("all", "last", "last_gap"):
        return True
    snapshots = list_snapshots(folder)
    return bool(snapshots) and snapshots[-1].itr + 1 >= settings["n_itr"]


def find_runs(folders: Sequence[str]) -> list[str]:
    """Returns the run folders among some folders and below them, each once, in order.

    Args:
        folders: run folders, or folders that contain runs.

    Raises:
        ValueError: one of them contains no run.
    """
    found: dict[str, None] = {}
    for folder in folders:
        runs = list(_runs_below(folder))
        if not runs:
            raise ValueError(f"run_folder: expected a run folder or one with runs in it, got {folder}: there is no "
                             f"{PROGRESS_FILE} in it or below")
        found.update(dict.fromkeys(os.path.normpath(run) for run in runs))
    return list(found)


def _runs_below(folder: str) -> Iterator[str]:
    for path, names, files in os.walk(folder):
        names.sort()
        if PROGRESS_FILE in files:
            names.clear()
            yield path


def check_is_unused(folder: str) -> None:
    """Raises `ValueError` if a folder holds a run."""
    if is_run(folder):
        raise ValueError(f"--dump_path: expected a folder without an earlier run, got {folder}. To resume that "
                         f"run: --resume {folder}")


def shortest(path: str) -> str:
    """Returns the shorter form of a path, relative or absolute."""
    return min(os.path.relpath(path), os.path.abspath(path), key=len)


# Resuming --------------------------------------------------------------------------------------------------------


def read_resumable_params(folder: str, script: str) -> dict[str, Any]:
    """Returns the content of `params.json` of a run that a script can resume.

    Raises:
        ValueError: it cannot; the message says why.
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
        raise ValueError(f"--resume: expected a run of {script}, {folder} holds one that was made in Python; "
                         f"resume it there: {in_python(folder, '...')}, with `import meta_policy_search as mps`")
    if params["script"] != script:
        raise ValueError(f"--resume: expected a run of {script}, {folder} holds one of {params['script']}")
    check_same_version(f"--resume: the run in {folder}", params["versions"].get("meta_policy_search"))
    return params


def resumed_config(config_class: type[ConfigT], recorded: dict[str, Any], given: dict[str, Any]) -> ConfigT:
    """Returns the settings of a resumed run: those that it recorded, with `n_itr` raised if it is given.

    The settings of parallel sampling and of output on the way may change.

    Raises:
        ValueError: another setting is given that differs; lists all of them.
    """
    before = make_config(config_class, recorded)
    if "parallel" in given:  # then the recorded cluster of Ray is not used any more
        recorded = {name: value for name, value in recorded.items() if name not in PARALLEL_SETTINGS}
    config = make_config(config_class, {**recorded, **given})
    differing = differences(before, config, set(given) - set(_MAY_DIFFER))
    if differing:
        raise ValueError(f"--resume: expected the settings of the run (n_itr may be raised), but {differing}")
    return config


def differences(before: RunConfig, now: RunConfig, names: Optional[Container[str]] = None) -> str:
    """Lists the settings in which two runs differ; a larger `n_itr` is no difference.

    Args:
        before: settings of the earlier run.
        now: settings of the later run.
        names: settings to compare; by default all.
    """
    pairs = {field.name: (getattr(before, field.name), getattr(now, field.name)) for field in dataclasses.fields(now)
             if names is None or field.name in names}
    return "; ".join(f"{name} is {old!r} there, {new!r} here" for name, (old, new) in pairs.items()
                     if old != new and not (name == "n_itr" and old < new))


def ended_before_first_snapshot(folder: str, snapshot_mode: str) -> bool:
    """Returns whether a run ended before the snapshot of its first iteration, which every mode but none takes."""
    return snapshot_mode != "none" and not snapshot_paths(folder) and count_rows(folder) <= 1


def load_in_own_graph(folder: str) -> dict[str, Any]:
    """Returns the last snapshot of a run, with its policy in a separate graph.

    So the graph of the resumed training equals that of the first one.
    """
    from meta_policy_search.tf_compat import tf

    with tf.Graph().as_default():
        return load_snapshot(folder)


def resume_hint(script_path: str, folder: Optional[str]) -> str:
    """Returns a sentence with the command that resumes the run in a folder; None for a run that has not begun."""
    snapshots = list_snapshots(folder) if folder is not None and os.path.isdir(folder) else []
    if not snapshots:
        return "There is no snapshot to resume from"
    return f"To resume after iteration {snapshots[-1].itr}: {resume_command(script_path, folder)}"


def resume_command(script_path: str, folder: str) -> str:
    """Returns the command line that resumes the run in a folder."""
    return shlex.join(["python", shortest(script_path), "--resume", shortest(folder)])


def in_python(folder: str, n_itr: Any) -> str:
    """Returns the call that resumes the run in a folder, which was made in Python."""
    return f"mps.load_run({json.dumps(shortest(folder))}).resume(n_itr={n_itr})"


def describe_process(command: list[str]) -> dict[str, Any]:
    """Returns what the numbers of a run may depend on beside its settings; the revision is that of the scripts."""
    return run_folder.describe_process(command, os.path.dirname(os.path.abspath(__file__)))
