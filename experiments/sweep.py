"""Runs a script with every combination of some settings, several runs at a time.

    python experiments/sweep.py experiments/configs/sweep_point.json
    python experiments/sweep.py GRID.json --processes 4 --output data/my_sweep

GRID.json names the script, the settings that all runs have, and lists of values of those that are varied:

    {
      "script": "maml_trpo.py",
      "settings": {"env": "MetaPointEnvCorner", "n_itr": 50},
      "grid": {"inner_lr": [0.05, 0.1], "seed": [1, 2, 3]}
    }

Each run has a folder that is named after its values, and beside it NAME.json, its settings, and NAME.log, what it said.
At the end there is a table of all runs, which is also in summary.csv: what their columns were, averaged over the last
iterations. Runs that fail are reported with the end of their log; the exit status is 0 if all runs are done, else 1.

The same command again does what is left to do: it goes on with runs that were interrupted, tries again those that
failed, and leaves out those that are done. Ctrl-C stops all runs. A sweep deletes nothing, writes over no
file but its own, and runs in a folder that holds something else fail.
"""
import argparse
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
from meta_policy_search.plotting import Progress, read_progress, return_columns
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.files import FolderLock, write_csv
from meta_policy_search.utils.threads import VARIABLE as THREADS
from meta_policy_search.utils.threads import available_cores

SUMMARY = "summary.csv"
LAST = 10  # rows that columns are averaged over
GRACE = 20.0  # seconds that a run has to end after Ctrl-C before it is killed
POLL = 0.1  # seconds between two looks at the runs
LOG_START = b"---- "  # what the log of a run begins with
LOG_LINES = 12  # of a failed run that are shown
_KEYS = {"script": str, "settings": dict, "grid": dict}


# What is to be run -----------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """A run of a sweep."""

    name: str
    script: str  # its file
    varied: Mapping[str, Any]  # its values of the settings that are varied
    config: RunConfig  # all its settings
    settings: Mapping[str, Any]  # those that are not defaults of the script
    folder: str

    @property
    def settings_path(self) -> str:
        """The file that the script reads its settings from."""
        return f"{self.folder}.json"

    @property
    def log_path(self) -> str:
        """The file with all that the script prints."""
        return f"{self.folder}.log"


class Sweep(NamedTuple):
    """Runs that are done together."""

    output: str  # folder
    runs: Sequence[Run]


def read_grid(path: str, output: Optional[str] = None) -> Sweep:
    """Reads a grid, and checks all that can be checked before anything is run.

    Args:
        path: the JSON file.
        output: the folder that runs are in; by default `data/sweeps/` and the name of the file.

    Raises:
        TypeError, ValueError: there is something wrong with the file, a setting or a value; names it.
    """
    content = read_json(path)
    if set(content) != set(_KEYS) or not all(isinstance(content[key], kind) for key, kind in _KEYS.items()):
        raise ValueError(f"{path}: expected an object with the keys script (the name of a file), settings and grid "
                         f"(objects), got {json.dumps(content)}")
    name = os.path.splitext(os.path.basename(path))[0]
    output = os.path.join("data", "sweeps", name) if output is None else output
    try:
        script = find_script(content["script"].removesuffix(".py"), RunConfig)
        _check_grid(content["settings"], content["grid"])
        runs = [make_run(name_of(varied), script, content["settings"], varied, output)
                for varied in _combinations(content["grid"])]
    except (TypeError, ValueError) as error:
        raise type(error)(f"{path}: {error}") from error
    names = [run.name for run in runs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{path}: grid: expected values that differ, got two runs named {twice}")
    _check_summary(os.path.join(output, SUMMARY))
    return Sweep(output, runs)


def _check_summary(path: str) -> None:
    """Raises `ValueError` if there is a file where the table goes that is no table of a sweep."""
    if os.path.exists(path) and not _begins_with(path, b"run,"):
        raise ValueError(f"--output: expected a folder that a sweep can write its table to, but {path} is another one")


def _begins_with(path: str, start: bytes) -> bool:
    """Returns whether there is a file that begins so."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(start)) == start


def _check_grid(settings: Mapping[str, Any], grid: Mapping[str, Any]) -> None:
    for name, values in grid.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"grid, {name}: expected a list of at least one value, got {json.dumps(values)}")
        if name in settings:
            raise ValueError(f"grid, {name}: expected a setting that is not among the settings of all runs, too")


def _combinations(grid: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def make_run(name: str, script: Any, settings: Mapping[str, Any], varied: Mapping[str, Any], output: str) -> Run:
    """Returns a run of a script.

    Args:
        name: of its folder.
        script: the module.
        settings: that are not defaults of the script, without those that are varied.
        varied: values of these.
        output: the folder that its folder is in.

    Raises:
        TypeError, ValueError: a wrong setting.
    """
    settings = {**settings, **varied}
    config = make_config(script.Config, settings)
    return Run(name, os.path.abspath(script.__file__), varied, config, settings, os.path.join(output, name))


def name_of(varied: Mapping[str, Any]) -> str:
    """Returns the name of a run's folder: its values, in characters that files and shells take."""
    return ",".join(f"{name}={_plain(value)}" for name, value in varied.items()) or "run"


def _plain(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    if isinstance(value, (list, dict)):
        text = re.sub(r"[^\w.+-]+", "-", text).strip("-")
    return "none" if text in ("", "null") else re.sub(r"[^\w.+-]+", "-", text)


def _check_earlier(run: Run) -> None:
    """Raises `ValueError` if the files of a run are somebody's, or those of a run with other settings.

    `n_itr` may be larger than there. Files are those of a sweep if the log begins as it does there.
    """
    for path in (run.log_path, run.settings_path):
        if os.path.exists(path) and not _begins_with(run.log_path, LOG_START):
            raise ValueError(f"--output: expected a folder that a sweep can write its files to, but {path} is no file "
                             "of a sweep")
    if not record.is_run(run.folder):
        return
    recorded = record.read_params(run.folder).get("settings")  # those that are newer than the run have their defaults
    before = dataclasses.asdict(make_config(type(run.config), recorded if isinstance(recorded, dict) else {}))
    differing = [f"{name} is {before[name]!r} there, {value!r} here"
                 for name, value in dataclasses.asdict(run.config).items()
                 if before[name] != value and not (name == "n_itr" and before[name] < value)]
    if differing:
        raise ValueError(f"--output: {run.folder} holds a run with other settings: {'; '.join(differing)}. Choose "
                         "another folder")


# Where a run is --------------------------------------------------------------------------------------------------


def is_done(run: Run) -> bool:
    """Returns whether a run has come to its end."""
    return record.is_done(run.folder, dataclasses.asdict(run.config))


def _progress(run: Run) -> Progress:
    try:
        return read_progress(run.folder)
    except ValueError:  # no folder or no row
        return {}


def command(run: Run) -> list[str]:
    """Returns the command that begins a run or goes on with it."""
    if record.is_run(run.folder):
        return [sys.executable, run.script, "--resume", run.folder, "--n_itr", str(run.config.n_itr)]
    return [sys.executable, run.script, "--config_file", run.settings_path, "--dump_path", run.folder]


# Running ---------------------------------------------------------------------------------------------------------


class Child:
    """A process that a run is in, with all processes that it starts.

    Args:
        run: the run.
        environ: environment variables of the process.
        pipe: descriptor of the end of a pipe; the process ends when the other end is closed.
    """

    def __init__(self, run: Run, environ: Mapping[str, str], pipe: int) -> None:
        self.run, self.started = run, time.monotonic()
        self.is_resumed = record.is_run(run.folder)
        with open(run.log_path, "ab") as log:
            log.write(LOG_START + f"{datetime.datetime.now():%Y-%m-%d %H:%M:%S}\n".encode())
            log.flush()
            write_json(run.settings_path, run.settings)  # no earlier, as the log says whose it is
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                command(run), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env={**environ, SWEEP: str(pipe)}, pass_fds=[pipe],
                start_new_session=True)  # Ctrl-C is passed on by `stop`, once

    @property
    def status(self) -> Optional[int]:
        """Its exit status; None while it goes on."""
        return self._process.poll()

    @property
    def seconds(self) -> float:
        """How long ago it was started."""
        return time.monotonic() - self.started

    def interrupt(self) -> None:
        """Asks it to end."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """Ends it, and what it has started."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def last_lines(self) -> list[str]:
        """Returns the end of what it has printed."""
        with open(self.run.log_path, "rb") as log:
            log.seek(self._log_start)
            lines = log.read().decode(errors="replace").splitlines()
        return [line for line in lines if line.strip()][-LOG_LINES:]

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._process.pid, number)  # the process leads a group of its own
        except ProcessLookupError:  # it has ended
            pass


class Signals:
    """Counts, within a `with` block, how often the process was asked to end, which then does not end it.

    So nothing happens between the start of a run and the moment that it is known and can be stopped.
    """

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> "Signals":
        """Begins to count."""
        names = ("SIGINT", "SIGTERM", "SIGHUP")  # Ctrl-C; `kill`; the terminal was closed
        self._before = {name: signal.signal(getattr(signal, name), self._note) for name in names}
        return self

    def __exit__(self, *exc_info: Any) -> None:
        """Has signals do what they did before."""
        for name, handler in self._before.items():
            signal.signal(getattr(signal, name), handler)

    def _note(self, number: int, frame: Any) -> None:
        self.count += 1


class Outcome(NamedTuple):
    """How a sweep ended."""

    failed: Mapping[str, Sequence[str]]  # names of runs that failed, with the end of what they printed
    was_interrupted: bool


def run_all(sweep: Sweep, processes: int) -> Outcome:
    """Does what is left to do of a sweep, so many runs at a time; all of them have ended when it returns or raises.

    They also end when this process is killed: each of them watches a pipe that then closes.

    Raises:
        ValueError: a run is there already with other settings, or a file is in the way that is not of a sweep.
    """
    for run in sweep.runs:
        _check_earlier(run)
    os.makedirs(sweep.output, exist_ok=True)
    with FolderLock(sweep.output):
        pipe, ours = os.pipe()
        with open(pipe, "rb"), open(ours, "wb"):
            return _run_all(sweep, processes, pipe)


def _run_all(sweep: Sweep, processes: int, pipe: int) -> Outcome:
    environ = child_environment(processes)
    waiting = [run for run in sweep.runs if not is_done(run)]
    count = len(waiting)
    print(f"{len(sweep.runs)} runs, of which {len(sweep.runs) - count} are done; {min(processes, count)} at a time, in "
          f"{sweep.output}", flush=True)
    children: list[Child] = []
    failed: dict[str, Sequence[str]] = {}
    with Signals() as signals:
        try:
            while (waiting or children) and not signals.count:
                while waiting and len(children) < processes:
                    children.append(Child(waiting.pop(0), environ, pipe))
                    child = children[-1]
                    print(f"{child.run.name}: {'goes on' if child.is_resumed else 'begins'}", flush=True)
                time.sleep(POLL)
                for child in [child for child in children if child.status is not None]:
                    children.remove(child)
                    is_whole = child.status == 0 and is_done(child.run)
                    outcome = "done" if is_whole else f"failed with status {child.status}"
                    if not is_whole:
                        child.kill()  # what it may have left behind
                        failed[child.run.name] = child.last_lines()
                    print(f"{child.run.name}: {outcome} after {child.seconds:.0f} s "
                          f"({count - len(waiting) - len(children)} of {count})", flush=True)
        finally:
            _stop(children, signals)
    return Outcome(failed, signals.count > 0)


def _stop(children: Sequence[Child], signals: Signals) -> None:
    """Ends runs as Ctrl-C does, and by force those that take too long, or all if there is another signal."""
    if not children:
        return
    print(f"Stopping {len(children)} runs", flush=True)
    for child in children:
        child.interrupt()
    before, deadline = signals.count, time.monotonic() + GRACE
    while any(child.status is None for child in children) and signals.count == before and time.monotonic() < deadline:
        time.sleep(POLL)
    for child in children:
        child.kill()


def child_environment(processes: int) -> dict[str, str]:
    """Returns the environment variables of runs of which so many share the cores; those that are set stay."""
    threads = str(max(1, available_cores() // processes))
    shares = {name: threads for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")}
    environ = {**shares, **os.environ, THREADS: threads}
    environ.pop("SMOKE", None)  # settings are those of the grid
    return environ


# What came of it -------------------------------------------------------------------------------------------------


def summarize(
    sweep: Sweep, failed: Sequence[str], columns: Optional[Sequence[str]]
) -> tuple[list[str], list[list[Any]]]:
    """Returns a table of all runs: header, and rows.

    Args:
        sweep: the runs.
        failed: names of those that failed.
        columns: of `progress.csv`, to be averaged over the last rows; by default returns.
    """
    means: list[dict[str, float]] = []
    for run in sweep.runs:
        progress = _progress(run)
        wanted = {name: name for name in columns} if columns is not None else _returns_of(progress)
        means.append({label: float(np.mean(progress[name][-LAST:])) for label, name in wanted.items()
                      if name in progress})
    labels = list(columns) if columns is not None else list(dict.fromkeys(label for row in means for label in row))
    known = list(dict.fromkeys(name for run in sweep.runs for name in _progress(run)))
    for name in labels if known and columns is not None else []:
        if name not in known:
            print(f"No run has a column {name!r}; {similar(name, known)}")
    varied = list(sweep.runs[0].varied)
    rows = []
    for run, row in zip(sweep.runs, means, strict=True):
        status = "failed" if run.name in failed else "done" if is_done(run) else "not done"
        values = [value if isinstance(value, (str, int, float)) else json.dumps(value) for value in run.varied.values()]
        rows.append([run.name, *values, status, record.count_rows(run.folder), *(row.get(label) for label in labels)])
    return ["run", *varied, "status", "iterations", *labels], rows


def _returns_of(progress: Progress) -> dict[str, str]:
    return return_columns(progress) if progress else {}


def as_text(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Returns a table to print; the names of runs, which say what their columns of values say, stand for these."""
    shown = [0, *range(header.index("status"), len(header))]
    cells = [[header[i] for i in shown]]
    cells += [["" if row[i] is None else f"{row[i]:.3f}" if isinstance(row[i], float) else str(row[i]) for i in shown]
              for row in rows]
    return text_table(cells, right=range(2, len(shown)))


# The command -----------------------------------------------------------------------------------------------------


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Runs a sweep as the flags say; returns the exit status: 1 if a run has failed, 130 after Ctrl-C."""
    return run_tool(make_parser(), run_sweep, argv)


def run_sweep(arguments: argparse.Namespace) -> int:
    """Does what is left to do of a sweep, and says what came of it; returns the exit status."""
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
        print("Interrupted; the same command goes on")
        return INTERRUPTED
    return 0 if all(row[header.index("status")] == "done" for row in rows) else 1


def make_parser() -> Parser:
    """Returns the parser of the flags above."""
    parser = Parser(__file__, __doc__)
    parser.add_argument("grid", metavar="GRID.json", help="what to run")
    parser.add_argument("--processes", type=int, metavar="INT",
                        help="runs at a time, which share the cores (default: as many as there are cores)")
    parser.add_argument("--output", metavar="DIR", help="where the run folders go (default: data/sweeps/GRID)")
    parser.add_argument("--columns", nargs="+", metavar="NAME", help="columns of progress.csv for the table (default: "
                        "the mean return before and after adaptation or, in a single task, the mean return)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
