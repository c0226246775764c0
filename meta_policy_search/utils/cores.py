"""How many cores this process may use, and on how many threads the processes that it starts compute."""
import os

VARIABLE = "META_POLICY_SEARCH_NUM_THREADS"
"""Environment variable that overrides the number, such as in worker processes that share the cores."""

THREAD_VARIABLES = (VARIABLE, "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that say on how many threads a process computes, if set before it loads NumPy."""


def available_cores() -> int:
    """Returns the number of cores that this process may use, at least one."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted:
        if not wanted.isdecimal() or int(wanted) < 1:
            raise ValueError(f"{VARIABLE}: expected an integer of at least 1, got {wanted!r}")
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
