"""Number of cores, worker threads and delayed Ctrl-C."""
import contextlib
import functools
import importlib
import os
import signal
import threading
from typing import Any, Callable, ContextManager, Iterator, List, Sequence, TypeVar

from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")

VARIABLE = "META_POLICY_SEARCH_NUM_THREADS"
"""Environment variable that overrides the number of cores, for example in worker processes that share cores."""

THREAD_VARIABLES = (VARIABLE, "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that limit the number of threads of a process. They must be set before it imports NumPy."""


def available_cores() -> int:
    """Returns the number of cores that this process may use, at least one.

    Raises:
        ValueError: the environment variable `META_POLICY_SEARCH_NUM_THREADS` is not a positive integer.
    """
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


@functools.lru_cache(maxsize=None)
def _blas_libraries() -> ThreadpoolController:
    importlib.import_module("scipy.linalg")  # loads a separate library, in addition to that of NumPy
    return ThreadpoolController().select(user_api="blas")


def blas_kernels() -> str:
    """Returns the processor kernels of the BLAS libraries, such as "Haswell"; sums of others differ in rounding."""
    return ", ".join(sorted({library.get("architecture", "unknown") for library in _blas_libraries().info()}))


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limits the matrix operations of NumPy and SciPy to one thread, in a `with` block or a decorated function.

    Their results would otherwise depend on the number of cores. The matrices of this package are so small that several
    threads would also take longer.
    """
    with _blas_libraries().limit(limits=1):
        yield


_of_process = threading.RLock()


@contextlib.contextmanager
def training_lock() -> Iterator[None]:
    """Allows one thread at a time to train or evaluate, in a `with` block or a decorated function.

    Raises:
        RuntimeError: another thread is training or evaluating, and has reserved the seed and the logger.
    """
    if not _of_process.acquire(blocking=False):
        raise RuntimeError("another thread of this process is training or evaluating, and a process has one seed and "
                           "one logger: wait until that thread is done, or use another process")
    try:
        yield
    finally:
        _of_process.release()


@contextlib.contextmanager
def interrupts_delayed() -> Iterator[ContextManager[None]]:
    """Delays Ctrl-C until the end of a `with` block.

    The value of the block is a context manager. In a nested `with` block of it, Ctrl-C is not delayed.

    The function replaces the signal handler. Blocking the signal in this thread is not sufficient: the operating system
    delivers it to another thread (TensorFlow starts several), and Python then runs the handler in the main thread.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):  # Ctrl-C cannot interrupt
        yield contextlib.nullcontext()
        return
    pressed: List[Any] = []

    def delay(*arguments: Any) -> None:
        pressed.append(arguments)

    @contextlib.contextmanager
    def handled() -> Iterator[None]:
        try:
            signal.signal(signal.SIGINT, handler)
            if pressed:
                handler(*pressed.pop())
            yield
        finally:
            signal.signal(signal.SIGINT, delay)

    signal.signal(signal.SIGINT, delay)
    try:
        yield handled()
    finally:
        signal.signal(signal.SIGINT, handler)
        if pressed:
            handler(*pressed[-1])


def run_in_threads(jobs: Sequence[Callable[[], Result]], stop: Callable[[], None], name: str) -> List[Result]:
    """Runs each job in a separate thread and returns the results in the order of the jobs.

    A single job runs in the calling thread. After an error or Ctrl-C, the function waits until all threads have ended
    and then raises the error. A second Ctrl-C is delayed until then.

    The function does not use `concurrent.futures`: Ctrl-C can leave its locks acquired, and its threads then wait
    forever. The threads of this function never wait for a lock that the calling thread holds.

    Args:
        jobs: functions to run.
        stop: function that requests all jobs to end: running jobs soon, jobs that start later immediately. It is called
            after an error, after Ctrl-C and at the end.
        name: prefix of the thread names.

    Returns:
        The return values of the jobs.

    Raises:
        BaseException: the error of the first failed job, in the order of the jobs.
    """
    if len(jobs) == 1:
        return [jobs[0]()]
    outcomes: List[Any] = [None] * len(jobs)
    running, threads = [threading.Lock() for _ in jobs], []

    def run(i: int) -> None:
        try:
            outcomes[i] = jobs[i]()
        except BaseException as error:
            outcomes[i] = error
            stop()
        finally:
            running[i].release()

    try:
        with interrupts_delayed():  # if Ctrl-C interrupted `start`, the thread might run or not
            for i, lock in enumerate(running):
                lock.acquire()
                thread = threading.Thread(target=run, args=(i,), name=f"{name}_{i}", daemon=True)
                thread.start()
                threads.append(thread)
        for lock in running:
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
    """Divides tasks as evenly as possible into `count` ranges, or into one range per task if there are fewer tasks."""
    count = min(count, len(tasks))
    bounds = [tasks.start + i * len(tasks) // count for i in range(count + 1)]
    return [range(*ends) for ends in zip(bounds[:-1], bounds[1:], strict=True)]
