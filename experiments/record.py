"""Run folders: what a run writes down about itself in `params.json`, and what it takes to go on with it.

A run folder also holds `progress.csv`, `log.txt`, snapshots, `learning_curve.png` and, with the setting `diagnostics`,
`diagnostics.png`.
"""
import contextlib
import glob
import json
import os
import shlex
from typing import Any, Iterator, Mapping, Optional, Sequence

from experiments.settings import PARALLEL_SETTINGS, ConfigT, RunConfig, make_config, read_json
from meta_policy_search import run_folder
from meta_policy_search.plotting import read_progress
from meta_policy_search.utils.snapshotter import (
    check_same_version,
    holds_snapshot,
    list_snapshots,
    load_snapshot,
)

PARAMS_FILE = run_folder.PARAMS_FILE
PROGRESS_FILE = "progress.csv"
_PICTURES = ("learning_curve.png", "diagnostics.png")
_PARAMS = {"script": str, "settings": dict, "versions": dict, "machine": dict, "tensorflow_flags": dict,
           "resumed": list}
_SHOWING_SETTINGS = ("plot_gap", "progress_bar")


# Run folders -----------------------------------------------------------------------------------------------------


def make_default_folder(script: str, config: RunConfig) -> str:
    """Makes the folder of a run of a script that begins now, which no other run gets; returns its path."""
    return run_folder.make_run_folder(script, config.env, config.seed)


def is_run(folder: str) -> bool:
    """Returns whether a run has begun in a folder."""
    return os.path.exists(os.path.join(folder, PARAMS_FILE))


def read_params(folder: str) -> dict[str, Any]:
    """Returns what `params.json` says in a run folder; raises `ValueError` if it cannot be read."""
    return read_json(os.path.join(folder, PARAMS_FILE))


def count_rows(folder: str) -> int:
    """Returns how many iterations of a run are in its `progress.csv`."""
    try:
        return len(next(iter(read_progress(folder).values())))
    except ValueError:  # no folder, or no row
        return 0


def is_done(folder: str, settings: Mapping[str, Any]) -> bool:
    """Returns whether a run has done all its iterations and, where it takes snapshots of the last one, has that too.

    So is a run that a callback has stopped.
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
        folders: run folders, folders with runs in them, or patterns of these, such as `data/*/seed?`.

    Raises:
        ValueError: there is no run in one of them.
    """
    found: dict[str, None] = {}
    for folder in folders:
        matching = [folder] if os.path.exists(folder) else sorted(glob.glob(folder))
        runs = [run for match in matching for run in _runs_below(match)]
        if not runs:
            raise ValueError(f"run_folder: expected a run folder or one with runs in it, got {folder}: there is no "
                             f"{PROGRESS_FILE} in it or below" if matching else
                             f"run_folder: expected a run folder or one with runs in it, got {folder}, which does not "
                             "exist")
        found.update(dict.fromkeys(os.path.normpath(run) for run in runs))
    return list(found)


def _runs_below(folder: str) -> Iterator[str]:
    for path, names, files in os.walk(folder):
        names.sort()
        if PROGRESS_FILE in files:
            names.clear()
            yield path


def check_is_unused(folder: str) -> None:
    """Raises `ValueError` if a folder holds a run, or pictures of one."""
    if is_run(folder):
        raise ValueError(f"--dump_path: expected a folder without an earlier run, got {folder}. To go on with that "
                         f"run: --resume {folder}")
    pictures = [name for name in _PICTURES if os.path.exists(os.path.join(folder, name))]
    if pictures:
        raise ValueError(f"--dump_path: expected a folder without files of an earlier run, got {folder}, which holds "
                         f"{', '.join(pictures)}")


def shortest(path: str) -> str:
    """Returns a path in the form with fewer characters, relative or absolute."""
    return min(os.path.relpath(path), os.path.abspath(path), key=len)


# Going on with a run ---------------------------------------------------------------------------------------------


def read_resumable_params(folder: str, script: str) -> dict[str, Any]:
    """Returns what `params.json` says of a run that this version of a script can go on with.

    Raises:
        ValueError: it cannot; says why.
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
        raise ValueError(f"--resume: expected a run of {script}, {folder} holds one that was made in Python, and goes "
                         f"on there: {in_python(folder, '...')}, with `import meta_policy_search as mps`")
    if params["script"] != script:
        raise ValueError(f"--resume: expected a run of {script}, {folder} holds one of {params['script']}")
    check_same_version(f"--resume: the run in {folder}", params["versions"].get("meta_policy_search"))
    return params


def resumed_config(config_class: type[ConfigT], recorded: dict[str, Any], given: dict[str, Any]) -> ConfigT:
    """Returns the settings to go on with: those of the run, with `n_itr` raised if it is given.

    What is shown on the way may change, and what steps the environments.

    Raises:
        ValueError: something else is given that differs; lists it.
    """
    before = make_config(config_class, recorded)
    if "parallel" in given:  # what it was on Ray concerns that cluster
        recorded = {name: value for name, value in recorded.items() if name not in PARALLEL_SETTINGS}
    config = make_config(config_class, {**recorded, **given})
    may_differ = (*PARALLEL_SETTINGS, *_SHOWING_SETTINGS)
    differences = [
        f"{name} is {getattr(before, name)!r} there, {getattr(config, name)!r} here"
        for name in given
        if getattr(before, name) != getattr(config, name) and name not in may_differ
        and not (name == "n_itr" and config.n_itr > before.n_itr)
    ]
    if differences:
        raise ValueError("--resume: expected the settings of the run (n_itr may be raised), but "
                         + "; ".join(differences))
    return config


def ended_before_first_snapshot(folder: str, snapshot_mode: str) -> bool:
    """Returns whether a run ended before the snapshot of its first iteration, which every mode but none takes."""
    return snapshot_mode != "none" and not holds_snapshot(folder) and count_rows(folder) <= 1


def load_in_own_graph(folder: str, itr: Optional[int] = None) -> dict[str, Any]:
    """Returns a run's snapshot of an iteration, by default the last one.

    Its policy is in a graph of its own: training's graph stays as in the first run.
    """
    from meta_policy_search.tf_compat import tf

    with tf.Graph().as_default():
        return load_snapshot(folder, itr)


def resume_hint(script_path: str, folder: Optional[str]) -> str:
    """Returns a sentence that says how to go on with the run in a folder, None for one that has not begun."""
    snapshots = list_snapshots(folder) if folder is not None and os.path.isdir(folder) else []
    if not snapshots:
        return "There is no snapshot to go on from"
    return f"To go on after iteration {snapshots[-1].itr}: {resume_command(script_path, folder)}"


def resume_command(script_path: str, folder: str) -> str:
    """Returns the command line that goes on with the run in a folder."""
    return shlex.join(["python", shortest(script_path), "--resume", shortest(folder)])


def in_python(folder: str, n_itr: Any) -> str:
    """Returns the call that goes on with the run in a folder, which was made in Python."""
    return f"mps.load_run({json.dumps(shortest(folder))}).resume(n_itr={n_itr})"


def describe_process(command: list[str]) -> dict[str, Any]:
    """Returns what, beside the settings, the numbers of a run may depend on; the revision is that of the scripts."""
    return run_folder.describe_process(command, os.path.dirname(os.path.abspath(__file__)))
