"""Programs that `compare.py` runs in one process per checkout; a program performs one turn per request.

The code of the benchmarks comes from this checkout. The package and the experiments come from the given checkout.
"""
import functools
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, NamedTuple

from benchmarks.processes import Figures
from benchmarks.training import make_trainer, measure_startup, peak_memory
from benchmarks.workload import timed

PHASES = {
    "sampling": ("sampler", "obtain_samples"),
    "processing": ("sample_processor", "process_samples"),
    "inner_step": ("algo", "adapt"),
    "outer_step": ("algo", "optimize_policy"),
}
"""Name of a phase in keys to the trainer's attribute and its method that performs the phase."""


class Program(NamedTuple):
    """A function of start time and settings that yields figures; times are pairs of wall-clock and CPU time."""

    turns: Callable[[float, Mapping[str, Any]], Iterator[Figures]]
    figures: tuple[str, ...]  # names of the figures
    is_fresh: bool = False  # whether each turn runs in a new process; otherwise, the first turn is ignored


def iterations(started: float, settings: Mapping[str, Any], env: str, algorithm: str) -> Iterator[Figures]:
    """Performs one training iteration per turn."""
    with make_trainer(algorithm, env, settings) as trainer:
        times: dict[str, list[float]] = {}
        for phase, (attribute, method) in PHASES.items():
            _time_method(getattr(trainer, attribute), method, times, phase)
        while True:
            times.update({phase: [0.0, 0.0] for phase in PHASES})
            _, total = timed(trainer.train_itr)
            yield {"iteration": total, **times}


def _time_method(instance: Any, method: str, times: dict[str, list[float]], name: str) -> None:
    """Patches a method of an instance so that each call adds its times to `times[name]`."""
    function = getattr(instance, method)

    def timed_method(*args: Any, **kwargs: Any) -> Any:
        result, taken = timed(function, *args, **kwargs)
        times[name] = [before + more for before, more in zip(times[name], taken, strict=True)]
        return result

    setattr(instance, method, timed_method)


def startup(started: float, settings: Mapping[str, Any]) -> Iterator[Figures]:
    """Measures the time from the start of the process until its first iteration has ended."""
    wall = measure_startup(started, settings)["startup.total_s"]
    yield {"total": (wall, time.process_time())}


def memory(started: float, settings: Mapping[str, Any], tasks: int) -> Iterator[Figures]:
    """Measures the peak memory of two iterations."""
    with make_trainer("promp", "point", {**settings, "meta_batch_size": tasks}) as trainer:
        for _ in range(2):
            trainer.train_itr()
    yield {"peak_mib": peak_memory()}


PROGRAMS = {
    **{f"{env}.{algorithm}": Program(functools.partial(iterations, env=env, algorithm=algorithm),
                                     ("iteration", *PHASES))
       for env in ("point", "half_cheetah") for algorithm in ("promp", "trpo")},
    "startup": Program(startup, ("total",), is_fresh=True),
    **{f"memory.tasks_{tasks}": Program(functools.partial(memory, tasks=tasks), ("peak_mib",), is_fresh=True)
       for tasks in (40, 160)},
}
"""Programs by the prefix of their keys."""


def main(checkout: str, program: str, settings: str, started: str) -> None:
    """Writes the figures of one turn to standard output for each line on standard input; messages go to stderr."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        sys.path[0] = checkout  # after the imports of `benchmarks`: later imports use this checkout
        import meta_policy_search

        if not Path(meta_policy_search.__file__).is_relative_to(checkout):
            raise RuntimeError(f"expected the package of {checkout}, got {meta_policy_search.__file__}")
        turns = PROGRAMS[program].turns(float(started), json.loads(settings))
        for _ in sys.stdin:
            print(json.dumps(next(turns)), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
