"""Runs a script with every combination of some settings, several runs at a time.

    python experiments/sweep.py experiments/configs/sweep_point.json
    python experiments/sweep.py GRID.json --processes 4 --output data/my_sweep

GRID.json names the script, the settings of all runs, and lists of values for the settings that vary:

    {
      "script": "maml_trpo.py",
      "settings": {"env": "MetaPointEnvCorner", "n_itr": 50},
      "grid": {"inner_lr": [0.05, 0.1], "seed": [1, 2, 3]}
    }

Each run has a folder that is named after its values. Beside the folder are NAME.json, its settings, and NAME.log, its
output. At the end the sweep prints a table of all runs and writes it to summary.csv: their returns, averaged over the
last iterations. Failed runs are reported with the end of their log; the exit status is 0 if all runs are done, else 1.

The same command again does what is left: it resumes interrupted runs, repeats failed ones and skips those that are
done. Ctrl-C stops all runs. A sweep deletes nothing; runs in a folder that holds something else fail.
"""
import argparse
import contextlib
import dataclasses
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any, Container, Iterable, Mapping, NamedTuple, Optional, Sequence

import numpy as np

from experiments import record
from experiments.command import INTERRUPTED, SWEEP, run_tool
from experiments.flags import Parser, text_table
from experiments.settings import RunConfig, find_script, make_config, read_json, write_json
from meta_policy_search.plotting import return_columns
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.files import lock_folder, write_csv
from meta_policy_search.utils.threads import VARIABLE as THREADS
from meta_policy_search.utils.threads import available_cores

SUMMARY = "summary.csv"
LAST = 10  # rows that columns are averaged over
GRACE = 20.0  # seconds that a run has to end after Ctrl-C before it is killed
POLL = 0.1  # seconds between two checks of the runs
LOG_LINES = 12  # lines of the log of a failed run that are printed
_KEYS = {"script": str, "settings": dict, "grid": dict}


# The runs of a grid ----------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """A run of a sweep."""

    name: str
    script: str  # its file
    varied: Mapping[str, Any]  # its values of the settings that vary
    config: RunConfig  # all its settings
    folder: str

    @property
    def settings_path(self) -> str:
        """The file that the script reads its settings from."""
        return f"{self.folder}.json"

    @property
    def log_path(self) -> str:
        """The file with the output of the script."""
        return f"{self.folder}.log"

    @property
    def is_done(self) -> bool:
        """Whether all iterations are done."""
        return record.is_done(self.folder, dataclasses.asdict(self.config))


def read_grid(path: str, output: str) -> list[Run]:
    """Reads a grid and checks it.

    Args:
        path: the JSON file.
        output: folder for the runs.

    Raises:
        TypeError, ValueError: there is a mistake in the file, in a setting or in a value; the message names it.
    """
    content = read_json(path)
    if set(content) != set(_KEYS) or not all(isinstance(content[key], kind) for key, kind in _KEYS.items()):
        raise ValueError(f"{path}: expected an object with the keys script (the name of a file), settings and grid "
                         f"(objects), got {json.dumps(content)}")
    settings, grid = content["settings"], content["grid"]
    try:
        script = find_script(content["script"].removesuffix(".py"))
        _check_grid(settings, grid)
        combinations = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
        runs = [make_run(name_of(varied), script, settings, varied, output) for varied in combinations]
    except (TypeError, ValueError) as error:
        raise type(error)(f"{path}: {error}") from error
    for run, other in itertools.combinations(runs, 2):
        if run.name == other.name or run.config == other.config:  # 1 and 1.0 are the same number
            raise ValueError(f"{path}: grid: expected values that differ, got {run.name} and {other.name}")
    return runs


def _check_grid(settings: Mapping[str, Any], grid: Mapping[str, Any]) -> None:
    for name, values in grid.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"grid, {name}: expected a list of at least one value, got {json.dumps(values)}")
        if name in settings:
            raise ValueError(f"grid, {name}: expected a setting that is not among the settings of all runs, too")


def make_run(name: str, script: Any, settings: Mapping[str, Any], varied: Mapping[str, Any], output: str) -> Run:
    """Returns a run of a script.

    Args:
        name: name of its folder.
        script: the module.
        settings: settings that differ from the defaults of the script, without those that vary.
        varied: values of the settings that vary.
        output: the folder that contains its folder.

    Raises:
        TypeError, ValueError: a setting is wrong.
    """
    config = make_config(script.Config, {**settings, **varied})
    return Run(name, os.path.abspath(script.__file__), varied, config, os.path.join(output, name))


def name_of(varied: Mapping[str, Any]) -> str:
    """Returns the name of a run's folder: its values, in characters that are valid in file names and shells."""
    return ",".join(f"{name}={_plain(value)}" for name, value in varied.items()) or "run"


def _plain(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    if isinstance(value, (list, dict)):
        text = re.sub(r"[^\w.+-]+", "-", text).strip("-")
    return "none" if text in ("", "null") else re.sub(r"[^\w.+-]+", "-", text)


def _check_earlier(run: Run) -> None:
    """Raises `ValueError` if the folder of a run holds a run with other settings; `n_itr` may be larger than before."""
    if not record.is_run(run.folder):
        return
    recorded = record.read_params(run.folder).get("settings")
    before = make_config(type(run.config), recorded if isinstance(recorded, dict) else {})
    differing = record.differences(before, run.config)
    if differing:
        raise ValueError(f"--output: {run.folder} holds a run with other settings: {differing}. Choose another folder")


def command(run: Run) -> list[str]:
    """Returns the command that starts or resumes a run."""
    if record.is_run(run.folder):
        return [sys.executable, run.script, "--resume", run.folder, "--n_itr", str(run.config.n_itr)]
    return [sys.executable, run.script, "--config_file", run.settings_path, "--dump_path", run.folder]


# Running ---------------------------------------------------------------------------------------------------------


def run_all(output: str, runs: Sequence[Run], processes: int) -> tuple[list[str], bool]:
    """Does the runs that are not done, `processes` at a time; all of them have ended when it returns or raises.

    They also end when this process is killed: their standard input is a pipe that then closes.

    Returns:
        The names of the runs that failed, whose logs' ends are printed, and whether Ctrl-C was pressed.

    Raises:
        ValueError: a folder holds a run with other settings, or another process runs the same sweep.
    """
    for run in runs:
        _check_earlier(run)
    os.makedirs(output, exist_ok=True)
    with lock_folder(output):
        waiting = [run for run in runs if not run.is_done]
        count = len(waiting)
        print(f"{len(runs)} runs, of which {len(runs) - count} are done; {min(processes, count)} at a time, in "
              f"{output}", flush=True)
        environ = child_environment(processes)
        running: dict[subprocess.Popen, Run] = {}
        failed: list[str] = []
        try:
            while waiting or running:
                while waiting and len(running) < processes:
                    run = waiting.pop(0)
                    running[_start(run, environ)] = run
                time.sleep(POLL)
                for process in [process for process in running if process.poll() is not None]:
                    run = running.pop(process)
                    number = f"({count - len(waiting) - len(running)} of {count})"
                    if process.returncode == 0 and run.is_done:
                        print(f"{run.name}: done {number}", flush=True)
                    else:
                        failed.append(run.name)
                        print(f"{run.name}: failed with status {process.returncode} {number}; its log, {run.log_path}, "
                              "ends with", *_last_lines(run.log_path), sep="\n    ", flush=True)
        except KeyboardInterrupt:
            print(f"Stopping {len(running)} runs", flush=True)
            return failed, True
        finally:
            _stop(running)
    return failed, False


def _start(run: Run, environ: Mapping[str, str]) -> subprocess.Popen:
    """Starts the process of a run."""
    print(f"{run.name}: {'resumes' if record.is_run(run.folder) else 'starts'}", flush=True)
    write_json(run.settings_path, dataclasses.asdict(run.config))
    with open(run.log_path, "ab") as log:
        return subprocess.Popen(
            command(run), stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, env={**environ, SWEEP: "0"},
            start_new_session=True)  # the terminal sends Ctrl-C to the sweep alone, which passes it on


def _last_lines(path: str) -> list[str]:
    """Returns the end of a log."""
    with open(path, encoding="utf-8", errors="replace") as log:
        return [line.rstrip() for line in log if line.strip()][-LOG_LINES:]


def _stop(processes: Iterable[subprocess.Popen]) -> None:
    """Interrupts runs; kills those that take longer than `GRACE`, with the processes that they have started."""
    for process in processes:
        process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + GRACE
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def child_environment(processes: int) -> dict[str, str]:
    """Returns the environment variables of runs that share the cores; variables that are set stay."""
    threads = str(max(1, available_cores() // processes))
    shares = {name: threads for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")}
    environ = {**shares, **os.environ, THREADS: threads}
    environ.pop("SMOKE", None)  # the grid alone determines the settings
    return environ


# The table -------------------------------------------------------------------------------------------------------


def summarize(runs: Sequence[Run], failed: Container[str]) -> tuple[list[str], list[list[Any]]]:
    """Returns the table of all runs: header and rows.

    Args:
        runs: the runs.
        failed: names of those that failed.
    """
    means: list[dict[str, float]] = []
    for run in runs:
        progress = record.read_rows(run.folder)
        returns = return_columns(progress) if progress else {}
        means.append({label: float(np.mean(progress[column][-LAST:])) for label, column in returns.items()})
    labels = list(dict.fromkeys(label for row in means for label in row))
    rows = []
    for run, row in zip(runs, means, strict=True):
        status = "failed" if run.name in failed else "done" if run.is_done else "not done"
        values = [value if isinstance(value, (str, int, float)) else json.dumps(value) for value in run.varied.values()]
        rows.append([run.name, *values, status, record.count_rows(run.folder), *(row.get(label) for label in labels)])
    return ["run", *runs[0].varied, "status", "iterations", *labels], rows


# The command -----------------------------------------------------------------------------------------------------


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Runs a sweep; returns the exit status: 1 if a run has failed, 130 after Ctrl-C."""
    return run_tool(make_parser(), run_sweep, argv)


def run_sweep(arguments: argparse.Namespace) -> int:
    """Does what is left of a sweep and prints its table; returns the exit status."""
    name = os.path.splitext(os.path.basename(arguments.grid))[0]
    output = arguments.output or os.path.join("data", "sweeps", name)
    runs = read_grid(arguments.grid, output)
    limit = min(available_cores(), len(runs))
    processes = limit if arguments.processes is None else check_positive_int("--processes", arguments.processes)
    failed, was_interrupted = run_all(output, runs, processes)
    header, rows = summarize(runs, failed)
    path = os.path.join(output, SUMMARY)
    write_csv(path, [header, *rows])
    cells = [["" if cell is None else f"{cell:.3f}" if isinstance(cell, float) else str(cell)
              for cell in (row[0], *row[header.index("status"):])] for row in (header, *rows)]
    print(f"\nMeans of the last {LAST} iterations\n{text_table(cells, right=range(2, len(cells[0])))}")
    print(f"\nTable: {path}")
    if was_interrupted:
        print("Interrupted; run the same command to resume")
        return INTERRUPTED
    return 0 if all(run.is_done for run in runs) else 1


def make_parser() -> Parser:
    """Returns the parser of the flags."""
    parser = Parser(__file__, __doc__)
    parser.add_argument("grid", metavar="GRID.json", help="JSON file that defines the runs")
    parser.add_argument("--processes", type=int, metavar="INT",
                        help="number of runs at a time, which share the cores (default: the number of cores)")
    parser.add_argument("--output", metavar="DIR", help="folder for the run folders (default: data/sweeps/GRID)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
