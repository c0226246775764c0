"""A fixed piece of work: how long it takes says how fast the machine is at the moment."""
import time
from typing import Any, Callable, NamedTuple

import numpy as np


class Times(NamedTuple):
    """How long something took, s."""

    wall: float  # by the clock
    cpu: float  # all threads of the process together


def timed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, Times]:
    """Calls a function; returns what it returns, and how long it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function(*args, **kwargs)
    return result, Times(time.perf_counter() - wall, time.process_time() - cpu)


def fixed_workload() -> None:
    """Multiplies matrices in the cache, passes over 8 MB of memory, and runs a loop of Python, on one thread."""
    matrices = np.full((64, 64, 64), 0.01, np.float32)  # products too small for BLAS to share among threads
    numbers = np.full(1 << 20, 0.5)
    total = 0
    for i in range(150_000):
        total += i * i
    for _ in range(6):
        np.matmul(matrices, matrices)
        np.tanh(numbers)
        np.multiply(numbers, 0.5, out=numbers)


def machine_time() -> Times:
    """Returns how long the fixed piece of work takes now."""
    return timed(fixed_workload)[1]
