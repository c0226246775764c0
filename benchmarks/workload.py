"""Reference workload: its run time measures the current speed of the machine."""
import time
from typing import Any, Callable, NamedTuple

import numpy as np

SMOKE = {"n_itr": 2, "meta_batch_size": 2, "rollouts_per_meta_task": 2, "max_path_length": 10, "hidden_sizes": (8,)}
"""Settings of a training of tiny size."""


class Times(NamedTuple):
    """Duration of a call in seconds."""

    wall: float  # wall-clock time
    cpu: float  # CPU time of all threads of the process


def timed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, Times]:
    """Calls a function; returns its return value and its duration."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function(*args, **kwargs)
    return result, Times(time.perf_counter() - wall, time.process_time() - cpu)


def fixed_workload() -> None:
    """Runs the reference workload in one thread: matrix products in the cache, passes over 8 MB and a Python loop."""
    matrices = np.full((64, 64, 64), 0.01, np.float32)  # too small for BLAS to use several threads
    numbers = np.full(1 << 20, 0.5)
    total = 0
    for i in range(150_000):
        total += i * i
    for _ in range(6):
        np.matmul(matrices, matrices)
        np.tanh(numbers)
        np.multiply(numbers, 0.5, out=numbers)


def machine_time() -> Times:
    """Returns the current duration of the reference workload."""
    return timed(fixed_workload)[1]
