"""What `compare.py` runs in a process of each checkout: programs that take a turn whenever they are asked to.

The benchmarks are those of this checkout; the package and the experiments are those of the checkout that is named.
"""
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Iterator, Mapping, NamedTuple

from benchmarks.processes import Figures
from benchmarks.training import make_trainer, measure_startup, peak_memory
from benchmarks.workload import timed

PHASES = {
    "sampling": ("sampler", "obtain_samples"),
    "processing": ("sample_processor", "process_samples"),
    "adapt": ("algo", "adapt"),
    "outer_step": ("algo", "optimize_policy"),
}
"""Attribute of the trainer and its method that a phase of an iteration is, by the name that the phase has in keys."""


class Program(NamedTuple):
    """A generator function of this module that yields figures, the times among them as pairs of wall and CPU time."""

    function: str
    arguments: Mapping[str, Any]
    figures: tuple[str, ...]  # that it yields
    is_fresh: bool = False  # whether each turn runs in a new process; if not, the first turn is ignored


def iterations(started: float, settings: Mapping[str, Any], env: str, algorithm: str) -> Iterator[Figures]:
    """Takes an iteration per turn."""
    with make_trainer(algorithm, env, settings) as trainer:
        times: dict[str, list[float]] = {}
        for phase, (attribute, method) in PHASES.items():
            _time_method(getattr(trainer, attribute), method, times, phase)
        while True:
            times.update({phase: [0.0, 0.0] for phase in PHASES})
            _, total = timed(trainer.train_itr)
            yield {"iteration": total, **times}


def _time_method(instance: Any, method: str, times: dict[str, list[float]], name: str) -> None:
    """Has every call of an instance's method add its times to those of a name."""
    function = getattr(instance, method)

    def timed_method(*args: Any, **kwargs: Any) -> Any:
        result, taken = timed(function, *args, **kwargs)
        times[name] = [before + more for before, more in zip(times[name], taken, strict=True)]
        return result

    setattr(instance, method, timed_method)


def startup(started: float, settings: Mapping[str, Any]) -> Iterator[Figures]:
    """Takes as long as a fresh process takes until its first iteration has ended."""
    wall = measure_startup(started, settings)["startup.total_s"]
    yield {"total": (wall, time.process_time())}


def memory(started: float, settings: Mapping[str, Any], tasks: int) -> Iterator[Figures]:
    """Takes two iterations."""
    with make_trainer("promp", "point", {**settings, "meta_batch_size": tasks}) as trainer:
        for _ in range(2):
            trainer.train_itr()
    yield {"peak_mib": peak_memory()}


PROGRAMS = {
    **{f"{env}.{algorithm}": Program("iterations", {"env": env, "algorithm": algorithm}, ("iteration", *PHASES))
       for env in ("point", "half_cheetah") for algorithm in ("promp", "trpo")},
    "startup": Program("startup", {}, ("total",), is_fresh=True),
    **{f"memory.tasks_{tasks}": Program("memory", {"tasks": tasks}, ("peak_mib",), is_fresh=True)
       for tasks in (40, 160)},
}
"""Programs by what the keys of their figures begin with."""


def main(checkout: str, program: str, settings: str, started: str) -> None:
    """Answers each line on standard input with figures on standard output; messages go to stderr."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        sys.path[0] = checkout  # from here on, as the package of the benchmarks has been imported
        import meta_policy_search

        if not Path(meta_policy_search.__file__).is_relative_to(checkout):
            raise RuntimeError(f"expected the package of {checkout}, got {meta_policy_search.__file__}")
        function, arguments = PROGRAMS[program][:2]
        turns = globals()[function](float(started), json.loads(settings), **arguments)
        for _ in sys.stdin:
            print(json.dumps(next(turns)), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
