"""Run folders: finds and describes runs, and reads and writes `params.json`.

A run folder contains `params.json`, `progress.csv`, `log.txt`, snapshots and pictures. `params.json` has the keys

* `algorithm`: name of the algorithm;
* `settings`: the settings that determine the result of the run, by name;
* `options`: the settings that have no effect on the result, such as `parallel` (`types.WithoutEffect`);
* `given`: names of the settings that the user gave; the others have their defaults;
* `command`, `started`, `modules`, `git_revision`, `versions`, `machine` and `tensorflow_flags` of the process that
  started it; `modules` contains the file and its SHA-256 of each module that a name MODULE:NAME refers to;
* `resumed`: a list with the same entries, and the completed iterations, of each call that continued the run;
* `ended`, `stopped` (by a callback) and `error` (name of the exception), after the end of a process.
"""
import contextlib
import datetime
import functools
import hashlib
import importlib.metadata
import itertools
import json
import math
import os
import platform
import reprlib
import shlex
import subprocess
import sys
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set

from meta_policy_search import __version__
from meta_policy_search.envs.mujoco_envs.engines import chosen_engine
from meta_policy_search.plotting import Progress, final_returns, final_success, read_progress
from meta_policy_search.plotting.progress import number_of_last
from meta_policy_search.settings import differences, read_json
from meta_policy_search.utils import logger
from meta_policy_search.utils.files import PathLike, is_locked, user_path, write_text
from meta_policy_search.utils.snapshotter import list_snapshots, snapshot_paths
from meta_policy_search.utils.statistics import exact_mean
from meta_policy_search.utils.threads import available_cores, blas_kernels

PARAMS_FILE = "params.json"
PROGRESS_FILE = "progress.csv"
STATES = ("running", "finished", "stopped", "failed", "interrupted", "unknown")
_PACKAGES = ("tensorflow", "numpy", "scipy", "gym", "gymnasium", "mujoco", "cma", "cloudpickle", "joblib", "matplotlib")
_TYPES: Dict[str, Any] = {
    "settings": dict, "options": dict, "given": list, "algorithm": (str, type(None)), "env": (str, type(None)),
    **{name: (int, type(None)) for name in ("seed", "n_itr", "start_itr")}}
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


def record_start(folder: str, description: Mapping[str, Any], itr: int) -> None:
    """Records in `params.json` that a process starts or resumes a run.

    A `params.json` that the user's script wrote (without the key `settings`) stays unchanged.

    Args:
        folder: run folder.
        description: the first four entries of `params.json`.
        itr: number of completed iterations; above 0 if the run is resumed.

    Raises:
        ValueError: `params.json` exists and cannot be read.
    """
    before = read_params(folder)
    if before and "settings" not in before:
        return
    process = {**describe_process([os.path.basename(sys.argv[0]), *sys.argv[1:]]),
               "modules": describe_modules(description)}
    params = {**description, **process, "resumed": []}
    if before and itr:
        warn_of_changes(before, process)
        kept = {name: value for name, value in before.items() if name not in ("ended", "stopped", "error")}
        params = {**kept, **description, "resumed": [*before["resumed"], {"itr": itr, **process}]}
    write_params(folder, params)


def record_end(folder: str, n_itr: Optional[int], stopped: bool, error: Optional[str] = None) -> None:
    """Records the end of training in `params.json`.

    Args:
        folder: run folder.
        n_itr: number of iterations, which a callback may have changed.
        stopped: whether a callback stopped training.
        error: name of the exception that ended training. Default None: training ended without an error, or by Ctrl-C.
    """
    params = RunInfo.read(folder).params
    if "settings" in params:
        ended = now().isoformat(timespec="seconds")
        write_params(folder, {**params, "settings": {**params["settings"], "n_itr": n_itr}, "ended": ended,
                              "stopped": stopped, "error": error})


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
        "command": command, "started": now().isoformat(timespec="seconds"),
        "git_revision": _git_revision(os.path.dirname(os.path.abspath(__file__))),
        "versions": {"python": platform.python_version(), "meta_policy_search": __version__,
                     **{name: _version(name) for name in _PACKAGES}},
        "machine": {"system": platform.platform(), "processor": platform.machine(), "cores": available_cores(),
                    "blas_kernels": blas_kernels(), "physics_engine": chosen_engine()},
        "tensorflow_flags": {name: os.environ.get(name) for name in _FLAGS}}


def describe_modules(params: Mapping[str, Any]) -> Dict[str, Dict[str, Optional[str]]]:
    """Returns the file and its SHA-256 of each imported module that a name MODULE:NAME in `params.json` refers to."""
    names = [params.get("algorithm"), *map(params.get("settings", {}).get, ("env", "policy"))]
    modules = {name.rpartition(":")[0] for name in names if isinstance(name, str) and ":" in name}
    found: Dict[str, Dict[str, Optional[str]]] = {}
    for name in sorted(modules & sys.modules.keys()):
        digest, path = None, vars(sys.modules[name]).get("__file__", "")
        with contextlib.suppress(OSError, TypeError):  # the module has no file, or it was deleted
            with open(path, "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()
        found[name] = {"file": path, "sha256": digest}
    return found


def warn_of_changes(params: Mapping[str, Any], process: Mapping[str, Any]) -> None:
    """Logs a warning if the process that resumes a run differs from the process that started it."""
    before, now = ({"git_revision": part.get("git_revision"), **part.get("versions", {}),
                    **{f"SHA-256 of {os.path.basename(module.get('file') or name)}": str(module.get("sha256"))[:8]
                       for name, module in part.get("modules", {}).items()},
                    **part.get("machine", {}), **part.get("tensorflow_flags", {})} for part in (params, process))
    if changes := differences(before, now, ("before", "now")):
        logger.warn(f"the resumed run may differ from an uninterrupted one: {changes}")


@functools.cache
def _version(package: str) -> Optional[str]:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.cache  # the modules that this process imported do not change with the files
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


class RunInfo(NamedTuple):
    """What the files of a run contain; another process may be writing to them.

    All returns are means over the last quarter of the iterations, at most ten. They are NaN if a row contains NaN.
    """

    folder: str
    params: Dict[str, Any]  # content of `params.json`; empty if it is missing or unreadable
    error: str  # why `params.json` is unreadable; otherwise empty
    progress: Progress  # columns of `progress.csv`; empty if it has no rows

    @classmethod
    def read(cls, folder: str) -> "RunInfo":
        """Reads the files of a run."""
        params: Dict[str, Any] = {}
        progress: Progress = {}
        error = ""
        try:
            params = read_params(folder)
        except ValueError as raised:
            error = str(raised)
        with contextlib.suppress(ValueError):  # no rows
            progress = read_progress(folder)
        return cls(folder, params, error, progress)

    @property
    def settings(self) -> Dict[str, Any]:
        """The settings in `params.json`."""
        return self.params.get("settings", {})

    @property
    def iterations(self) -> int:
        """Number of rows in `progress.csv`."""
        return len(next(iter(self.progress.values()), ()))

    def is_done(self, n_itr: Optional[int] = None) -> bool:
        """Returns whether the run has completed `n_itr` iterations, or was stopped by a callback.

        If the snapshot mode saves the last iteration, the snapshot of that iteration must also exist.

        Args:
            n_itr: number of iterations. Default None: as in `params.json`; if there is none, the run must have ended.
        """
        n_itr = self.settings.get("n_itr") if n_itr is None else n_itr
        if self.params.get("stopped") or n_itr is None:
            return "ended" in self.params
        if self.settings.get("start_itr", 0) + self.iterations < n_itr:
            return False
        if self.params.get("options", {}).get("snapshot_mode") not in ("all", "last", "last_gap"):
            return True
        return max(list_snapshots(self.folder).values(), default=-1) + 1 >= n_itr

    @property
    def state(self) -> str:
        """One of `STATES`."""
        if is_locked(self.folder):
            return "running"
        if self.is_done():
            return "stopped" if self.params.get("stopped") else "finished"
        if not self.settings:  # no `params.json`, or one that a script of the user wrote
            return "unknown"
        return "interrupted" if self.params.get("error") is None else "failed"

    @property
    def returns(self) -> Dict[str, float]:
        """Mean returns by label, see `plotting.final_returns`; empty if there are none."""
        with contextlib.suppress(ValueError):  # no rows, or no columns of returns
            return final_returns(self.progress)
        return {}

    @property
    def after(self) -> float:
        """Mean return after adaptation (for a single task, of the policy); NaN if it is unknown."""
        return list(self.returns.values() or [math.nan])[-1]

    @property
    def gain(self) -> Optional[float]:
        """Mean return after adaptation minus that before; None without adaptation."""
        before, *steps = self.returns.values() or [math.nan]
        return steps[-1] - before if steps else None

    @property
    def worst_quarter(self) -> Optional[float]:
        """Mean return after adaptation in the 25% of tasks with the lowest return; None for RL2."""
        column = self.progress.get("WorstQuarterReturn")
        if column is None or "Step_0-LastEpisodeReturn" in self.progress:
            return None
        return float(exact_mean(column[-number_of_last(self.progress):]))

    @property
    def success(self) -> Optional[float]:
        """Mean success rate after adaptation; None if the run has none."""
        return final_success(self.progress)


def find_runs(folders: Sequence[str], argument: str = "run_folder") -> list[str]:
    """Returns the given run folders and all run folders below the given folders, in order and without duplicates.

    Args:
        folders: run folders, or folders that contain runs at any depth.
        argument: name of the argument in error messages; default `"run_folder"`.

    Raises:
        ValueError: a folder contains no run.
    """
    found: dict[str, None] = {}
    for folder in (user_path(argument, folder) for folder in folders):
        runs = list(_runs_below(folder))
        if not runs:
            raise ValueError(f"{argument}: expected a run folder or a folder that contains runs, got {folder}, which "
                             + (f"contains no {PROGRESS_FILE}" if os.path.isdir(folder) else
                                "is not a folder" if os.path.exists(folder) else "does not exist"))
        found.update(dict.fromkeys(os.path.normpath(run) for run in runs))
    return list(found)


def name_some(folders: Sequence[str]) -> str:
    """Returns the first four folders, for messages."""
    return ", ".join(folders[:4]) + ", ..." * (len(folders) > 4)


def find_run(folder: str, argument: str = "run_folder") -> str:
    """Returns a run folder: the given folder, or the only run folder below it; for `argument`, see `find_runs`.

    Raises:
        ValueError: the folder is missing or contains no run; or it contains several runs, of which the message lists
            four.
    """
    if snapshot_paths(folder := user_path(argument, folder)):
        return folder
    runs = find_runs([folder], argument)
    if len(runs) > 1:
        raise ValueError(f"{argument}: expected one run, got {len(runs)}: {name_some(runs)}")
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
    info = RunInfo.read(folder)
    saves = "settings" in info.params and info.params.get("options", {}).get("snapshot_mode", "none") != "none"
    return saves and not snapshot_paths(folder) and info.iterations <= 1


def check_is_unused(folder: PathLike) -> None:
    """Raises `ValueError` if a folder contains files of a run, or run folders. Does not create the folder.

    The files of a run that ended before its first snapshot may be overwritten.
    """
    folder = user_path("dump_path", folder)
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        if is_run(os.path.join(folder, name)):
            raise ValueError(f"dump_path: {folder} contains other runs, such as {name}: choose another folder")
    if (is_run(folder) or logger.earlier_files(folder)) and not ended_before_first_snapshot(folder):
        remedy = (f"resume it ({resume_command(folder)}, or resume=True; if the run is complete, with a larger n_itr) "
                  "or " if snapshot_paths(folder) else "it has no snapshot and cannot be resumed; ")
        raise ValueError(f"dump_path: {folder} already contains a run: {remedy}choose another folder")


def check_has_no_runs(folder: str) -> None:
    """Raises `ValueError` if a folder contains runs other than those that ended before their first snapshot."""
    if not all(map(ended_before_first_snapshot, _runs_below(folder))):
        raise ValueError(f"{folder} already contains runs. Continue them with resume=True (--resume on the command "
                         "line), or choose another folder")


def shortest(path: str) -> str:
    """Returns the relative or the absolute form of a path, whichever is shorter."""
    try:
        return min(os.path.relpath(path), os.path.abspath(path), key=len)
    except FileNotFoundError:  # the working directory was deleted
        return path


def resume_hint(folder: Optional[str]) -> str:
    """Returns a sentence with the command that resumes a run. `folder` is None if the run has no folder yet."""
    if folder is None or not (snapshots := list_snapshots(folder)):
        return "There is no snapshot, so there is nothing to resume"
    return (f"To resume after iteration {max(snapshots.values())}: {resume_command(folder)}, or in Python "
            f"mps.load_run({folder!r}).resume()")


def resume_command(folder: str) -> str:
    """Returns the command line that resumes a run."""
    return shlex.join(["meta-policy-search", "resume", shortest(folder)])
