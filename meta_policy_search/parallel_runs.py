"""Trains several runs in parallel processes, for `compare` and the command `sweep`."""
import collections
import contextlib
import copyreg
import functools
import hashlib
import json
import logging
import os
import signal
import sys
import threading
import time
import traceback
import types
from concurrent.futures import Future, wait
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np
from joblib.externals.loky import ProcessPoolExecutor

from meta_policy_search import run_folder
from meta_policy_search.envs import available_envs, get_env_class, register_env
from meta_policy_search.envs.registry import BUILT_IN
from meta_policy_search.registry import find_algorithm, get_entry, register_algorithm
from meta_policy_search.run import (
    find_algo_class,
    find_env_name,
    find_policy,
    load_run,
    name_of_policy,
    settings_of_algorithm,
    train,
)
from meta_policy_search.run_spec import as_json
from meta_policy_search.settings import Setting, check_names, differences, read_json
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.files import lock_folder, write_text
from meta_policy_search.utils.progress import print_line
from meta_policy_search.utils.serializable import Configurable, present_arguments
from meta_policy_search.utils.snapshotter import snapshot_paths
from meta_policy_search.utils.threads import VARIABLE as THREADS
from meta_policy_search.utils.threads import available_cores
from meta_policy_search.utils.user_modules import import_name

DIGESTS = "digests.json"  # hashes of the code and the arguments of environments and algorithms, by name of the run
DIGEST_FORMAT = f"4-python{sys.version_info.major}.{sys.version_info.minor}:"  # prefix of comparable digests
ERROR_LINES = 12  # printed lines of the traceback of a failed run
GRACE = 20.0  # seconds from Ctrl-C until runs that have not ended are killed


class Member(NamedTuple):
    """A run of a comparison or of a sweep."""

    name: str
    algo: Any  # name or class
    settings: Mapping[str, Any]  # arguments of `train`, including env, seed and n_itr
    folder: str

    @property
    def n_itr(self) -> int:
        """Number of iterations."""
        return self.settings.get("n_itr") or find_algo_class(self.algo).default_settings["n_itr"]

    @property
    def is_done(self) -> bool:
        """Whether all iterations are complete."""
        return run_folder.is_done(self.folder, self.n_itr)


def check_settings(algo: Any, settings: Mapping[str, Any]) -> Dict[str, Setting]:
    """Returns the settings of a training with an algorithm; raises `TypeError` if `settings` has another name."""
    algo_class = find_algo_class(algo)
    declared = settings_of_algorithm(algo_class, settings.get("policy"))
    check_names(settings, declared, f"for {algo_class.__name__}")
    return declared


def train_all(output: str, members: Sequence[Member], processes: Optional[int], argument: str = "processes"
              ) -> Tuple[List[str], bool]:
    """Starts or resumes all incomplete runs, `processes` at a time, each in a separate process.

    All processes have ended when this function returns or raises an error. They also end if this process is killed.

    Args:
        output: parent folder of the run folders.
        members: the runs.
        processes: maximum number of runs at a time; None: the number of cores.
        argument: name of `processes` in error messages.

    Returns:
        The names of the failed runs (their errors are printed), and whether Ctrl-C was pressed.

    Raises:
        ValueError: a folder contains a run with different settings or other code, or another process trains the same
            runs.
    """
    processes = min(len(members), available_cores() if processes is None else check_positive_int(argument, processes))
    digests = {member.name: _digest(member) for member in members}
    _check_earlier(output, members, digests)
    os.makedirs(output, exist_ok=True)
    with lock_folder(output):
        write_text(os.path.join(output, DIGESTS), json.dumps({**_read_digests(output), **digests}, indent=2) + "\n")
        waiting = [member for member in members if not member.is_done]
        count = len(waiting)
        print_line(f"{len(members) - count} of {len(members)} runs complete; {min(processes, count)} at a time; "
                   f"runs in {output}")
        environ = _environment(processes)
        running: Dict[Future, Tuple[Member, ProcessPoolExecutor]] = {}
        failed: List[str] = []
        try:
            while waiting or running:
                while waiting and len(running) < processes:
                    member = waiting.pop(0)
                    print_line(f"{member.name}: {'resumes' if snapshot_paths(member.folder) else 'starts'}")
                    pool = ProcessPoolExecutor(max_workers=1, env=environ)  # the death of one process fails one run
                    future = pool.submit(_train_member, member, _registered(member), os.getpid(), sys.path)
                    running[future] = member, pool
                for future in wait(running, return_when="FIRST_COMPLETED").done:
                    member, pool = running.pop(future)
                    pool.shutdown(wait=True)
                    number = f"({count - len(waiting) - len(running)} of {count})"
                    error = str(future.exception() or "") or future.result()
                    if not error and member.is_done:
                        print_line(f"{member.name}: done {number}")
                    else:
                        failed.append(member.name)
                        lines = error.rstrip().splitlines()[-ERROR_LINES:]
                        print_line("\n    ".join([f"{member.name}: failed {number}", *lines]))
        except KeyboardInterrupt:
            print_line("Stopping the runs")
            for _, pool in running.values():
                for process in list(pool._processes):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, signal.SIGINT)
            wait(running, GRACE)
            return failed, True
        finally:
            for future, (_, pool) in running.items():
                pool.shutdown(kill_workers=not future.done())
    return failed, False


def _registered(member: Member) -> List[Tuple[Any, ...]]:
    """Returns the registrations of the user that a run in another process needs, as functions and their arguments."""
    env, algo = member.settings["env"], member.algo
    found: List[Tuple[Any, ...]] = []
    factory = get_env_class(env) if isinstance(env, str) else None
    if isinstance(factory, functools.partial) or isinstance(env, str) and env in available_envs() and (
            env not in BUILT_IN):  # `gymnasium.make` of an id that a script may have registered, or a registered name
        found.append((register_env, env.rpartition(":")[2], factory))
    if isinstance(algo, str) and isinstance(get_entry(algo).cls, type):
        found.append((register_algorithm, find_algorithm(algo), *get_entry(algo)[:2]))
    return found


def _train_member(member: Member, registered: Sequence[Tuple[Any, ...]], parent: int, path: Sequence[str]) -> str:
    """Starts or resumes a run in this process; returns the error message, empty if there was no error."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    sys.path[:] = path  # finds the modules that the parent process finds
    try:
        for register, *arguments in registered:
            register(*arguments)
        settings = {"log_formats": ("log", "csv"), "progress_bar": False, **member.settings}
        if snapshot_paths(member.folder):
            declared = check_settings(member.algo, settings)
            load_run(member.folder).resume(member.n_itr, **{
                name: value for name, value in settings.items() if not declared[name].affects_result})
        else:
            train(algo=member.algo, dump_path=member.folder, **settings)
    except KeyboardInterrupt:
        return "interrupted"
    except BaseException:
        return traceback.format_exc()
    return ""


def _end_with(parent: int) -> None:
    """Ends this process when its parent process ends."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _check_earlier(output: str, members: Sequence[Member], digests: Mapping[str, str]) -> None:
    """Raises `ValueError` if a folder contains a run with different settings or code; `n_itr` may be larger."""
    before = _read_digests(output)
    for member in members:
        if not run_folder.is_run(member.folder) or run_folder.ended_before_first_snapshot(member.folder):
            continue
        if before.get(member.name, "").startswith(DIGEST_FORMAT) and before[member.name] != digests[member.name]:
            raise ValueError(f"{member.folder}: the code or the arguments of the environment, algorithm, policy or "
                             "another object have changed since this run. Choose another folder")
        params = run_folder.read_params(member.folder)
        recorded = params.get("settings", {})
        chosen = {"n_itr", *params.get("given", ()), *member.settings}
        if isinstance(member.settings["env"], str):  # otherwise the digest contains the arguments
            chosen.add("env_kwargs")
        algo_class = find_algo_class(member.algo)
        declared = settings_of_algorithm(algo_class, member.settings.get("policy"))
        now = {name: as_json(member.settings.get(name, setting.default))
               for name, setting in declared.items() if setting.affects_result}
        now.update(policy=name_of_policy(member.settings.get("policy")), n_itr=member.n_itr,
                   env=find_env_name(member.settings["env"]),
                   env_kwargs=as_json(member.settings.get("env_kwargs") or {}))
        if recorded.get("n_itr", 0) < member.n_itr:  # the run is extended
            chosen.remove("n_itr")
        differing = differences(recorded, {name: value for name, value in now.items() if name in chosen},
                                ("run", "now"))
        if differing:
            raise ValueError(f"{member.folder} contains a run with different settings: {differing}. Choose another "
                             "folder")


def _read_digests(output: str) -> Dict[str, str]:
    try:
        return read_json(os.path.join(output, DIGESTS))
    except ValueError:  # missing
        return {}


def _digest(member: Member) -> str:
    """Returns a hash of the user's code and objects that a run depends on, equal in all processes."""
    env, algo_class = member.settings["env"], find_algo_class(member.algo)
    if isinstance(env, str):
        env = None if env in BUILT_IN else get_env_class(env)
    arguments = env.args if isinstance(env, functools.partial) else ()
    creator = getattr(arguments[0], "entry_point", None) if arguments else None  # of an id of Gymnasium
    if isinstance(creator, str):
        creator = import_name("env", creator, {})
    policy = find_policy(member.settings.get("policy"))
    declared = settings_of_algorithm(algo_class, policy)
    others = {name: value for name, value in member.settings.items() if name not in ("env", "policy")
              and declared[name].affects_result and not _is_json(value)}
    described = json.dumps(_describe([env, creator, algo_class, policy, others], {}))
    return DIGEST_FORMAT + hashlib.sha256(described.encode()).hexdigest()


def _is_json(value: Any) -> bool:
    try:
        return bool(json.dumps(value))
    except (TypeError, ValueError):
        return False


def _describe(value: Any, seen: Dict[int, Any]) -> Any:
    """Converts code and objects of the user to JSON types that are equal in all processes.

    Functions of the user become their byte code, their default values and what they name in their module and in other
    modules of the user: functions, classes, numbers, texts and containers. Classes become their attributes; other
    objects their class and their arguments or attributes. Code of installed packages becomes its name. Random
    generators, modules and loggers are omitted.

    Args:
        value: the value.
        seen: values that were converted before, by their id.
    """
    describe = functools.partial(_describe, seen=seen)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (bytes, complex, slice, range)):
        return repr(value)
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype == object:
            return describe(value.tolist())
        return [str(value.dtype), value.shape, hashlib.sha256(value.tobytes()).hexdigest()]
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, value))
    if isinstance(value, tuple):
        return list(map(describe, value))
    if isinstance(value, types.CodeType):
        return [value.co_code.hex(), value.co_varnames, value.co_names, describe(value.co_consts)]
    if isinstance(value, (np.random.Generator, np.random.RandomState, types.ModuleType, logging.Logger)):
        return None
    if id(value) in seen:
        return ["seen", list(seen).index(id(value))]
    seen[id(value)] = value
    if isinstance(value, (list, collections.deque)):
        return list(map(describe, value))
    if isinstance(value, Mapping):
        return [[str(key), describe(item)] for key, item in value.items()]
    if isinstance(value, functools.partial):
        return describe([value.func, value.args, value.keywords])
    if isinstance(value, property):
        return describe([value.fget, value.fset])
    if isinstance(value, types.CellType):
        return describe(value.cell_contents) if value != types.CellType() else None
    function = value.__func__ if isinstance(value, (staticmethod, classmethod, types.MethodType)) else value
    if isinstance(function, (type, types.FunctionType)) and not _is_of_user(function.__module__):
        return f"{function.__module__}.{function.__qualname__}"
    if isinstance(function, types.FunctionType):
        names = sorted(_names(function.__code__))
        used = {name: function.__globals__.get(name) for name in names}
        modules = [each for each in used.values() if isinstance(each, types.ModuleType) and _is_of_user(each.__name__)]
        used.update({f"{module.__name__}.{name}": vars(module).get(name) for module in modules for name in names})
        kinds = (type, types.FunctionType, functools.partial, bool, int, float, str, tuple, list, dict, set, frozenset,
                 np.ndarray)
        owner = value.__self__ if isinstance(value, types.MethodType) else None
        return describe([owner, function.__code__, function.__defaults__, function.__kwdefaults__, function.__closure__,
                         {name: item for name, item in used.items() if isinstance(item, kinds)}])
    if isinstance(value, type):
        return describe([value.__bases__, {name: item for name, item in vars(value).items()
                                           if callable(item) or not name.startswith("__")}])
    if isinstance(value, Configurable):
        state = value.get_param_values() if hasattr(value, "get_param_values") else None
        return describe([type(value), value._given, present_arguments(value), state])
    slots = {name: getattr(value, name, None) for name in copyreg._slotnames(type(value))}  # type: ignore[attr-defined]
    return describe([type(value), slots, getattr(value, "__dict__", None)])


def _names(code: types.CodeType) -> Set[str]:
    """Returns the names of globals and attributes in a function, its inner functions and comprehensions."""
    return {*code.co_names}.union(*(_names(each) for each in code.co_consts if isinstance(each, types.CodeType)))


def _is_of_user(module: Optional[str]) -> bool:
    found = sys.modules.get(str(module))
    root, path = str(module).partition(".")[0], str(found and vars(found).get("__file__"))
    return root not in {"meta_policy_search", *sys.stdlib_module_names} and not any(
        folder in path for folder in ("site-packages", "dist-packages"))


def _environment(processes: int) -> Dict[str, str]:
    """Returns environment variables that divide the cores among runs; user-defined variables are kept."""
    threads = str(max(1, available_cores() // processes))
    shares = {name: threads for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")}
    return {**shares, **{name: os.environ[name] for name in shares if name in os.environ}, THREADS: threads}
