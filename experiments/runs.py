"""A table of the runs below a folder, with their results and the command that resumes each.

    python experiments/runs.py
    python experiments/runs.py data/pro_mp --since yesterday --env "HalfCheetah*"
    python experiments/runs.py --best gain --state finished
    python experiments/runs.py --since "2026-11-20 10:30" --json

The gain is the difference that adaptation makes to the return. The return is that after adaptation or, in a single
task, of the policy. Both are means over the last ten iterations. A run is `running` while a process holds the lock of
its folder, `finished` when it has done all its iterations or was stopped by a callback, else `interrupted`. Below the
table are the commands that resume interrupted runs.
"""
import argparse
import fnmatch
import json
import math
import os
import shlex
import sys
from typing import Any, Optional, Sequence

import numpy as np

from experiments import record, times
from experiments.command import run_tool
from experiments.flags import Parser, similar, text_table
from meta_policy_search import run_folder
from meta_policy_search.plotting import mean_gain, return_columns
from meta_policy_search.utils.files import is_locked
from meta_policy_search.utils.snapshotter import holds_snapshot

FOLDER = "data"  # the folder that scripts write to
STATES = ("running", "finished", "interrupted")
SORTS = ("started", "experiment", "environment", "seed", "iterations", "gain", "return", "state")
LAST = 10  # rows that gains and returns are averaged over
HEADER = ["experiment", "environment", "seed", "started", "age", "iterations", "gain", "return", "state", "folder"]
RIGHT = [HEADER.index(name) for name in ("seed", "age", "iterations", "gain", "return")]
Run = dict[str, Any]
"""The folder of a run, the settings and results that the table shows, its times, and the command that resumes it.

None stands for what is not known.
"""


def read_run(folder: str) -> Run:
    """Reads the files of a run, which another process may be writing to."""
    try:
        params = record.read_params(folder) if record.is_run(folder) else {}
    except ValueError as error:
        print(f"warning: {error}", file=sys.stderr)
        params = {}
    settings = params.get("settings")
    settings = settings if isinstance(settings, dict) else {}
    try:
        state = "finished" if record.is_done(folder, settings) else "interrupted"
    except (KeyError, TypeError):  # there is no valid n_itr
        state = "finished" if "ended" in params else "interrupted"
    state = "running" if is_locked(folder) else state
    return {
        "folder": folder,
        "experiment": params.get("script"),
        "environment": settings.get("env"),
        "seed": settings.get("seed"),
        "started": times.read_time(params.get("started")),
        "ended": times.read_time(params.get("ended")),
        "iterations": record.count_rows(folder),
        "n_itr": settings.get("n_itr"),
        **_results(folder),
        "state": state,
        "resume": _resume_command(folder, params, settings) if state == "interrupted" else None,
    }


def _results(folder: str) -> dict[str, Optional[float]]:
    """Returns the gain, half of its interval, and the return."""
    results: dict[str, Optional[float]] = {"gain": None, "gain_ci95": None, "return": None}
    progress = record.read_rows(folder)
    try:
        results["return"] = float(np.mean(progress[list(return_columns(progress).values())[-1]][-LAST:]))
        if "AdaptationGain" in progress:
            gain = mean_gain(progress, LAST)
            results.update(gain=gain.mean, gain_ci95=gain.half_width)
    except (KeyError, ValueError):  # there is no row, or no column of returns
        pass
    return {name: value if value is not None and math.isfinite(value) else None for name, value in results.items()}


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


def as_cells(run: Run) -> list[str]:
    """Returns a row of the table."""
    started, n_itr = run["started"], run["n_itr"]
    shown = {
        **run,
        "started": started and f"{started.astimezone():%Y-%m-%d %H:%M}",
        "age": started and times.age(started),
        "iterations": f"{run['iterations']}/{'?' if n_itr is None else n_itr}",
        "gain": None if run["gain"] is None else f"{run['gain']:+.2f}",
        "return": None if run["return"] is None else f"{run['return']:.2f}",
        "folder": record.shortest(run["folder"]),
    }
    return ["" if shown[name] is None else str(shown[name]) for name in HEADER]


# Selecting and sorting ---------------------------------------------------------------------------------------------


def select(runs: Sequence[Run], arguments: argparse.Namespace) -> list[Run]:
    """Returns the runs that the flags ask for, sorted."""
    runs = _matching(runs, "--experiment", arguments.experiment, "experiment")
    runs = _matching(runs, "--env", arguments.env, "environment")
    if arguments.since is not None:
        since = times.parse_time("--since", arguments.since)
        runs = [run for run in runs if run["started"] is not None and run["started"] >= since]
    if arguments.until is not None:
        until = times.parse_time("--until", arguments.until)
        runs = [run for run in runs if run["started"] is not None and run["started"] < until]
    if arguments.state is not None:
        runs = [run for run in runs if run["state"] == arguments.state]
    name = arguments.best or arguments.sort
    unknown = [run for run in runs if run[name] is None]
    known = [run for run in runs if run[name] is not None]
    known.sort(key=lambda run: run[name], reverse=arguments.best is not None)
    return unknown + known if arguments.best is None else known + unknown


def _matching(runs: Sequence[Run], flag: str, pattern: Optional[str], name: str) -> Sequence[Run]:
    """Returns the runs whose `name` matches a pattern; raises `ValueError` with similar names if there is none."""
    if pattern is None:
        return runs
    found = [run for run in runs if fnmatch.fnmatch(str(run[name]).lower(), pattern.lower())]
    known = sorted({run[name] for run in runs} - {None})
    if not found and known:
        raise ValueError(f"{flag}: there is no run of {pattern!r}; {similar(pattern, known)}")
    return found


# The command -------------------------------------------------------------------------------------------------------


def show(arguments: argparse.Namespace) -> None:
    """Prints the runs."""
    folders = arguments.folders or [FOLDER] * os.path.isdir(FOLDER)
    runs = select([read_run(folder) for folder in record.find_runs(folders)], arguments)
    if arguments.json:
        print(json.dumps(runs, indent=2, default=times.as_text))
        return
    if not runs:
        print("There is no such run" if folders else f"There is no run in {FOLDER}")
        return
    print(text_table([HEADER, *(as_cells(run) for run in runs)], RIGHT))
    commands = [run["resume"] for run in runs if run["resume"] is not None]
    if commands:
        print("\nTo resume interrupted runs:\n" + "\n".join(f"    {command}" for command in commands))


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Prints the table of runs; returns the exit status."""
    return run_tool(make_parser(), show, argv)


def make_parser() -> Parser:
    """Returns the parser of the flags."""
    parser = Parser(__file__, __doc__)
    add = parser.add_argument
    add("folders", nargs="*", metavar="FOLDER",
        help=f"run folder, or one that contains runs at any depth; or a pattern such as 'data/*' (default: {FOLDER})")
    add("--since", metavar="TIME", help="only runs that were started then or later: 2026-11-20, '2026-11-20 10:30', "
        "'20 Nov', yesterday, Friday, '3 days ago', ...; in the zone of this machine, unless it names one")
    add("--until", metavar="TIME", help="only runs that were started before")
    add("--experiment", metavar="NAME", help="only runs of this script; * stands for anything")
    add("--env", metavar="NAME", help="only runs in this environment; * stands for anything")
    add("--state", choices=STATES, help="only runs in this state")
    order = parser.add_mutually_exclusive_group()
    order.add_argument("--sort", choices=SORTS, default="started", help="what grows down the table (default: started)")
    order.add_argument("--best", choices=("gain", "return"), help="have the run with the most of it come first")
    add("--json", action="store_true", help="print the runs as a JSON list, with all that is known of them")
    return parser


if __name__ == "__main__":
    sys.exit(main())
