"""Compares the speed and memory of two checkouts in alternating turns.

    git worktree add ../before COMMIT
    python benchmarks/compare.py ../before .                                     # everything, about ten minutes
    python benchmarks/compare.py ../before . --only "*.outer_step" --turns 9     # some figures
    python benchmarks/compare.py ../before . --only half_cheetah --set 'env="AntRandDirecEnv"'

Each turn is one iteration of each checkout. A reference workload (workload.py) is timed before and after each
iteration. The table also shows ratios of times relative to this workload, which are valid even if the speed of the
machine drifts. `cpu_s` is the CPU time of all threads of the process. Other programs affect it less than the wall-clock
time `wall_s`.
"""
import argparse
import contextlib
import fnmatch
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping, Optional, Sequence

import numpy as np

if not __package__:  # python benchmarks/compare.py
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.compared import PROGRAMS
from benchmarks.processes import ROOT, Figures
from benchmarks.workload import SMOKE, Times, machine_time
from meta_policy_search.utils.checks import check_positive_int

KEYS = [f"{name}.{figure}" for name, program in PROGRAMS.items() for figure in program.figures]
Comparison = dict[str, list[tuple[float, float]]]
"""Measured pairs (old, new) of each turn, by key."""


def table(comparison: Comparison) -> str:
    """Formats a table of medians, and of the median, smallest and largest ratio new/old of a turn."""
    width = max(map(len, comparison))
    lines = [f"{'':{width}}  {'old':>9}  {'new':>9}  {'new/old (smallest to largest)':30}  at equal speed"]
    for key, pairs in comparison.items():
        old, new = (statistics.median(values) for values in zip(*pairs, strict=True))
        ratios = np.divide(*np.transpose(pairs)[::-1])
        line = f"{key:{width}}  {old:9.4g}  {new:9.4g}  {_summary(ratios):30}"
        program, figure, clock = key.rsplit(".", 2)
        machine = comparison.get(f"{program}.machine.{clock}")
        if machine and figure != "machine":
            line += f"  {_summary(ratios / np.divide(*np.transpose(machine)[::-1]))}"
        lines.append(line)
    return "\n".join(lines)


def _summary(ratios: np.ndarray) -> str:
    return f"{np.median(ratios):7.3f} ({ratios.min():.3f} to {ratios.max():.3f})"


@contextlib.contextmanager
def _process(checkout: Path, program: str, settings: Mapping[str, Any]) -> "Iterator[subprocess.Popen[str]]":
    """Runs a program of a checkout in a process during a `with` block."""
    command = [sys.executable, "-m", "benchmarks.compared", str(checkout), program, json.dumps(settings),
               str(time.monotonic())]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


def _take_turn(process: "subprocess.Popen[str]") -> Figures:
    """Requests one turn of a program; returns its figures, and the times of the reference workload as `machine`.

    Raises:
        RuntimeError: the process failed; its error message is on stderr.
    """
    before = machine_time()
    with contextlib.suppress(BrokenPipeError):  # if the program has failed
        os.write(process.stdin.fileno(), b"\n")
    answer = process.stdout.readline()
    if not answer:
        raise RuntimeError(f"the program {process.args[4]} of {process.args[3]} failed, see above")
    speed = Times(*(statistics.mean(pair) for pair in zip(before, machine_time(), strict=True)))
    figures = {"machine.wall_s": speed.wall, "machine.cpu_s": speed.cpu}
    for name, value in json.loads(answer).items():
        if isinstance(value, list):
            figures[f"{name}.wall_s"], figures[f"{name}.cpu_s"] = value
        else:
            figures[name] = value
    return figures


def _turns(name: str, checkouts: Sequence[Path], settings: Mapping[str, Any], turns: int) -> Iterator[list[Figures]]:
    """Yields the figures of both checkouts for each turn; the checkout that starts alternates."""
    orders = [(0, 1), (1, 0)]
    if PROGRAMS[name].is_fresh:
        for turn in range(turns):
            figures = {}
            for i in orders[turn % 2]:
                with _process(checkouts[i], name, settings) as process:
                    figures[i] = _take_turn(process)
            yield [figures[0], figures[1]]
        return
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(_process(checkout, name, settings)) for checkout in checkouts]
        for turn in range(1 + turns):
            figures = {i: _take_turn(processes[i]) for i in orders[turn % 2]}
            if turn:
                yield [figures[0], figures[1]]


def compare(old: Path, new: Path, keys: Iterable[str], settings: Mapping[str, Any], turns: int) -> Comparison:
    """Measures two checkouts in alternating turns.

    Args:
        old: folder of the old checkout.
        new: folder of the new checkout.
        keys: members of `KEYS` to measure.
        settings: settings of the experiments that differ from their defaults.
        turns: number of turns, at least one.

    Returns:
        The measured pairs by key.

    Raises:
        RuntimeError: a process failed; its error message is on stderr.
    """
    wanted = set(keys)
    comparison: Comparison = {}
    machine_time()  # warm-up
    for name, program in PROGRAMS.items():
        figures = {figure for figure in program.figures if f"{name}.{figure}" in wanted}
        if not figures:
            continue
        for turn, pair in enumerate(_turns(name, (old.resolve(), new.resolve()), settings, turns), 1):
            print(f"{name}: turn {turn} of {turns}", file=sys.stderr)
            for key in pair[0]:
                if key.split(".")[0] in {*figures, "machine"}:
                    comparison.setdefault(f"{name}.{key}", []).append((pair[0][key], pair[1][key]))
    return comparison


def _choose(patterns: Optional[Sequence[str]]) -> list[str]:
    """Returns the keys that match patterns or start with them.

    Raises:
        ValueError: a pattern matches no key.
    """
    chosen = []
    for pattern in patterns or ["*"]:
        found = [key for key in KEYS if fnmatch.fnmatch(key, pattern) or fnmatch.fnmatch(key, f"{pattern}.*")]
        if not found:
            raise ValueError(f"--only: expected patterns of {', '.join(KEYS)}, got {pattern!r}")
        chosen += found
    return chosen


def _setting(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    return name, json.loads(value)


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Compares two checkouts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="folder of the old checkout")
    parser.add_argument("new", type=Path, help="folder of the new checkout")
    parser.add_argument("--only", nargs="+", metavar="PATTERN",
                        help=f"figures to compare (default: all): {', '.join(KEYS)}")
    parser.add_argument("--turns", type=int, default=5, help="number of turns (default: 5)")
    parser.add_argument("--set", nargs="+", type=_setting, default=[], metavar="NAME=VALUE",
                        help="settings of the experiments, as JSON: meta_batch_size=10 hidden_sizes=[100,100]")
    parser.add_argument("--smoke", action="store_true", help="smoke test with tiny sizes")
    parser.add_argument("--output", type=Path, metavar="FILE", help="JSON file for the pairs (old, new) of each turn")
    arguments = parser.parse_args(argv)
    settings = {**(SMOKE if arguments.smoke else {}), **dict(arguments.set)}
    try:
        keys = _choose(arguments.only)
        check_positive_int("--turns", arguments.turns)
    except ValueError as error:
        parser.error(str(error))
    comparison = compare(arguments.old, arguments.new, keys, settings, arguments.turns)
    print(table(comparison))
    if arguments.output is not None:
        arguments.output.write_text(json.dumps(comparison, indent=2) + "\n")


if __name__ == "__main__":
    main()
