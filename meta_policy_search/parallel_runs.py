"""Trains several runs in parallel processes, for `compare` and the command `sweep`."""
import contextlib
import functools
import os
import signal
import sys
import threading
import time
import traceback
from concurrent.futures import Future, wait
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from joblib.externals.loky import ProcessPoolExecutor

from meta_policy_search import run_folder
from meta_policy_search.envs import available_envs, get_env_class, register_env
from meta_policy_search.envs.registry import BUILT_IN
from meta_policy_search.registry import find_algorithm, get_entry, register_algorithm
from meta_policy_search.run import check_same_run, find_algo_class, train
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.files import lock_folder
from meta_policy_search.utils.progress import print_line
from meta_policy_search.utils.snapshotter import snapshot_paths
from meta_policy_search.utils.threads import VARIABLE as THREADS
from meta_policy_search.utils.threads import available_cores

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
        return run_folder.RunInfo.read(self.folder).is_done(self.n_itr)


def train_all(output: str, members: Sequence[Member], processes: Optional[int], resume: bool = False
              ) -> Tuple[List[str], bool]:
    """Trains all incomplete runs, `processes` at a time, each in a separate process.

    All processes have ended when this function returns or raises an error. They also end if this process is killed.

    Args:
        output: parent folder of the run folders.
        members: the runs.
        processes: maximum number of runs at a time; None: the number of cores.
        resume: whether `output` may contain runs, which are then continued. Default False.

    Returns:
        The names of the failed runs (their errors are printed), and whether Ctrl-C was pressed.

    Raises:
        ValueError: `output` contains runs, and `resume` is False or their settings differ; or another process trains
            the same runs.
    """
    limit = available_cores() if processes is None else check_positive_int("processes", processes)
    processes = min(len(members), limit)
    if resume:
        _check_earlier(members)
    else:
        run_folder.check_has_no_runs(output)
    os.makedirs(output, exist_ok=True)
    with lock_folder(output):
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
        train(algo=member.algo, dump_path=member.folder, resume=True, **settings)
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


def _check_earlier(members: Sequence[Member]) -> None:
    """Raises `ValueError` if a folder contains a run with different settings; warns once of each changed module."""
    before: Dict[str, Any] = {}
    now: Dict[str, Any] = {}
    for member in members:
        if run_folder.is_run(member.folder) and not run_folder.ended_before_first_snapshot(member.folder):
            check_same_run(member.folder, member.algo, member.settings)
            params = run_folder.read_params(member.folder)
            now.update(run_folder.describe_modules(params))
            before.update({name: old for name, old in params.get("modules", {}).items() if old != now.get(name)})
    run_folder.warn_of_changes({"modules": before}, {"modules": now})


def _environment(processes: int) -> Dict[str, str]:
    """Returns environment variables that divide the cores among runs; user-defined variables are kept."""
    threads = str(max(1, available_cores() // processes))
    shares = {name: threads for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")}
    return {**shares, **{name: os.environ[name] for name in shares if name in os.environ}, THREADS: threads}
