"""Lists runs, their results, and the command that resumes each interrupted or failed run.

    meta-policy-search runs
    meta-policy-search runs data/promp --since "23 Nov" --env "HalfCheetah*"
    meta-policy-search runs --state finished --sort gain
    meta-policy-search runs --since "2026-11-20 10:30" --json

The column `return` is the mean return after adaptation (for a single task, of the policy). The column `gain` is the
return after adaptation minus the return before adaptation. Both are means over the last quarter of the iterations, at
most ten.

A run is `running` while a process holds the lock of its folder. It is `finished` if it has completed all iterations,
`stopped` if a callback stopped it before, and `failed` if an error ended training. Otherwise it is `interrupted`. The
commands that resume interrupted and failed runs are printed below the table. If the table is wider than 120 columns,
each folder is on a line below its run.
"""
import argparse
import datetime
import fnmatch
import json
import os
from typing import Any, Sequence

import dateutil.parser
import numpy as np

from meta_policy_search import run_folder
from meta_policy_search.cli.flags import print_warning
from meta_policy_search.utils.checks import comparable_name
from meta_policy_search.utils.progress import print_line, printable, text_table
from meta_policy_search.utils.snapshotter import snapshot_paths

FOLDER = "data"  # default output folder of the scripts
SORTS = ("started", "gain", "return")
WIDTH = 120  # maximum number of columns of the table
HEADER = ["algorithm", "environment", "seed", "started", "iterations", "gain", "return", "state", "folder"]
RIGHT = [HEADER.index(name) for name in ("seed", "iterations", "gain", "return")]
RunRow = dict[str, Any]
"""Values of the table, end time, error and resume command of a run; None for unknown values."""


def time(text: str) -> datetime.datetime:
    """Parses a time, by default in the local time zone and of today; returns it in the local time zone."""
    try:
        return dateutil.parser.parse(text).astimezone()
    except OverflowError as error:
        raise ValueError(str(error)) from error


def since(text: str) -> datetime.datetime:
    """Parses the value of `--since`. A time in the future is an error; for example, "Mon" means next Monday."""
    try:
        earliest = time(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a time such as 2026-11-20 or 10:30, got {text!r}") from None
    if earliest > datetime.datetime.now().astimezone():
        raise argparse.ArgumentTypeError(f"expected a time in the past, got {text!r}, which means {earliest}")
    return earliest


def read_run(folder: str) -> RunRow:
    """Reads the files of a run. Another process may be writing to them."""
    info, started = run_folder.RunInfo.read(folder), None
    error = info.error
    try:
        started = time(info.params["started"]) if "started" in info.params else None
    except (TypeError, ValueError) as raised:
        error = str(raised)
    if error:
        print_warning(f"warning: {folder}: {error}")
    can_resume = info.state in ("failed", "interrupted") and snapshot_paths(folder)
    return {
        "folder": folder, "algorithm": info.params.get("algorithm"), "environment": info.settings.get("env"),
        "seed": info.settings.get("seed"), "started": started, "ended": info.params.get("ended"),
        "error": info.params.get("error"), "iterations": info.iterations, "n_itr": info.settings.get("n_itr"),
        **{name: value if value is not None and np.isfinite(value) else None
           for name, value in (("gain", info.gain), ("return", info.after))},
        "state": info.state, "resume": run_folder.resume_command(folder) if can_resume else None}


def as_cells(run: RunRow) -> list[str]:
    """Returns the cells of a row of the table."""
    started, n_itr = run["started"], run["n_itr"]
    shown = {**run, "started": started and f"{started:%Y-%m-%d %H:%M}",
             "iterations": f"{run['iterations']}/{'?' if n_itr is None else n_itr}",
             "gain": None if run["gain"] is None else f"{run['gain']:+.2f}",
             "return": None if run["return"] is None else f"{run['return']:.2f}",
             "folder": run_folder.shortest(run["folder"])}
    return ["" if shown[name] is None else str(shown[name]) for name in HEADER]


def select(runs: Sequence[RunRow], arguments: argparse.Namespace) -> list[RunRow]:
    """Returns the runs selected by the flags, sorted in ascending order; runs without the sort value come first."""
    found = [run for run in runs
             if fnmatch.fnmatch(comparable_name(str(run["algorithm"] or "")), comparable_name(arguments.algorithm))
             and fnmatch.fnmatch(comparable_name(str(run["environment"] or "")), comparable_name(arguments.env))
             and arguments.state in (None, run["state"])
             and (arguments.since is None or run["started"] is not None and run["started"] >= arguments.since)]
    return sorted(found, key=lambda run: (run[arguments.sort] is not None, run[arguments.sort]))


# The command -------------------------------------------------------------------------------------------------------


def run(arguments: argparse.Namespace) -> None:
    """Prints the table, or the JSON list, of the selected runs."""
    folders = arguments.folders or [FOLDER] * os.path.isdir(FOLDER)
    found = [read_run(folder) for folder in run_folder.find_runs(folders)]
    runs = select(found, arguments)
    if arguments.json:
        print(json.dumps(runs, indent=2, default=datetime.datetime.isoformat))
        return
    if not runs:
        print_line(f"None of {len(found)} runs matches. To match a part of a name, use *, as in --env 'HalfCheetah*'"
                   if found else f"No runs in {', '.join(folders) or FOLDER}")
        return
    cells = [HEADER, *map(as_cells, runs)]
    table = text_table(cells, RIGHT)
    if max(map(len, table.splitlines())) > WIDTH:
        lines = text_table([row[:-1] for row in cells], RIGHT).splitlines()
        table = "\n".join(f"{line}\n    {printable(row[-1])}" for line, row in zip(lines, cells, strict=True))
    print_line(table)
    commands = [run["resume"] for run in runs if run["resume"] is not None]
    if commands:
        print_line("\nTo resume interrupted and failed runs:\n" + "\n".join(f"    {command}" for command in commands))


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of the command."""
    add = parser.add_argument
    add("folders", nargs="*", metavar="FOLDER",
        help=f"run folder, or folder that contains runs at any depth (default: {FOLDER})")
    add("--since", type=since, metavar="TIME", help="only runs started at this time or later, such as 2026-11-20, "
        "'23 Nov', '2026-11-20 10:30' or 10:30; missing parts are this year, today and midnight; local time")
    add("--algorithm", default="*", metavar="NAME", help="only runs of this algorithm; * matches any text")
    add("--env", default="*", metavar="NAME", help="only runs in this environment; * matches any text")
    add("--state", choices=run_folder.STATES, help="only runs in this state")
    add("--sort", choices=SORTS, default="started", help="column to sort by, ascending (default: started)")
    add("--json", action="store_true", help="print the runs as a JSON list")

