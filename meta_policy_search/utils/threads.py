"""Cores, threads, and Ctrl-C in them."""
import contextlib
import os
import signal
import threading
from typing import Any, Callable, Iterator, List, Sequence, TypeVar

Result = TypeVar("Result")

VARIABLE = "META_POLICY_SEARCH_NUM_THREADS"
"""Environment variable that overrides the number of cores, for example in worker processes that share them."""

THREAD_VARIABLES = (VARIABLE, "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that set the number of threads of a process, if they are set before it loads NumPy."""


def available_cores() -> int:
    """Returns the number of cores that this process may use, at least one."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted:
        if not wanted.isdecimal() or int(wanted) < 1:
            raise ValueError(f"{VARIABLE}: expected an integer of at least 1, got {wanted!r}")
        return int(wanted)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1


def total_memory() -> int:
    """Returns the size of this machine's memory, in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def interrupts_delayed() -> Iterator[None]:
    """Delays Ctrl-C to the end of a `with` block.

    The handler is replaced instead of blocking the signal: a blocked signal is delivered to another thread of the
    process (TensorFlow has several), and Python still handles it in the main thread.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):  # nothing is raised here
        yield
        return
    pressed = []
    signal.signal(signal.SIGINT, lambda *arguments: pressed.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if pressed:
            handler(*pressed[-1])


def run_in_threads(jobs: Sequence[Callable[[], Result]], stop: Callable[[], None], name: str) -> List[Result]:
    """Runs each job in its own thread, a single job in this thread; returns their results in the order of the jobs.

    No thread survives an error or Ctrl-C. Ctrl-C can leave locks of `concurrent.futures` acquired, and its threads then
    wait forever. These are plain threads that wait for nothing this thread holds. A second Ctrl-C waits until the
    threads have ended.

    Args:
        jobs: functions to run.
        stop: makes running jobs end soon, and later jobs as soon as they start; called after an error, after Ctrl-C and
            at the end.
        name: prefix of the names of the threads.

    Raises:
        BaseException: the first error of a job, in the order of the jobs.
    """
    if len(jobs) == 1:
        return [jobs[0]()]
    outcomes: List[Any] = [None] * len(jobs)
    under_way, threads = [threading.Lock() for _ in jobs], []

    def run(i: int) -> None:
        try:
            outcomes[i] = jobs[i]()
        except BaseException as error:
            outcomes[i] = error
            stop()
        finally:
            under_way[i].release()

    try:
        with interrupts_delayed():  # an interrupted start leaves unknown whether the thread runs
            for i, lock in enumerate(under_way):
                lock.acquire()
                thread = threading.Thread(target=run, args=(i,), name=f"{name}_{i}", daemon=True)
                thread.start()
                threads.append(thread)
        for lock in under_way:
            lock.acquire()
    finally:  # no effect unless a job failed or Ctrl-C was pressed
        with interrupts_delayed():
            stop()
            for thread in threads:
                thread.join()
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return outcomes


def divide(tasks: range, count: int) -> List[range]:
    """Divides tasks as evenly as possible into `count` ranges, or fewer if there are fewer tasks."""
    count = min(count, len(tasks))
    bounds = [tasks.start + i * len(tasks) // count for i in range(count + 1)]
    return [range(*ends) for ends in zip(bounds[:-1], bounds[1:], strict=True)]
