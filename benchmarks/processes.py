"""Measurements, and how they are taken in separate processes.

A measurement is a function of a module of this folder, with arguments and figures that JSON can write.
"""
import importlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Mapping, NamedTuple

ROOT = Path(__file__).resolve().parent.parent

Figures = dict[str, Any]
"""Numbers, strings and truth values by their documented keys."""


class Measurement(NamedTuple):
    """A function that returns `Figures`, and what it is called with."""

    module: str
    function: str
    arguments: Mapping[str, Any]

    def __str__(self) -> str:
        """Names it in one line."""
        names = [value for value in self.arguments.values() if isinstance(value, str)]
        return " ".join([self.module, self.function, *names])


def measure_here(measurement: Measurement) -> Figures:
    """Takes a measurement in this process."""
    module = importlib.import_module(f"benchmarks.{measurement.module}")
    return getattr(module, measurement.function)(**measurement.arguments)


def measure_apart(measurement: Measurement) -> Figures:
    """Takes a measurement in a fresh process, whose messages go to stderr.

    Raises:
        RuntimeError: the process failed; it has said why.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        command = [sys.executable, "-m", "benchmarks.processes", json.dumps(measurement), str(file)]
        status = subprocess.run(command, cwd=ROOT, stdout=sys.stderr).returncode
        if status != 0:
            raise RuntimeError(f"the measurement '{measurement}' failed with exit status {status}, see above")
        return json.loads(file.read_text())


if __name__ == "__main__":
    asked, file = sys.argv[1:]
    Path(file).write_text(json.dumps(measure_here(Measurement(*json.loads(asked)))))
