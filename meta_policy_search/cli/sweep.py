"""Trains with all combinations of some settings (a grid), several runs at a time.

    meta-policy-search sweep experiments/configs/sweep_point.json
    meta-policy-search sweep GRID.json --processes 4 --output data/my_sweep

GRID.json contains the algorithm, the settings of all runs, and lists of values for the settings that vary:

    {
      "algorithm": "trpo_maml",
      "settings": {"env": "MetaPointEnvCorner", "n_itr": 50},
      "grid": {"inner_lr": [0.05, 0.1], "seed": [1, 2, 3]}
    }

Each run has a folder that is named after its values. The files NAME.json (settings) and NAME.log (output) are next to
the folder. At the end, the sweep prints a table of all runs with their returns, averaged over the last ten iterations,
and writes it to summary.csv. For failed runs, it prints the end of the log. The exit status is 0 if all runs are
complete, 1 otherwise, and 130 after Ctrl-C.

Run the same command again to continue a sweep: it resumes interrupted runs, repeats failed runs and skips complete
runs. Ctrl-C stops all runs. A sweep never deletes files. A run fails if its folder already contains other files of a
run.
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

from meta_policy_search.cli import record
from meta_policy_search.cli.algorithms import find_config
from meta_policy_search.cli.flags import Parser, text_table
from meta_policy_search.cli.settings import RunConfig, make_config, read_json
from meta_policy_search.cli.training import INTERRUPTED, PROG, SWEEP, run_tool
from meta_policy_search.plotting import return_columns
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.files import lock_folder, write_csv, write_text
from meta_policy_search.utils.processes import has_ended, wait_for_end
from meta_policy_search.utils.progress import print_line
from meta_policy_search.utils.threads import VARIABLE as THREADS
from meta_policy_search.utils.threads import available_cores

SUMMARY = "summary.csv"
LAST = 10  # rows to average
GRACE = 20.0  # seconds from Ctrl-C until runs that have not ended are killed
POLL = 0.1  # seconds between two checks of the runs
LOG_LINES = 12  # printed lines of the log of a failed run
_KEYS = {"algorithm": str, "settings": dict, "grid": dict}


# The runs of a grid ----------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """A run of a sweep."""

    name: str
    varied: Mapping[str, Any]  # values of the settings that vary
    config: RunConfig  # all settings
    folder: str

    @property
    def settings_path(self) -> str:
        """Path of the file with the settings of the run."""
        return f"{self.folder}.json"

    @property
    def log_path(self) -> str:
        """Path of the file with the output of the run."""
        return f"{self.folder}.log"

    @property
    def is_done(self) -> bool:
        """Whether all iterations are complete."""
        return record.is_done(self.folder, dataclasses.asdict(self.config))


def read_grid(path: str, output: str) -> list[Run]:
    """Reads and checks a grid.

    Args:
        path: path of the JSON file.
        output: parent folder of the run folders.

    Returns:
        The runs of the grid.

    Raises:
        TypeError, ValueError: the file, a setting or a value is invalid; the message names it.
    """
    content = read_json(path)
    if set(content) != set(_KEYS) or not all(isinstance(content[key], kind) for key, kind in _KEYS.items()):
        raise ValueError(f"{path}: expected an object with the keys algorithm (a name), settings and grid "
                         f"(objects), got {json.dumps(content)}")
    settings, grid = content["settings"], content["grid"]
    try:
        config_class = find_config(content["algorithm"])
        _check_grid(settings, grid)
        combinations = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
        runs = [make_run(name_of(varied), config_class, settings, varied, output) for varied in combinations]
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
            raise ValueError(f"grid, {name}: expected a setting that 'settings' does not contain, got it in both")


def make_run(name: str, config_class: type[RunConfig], settings: Mapping[str, Any], varied: Mapping[str, Any],
             output: str) -> Run:
    """Builds a run.

    Args:
        name: name of the run folder.
        config_class: settings class.
        settings: constant settings that differ from the defaults.
        varied: values of the settings that vary.
        output: parent folder of the run folder.

    Raises:
        TypeError, ValueError: a setting is invalid.
    """
    config = make_config(config_class, {**settings, **varied})
    return Run(name, varied, config, os.path.join(output, name))


def name_of(varied: Mapping[str, Any]) -> str:
    """Returns the name of a run folder: the values that vary, in characters that are safe in file names and shells."""
    return ",".join(f"{name}={_plain(value)}" for name, value in varied.items()) or "run"


def _plain(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    if isinstance(value, (list, dict)):
        text = re.sub(r"[^\w.+-]+", "-", text).strip("-")
    return "none" if text in ("", "null") else re.sub(r"[^\w.+-]+", "-", text)


def _check_earlier(run: Run) -> None:
    """Raises `ValueError` if the folder contains a run with different settings; `n_itr` may be larger than before."""
    if not record.is_run(run.folder):
        return
    recorded = record.read_params(run.folder).get("settings")
    before = make_config(type(run.config), recorded if isinstance(recorded, dict) else {})
    differing = record.differences(before, run.config)
    if differing:
        raise ValueError(f"output: expected a folder without other runs, got {run.folder}, which contains a run with "
                         f"different settings: {differing}. Choose another folder")


def command(run: Run) -> list[str]:
    """Returns the command that starts or resumes a run."""
    program = [sys.executable, "-m", "meta_policy_search"]
    if record.is_run(run.folder):
        return [*program, "resume", run.folder, "--n_itr", str(run.config.n_itr)]
    return [*program, "train", run.config.algorithm, "--config_file", run.settings_path, "--dump_path", run.folder]


# Running ---------------------------------------------------------------------------------------------------------


def run_all(output: str, runs: Sequence[Run], processes: int) -> tuple[list[str], bool]:
    """Starts or resumes all incomplete runs, `processes` at a time.

    All runs have ended when this function returns or raises an error. They also end if this process is killed: their
    standard input is a pipe, which then closes.

    Args:
        output: parent folder of the run folders.
        runs: the runs of the sweep.
        processes: maximum number of runs at a time.

    Returns:
        The names of the failed runs (the end of their logs is printed), and whether Ctrl-C was pressed.

    Raises:
        ValueError: a folder contains a run with different settings, or another process runs the same sweep.
    """
    for run in runs:
        _check_earlier(run)
    os.makedirs(output, exist_ok=True)
    with lock_folder(output):
        waiting = [run for run in runs if not run.is_done]
        count = len(waiting)
        print_line(f"{len(runs) - count} of {len(runs)} runs complete; {min(processes, count)} at a time; "
                   f"logs in {output}")
        environ = child_environment(processes)
        running: dict[subprocess.Popen, Run] = {}
        failed: list[str] = []
        try:
            while waiting or running:
                while waiting and len(running) < processes:
                    run = waiting.pop(0)
                    running[_start(run, environ)] = run
                time.sleep(POLL)
                for process in [process for process in running if has_ended(process)]:
                    run = running.pop(process)
                    number = f"({count - len(waiting) - len(running)} of {count})"
                    if process.returncode == 0 and run.is_done:
                        print_line(f"{run.name}: done {number}")
                    else:
                        failed.append(run.name)
                        print_line("\n    ".join([
                            f"{run.name}: failed with status {process.returncode} {number}; last lines of "
                            f"{run.log_path}:", *_last_lines(run.log_path)]))
        except KeyboardInterrupt:
            print_line("Stopping the runs")
            return failed, True
        finally:
            _stop(running)
    return failed, False


def _start(run: Run, environ: Mapping[str, str]) -> subprocess.Popen:
    """Starts the process of a run."""
    print_line(f"{run.name}: {'resumes' if record.is_run(run.folder) else 'starts'}")
    write_text(run.settings_path, json.dumps(dataclasses.asdict(run.config), indent=2) + "\n")
    with open(run.log_path, "ab") as log:
        return subprocess.Popen(
            command(run), stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, env={**environ, SWEEP: "0"},
            start_new_session=True)  # the terminal sends Ctrl-C only to the sweep, which forwards it


def _last_lines(path: str) -> list[str]:
    """Returns the last lines of a log."""
    with open(path, encoding="utf-8", errors="replace") as log:
        return [line.rstrip() for line in log if line.strip()][-LOG_LINES:]


def _stop(processes: Iterable[subprocess.Popen]) -> None:
    """Interrupts runs; after `GRACE` seconds, kills the remaining runs and their child processes."""
    for process in processes:
        process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + GRACE
    for process in processes:
        wait_for_end(process, deadline - time.monotonic())
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        wait_for_end(process)


def child_environment(processes: int) -> dict[str, str]:
    """Returns environment variables that divide the cores among runs; user-defined variables are kept."""
    threads = str(max(1, available_cores() // processes))
    shares = {name: threads for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")}
    environ = {**shares, **os.environ, THREADS: threads}
    environ.pop("SMOKE", None)  # only the grid determines the settings
    environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # the runs find the modules that this process finds
    return environ


# The table -------------------------------------------------------------------------------------------------------


def summarize(runs: Sequence[Run], failed: Container[str]) -> tuple[list[str], list[list[Any]]]:
    """Summarizes all runs in a table.

    Args:
        runs: all runs of the sweep.
        failed: names of the failed runs.

    Returns:
        The header and the rows of the table.
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
    """Runs the incomplete runs of a sweep and prints its table; returns the exit status."""
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
    print_line(f"\nMeans of the last {LAST} iterations\n{text_table(cells, right=range(2, len(cells[0])))}")
    print_line(f"\nTable: {path}")
    if was_interrupted:
        print_line("Interrupted; run the same command to resume")
        return INTERRUPTED
    return 0 if all(run.is_done for run in runs) else 1


def make_parser() -> Parser:
    """Returns the parser of the flags."""
    parser = Parser(f"{PROG} sweep", __doc__)
    parser.add_argument("grid", metavar="GRID.json", help="JSON file with the algorithm and the settings of the runs")
    parser.add_argument("--processes", type=int, metavar="INT",
                        help="number of runs at a time; they share the cores (default: the number of cores)")
    parser.add_argument("--output", metavar="DIR", help="parent folder of the run folders (default: data/sweeps/GRID)")
    return parser

