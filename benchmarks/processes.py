"""Runs measurements in separate processes.

A measurement is a function in a module of this folder. Its arguments and figures are JSON types.
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
"""Numbers, strings and booleans by their documented keys."""


class Measurement(NamedTuple):
    """A function that returns `Figures`, and its arguments."""

    module: str
    function: str
    arguments: Mapping[str, Any]

    def __str__(self) -> str:
        """Returns a one-line description."""
        names = [value for value in self.arguments.values() if isinstance(value, str)]
        return " ".join([self.module, self.function, *names])


def measure_here(measurement: Measurement) -> Figures:
    """Runs a measurement in this process."""
    module = importlib.import_module(f"benchmarks.{measurement.module}")
    return getattr(module, measurement.function)(**measurement.arguments)


def measure_apart(measurement: Measurement) -> Figures:
    """Runs a measurement in a new process, whose output goes to stderr.

    Raises:
        RuntimeError: the process failed; its error message is on stderr.
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
