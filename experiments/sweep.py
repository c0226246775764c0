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
output. At the end the sweep prints a table of all runs and writes it to summary.csv: their columns, averaged over the
last iterations. Failed runs are reported with the end of their log; the exit status is 0 if all runs are done, else 1.

The same command again does what is left: it resumes interrupted runs, repeats failed ones and skips those that are
done. Ctrl-C stops all runs. A sweep deletes nothing and overwrites no file but its own; runs in a folder that holds
something else fail.
"""
import argparse
import contextlib
import dataclasses
import datetime
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any, Iterator, Mapping, NamedTuple, Optional, Sequence

import numpy as np

from experiments import record
from experiments.command import INTERRUPTED, SWEEP, run_tool
from experiments.flags import Parser, similar, text_table
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
LOG_START = b"---- "  # first characters of the log of a run
LOG_LINES = 12  # lines of the log of a failed run that are printed
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # Ctrl-C; `kill`; the terminal was closed
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


class Sweep(NamedTuple):
    """Runs that share an output folder."""

    output: str
    runs: Sequence[Run]


def read_grid(path: str, output: Optional[str] = None) -> Sweep:
    """Reads a grid and checks it.

    Args:
        path: the JSON file.
        output: folder for the runs; by default `data/sweeps/` and the name of the file.

    Raises:
        TypeError, ValueError: there is a mistake in the file, in a setting or in a value; the message names it.
    """
    content = read_json(path)
    if set(content) != set(_KEYS) or not all(isinstance(content[key], kind) for key, kind in _KEYS.items()):
        raise ValueError(f"{path}: expected an object with the keys script (the name of a file), settings and grid "
                         f"(objects), got {json.dumps(content)}")
    output = output or os.path.join("data", "sweeps", os.path.splitext(os.path.basename(path))[0])
    settings, grid = content["settings"], content["grid"]
    try:
        script = find_script(content["script"].removesuffix(".py"))
        _check_grid(settings, grid)
        combinations = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
        runs = [make_run(name_of(varied), script, settings, varied, output) for varied in combinations]
    except (TypeError, ValueError) as error:
        raise type(error)(f"{path}: {error}") from error
    names = [run.name for run in runs]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"{path}: grid: expected values that differ, got two runs named {twice[0]}")
    summary = os.path.join(output, SUMMARY)
    if os.path.exists(summary) and not _begins_with(summary, b"run,"):
        raise ValueError(f"--output: expected a folder that a sweep can write its table to, but {summary} is the file "
                         "of another program")
    return Sweep(output, runs)


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


def _begins_with(path: str, start: bytes) -> bool:
    """Returns whether a path is a file that begins with these bytes."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(start)) == start


def _check_earlier(run: Run) -> None:
    """Raises `ValueError` if the files of a run are not of a sweep, or of a run with other settings.

    `n_itr` may be larger than before.
    """
    for path in (run.log_path, run.settings_path):
        if os.path.exists(path) and not _begins_with(run.log_path, LOG_START):
            raise ValueError(f"--output: expected a folder that a sweep can write its files to, but {path} is no file "
                             "of a sweep")
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


class Child:
    """The process of a run, with all processes that it starts.

    Args:
        run: the run.
        environ: environment variables of the process.
        pipe: descriptor of the end of a pipe; the process ends when the other end is closed.
    """

    def __init__(self, run: Run, environ: Mapping[str, str], pipe: int) -> None:
        self.run, self.started = run, time.monotonic()
        print(f"{run.name}: {'resumes' if record.is_run(run.folder) else 'starts'}", flush=True)
        with open(run.log_path, "ab") as log:
            log.write(LOG_START + f"{datetime.datetime.now():%Y-%m-%d %H:%M:%S}\n".encode())
            log.flush()
            # The settings are written after the log, whose first line shows that both files are a sweep's.
            write_json(run.settings_path, dataclasses.asdict(run.config))
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                command(run), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env={**environ, SWEEP: str(pipe)}, pass_fds=[pipe],
                start_new_session=True)  # the terminal sends Ctrl-C to the sweep alone, which passes it on

    @property
    def status(self) -> Optional[int]:
        """Its exit status; None while it runs."""
        return self._process.poll()

    def interrupt(self) -> None:
        """Asks it to end."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """Kills it and the processes that it has started."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def last_lines(self) -> list[str]:
        """Returns the end of its output."""
        with open(self.run.log_path, "rb") as log:
            log.seek(self._log_start)
            lines = log.read().decode(errors="replace").splitlines()
        return [line for line in lines if line.strip()][-LOG_LINES:]

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.killpg(self._process.pid, number)


@contextlib.contextmanager
def deferred_signals() -> Iterator[list[int]]:
    """Collects, within a `with` block, the signals that would end this process.

    So none arrives between the start of a child and the moment when it is in the list of children to stop.
    """
    received: list[int] = []
    before = {number: signal.signal(number, lambda number, frame: received.append(number)) for number in SIGNALS}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_all(sweep: Sweep, processes: int) -> tuple[dict[str, Sequence[str]], bool]:
    """Does what is left of a sweep, `processes` runs at a time; all of them have ended when it returns or raises.

    They also end when this process is killed: each of them watches a pipe that then closes.

    Returns:
        The names of the runs that failed, each with the end of its output; and whether the sweep was interrupted.

    Raises:
        ValueError: a folder holds a run with other settings, or a file of another program.
    """
    for run in sweep.runs:
        _check_earlier(run)
    os.makedirs(sweep.output, exist_ok=True)
    with lock_folder(sweep.output):
        pipe, ours = os.pipe()
        with open(pipe, "rb"), open(ours, "wb"):
            return _run_all(sweep, processes, pipe)


def _run_all(sweep: Sweep, processes: int, pipe: int) -> tuple[dict[str, Sequence[str]], bool]:
    environ = child_environment(processes)
    waiting = [run for run in sweep.runs if not run.is_done]
    count = len(waiting)
    print(f"{len(sweep.runs)} runs, of which {len(sweep.runs) - count} are done; {min(processes, count)} at a time, in "
          f"{sweep.output}", flush=True)
    children: list[Child] = []
    failed: dict[str, Sequence[str]] = {}
    with deferred_signals() as signals:
        try:
            while (waiting or children) and not signals:
                while waiting and len(children) < processes:
                    children.append(Child(waiting.pop(0), environ, pipe))
                time.sleep(POLL)
                for child in [child for child in children if child.status is not None]:
                    children.remove(child)
                    outcome = "done"
                    if child.status or not child.run.is_done:
                        outcome = f"failed with status {child.status}"
                        child.kill()  # ends the processes that it has left behind
                        failed[child.run.name] = child.last_lines()
                    print(f"{child.run.name}: {outcome} after {time.monotonic() - child.started:.0f} s "
                          f"({count - len(waiting) - len(children)} of {count})", flush=True)
        finally:
            _stop(children, signals)
    return failed, bool(signals)


def _stop(children: Sequence[Child], signals: Sequence[int]) -> None:
    """Interrupts runs, and kills those that take longer than `GRACE`, or all of them after another signal."""
    if not children:
        return
    print(f"Stopping {len(children)} runs", flush=True)
    for child in children:
        child.interrupt()
    before, deadline = len(signals), time.monotonic() + GRACE
    while any(child.status is None for child in children) and len(signals) == before and time.monotonic() < deadline:
        time.sleep(POLL)
    for child in children:
        child.kill()


def child_environment(processes: int) -> dict[str, str]:
    """Returns the environment variables of runs that share the cores; variables that are set stay."""
    threads = str(max(1, available_cores() // processes))
    shares = {name: threads for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")}
    environ = {**shares, **os.environ, THREADS: threads}
    environ.pop("SMOKE", None)  # the grid alone determines the settings
    return environ


# The table -------------------------------------------------------------------------------------------------------


def summarize(
    sweep: Sweep, failed: Sequence[str], columns: Optional[Sequence[str]]
) -> tuple[list[str], list[list[Any]]]:
    """Returns the table of all runs: header and rows.

    Args:
        sweep: the runs.
        failed: names of those that failed.
        columns: columns of `progress.csv` to average over the last rows; by default the returns.
    """
    known: dict[str, None] = {}
    means: list[dict[str, float]] = []
    for run in sweep.runs:
        progress = record.read_rows(run.folder)
        known.update(dict.fromkeys(progress))
        returns = return_columns(progress) if progress else {}
        wanted = returns if columns is None else {name: name for name in columns}
        means.append({label: float(np.mean(progress[name][-LAST:])) for label, name in wanted.items()
                      if name in progress})
    labels = list(dict.fromkeys(label for row in means for label in row)) if columns is None else list(columns)
    for name in columns or []:
        if known and name not in known:
            print(f"No run has a column {name!r}; {similar(name, list(known))}")
    rows = []
    for run, row in zip(sweep.runs, means, strict=True):
        status = "failed" if run.name in failed else "done" if run.is_done else "not done"
        values = [value if isinstance(value, (str, int, float)) else json.dumps(value) for value in run.varied.values()]
        rows.append([run.name, *values, status, record.count_rows(run.folder), *(row.get(label) for label in labels)])
    return ["run", *sweep.runs[0].varied, "status", "iterations", *labels], rows


def as_text(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Returns the table to print, without the columns of values, which the names of the runs contain."""
    shown = [0, *range(header.index("status"), len(header))]
    cells = [[header[i] for i in shown]]
    cells += [["" if row[i] is None else f"{row[i]:.3f}" if isinstance(row[i], float) else str(row[i]) for i in shown]
              for row in rows]
    return text_table(cells, right=range(2, len(shown)))


# The command -----------------------------------------------------------------------------------------------------


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Runs a sweep; returns the exit status: 1 if a run has failed, 130 after Ctrl-C."""
    return run_tool(make_parser(), run_sweep, argv)


def run_sweep(arguments: argparse.Namespace) -> int:
    """Does what is left of a sweep and prints its table; returns the exit status."""
    grid = read_grid(arguments.grid, arguments.output)
    limit = min(available_cores(), len(grid.runs))
    processes = limit if arguments.processes is None else check_positive_int("--processes", arguments.processes)
    failed, was_interrupted = run_all(grid, processes)
    header, rows = summarize(grid, list(failed), arguments.columns)
    path = os.path.join(grid.output, SUMMARY)
    write_csv(path, [header, *rows])
    print(f"\nMeans of the last {LAST} iterations\n{as_text(header, rows)}")
    for name, lines in failed.items():
        print(f"\n{name} failed; its log, {os.path.join(grid.output, name)}.log, ends with")
        print("\n".join(f"    {line}" for line in lines))
    print(f"\nTable: {path}")
    if was_interrupted:
        print("Interrupted; run the same command to resume")
        return INTERRUPTED
    return 0 if all(row[header.index("status")] == "done" for row in rows) else 1


def make_parser() -> Parser:
    """Returns the parser of the flags."""
    parser = Parser(__file__, __doc__)
    parser.add_argument("grid", metavar="GRID.json", help="JSON file that defines the runs")
    parser.add_argument("--processes", type=int, metavar="INT",
                        help="number of runs at a time, which share the cores (default: the number of cores)")
    parser.add_argument("--output", metavar="DIR", help="folder for the run folders (default: data/sweeps/GRID)")
    parser.add_argument("--columns", nargs="+", metavar="NAME", help="columns of progress.csv for the table (default: "
                        "the mean return before and after adaptation or, in a single task, the mean return)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
