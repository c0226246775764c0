"""Run folders: finds and describes runs, and reads and writes `params.json`.

A run folder contains `params.json`, `progress.csv`, `log.txt`, snapshots and pictures. `params.json` has the keys

* `algorithm`: name of the algorithm;
* `settings`: the settings that determine the result of the run, by name;
* `options`: the settings that have no effect on the result, such as `parallel` (`types.WithoutEffect`);
* `given`: names of the settings that the user gave; the others have their defaults;
* `command`, `started`, `modules`, `git_revision`, `versions`, `machine` and `tensorflow_flags` of the process that
  started it; `modules` contains the path of each module that a name of the form MODULE:NAME refers to;
* `resumed`: a list with the same entries, and the completed iterations, of each call that continued the run;
* `ended`, `stopped` (by a callback) and `error` (name of the exception), after the end of a process.
"""
import contextlib
import dataclasses
import datetime
import importlib.metadata
import itertools
import json
import os
import platform
import reprlib
import shlex
import subprocess
import sys
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

import numpy as np

from meta_policy_search import __version__
from meta_policy_search.envs.compat import innermost
from meta_policy_search.envs.mujoco_envs.engines import chosen_engine
from meta_policy_search.plotting import read_progress
from meta_policy_search.settings import differences, read_json, settings_of
from meta_policy_search.utils import logger
from meta_policy_search.utils.files import PathLike, check_folder, write_text
from meta_policy_search.utils.serializable import Configurable, name_of_callable, present_arguments
from meta_policy_search.utils.snapshotter import list_snapshots, snapshot_paths
from meta_policy_search.utils.threads import available_cores, blas_kernels

PARAMS_FILE = "params.json"
PROGRESS_FILE = "progress.csv"
_PACKAGES = ("tensorflow", "numpy", "scipy", "gym", "gymnasium", "mujoco", "cma", "cloudpickle", "joblib", "matplotlib")
_TYPES: Dict[str, Any] = {
    "settings": dict, "options": dict, "given": list, "algorithm": (str, type(None)), "env": (str, type(None)),
    **{name: (int, type(None)) for name in ("seed", "n_itr", "start_itr")}}
_MAX_NUMBERS = 100  # of an array in `params.json`; larger arrays are abbreviated
_FLAGS = ("TF_ENABLE_ONEDNN_OPTS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS",
          "TF_DETERMINISTIC_OPS", "TF_XLA_FLAGS", "XLA_FLAGS", "CUDA_VISIBLE_DEVICES")


# Writing ---------------------------------------------------------------------------------------------------------


def make_run_folder(experiment: str, env: str, seed: int) -> str:
    """Creates the folder `data/<experiment>/<env>/<time>_seed<seed>` for a new run; returns its path.

    Of names of the form MODULE:NAME, only NAME becomes part of the path.
    """
    names = (name.rpartition(":")[2] for name in (experiment, env))
    first = os.path.join("data", *names, f"{now():%Y-%m-%d_%H-%M-%S}_seed{seed}")
    for number in itertools.count(1):
        path = first if number == 1 else f"{first}_{number}"
        with contextlib.suppress(FileExistsError):  # of another run that starts in the same second
            os.makedirs(path)
            break
    return path


def write_params(folder: str, params: Mapping[str, Any]) -> None:
    """Writes `params.json` into a run folder."""
    write_text(os.path.join(folder, PARAMS_FILE), json.dumps(params, indent=2) + "\n")


def describe_parts(parts: Sequence[Any]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Returns the constructor arguments of all `Configurable` objects as JSON types.

    If several objects have an argument of the same name, the last object determines the value.

    Returns:
        The settings, and the options (`types.WithoutEffect`).
    """
    settings: Dict[str, Any] = {}
    options: Dict[str, Any] = {}
    for part in parts:
        if isinstance(part, Configurable):
            values = present_arguments(part)
            for name, setting in settings_of([type(part)]).items():
                if name in values:
                    (settings if setting.affects_result else options)[name] = as_json(values[name])
    return settings, options


def arguments_of_env(env: Any) -> Any:
    """Returns the arguments of an environment that differ from their defaults, as JSON types; empty if unknown."""
    inner = innermost(env)
    return as_json(present_arguments(inner, only_changed=True) if isinstance(inner, Configurable) else {})


def record_start(folder: str, description: Mapping[str, Any], itr: int) -> None:
    """Records in `params.json` that a process starts or resumes a run.

    A `params.json` that the user's script wrote (without the key `settings`) stays unchanged.

    Args:
        folder: run folder.
        description: the first four entries of `params.json`.
        itr: number of completed iterations; above 0 if the run is resumed.
    """
    before = _read(folder)
    if before and "settings" not in before:
        return
    names = [description["algorithm"], *map(description["settings"].get, ("env", "policy"))]
    modules = {name.rpartition(":")[0] for name in names if isinstance(name, str) and ":" in name}
    process = {**describe_process([os.path.basename(sys.argv[0]), *sys.argv[1:]]),
               "modules": {name: vars(sys.modules[name]).get("__file__")
                           for name in sorted(modules & sys.modules.keys())}}
    params = {**description, **process, "resumed": []}
    if before and itr:
        warn_of_changes(before, process)
        kept = {name: value for name, value in before.items() if name not in ("ended", "stopped", "error")}
        params = {**kept, **description, "resumed": [*before["resumed"], {"itr": itr, **process}]}
    write_params(folder, params)


def record_end(folder: str, stopped: bool, error: Optional[str] = None) -> None:
    """Records the end of training in `params.json`.

    Args:
        folder: run folder.
        stopped: whether a callback stopped training.
        error: name of the exception that ended training. Default None: training ended without an error, or by Ctrl-C.
    """
    params = _read(folder)
    if "settings" in params:
        ended = now().isoformat(timespec="seconds")
        write_params(folder, {**params, "ended": ended, "stopped": stopped, "error": error})


def _read(folder: str) -> Dict[str, Any]:
    """Returns the content of `params.json`; an empty dict if the file is missing or unreadable."""
    with contextlib.suppress(ValueError):
        return read_params(folder)
    return {}


def as_json(value: Any) -> Any:
    """Converts a setting to JSON types.

    Functions and classes become their names, dataclasses dicts, other objects their `repr`, or the name of their class
    if it defines no `__repr__`.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return as_json(dataclasses.asdict(value))
    if isinstance(value, (np.generic, np.ndarray)) and value.size <= _MAX_NUMBERS:
        return value.tolist()
    if isinstance(value, Configurable):
        return repr(value).removesuffix("()")
    if type(value).__repr__ is object.__repr__:
        return type(value).__name__
    return name_of_callable(value) or reprlib.repr(value)


def now() -> datetime.datetime:
    """Returns the current time in the local time zone."""
    return datetime.datetime.now().astimezone()


def describe_process(command: List[str]) -> Dict[str, Any]:
    """Returns the command, and everything other than the settings that can affect the results of a run.

    Args:
        command: command line that started the process, as a list of arguments.

    Returns:
        Dict of JSON types: command, start time, git revision, versions of packages, machine and TensorFlow flags.
    """
    return {
        "command": command,
        "started": now().isoformat(timespec="seconds"),
        "git_revision": _git_revision(os.path.dirname(os.path.abspath(__file__))),
        "versions": {
            "python": platform.python_version(),
            "meta_policy_search": __version__,
            **{name: _version(name) for name in _PACKAGES},
        },
        "machine": {"system": platform.platform(), "processor": platform.machine(), "cores": available_cores(),
                    "blas_kernels": blas_kernels(), "physics_engine": chosen_engine()},
        "tensorflow_flags": {name: os.environ.get(name) for name in _FLAGS},
    }


def warn_of_changes(params: Mapping[str, Any], process: Mapping[str, Any]) -> None:
    """Logs a warning if the process that resumes a run differs from the process that started it."""
    before, now = (
        {"git_revision": part.get("git_revision"), **part.get("modules", {}), **part.get("versions", {}),
         **part.get("machine", {}), **part.get("tensorflow_flags", {})} for part in (params, process)
    )
    if changes := differences(before, now, ("before", "now")):
        logger.warn(f"the resumed run may differ from an uninterrupted one: {changes}")


def _version(package: str) -> Optional[str]:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _git_revision(folder: str) -> Optional[str]:
    """Returns the git commit of a folder, with the suffix `-dirty` for uncommitted changes; None without git."""
    command = ["git", "-c", "core.fsmonitor=false", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=10.0, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip()


# Reading ---------------------------------------------------------------------------------------------------------


def is_run(folder: str) -> bool:
    """Returns whether a folder contains the `params.json` of a run."""
    return os.path.exists(os.path.join(folder, PARAMS_FILE))


def read_params(folder: str) -> dict[str, Any]:
    """Reads `params.json` in a run folder; an empty dict if it is missing. Raises `ValueError` if it is unreadable."""
    path = os.path.join(folder, PARAMS_FILE)
    params = read_json(path) if is_run(folder) else {}
    if "settings" in params:  # not written by a script of the user
        settings = params["settings"] if isinstance(params["settings"], dict) else {}
        for name, value in {**settings, **params}.items():
            if not isinstance(value, _TYPES.get(name, object)):
                raise ValueError(f"{path}: {name} has an unexpected value: {reprlib.repr(value)}")
    return params


def count_rows(folder: str) -> int:
    """Returns the number of iterations in the `progress.csv` of a run."""
    try:
        return len(next(iter(read_progress(folder).values())))
    except ValueError:  # no rows
        return 0


def is_done(folder: str, n_itr: Optional[int] = None) -> bool:
    """Returns whether a run has completed `n_itr` iterations, or was stopped by a callback.

    If the snapshot mode saves the last iteration, the snapshot of that iteration must also exist.

    Args:
        folder: run folder.
        n_itr: number of iterations. Default None: as in `params.json`; if there is none, the run must have ended.
    """
    params = _read(folder)
    n_itr = params.get("settings", {}).get("n_itr") if n_itr is None else n_itr
    if params.get("stopped") or n_itr is None:
        return "ended" in params
    if params.get("settings", {}).get("start_itr", 0) + count_rows(folder) < n_itr:
        return False
    if params.get("options", {}).get("snapshot_mode") not in ("all", "last", "last_gap"):
        return True
    return max(list_snapshots(folder).values(), default=-1) + 1 >= n_itr


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
                             + (f"contains no {PROGRESS_FILE}" if os.path.isdir(folder) else
                                "is not a folder" if os.path.exists(folder) else "does not exist"))
        found.update(dict.fromkeys(os.path.normpath(run) for run in runs))
    return list(found)


def find_run(folder: str) -> str:
    """Returns a run folder: the given folder, or the only run folder below it.

    Raises:
        ValueError: the folder is missing or contains no run; or it contains several runs, which the message lists.
    """
    if snapshot_paths(folder):
        return folder
    runs = find_runs([folder])
    if len(runs) > 1:
        raise ValueError(f"run_folder: expected one run, got {len(runs)}: {', '.join(runs)}")
    return runs[0]


def _runs_below(folder: str) -> Iterator[str]:
    seen: Set[str] = set()  # links can be cycles
    for path, names, files in os.walk(folder, followlinks=True):
        names.sort()
        real, is_run = os.path.realpath(path), PROGRESS_FILE in files
        if real in seen or is_run:
            names.clear()
        if is_run and real not in seen:
            yield path
        seen.add(real)


def ended_before_first_snapshot(folder: str) -> bool:
    """Returns whether a folder contains a run that ended before its first snapshot: it can only be started again."""
    params = _read(folder)
    saves = "settings" in params and params.get("options", {}).get("snapshot_mode", "none") != "none"
    return saves and not snapshot_paths(folder) and count_rows(folder) <= 1


def check_is_unused(folder: PathLike) -> None:
    """Raises `ValueError` if a folder contains files of a run. Does not create the folder.

    The files of a run that ended before its first snapshot may be overwritten.
    """
    folder = check_folder("dump_path", folder)
    if (is_run(folder) or logger.earlier_files(folder)) and not ended_before_first_snapshot(folder):
        raise ValueError(f"dump_path: {folder} already contains a run: resume it ({resume_command(folder)}) or choose "
                         "another folder")


def shortest(path: str) -> str:
    """Returns the relative or the absolute form of a path, whichever is shorter."""
    try:
        return min(os.path.relpath(path), os.path.abspath(path), key=len)
    except FileNotFoundError:  # the working directory was deleted
        return path


def resume_hint(folder: Optional[str]) -> str:
    """Returns a sentence with the command that resumes a run. `folder` is None if the run has no folder yet."""
    if folder is None or not (snapshots := list_snapshots(folder)):
        return "There is no snapshot to resume from"
    return (f"To resume after iteration {max(snapshots.values())}: {resume_command(folder)}, or in Python "
            f"mps.load_run({folder!r}).resume()")


def resume_command(folder: str) -> str:
    """Returns the command line that resumes a run."""
    return shlex.join(["meta-policy-search", "resume", shortest(folder)])
