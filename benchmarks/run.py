"""Measures speed and memory, prints a table and writes `benchmarks/results.json`.

    python benchmarks/run.py                          # all groups except scaling, about 40 minutes on two cores
    python benchmarks/run.py --only engine sampling   # some groups
    python benchmarks/run.py --only scaling           # tasks, path lengths, layer sizes and cores, about 10 minutes
    python benchmarks/run.py --smoke                  # smoke test with tiny sizes; the figures are meaningless

The table also shows times and rates relative to a reference workload, which is timed before and after each group. These
values are valid even if the speed of the machine drifts. README.md explains all figures.
"""
import argparse
import importlib.util
import itertools
import json
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence

if not __package__:  # python benchmarks/run.py
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks import machine
from benchmarks.processes import Figures, Measurement, measure_apart
from benchmarks.returns import RUNS
from benchmarks.workload import SMOKE as SMALL
from meta_policy_search.utils.threads import available_cores

RESULTS = Path(__file__).resolve().parent / "results.json"


@dataclass(frozen=True)
class Sizes:
    """Sizes of the measurements; the defaults use the default settings of the experiments."""

    settings: Mapping[str, Any] = field(default_factory=dict)  # settings that differ from the experiments' defaults
    processes: int = 3  # processes of the start-up measurement
    warm_up: int = 2  # first iterations that are not counted
    iterations: int = 10  # counted iterations
    seconds: float = 4.0  # seconds of sampling per executor
    rounds: int = 7  # turns of alternating variants


SMOKE = Sizes(settings=SMALL, processes=1, warm_up=0, iterations=1, seconds=0.0, rounds=1)


def startup(sizes: Sizes) -> Iterator[Measurement]:
    """Time from the start of a process until its first iteration has ended."""
    for _ in range(sizes.processes):
        started = time.monotonic()  # each measurement runs before the next one is requested
        yield Measurement("training", "measure_startup", {"started": started, "settings": sizes.settings})


def iteration(sizes: Sizes) -> Iterator[Measurement]:
    """Time per iteration, by phase, and memory."""
    for env in ("point", "half_cheetah"):
        for algorithm in ("promp", "trpo"):
            yield Measurement("training", "measure_iterations", {
                "env": env, "algorithm": algorithm, "settings": sizes.settings, "warm_up": sizes.warm_up,
                "iterations": sizes.iterations})


def returns(sizes: Sizes) -> Iterator[Measurement]:
    """Time until a policy reaches a published return."""
    for goal, method in RUNS:
        for seed in range(11, 11 + sizes.processes):
            started = time.monotonic()
            yield Measurement("returns", "measure_time_to_return", {
                "started": started, "goal": goal, "method": method, "seed": seed, "settings": sizes.settings})


def graph(sizes: Sizes) -> Iterator[Measurement]:
    """Size of the TensorFlow graph."""
    yield Measurement("training", "count_operations", {"settings": sizes.settings})


def sampling(sizes: Sizes) -> Iterator[Measurement]:
    """Sampling throughput of the executors."""
    for env in ("point", "half_cheetah"):
        yield Measurement("sampling", "measure_executors", {
            "env": env, "settings": sizes.settings, "seconds": sizes.seconds})


def engine(sizes: Sizes) -> Iterator[Measurement]:
    """Speed of sampling relative to the physics engine alone, and scaling with the number of cores."""
    yield Measurement("engine_share", "measure_share", {
        "robot": "half_cheetah", "settings": sizes.settings, "rounds": sizes.rounds})
    for robot in ("walker2d", "hopper", "swimmer", "ant", "humanoid"):  # slower robots: fewer paths and rounds
        yield Measurement("engine_share", "measure_share", {
            "robot": robot, "settings": {"rollouts_per_meta_task": 10, **sizes.settings},
            "rounds": -(-sizes.rounds // 2)})


def ray(sizes: Sizes) -> Iterator[Measurement]:
    """Speed of sampling on Ray relative to sampling in the process."""
    if importlib.util.find_spec("ray") is None:
        print("skipped: the group ray, because Ray is not installed", file=sys.stderr)
        return
    yield Measurement("ray_sampling", "measure_ray", {
        "env": "half_cheetah", "settings": sizes.settings, "rounds": sizes.rounds})


def vector(sizes: Sizes) -> Iterator[Measurement]:
    """Speed of the vectorized environment relative to Gymnasium's `SyncVectorEnv`."""
    yield _compare_vector_envs(sizes, "vector", "sync", 5)


def envpool(sizes: Sizes) -> Iterator[Measurement]:
    """Speed of the vectorized environment relative to EnvPool."""
    if importlib.util.find_spec("envpool") is None:
        print("skipped: the group envpool, because EnvPool is not installed", file=sys.stderr)
        return
    yield _compare_vector_envs(sizes, "envpool", "envpool", 50)


def stable_baselines3(sizes: Sizes) -> Iterator[Measurement]:
    """Speed of the vectorized environment relative to the `DummyVecEnv` of stable-baselines3."""
    if importlib.util.find_spec("stable_baselines3") is None:
        print("skipped: the group stable_baselines3, because stable-baselines3 is not installed", file=sys.stderr)
        return
    yield _compare_vector_envs(sizes, "stable_baselines3", "dummy", 5)


def _compare_vector_envs(sizes: Sizes, group: str, kind: str, steps_per_iteration: int) -> Measurement:
    return Measurement("vector_envs", "measure_vector_envs", {
        "group": group, "kinds": ("native", kind), "num_envs": 64, "num_steps": steps_per_iteration * sizes.iterations,
        "rounds": sizes.rounds})


def ml45_memory(sizes: Sizes) -> Iterator[Measurement]:
    """Memory of an iteration with the sizes of Meta-World's ML45."""
    yield Measurement("memory", "measure_ml45", {"settings": sizes.settings})


def scaling(sizes: Sizes) -> Iterator[Measurement]:
    """Time and memory of an iteration by number of tasks, path length, layer size and number of cores."""
    variants = [("tasks", n, {"meta_batch_size": n}) for n in (10, 40, 160, 640)]
    variants += [("length", n, {"max_path_length": n}) for n in (25, 100, 400)]
    variants += [("units", n, {"hidden_sizes": (n, n)}) for n in (32, 64, 128, 256)]
    variants += [("cores", 2 ** i, {}) for i in range(available_cores().bit_length())]
    for name, value, settings in variants:
        for algorithm in ("promp", "trpo"):
            yield Measurement("training", "measure_iterations", {
                "env": "point", "algorithm": algorithm, "settings": {**sizes.settings, **settings},
                "warm_up": min(sizes.warm_up, 1), "iterations": -(-sizes.iterations // 3),
                "prefix": f"scaling.{name}_{value}.{algorithm}", "cores": value if name == "cores" else None})


GROUPS: dict[str, Callable[[Sizes], Iterator[Measurement]]] = {
    group.__name__: group
    for group in (startup, iteration, returns, graph, sampling, engine, vector, envpool, stable_baselines3,
                  ray, ml45_memory, scaling)
}
DEFAULT_GROUPS = [name for name in GROUPS if name != "scaling"]


def measure_group(name: str, sizes: Sizes, measure: Callable[[Measurement], Figures] = measure_apart) -> Figures:
    """Runs the measurements of a group; figures that occur in several measurements are combined by their median.

    Args:
        name: one of `GROUPS`.
        sizes: sizes of the measurements.
        measure: function that runs a measurement; by default in a separate process.
    """
    answers: dict[str, list[Any]] = {}
    with machine.measure_load(name) as load:
        for measurement in GROUPS[name](sizes):
            print(f"measuring: {measurement}", file=sys.stderr)
            for key, value in measure(measurement).items():
                answers.setdefault(key, []).append(value)
    return {**load, **{key: statistics.median(values) for key, values in answers.items()}}


def format_table(figures: Figures) -> str:
    """Formats figures as lines of key, value and value relative to the reference workload; warns of a busy machine."""
    width = max(map(len, figures))
    kinds = itertools.groupby(figures, key=lambda key: key.split(".")[0])
    lines = "\n\n".join("\n".join(f"{key:{width}}  {_readable(figures[key]):9}  {_relative(key, figures)}".rstrip()
                                  for key in keys) for _, keys in kinds)
    busy = [key.split(".")[1] for key, value in figures.items() if key.endswith(".is_busy") and value]
    if busy:
        lines += (f"\n\nNOT QUIET: other processes used more than {machine.BUSY:.0%} of the cores during "
                  f"{', '.join(busy)}. These figures are not reliable, especially with several threads.")
    return lines


def _relative(key: str, figures: Figures) -> str:
    """Formats a time or a rate with the time of the group's reference workload as the unit of time."""
    group = f"load.{key.split('.')[0]}"
    if not key.endswith("_s") or f"{group}.work_after_s" not in figures:
        return ""
    unit = (figures[f"{group}.work_before_s"] + figures[f"{group}.work_after_s"]) / 2
    is_rate = key.endswith("_per_s")
    return f"{_readable(figures[key] * unit)} / workload" if is_rate else f"{_readable(figures[key] / unit)} workloads"


def _readable(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Runs the selected benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=GROUPS, metavar="GROUP",
                        help=f"groups to measure: {', '.join(GROUPS)} (default: all except scaling)")
    parser.add_argument("--smoke", action="store_true", help="smoke test with tiny sizes")
    parser.add_argument("--output", type=Path, metavar="FILE",
                        help="JSON file for the results (default: benchmarks/results.json, only for a complete run)")
    arguments = parser.parse_args(argv)
    is_complete = not (arguments.only or arguments.smoke)
    output = arguments.output or (RESULTS if is_complete else None)
    figures = machine.describe()
    for group in arguments.only or DEFAULT_GROUPS:
        figures |= measure_group(group, SMOKE if arguments.smoke else Sizes())
    print(format_table(figures))
    if output is not None:
        output.write_text(json.dumps(figures, indent=2) + "\n")
        print(f"\nWritten to {output}")


if __name__ == "__main__":
    main()
