"""Cost model of an iteration on a Ray cluster: measures its constants, checks its predictions and extrapolates.

    python benchmarks/ray_cost_model.py            # less than three minutes on a quiet machine
    python benchmarks/ray_cost_model.py --smoke    # smoke test with tiny sizes; the figures are meaningless

The script writes benchmarks/ray_cost_model.json and docs/cluster_costs.inc, the tables of docs/cluster.rst. That page
explains the model. All measurements run on this machine, with ProMP on HalfCheetahRandDirecEnv. Extrapolated values are
marked.
"""
import argparse
import copy
import json
import math
import statistics
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence

import cloudpickle
import numpy as np

if not __package__:  # python benchmarks/ray_cost_model.py
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks import machine
from benchmarks.processes import ROOT, Figures
from benchmarks.sampling import collect
from benchmarks.training import build, configure
from benchmarks.workload import timed
from meta_policy_search.samplers.ray_executor import RayOptions, connect
from meta_policy_search.types import PathsMetaBatch
from meta_policy_search.utils import logger
from meta_policy_search.utils.threads import available_cores

RESULTS = ROOT / "benchmarks" / "ray_cost_model.json"
TABLES = ROOT / "docs" / "cluster_costs.inc"

ENV = "HalfCheetahRandDirecEnv"
NETWORK = 1.25e9  # bytes per second into the training machine: 10 Gbit/s, an assumption
STEPS = 1  # adaptation steps per iteration


@dataclass(frozen=True)
class Sizes:
    """Sizes of the measurements."""

    rollouts: int = 20
    length: int = 100
    tasks: tuple[int, ...] = (5, 20, 40)  # numbers of tasks for fitting the constants
    checked: tuple[tuple[int, int], ...] = ((40, 100), (30, 60))  # tasks and path length of the checked predictions
    workers: tuple[int, ...] = (1, 2, 4)
    repeats: int = 3
    buffers: tuple[int, ...] = (1 << 20, 8 << 20, 32 << 20)  # bytes


SMOKE = Sizes(rollouts=2, length=10, tasks=(2, 3), checked=((2, 5),), workers=(1, 2), repeats=1,
              buffers=(1 << 16, 1 << 17))


class Job(NamedTuple):
    """Sizes of an iteration whose costs are predicted."""

    tasks: int
    rollouts: int
    length: int
    workers: int
    cores: int  # cores for all workers together

    @property
    def steps(self) -> int:
        """Number of environment steps of a round; an iteration has `STEPS + 1` rounds."""
        return self.tasks * self.rollouts * self.length


@dataclass(frozen=True)
class Constants:
    """Constants of the model, measured on one machine."""

    seconds_per_loop: float  # worker: per time step, independent of the number of paths
    seconds_per_step: float  # worker: per environment step
    seconds_per_path: float  # worker: per path, for its start
    seconds_per_call: float  # trainer: per worker and round
    seconds_per_round: float  # trainer: per round
    seconds_per_byte_in: float  # trainer: per byte of received paths
    seconds_per_byte_out: float  # trainer: per byte of sent parameters
    seconds_per_update: float  # trainer: per iteration, for processing, adaptation steps and meta-update
    seconds_per_update_step: float  # trainer: per environment step, for processing, adaptation steps and meta-update
    bytes_per_step: float  # size of paths per environment step
    bytes_per_path: float  # size of a path in addition to its steps
    bytes_per_task: float  # size of the parameters per task

    def predict(self, job: Job, network: float = math.inf) -> dict[str, float]:
        """Predicts the bytes and seconds of an iteration.

        Args:
            job: sizes of the iteration.
            network: bandwidth into the trainer's machine, bytes per second; infinite if the workers run on that
                machine.
        """
        rounds, paths = STEPS + 1, job.tasks * job.rollouts
        bytes_in = self.bytes_per_step * job.steps + self.bytes_per_path * paths
        bytes_out = self.bytes_per_task * job.tasks
        at_once = min(job.workers, job.cores)
        compute = (self.seconds_per_loop * job.length * job.workers
                   + self.seconds_per_step * job.steps + self.seconds_per_path * paths) / at_once
        transfer = (self.seconds_per_round + self.seconds_per_call * job.workers + self.seconds_per_byte_out * bytes_out
                    + (self.seconds_per_byte_in + 1.0 / network) * bytes_in)
        update = self.seconds_per_update + self.seconds_per_update_step * job.steps * rounds
        return {
            "bytes_in": rounds * bytes_in,
            "bytes_out": rounds * bytes_out,
            "compute_s": rounds * compute,
            "transfer_s": rounds * transfer,
            "sampling_s": rounds * (compute + transfer),
            "update_s": update,
            "iteration_s": rounds * (compute + transfer) + update,
        }

    def workers_at_balance(self) -> float:
        """Returns the number of workers for which sampling takes as long per environment step as the meta-update."""
        return self.seconds_per_step / self.seconds_per_update_step


# Measuring -------------------------------------------------------------------------------------------------------


def measure_constants(sizes: Sizes) -> Constants:
    """Measures all constants. Ray must be running."""
    loop, step, path = _measure_worker(sizes)
    update, update_step = _measure_update(sizes)
    transport = _measure_transport(sizes)
    config = _config(sizes, sizes.tasks[-1], sizes.length, parallel={"num_workers": 1, "cpus_per_worker": 0.5})
    with build(config).sampler as sampler:
        sampler.update_tasks()
        paths = sampler.obtain_samples()
        sent, received = len(cloudpickle.dumps(sampler.make_actor())), arrays_size(paths)
    num_paths = config.meta_batch_size * config.rollouts_per_meta_task
    per_step = sum(array.dtype.itemsize * math.prod(array.shape[1:]) for infos in
                   (paths[0][0], paths[0][0]["env_infos"], paths[0][0]["agent_infos"])
                   for name, array in infos.items() if isinstance(array, np.ndarray) and name != "last_observation")
    return Constants(
        seconds_per_loop=loop, seconds_per_step=step, seconds_per_path=path, **transport,
        seconds_per_update=update, seconds_per_update_step=update_step,
        bytes_per_step=per_step,
        bytes_per_path=(received - per_step * num_paths * config.max_path_length) / num_paths,
        bytes_per_task=sent / config.meta_batch_size,
    )


def arrays_size(paths: PathsMetaBatch) -> int:
    """Returns the total size of the arrays of paths, in bytes."""
    return sum(array.nbytes for task_paths in paths.values() for path in task_paths
               for arrays in (path, path["env_infos"], path["agent_infos"]) for array in arrays.values()
               if isinstance(array, np.ndarray))


def _measure_worker(sizes: Sizes) -> tuple[float, float, float]:
    """Samples in this process with one thread, like a worker; returns the seconds per loop, step and path."""
    rows, times = [], []
    for tasks in sizes.tasks:
        for length in (sizes.length, sizes.length // 5):
            with build(_config(sizes, tasks, length, num_threads=1)).sampler as sampler:
                times.append(_median(lambda: collect(sampler), sizes.repeats))
            rows.append((length, tasks * sizes.rollouts * length, tasks * sizes.rollouts))
    return tuple(fit(rows, times))


def _measure_update(sizes: Sizes) -> tuple[float, float]:
    """Trains in this process; returns the seconds per iteration and per environment step, without sampling."""
    rows, times = [], []
    for tasks in sizes.tasks:
        config = _config(sizes, tasks, sizes.length)
        log = _train(config, 1 + sizes.repeats)[1:]
        times.append(statistics.median(row["ItrTime"] - row["Time-Sampling"] for row in log))
        rows.append((1, (STEPS + 1) * tasks * sizes.rollouts * sizes.length))
    return tuple(fit(rows, times))


def _measure_transport(sizes: Sizes) -> dict[str, float]:
    """Measures the transfer of arrays to idle workers and back."""
    import ray

    class Echo:
        def __init__(self) -> None:
            self.arrays = {}

        def make(self, size: int) -> Any:
            if size not in self.arrays:
                self.arrays[size] = [np.ones(size // 8) for _ in range(8)]
            return self.arrays[size]

        def take(self, values: Any) -> int:
            return len(values)

    echoes = [ray.remote(num_cpus=0.25)(Echo).remote() for _ in range(2)]
    echo = echoes[0]

    def fetch(size: int) -> None:
        copy.deepcopy(ray.get(echo.make.remote(size)))

    def send(size: int) -> None:
        ray.get(echo.take.remote(ray.put(np.ones(size // 8))))

    def call(count: int) -> None:
        ray.get([echoes[i % 2].take.remote(b"") for i in range(count)])

    repeats = 3 * sizes.repeats
    counts = (1, 10, 50)
    for size in sizes.buffers:
        fetch(size), send(size)
    call(counts[-1])
    per_round, per_call = fit([(1, n) for n in counts], [_median(lambda n=n: call(n), repeats) for n in counts])
    into = fit([(1, n) for n in sizes.buffers], [_median(lambda n=n: fetch(n), repeats) for n in sizes.buffers])[1]
    out = fit([(1, n) for n in sizes.buffers], [_median(lambda n=n: send(n), repeats) for n in sizes.buffers])[1]
    for each in echoes:
        ray.kill(each)
    return {"seconds_per_round": per_round, "seconds_per_call": per_call, "seconds_per_byte_in": into,
            "seconds_per_byte_out": out}


def measure_checks(sizes: Sizes, constants: Constants) -> list[Figures]:
    """Trains on Ray with several sizes; returns measured and predicted values."""
    checks = []
    for tasks, length in sizes.checked:
        for workers in sizes.workers:
            config = _config(sizes, tasks, length, parallel={"num_workers": workers, "cpus_per_worker": 0.5})
            log = _train(config, 1 + sizes.repeats)[1:]
            job = Job(tasks, sizes.rollouts, length, workers, available_cores())
            checks.append({
                **job._asdict(),
                "measured_sampling_s": statistics.median(row["Time-Sampling"] for row in log),
                "measured_iteration_s": statistics.median(row["ItrTime"] for row in log),
                **constants.predict(job),
            })
    return checks


def extrapolate(constants: Constants) -> list[Figures]:
    """Predicts the costs on larger clusters, which were not measured, with one core per worker."""
    jobs = [Job(tasks, 20, 100, workers, workers) for tasks, workers in
            ((40, 2), (40, 8), (40, 40), (400, 100), (1000, 100), (10_000, 100), (10_000, 1000))]
    return [{**job._asdict(), **constants.predict(job, NETWORK)} for job in jobs]


def _config(sizes: Sizes, tasks: int, length: int, num_threads: Optional[int] = None,
            **settings: Any) -> SimpleNamespace:
    env_kwargs = {} if num_threads is None else {"num_threads": num_threads}
    return configure(env=ENV, env_kwargs=env_kwargs, meta_batch_size=tasks, max_path_length=length,
                     rollouts_per_meta_task=sizes.rollouts, num_inner_grad_steps=STEPS, **settings)


def _train(config: SimpleNamespace, iterations: int) -> list[Mapping[str, Any]]:
    """Trains for some iterations; returns their rows."""
    with tempfile.TemporaryDirectory() as folder, logger.scoped_configure(folder, ("csv",)):
        trainer = build(config)
        with trainer.sampler:
            return [trainer.train_itr() for _ in range(iterations)]


def _median(call: Callable[[], Any], repeats: int) -> float:
    """Returns the median duration of a call in seconds; the first call is not counted."""
    call()
    return statistics.median(timed(call)[1].wall for _ in range(repeats))


def fit(rows: Sequence[Sequence[float]], times: Sequence[float]) -> list[float]:
    """Fits non-negative coefficients to times by least squares of the relative errors."""
    from scipy.optimize import nnls

    weights = 1.0 / np.asarray(times)
    rows = np.asarray(rows, float) * weights[:, None]
    scale = np.abs(rows).max(axis=0)
    return (nnls(rows / scale, np.ones(len(times)))[0] / scale).tolist()


# Writing ---------------------------------------------------------------------------------------------------------


def make_tables(results: Figures) -> str:
    """Formats the tables of docs/cluster.rst."""
    constants = Constants(**results["constants"])
    quiet = "" if not results["load.cost_model.is_busy"] else (
        " Other processes used the cores at the same time, so the times are too long.")
    checks = [(row["tasks"], row["length"], row["workers"],
               *(f"{row[key]:.2f}" for key in ("measured_sampling_s", "sampling_s", "measured_iteration_s",
                                               "iteration_s")),
               f"{row['iteration_s'] / row['measured_iteration_s'] - 1.0:+.0%}") for row in results["checks"]]
    extrapolated = [(f"{row['tasks']:,}", f"{row['workers']:,}", _bytes(row["bytes_out"]), _bytes(row["bytes_in"]),
                     *(_seconds(row[key]) for key in ("compute_s", "transfer_s", "update_s", "iteration_s")))
                    for row in results["extrapolated"]]
    return "\n".join([
        ".. Written by benchmarks/ray_cost_model.py.",
        "",
        f"Measured on {results['machine.cores']} cores of {results['machine.cpu_model']}.{quiet}",
        "",
        _table("Constants (measured)", ("symbol", "value", "meaning"), [
            ("h", _seconds(constants.seconds_per_loop), "worker, per time step of a round"),
            ("s", _seconds(constants.seconds_per_step), "worker, per environment step"),
            ("r", _seconds(constants.seconds_per_path), "worker, per path"),
            ("a", _seconds(constants.seconds_per_round), "trainer, per round"),
            ("w", _seconds(constants.seconds_per_call), "trainer, per worker and round"),
            ("c", f"{1e9 * constants.seconds_per_byte_in:.2f} s/GB", "trainer, per byte of paths"),
            ("q", f"{1e9 * constants.seconds_per_byte_out:.2f} s/GB", "trainer, per byte of parameters"),
            ("v", _seconds(constants.seconds_per_update), "trainer, per iteration: processing, inner step and update"),
            ("u", _seconds(constants.seconds_per_update_step),
             "trainer, per environment step: processing, inner step and update"),
            ("b", f"{constants.bytes_per_step:.0f} bytes", "paths, per environment step"),
            ("d", f"{constants.bytes_per_path:.0f} bytes", "paths, per path"),
            ("D", _bytes(constants.bytes_per_task), "parameters, per task"),
        ]),
        _table("Predictions and measurements, s per iteration (measured)",
               ("tasks", "path length", "workers", "sampling", "predicted", "iteration", "predicted", "error"), checks),
        _table("Clusters, per iteration (extrapolated)",
               ("tasks", "workers", "parameters out", "paths in", "paths", "transfer", "update", "iteration"),
               extrapolated),
        f"``s / u`` is {constants.workers_at_balance():.1f}: with this number of workers, sampling takes as long as "
        "the trainer's update (extrapolated).",
        "",
    ])


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [f".. list-table:: {title}", "   :header-rows: 1", ""]
    for row in (header, *rows):
        lines += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(row)]
    return "\n".join([*lines, ""])


def _seconds(value: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def _bytes(value: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.0f} bytes"


def measure(sizes: Sizes) -> Figures:
    """Measures constants and checks, and extrapolates; returns all figures."""
    connect(RayOptions())
    with machine.measure_load("cost_model") as load:
        constants = measure_constants(sizes)
        checks = measure_checks(sizes, constants)
    return {**machine.describe(), **load, "constants": asdict(constants), "checks": checks,
            "network_bytes_per_s": NETWORK, "extrapolated": extrapolate(constants)}


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Measures and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="smoke test with tiny sizes; writes no files")
    arguments = parser.parse_args(argv)
    results = measure(SMOKE if arguments.smoke else Sizes())
    tables = make_tables(results)
    print(tables)
    if not arguments.smoke:
        RESULTS.write_text(json.dumps(results, indent=2) + "\n")
        TABLES.write_text(tables, encoding="utf-8")
        print(f"Written to {RESULTS} and {TABLES}")


if __name__ == "__main__":
    main()
