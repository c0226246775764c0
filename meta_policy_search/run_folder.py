"""Run folders and their file `params.json`: settings, command, versions, machine and times of a run."""
import datetime
import importlib.metadata
import json
import os
import platform
import reprlib
import subprocess
import sys
from typing import Any, Dict, List, Mapping, Optional

from meta_policy_search import __version__
from meta_policy_search.envs.mujoco_envs.engines import chosen_engine
from meta_policy_search.utils import logger
from meta_policy_search.utils.files import write_text
from meta_policy_search.utils.serializable import Configurable, present_arguments
from meta_policy_search.utils.threads import available_cores

PARAMS_FILE = "params.json"
MADE_BY_TRAINER = "Trainer"  # value of `made_by` in `params.json` if a `Trainer`, not the command line, wrote the file
_PACKAGES = ("tensorflow", "numpy", "scipy", "gym", "gymnasium", "mujoco", "cma", "cloudpickle", "joblib", "matplotlib")
_FLAGS = ("TF_ENABLE_ONEDNN_OPTS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS",
          "TF_DETERMINISTIC_OPS", "TF_XLA_FLAGS", "XLA_FLAGS", "CUDA_VISIBLE_DEVICES")


def make_run_folder(experiment: str, env: str, seed: int) -> str:
    """Creates the folder `data/<experiment>/<env>/<time>_seed<seed>` for a new run; returns its path.

    Of names of the form MODULE:NAME, only NAME becomes part of the path.
    """
    names = (name.rpartition(":")[2] for name in (experiment, env))
    path = first = os.path.join("data", *names, f"{now():%Y-%m-%d_%H-%M-%S}_seed{seed}")
    number = 1
    while os.path.exists(path):
        number += 1
        path = f"{first}_{number}"
    os.makedirs(path)
    return path


def write_params(folder: str, params: Mapping[str, Any]) -> None:
    """Writes `params.json` into a run folder."""
    write_text(os.path.join(folder, PARAMS_FILE), json.dumps(params, indent=2) + "\n")


def record_start(folder: str, name: str, settings: Mapping[str, Any], itr: int) -> None:
    """Records in `params.json` that a `Trainer` starts or resumes a run without the command line.

    Files that a user's script wrote (without the key `settings`) stay unchanged.

    Args:
        folder: run folder.
        name: name of the algorithm, recorded under the key `algorithm`.
        settings: settings by name, as JSON types.
        itr: number of completed iterations; above 0 if the run is resumed.
    """
    process = describe_process([sys.executable, *sys.argv], os.getcwd())
    params = {"algorithm": name, "made_by": MADE_BY_TRAINER, "settings": settings, **process, "resumed": []}
    before = _read(folder)
    if before is not None and "settings" not in before:  # written by a user's script
        return
    if before is not None and itr:
        if before.get("made_by") != MADE_BY_TRAINER:  # keep the settings that the command line recorded
            settings = {**before["settings"], "n_itr": settings["n_itr"]}
        resumed = [*before["resumed"], {"itr": itr, **process}]
        params = {**without_end(before), "settings": settings, "resumed": resumed}
    write_params(folder, params)


def record_end(folder: str, stopped: bool, error: Optional[str] = None) -> None:
    """Records the end of training in `params.json`.

    Args:
        folder: run folder.
        stopped: whether a callback stopped training.
        error: name of the exception that ended training. Default None: training ended without an error, or by Ctrl-C.
    """
    params = _read(folder)
    if params is not None and "settings" in params:
        ended = now().isoformat(timespec="seconds")
        write_params(folder, {**params, "ended": ended, "stopped": stopped, "error": error})


def without_end(params: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the content of `params.json` without the records of `record_end`, for a resumed run."""
    return {name: value for name, value in params.items() if name not in ("ended", "stopped", "error")}


def _read(folder: str) -> Optional[Dict[str, Any]]:
    try:
        with open(os.path.join(folder, PARAMS_FILE), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):  # missing or unreadable
        return None


def settings_of(*parts: Any) -> Dict[str, Any]:
    """Returns the constructor arguments of all `Configurable` objects as JSON types.

    If several objects have an argument of the same name, the last object determines the value.
    """
    return {name: as_json(value) for part in parts if isinstance(part, Configurable)
            for name, value in present_arguments(part).items() if name != "name"}


def as_json(value: Any) -> Any:
    """Converts a setting to JSON types; functions and classes become their names, other objects their `repr`.

    The `repr` of objects that are neither a `Configurable` nor callable (such as a schedule) is abbreviated.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    if isinstance(value, Configurable):
        return repr(value).removesuffix("()")
    return repr(value) if callable(value) else reprlib.repr(value)


def now() -> datetime.datetime:
    """Returns the current time in the local time zone."""
    return datetime.datetime.now().astimezone()


def describe_process(command: List[str], code_folder: str) -> Dict[str, Any]:
    """Returns the command, and everything other than the settings that can affect the results of a run.

    Args:
        command: command line that started the process, as a list of arguments.
        code_folder: folder with the git repository of the code.

    Returns:
        Dict of JSON types: command, start time, git revision, versions of packages, machine and TensorFlow flags.
    """
    return {
        "command": command,
        "started": now().isoformat(timespec="seconds"),
        "git_revision": _git_revision(code_folder),
        "versions": {
            "python": platform.python_version(),
            "meta_policy_search": __version__,
            **{name: _version(name) for name in _PACKAGES},
        },
        "machine": {"system": platform.platform(), "processor": platform.machine(), "cores": available_cores(),
                    "physics_engine": chosen_engine()},
        "tensorflow_flags": {name: os.environ.get(name) for name in _FLAGS},
    }


def warn_of_changes(params: Mapping[str, Any], process: Mapping[str, Any]) -> None:
    """Logs a warning if the process that resumes a run differs from the process that started it."""
    before, now = (
        {"git_revision": part.get("git_revision"), **part["versions"], **part["machine"], **part["tensorflow_flags"]}
        for part in (params, process)
    )
    changes = [f"{name} was {before.get(name)}, is {value}" for name, value in now.items() if before.get(name) != value]
    if changes:
        logger.warn("the resumed run may differ from an uninterrupted one: " + "; ".join(changes))


def _version(package: str) -> Optional[str]:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _git_revision(folder: str) -> Optional[str]:
    """Returns the git commit of a folder, with the suffix `-dirty` for uncommitted changes; None without git."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=10.0, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip()
