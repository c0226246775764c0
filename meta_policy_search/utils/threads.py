"""Dividing work, and running the shares in threads so that neither an error nor Ctrl-C leaves one of them behind."""
import threading
from typing import Any, Callable, List, Sequence, TypeVar

from meta_policy_search.utils.interrupts import interrupts_delayed

Result = TypeVar("Result")


def run_in_threads(jobs: Sequence[Callable[[], Result]], stop: Callable[[], None], name: str) -> List[Result]:
    """Runs each job in a thread of its own, or the only one in this thread; returns what they return, in their order.

    Ctrl-C at an unlucky moment leaves locks of `concurrent.futures` taken, which its threads then wait for. So these
    are plain threads, none of which waits for what this one holds. Ctrl-C again, while they end, has to wait for that.

    Args:
        jobs: what to run.
        stop: makes the jobs under way end soon, and those not yet begun as soon as they begin; called when one has
            failed, at Ctrl-C and at the end.
        name: what the threads are called.

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
        with interrupts_delayed():  # there is no telling whether a thread that was being started has begun
            for i, lock in enumerate(under_way):
                lock.acquire()
                thread = threading.Thread(target=run, args=(i,), name=f"{name}_{i}", daemon=True)
                thread.start()
                threads.append(thread)
        for lock in under_way:
            lock.acquire()
    finally:  # without effect unless one has failed, or Ctrl-C was pressed
        with interrupts_delayed():
            stop()
            for thread in threads:
                thread.join()
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return outcomes


def divide(tasks: range, count: int) -> List[range]:
    """Divides tasks as evenly as possible into `count` shares; returns fewer where there are fewer tasks."""
    count = min(count, len(tasks))
    bounds = [tasks.start + i * len(tasks) // count for i in range(count + 1)]
    return [range(*ends) for ends in zip(bounds[:-1], bounds[1:], strict=True)]
