"""The file `params.json` of a run: settings, command, versions, machine and times."""
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
MADE_BY_TRAINER = "Trainer"  # `made_by` in the `params.json` of a run that is not of a script
_PACKAGES = ("tensorflow", "numpy", "scipy", "gym", "gymnasium", "mujoco", "cma", "cloudpickle", "joblib", "matplotlib")
_FLAGS = ("TF_ENABLE_ONEDNN_OPTS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS",
          "TF_DETERMINISTIC_OPS", "TF_XLA_FLAGS", "XLA_FLAGS", "CUDA_VISIBLE_DEVICES")


def make_run_folder(experiment: str, env: str, seed: int) -> str:
    """Creates a new folder for a run that begins now; returns its path."""
    path = first = os.path.join("data", experiment, env, f"{now():%Y-%m-%d_%H-%M-%S}_seed{seed}")
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
    """Records in `params.json` that a run outside of the scripts begins, or resumes with iteration `itr` above 0.

    Args:
        folder: the run folder.
        name: name of the algorithm, in place of the script.
        settings: settings by name, in types of JSON.
        itr: the next iteration.
    """
    process = describe_process([sys.executable, *sys.argv], os.getcwd())
    params = {"script": name, "made_by": MADE_BY_TRAINER, "settings": settings, **process, "resumed": []}
    before = _read(folder)
    if before is not None and "settings" not in before:  # written by a user's script
        return
    if before is not None and itr:
        if before.get("made_by") != MADE_BY_TRAINER:  # of a script, which knows the settings
            settings = {**before["settings"], "n_itr": settings["n_itr"]}
        before.pop("ended", None)
        resumed = [*before["resumed"], {"itr": itr, **process}]
        params = {**before, "settings": settings, "stopped": False, "resumed": resumed}
    write_params(folder, params)


def record_end(folder: str, stopped: bool) -> None:
    """Records the end of training, and whether a callback stopped it."""
    params = _read(folder)
    if params is not None and "settings" in params:
        write_params(folder, {**params, "ended": now().isoformat(timespec="seconds"), "stopped": stopped})


def _read(folder: str) -> Optional[Dict[str, Any]]:
    try:
        with open(os.path.join(folder, PARAMS_FILE), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):  # missing or unreadable
        return None


def settings_of(*parts: Any) -> Dict[str, Any]:
    """Returns the arguments of all `Configurable` objects in types of JSON; later objects override earlier ones."""
    return {name: as_json(value) for part in parts if isinstance(part, Configurable)
            for name, value in present_arguments(part).items() if name != "name"}


def as_json(value: Any) -> Any:
    """Returns a setting in types of JSON; objects and functions become their names."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return repr(value) if isinstance(value, Configurable) else reprlib.repr(value)


def now() -> datetime.datetime:
    """Returns the time in the time zone of this machine."""
    return datetime.datetime.now().astimezone()


def describe_process(command: List[str], code_folder: str) -> Dict[str, Any]:
    """Returns everything besides the settings that the results of a run may depend on, and its command.

    Args:
        command: the command that started the process.
        code_folder: folder with the git repository of the code.
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
    """Warns of differences between the process that started a run and the process that resumes it."""
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
    """Returns the commit of a folder, with `-dirty` if files differ from it; None without git."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=10.0, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip()
