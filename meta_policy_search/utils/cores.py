"""How many cores this process may use."""
import os

VARIABLE = "META_POLICY_SEARCH_NUM_THREADS"
"""Environment variable that overrides the number, in worker processes that share the cores, for example."""


def available_cores() -> int:
    """Returns the number of cores that this process may use, at least one.

    Raises:
        ValueError: the environment variable `META_POLICY_SEARCH_NUM_THREADS` is no positive integer.
    """
    wanted = os.environ.get(VARIABLE, "")
    if wanted:
        if not wanted.isdecimal() or int(wanted) < 1:
            raise ValueError(f"{VARIABLE}: expected an integer of at least 1, got {wanted!r}")
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
