"""Times of what a run does."""
import contextlib
import time
from typing import Dict, Iterator


@contextlib.contextmanager
def timed(times: Dict[str, float], key: str) -> Iterator[None]:
    """Adds the seconds that a `with` block takes to `times[key]`, which begins with zero."""
    started = time.perf_counter()
    try:
        yield
    finally:
        times[key] = times.get(key, 0.0) + time.perf_counter() - started
