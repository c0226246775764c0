"""Trains several runs in parallel processes, for `compare` and the command `sweep`."""
import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from concurrent.futures import Future, wait
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from joblib.externals.loky import ProcessPoolExecutor

from meta_policy_search import run_folder
from meta_policy_search.envs import find_env, get_env_class, register_env
from meta_policy_search.envs.registry import BUILT_IN, ENVS
from meta_policy_search.registry import ALGORITHMS, find_algorithm, get_algorithm, register_algorithm, title_of
from meta_policy_search.run import check_same_run, train
from meta_policy_search.run_folder import RunInfo
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.files import lock_folder, make_folder
from meta_policy_search.utils.progress import print_line
from meta_policy_search.utils.snapshotter import snapshot_paths
from meta_policy_search.utils.threads import VARIABLE as THREADS
from meta_policy_search.utils.threads import available_cores

ERROR_LINES = 12  # printed lines of the traceback of a failed run
GRACE = 20.0  # seconds from Ctrl-C until runs that have not ended are killed


def train_all(output: str, runs: Mapping[str, Mapping[str, Any]], processes: Optional[int], resume: bool = False
              ) -> Tuple[List[str], bool]:
    """Trains all incomplete runs, `processes` at a time, each in a separate process.

    All processes have ended when this function returns or raises an error. They also end if this process is killed.

    Args:
        output: parent folder of the run folders.
        runs: for each run, by the name of its folder, the arguments of `train`, including algo and env.
        processes: maximum number of runs at a time; None: the number of cores.
        resume: whether `output` may contain runs, which are then continued. Default False.

    Returns:
        The names of the failed runs (their errors are printed), and whether Ctrl-C was pressed.

    Raises:
        ValueError: `output` contains runs, and `resume` is False or their settings differ; or another process trains
            the same runs.
    """
    limit = available_cores() if processes is None else check_positive_int("processes", processes)
    processes = min(len(runs), limit)
    folders = {name: os.path.join(output, name) for name in runs}
    if resume:
        _check_earlier({folders[name]: run for name, run in runs.items()})
    else:
        run_folder.check_has_no_runs(output)
    make_folder("folder", output)
    with lock_folder(output):
        waiting = [name for name, run in runs.items() if not RunInfo.read(folders[name]).is_done(run.get("n_itr"))]
        count = len(waiting)
        print_line(f"{len(runs) - count} of {len(runs)} runs complete; {min(processes, count)} at a time; runs in "
                   f"{output}")
        threads = str(max(1, available_cores() // processes))  # the runs share the cores, unless the user divides them
        variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")
        environ = {THREADS: threads, **{name: os.environ.get(name, threads) for name in variables}}
        running: Dict[Future, Tuple[str, ProcessPoolExecutor]] = {}
        failed: List[str] = []
        try:
            while waiting or running:
                while waiting and len(running) < processes:
                    name = waiting.pop(0)
                    run = {**runs[name], "dump_path": folders[name]}
                    print_line(f"{name}: {'resumes' if snapshot_paths(folders[name]) else 'starts'}")
                    pool = ProcessPoolExecutor(max_workers=1, env=environ)  # the death of one process fails one run
                    running[pool.submit(_train, run, _registered(run), os.getpid(), sys.path)] = name, pool
                for future in wait(running, return_when="FIRST_COMPLETED").done:
                    name, pool = running.pop(future)
                    pool.shutdown(wait=True)
                    number = f"({count - len(waiting) - len(running)} of {count})"
                    error = str(future.exception() or "") or future.result()
                    if not error and RunInfo.read(folders[name]).is_done(runs[name].get("n_itr")):
                        print_line(f"{name}: done {number}")
                    else:
                        failed.append(name)
                        lines = error.rstrip().splitlines()[-ERROR_LINES:]
                        print_line("\n    ".join([f"{name}: failed {number}", *lines]))
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


def _registered(run: Mapping[str, Any]) -> List[Tuple[Any, ...]]:
    """Returns the registrations of the user that a run in another process needs, as functions and their arguments."""
    env, algo = run["env"], run["algo"]
    found: List[Tuple[Any, ...]] = []
    if isinstance(env, str) and (name := find_env(env)) not in BUILT_IN and (name in ENVS.entries or ":" not in name):
        found.append((register_env, name, get_env_class(name)))  # also the id of a Gymnasium environment of a script
    if isinstance(algo, str) and isinstance(ALGORITHMS.entries.get(name := find_algorithm(algo)), type):
        found.append((register_algorithm, name, get_algorithm(name), title_of(name)))
    return found


def _train(run: Mapping[str, Any], registered: Sequence[Tuple[Any, ...]], parent: int, path: Sequence[str]) -> str:
    """Starts or resumes a run in this process; returns the error message, empty if there was no error."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    sys.path[:] = path  # finds the modules that the parent process finds
    try:
        for register, *arguments in registered:
            register(*arguments)
        train(**{"log_formats": ("log", "csv"), "progress_bar": False, "resume": True, **run})
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


def _check_earlier(runs: Mapping[str, Mapping[str, Any]]) -> None:
    """Raises `ValueError` if a folder contains a run with different settings; warns once of each changed module."""
    before: Dict[str, Any] = {}
    now: Dict[str, Any] = {}
    for folder, run in runs.items():
        if run_folder.is_run(folder) and not run_folder.ended_before_first_snapshot(folder):
            check_same_run(folder, **run)
            params = run_folder.read_params(folder)
            now.update(run_folder.describe_modules(params))
            before.update({name: old for name, old in params.get("modules", {}).items() if old != now.get(name)})
    run_folder.warn_of_changes({"modules": before}, {"modules": now})
