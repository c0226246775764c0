"""Start-up time, time per iteration, memory and graph size of the experiment scripts."""
import contextlib
import importlib
import os
import statistics
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Optional

from benchmarks.processes import Figures
from benchmarks.workload import timed

if TYPE_CHECKING:
    from meta_policy_search.meta_trainer import Trainer

ENVS = {"point": "MetaPointEnvCorner", "half_cheetah": "HalfCheetahRandDirecEnv"}
"""Name in keys to environment."""

SCRIPTS = {"promp": "pro_mp", "trpo": "maml_trpo"}
"""Name of the algorithm in keys to script."""

PHASES = {
    "sampling_s": "Time-Sampling",
    "processing_s": "Time-SampleProc",
    "inner_step_s": "Time-InnerStep",
    "outer_step_s": "Time-OuterStep",
}
"""Name of a phase in keys to the column of the trainer's log."""

META_BATCH_SIZES = (10, 40, 160)


def measure_startup(started: float, settings: Mapping[str, Any]) -> Figures:
    """Measures the time from the start of the process until its first iteration has ended.

    Args:
        started: start of the process on the system's monotonic clock, in seconds.
        settings: settings of the experiment that differ from its defaults.
    """
    for module in ("meta_algos", "meta_trainer", "policies"):
        importlib.import_module(f"meta_policy_search.{module}")
    times = [started, time.monotonic()]
    with make_trainer("promp", "point", settings) as trainer:
        times.append(time.monotonic())
        trainer.train_itr()
        times.append(time.monotonic())
    imports, build, first = (end - begin for begin, end in zip(times[:-1], times[1:], strict=True))
    return {"startup.imports_s": imports, "startup.build_s": build, "startup.first_iteration_s": first,
            "startup.total_s": times[-1] - started}


def measure_iterations(
    env: str, algorithm: str, settings: Mapping[str, Any], warm_up: int, iterations: int,
    prefix: Optional[str] = None, cores: Optional[int] = None,
) -> Figures:
    """Measures the time per iteration and phase, and the peak memory.

    Args:
        env: one of `ENVS`.
        algorithm: one of `SCRIPTS`.
        settings: settings of the experiment that differ from its defaults.
        warm_up: number of first iterations that are not counted.
        iterations: number of counted iterations, at least one.
        prefix: prefix of the keys. Default None: `iteration.<env>.<algorithm>`.
        cores: number of cores to use. Default None: all available cores.
    """
    times: dict[str, list[float]] = {"total_s": [], **{phase: [] for phase in PHASES}}
    with _on_cores(cores), make_trainer(algorithm, env, settings) as trainer:
        for _ in range(warm_up + iterations):
            row, taken = timed(trainer.train_itr)
            times["total_s"].append(taken.wall)
            for phase, column in PHASES.items():
                times[phase].append(row[column])
    prefix = prefix or f"iteration.{env}.{algorithm}"
    figures: Figures = {f"{prefix}.{name}": statistics.median(values[warm_up:]) for name, values in times.items()}
    figures[f"{prefix}.peak_memory_mib"] = peak_memory()
    return figures


@contextlib.contextmanager
def _on_cores(number: Optional[int]) -> Iterator[None]:
    """Restricts threads and processes started in a `with` block to a number of cores; None: no restriction."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(cores)[:number])
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def count_operations(settings: Mapping[str, Any]) -> Figures:
    """Counts the operations of ProMP's graph after an iteration with short paths.

    Args:
        settings: settings of the experiment that differ from its defaults.
    """
    from meta_policy_search.tf_compat import tf

    figures: Figures = {}
    for size in META_BATCH_SIZES:
        short = {"meta_batch_size": size, "rollouts_per_meta_task": 2, "max_path_length": 5}
        with tf.Graph().as_default() as graph, make_trainer("promp", "point", {**settings, **short}) as trainer:
            trainer.train_itr()
            figures[f"graph.meta_batch_size_{size}_operations"] = len(graph.get_operations())
    return figures


def configure(**settings: Any) -> SimpleNamespace:
    """Returns all settings of `experiments/pro_mp.py`, some of which are given."""
    from experiments.reproduction.entries import script_settings
    from meta_policy_search.registry import get_algorithm
    from meta_policy_search.run import settings_of_algorithm

    known = settings_of_algorithm(get_algorithm("promp"))
    defaults = {name: setting.default for name, setting in known.items()}
    return SimpleNamespace(**{**defaults, **script_settings("pro_mp", settings)})


def build(config: SimpleNamespace) -> "Trainer":
    """Builds the trainer of settings in a separate graph."""
    from meta_policy_search.run import build_trainer
    from meta_policy_search.tf_compat import tf

    with tf.Graph().as_default():
        return build_trainer(**vars(config))


@contextlib.contextmanager
def make_trainer(algorithm: str, env: str, settings: Mapping[str, Any]) -> "Iterator[Trainer]":
    """Builds the trainer of an experiment; rows and snapshots are written to a temporary folder."""
    from meta_policy_search.run import build_trainer
    from meta_policy_search.utils import logger

    script = importlib.import_module(f"experiments.{SCRIPTS[algorithm]}")
    with tempfile.TemporaryDirectory() as folder, logger.scoped_configure(folder, ("csv",)):
        yield build_trainer(algo=script.ALGORITHM, **{**script.PUBLISHED, "env": ENVS[env], **settings})


def peak_memory() -> float:
    """Returns the peak resident memory of this process in MiB."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) / 1024
