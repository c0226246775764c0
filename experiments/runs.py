"""Which runs there are: a table of those below a folder, with what came of them and how to go on.

    python experiments/runs.py
    python experiments/runs.py data/pro_mp --since yesterday --env "HalfCheetah*"
    python experiments/runs.py --best gain --state finished
    python experiments/runs.py --since "2026-11-20 10:30" --json

The gain is what adaptation added to the return, the return is that after adaptation or, in a single task, just the
return; both are means of the last ten iterations. A run is `running` while a process holds its folder, `finished` when
it has done all its iterations, or a callback has stopped it, else `interrupted`; below the table stands how to go on
with those.
"""
import argparse
import datetime
import fnmatch
import json
import math
import os
import shlex
import sys
from typing import Any, Callable, NamedTuple, Optional, Sequence

import numpy as np

from experiments import record, times
from experiments.command import run_tool
from experiments.flags import Parser, similar, text_table
from meta_policy_search import run_folder
from meta_policy_search.plotting import mean_gain, read_progress, return_columns
from meta_policy_search.utils.files import is_locked
from meta_policy_search.utils.snapshotter import holds_snapshot

FOLDER = "data"  # where scripts write
STATES = ("running", "finished", "interrupted")
SORTS = ("started", "experiment", "environment", "seed", "iterations", "gain", "return", "state")
LAST = 10  # rows that gains and returns are averaged over


class Run(NamedTuple):
    """What is known of a run; None is what is not."""

    folder: str
    experiment: Optional[str]
    environment: Optional[str]
    seed: Optional[int]
    started: Optional[datetime.datetime]
    ended: Optional[datetime.datetime]
    iterations: int  # that it has done
    n_itr: Optional[int]  # that it is to do
    gain: Optional[float]
    gain_ci95: Optional[float]
    mean_return: Optional[float]
    state: str
    resume: Optional[str]  # the command that goes on with it

    def as_json(self) -> dict[str, Any]:
        """Returns the fields as JSON has them."""
        fields = {"return" if name == "mean_return" else name: value for name, value in self._asdict().items()}
        return {name: times.as_text(value) if isinstance(value, datetime.datetime) else value
                for name, value in fields.items()}

    def as_row(self) -> list[str]:
        """Returns the cells of the table."""
        started = "" if self.started is None else f"{self.started.astimezone():%Y-%m-%d %H:%M}"
        age = "" if self.started is None else times.age(self.started)
        gain = "" if self.gain is None else f"{self.gain:+.2f}"
        mean_return = "" if self.mean_return is None else f"{self.mean_return:.2f}"
        iterations = f"{self.iterations}/{'?' if self.n_itr is None else self.n_itr}"
        names = ["" if name is None else str(name) for name in (self.experiment, self.environment, self.seed)]
        return [*names, started, age, iterations, gain, mean_return, self.state, record.shortest(self.folder)]


HEADER = ["experiment", "environment", "seed", "started", "age", "iterations", "gain", "return", "state", "folder"]
RIGHT = [HEADER.index(name) for name in ("seed", "age", "iterations", "gain", "return")]


def read_run(folder: str) -> Run:
    """Reads what is known of a run, which may be going on."""
    try:
        params = record.read_params(folder) if record.is_run(folder) else {}
    except ValueError as error:
        print(f"warning: {error}", file=sys.stderr)
        params = {}
    settings = params.get("settings")
    settings = settings if isinstance(settings, dict) else {}
    try:
        state = "finished" if record.is_done(folder, settings) else "interrupted"
    except (KeyError, TypeError):  # nobody knows how many iterations it was to have
        state = "finished" if "ended" in params else "interrupted"
    if is_locked(folder):
        state = "running"
    gain, half_width, mean_return = _results(folder)
    return Run(
        folder, params.get("script"), settings.get("env"), settings.get("seed"), times.read_time(params.get("started")),
        times.read_time(params.get("ended")), record.count_rows(folder), settings.get("n_itr"), gain, half_width,
        mean_return, state, _resume_command(folder, params, settings) if state == "interrupted" else None)


def _results(folder: str) -> tuple[Optional[float], Optional[float], Optional[float]]:
    """Returns gain, half its interval, and return; None for what a run does not have."""
    try:
        progress = read_progress(folder)
        mean_return = float(np.mean(progress[list(return_columns(progress).values())[-1]][-LAST:]))
        gain = mean_gain(progress, LAST) if "AdaptationGain" in progress else None
    except ValueError:  # no row yet, or none of these columns
        return None, None, None
    found = (gain.mean, gain.half_width, mean_return) if gain is not None else (None, None, mean_return)
    return tuple(None if value is None or not math.isfinite(value) else value for value in found)  # type: ignore


def _resume_command(folder: str, params: dict[str, Any], settings: dict[str, Any]) -> Optional[str]:
    if params.get("made_by") == run_folder.MADE_BY_TRAINER:
        code = f"import meta_policy_search as mps; {record.in_python(folder, settings.get('n_itr'))}"
        return shlex.join(["python", "-c", code]) if holds_snapshot(folder) else None
    here = os.path.dirname(os.path.abspath(__file__))
    script, mode = f"{params.get('script')}.py", settings.get("snapshot_mode", "none")
    if script not in os.listdir(here):
        return None
    if not holds_snapshot(folder) and not record.ended_before_first_snapshot(folder, mode):
        return None
    return record.resume_command(os.path.join(here, script), folder)


# Which runs, and in which order ------------------------------------------------------------------------------------


def select(runs: Sequence[Run], arguments: argparse.Namespace) -> list[Run]:
    """Returns the runs that the flags ask for, in their order."""
    runs = _matching(runs, "--experiment", arguments.experiment, lambda run: run.experiment)
    runs = _matching(runs, "--env", arguments.env, lambda run: run.environment)
    if arguments.since is not None:
        since = times.parse_time("--since", arguments.since)
        runs = [run for run in runs if run.started is not None and run.started >= since]
    if arguments.until is not None:
        until = times.parse_time("--until", arguments.until)
        runs = [run for run in runs if run.started is not None and run.started < until]
    if arguments.state is not None:
        runs = [run for run in runs if run.state == arguments.state]
    name, is_best = (arguments.sort, False) if arguments.best is None else (arguments.best, True)
    known = [run for run in runs if _value(run, name) is not None]
    unknown = [run for run in runs if _value(run, name) is None]
    known = sorted(known, key=lambda run: _value(run, name), reverse=is_best)
    return known + unknown if is_best else unknown + known


def _value(run: Run, name: str) -> Any:
    return getattr(run, {"return": "mean_return"}.get(name, name))


def _matching(
    runs: Sequence[Run], flag: str, pattern: Optional[str], name_of: Callable[[Run], Optional[str]]
) -> Sequence[Run]:
    """Returns the runs whose name fits a pattern; raises `ValueError`, which names similar ones, if there is none."""
    if pattern is None:
        return runs
    found = [run for run in runs if fnmatch.fnmatch(str(name_of(run)).lower(), pattern.lower())]
    known = sorted({name for run in runs if (name := name_of(run)) is not None})
    if not found and known:
        raise ValueError(f"{flag}: there is no run of {pattern!r}; {similar(pattern, known)}")
    return found


# The command -------------------------------------------------------------------------------------------------------


def show(arguments: argparse.Namespace) -> None:
    """Prints the runs."""
    folders = arguments.folders or [FOLDER] * os.path.isdir(FOLDER)
    runs = select([read_run(folder) for folder in record.find_runs(folders)], arguments)
    if arguments.json:
        print(json.dumps([run.as_json() for run in runs], indent=2))
        return
    if not runs:
        print("There is no such run" if folders else f"There is no run in {FOLDER}")
        return
    print(text_table([HEADER, *(run.as_row() for run in runs)], RIGHT))
    commands = [run.resume for run in runs if run.resume is not None]
    if commands:
        print("\nTo go on with those that were interrupted:\n" + "\n".join(f"    {command}" for command in commands))


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Shows runs as the flags say; returns the exit status."""
    return run_tool(make_parser(), show, argv)


def make_parser() -> Parser:
    """Returns the parser of the flags above."""
    parser = Parser(__file__, __doc__)
    add = parser.add_argument
    add("folders", nargs="*", metavar="FOLDER",
        help=f"run folder, or one that runs are in or below; patterns such as 'data/*' too (default: {FOLDER})")
    add("--since", metavar="TIME", help="only runs that were started then or later: 2026-11-20, '2026-11-20 10:30', "
        "'20 Nov', yesterday, Friday, '3 days ago', ...; in the zone of this machine, unless it names one")
    add("--until", metavar="TIME", help="only runs that were started before")
    add("--experiment", metavar="NAME", help="only runs of this script; * stands for anything")
    add("--env", metavar="NAME", help="only runs in this environment; * stands for anything")
    add("--state", choices=STATES, help="only runs in this state")
    order = parser.add_mutually_exclusive_group()
    order.add_argument("--sort", choices=SORTS, default="started", help="what grows down the table (default: started)")
    order.add_argument("--best", choices=("gain", "return"), help="have the run with the most of it come first")
    add("--json", action="store_true", help="print the runs as a list in JSON, with all that is known of them")
    return parser


if __name__ == "__main__":
    sys.exit(main())
