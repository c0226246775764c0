"""Describes the machine, its current speed and the load of other processes. Linux only: reads /proc."""
import contextlib
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Iterator

from benchmarks.processes import Figures
from benchmarks.workload import machine_time
from meta_policy_search.run_folder import describe_process
from meta_policy_search.utils.threads import available_cores

BUSY = 0.05
"""Fraction of the cores; if other processes use more, the machine counts as busy."""


def describe() -> Figures:
    """Returns processor, number of cores, operating system, commit and versions of packages."""
    process = describe_process(sys.argv)
    return {
        "machine.cpu_model": _cpu_model(),
        "machine.cores": available_cores(),
        "machine.system": process["machine"]["system"],
        "machine.commit": process["git_revision"],
        **{f"machine.version_{name}": version for name, version in process["versions"].items()},
    }


def _cpu_model() -> str:
    models = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
              if line.startswith("model name")]
    return models[0] if models else "unknown"


@contextlib.contextmanager
def measure_load(group: str) -> Iterator[Figures]:
    """Measures the load of other processes during a `with` block, and times the reference workload.

    CPU time of this process and its descendants is not counted. The caller must wait for descendants that end during
    the block. On a virtual machine, CPU time that the hypervisor gave to other machines is counted. The figures, which
    README.md documents, are complete after the block has ended.

    Args:
        group: name of the group of figures.
    """
    figures: Figures = {f"load.{group}.work_before_s": _time_of_work(),
                        f"load.{group}.average_before": os.getloadavg()[0]}
    began = time.monotonic(), _busy_time(), own_time()
    yield figures
    elapsed, busy, own = (now - then for now, then in zip(
        (time.monotonic(), _busy_time(), own_time()), began, strict=True))
    others = max(busy - own, 0.0) / elapsed
    figures.update({f"load.{group}.average_after": os.getloadavg()[0], f"load.{group}.others_cores": others,
                    f"load.{group}.is_busy": others > BUSY * available_cores(),
                    f"load.{group}.work_after_s": _time_of_work()})


def _time_of_work() -> float:
    """Returns the current time of the reference workload in seconds: the median of five, as the first is slower."""
    return statistics.median(machine_time().wall for _ in range(5))


def _busy_time() -> float:
    """Returns the busy time of all cores together since the machine was started, in seconds."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(
        int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own_time() -> float:
    """Returns the CPU time of this process and its descendants, in seconds."""
    return sum(os.times()[:4]) + _descendants_time()


def _descendants_time() -> float:
    """Returns the CPU time of the running descendants, in seconds."""
    parents, times = {}, {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()  # names can contain spaces
        except OSError:  # the process has ended
            continue
        process = int(file.parent.name)
        parents[process], times[process] = int(fields[1]), sum(map(int, fields[11:15]))
    ours, newest = set(), {os.getpid()}
    while newest:
        newest = {process for process, parent in parents.items() if parent in newest}
        ours |= newest
    return sum(times[process] for process in ours) / os.sysconf("SC_CLK_TCK")
