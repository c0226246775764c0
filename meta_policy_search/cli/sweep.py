"""Trains with all combinations of some settings (a grid), several runs at a time.

    meta-policy-search sweep experiments/configs/sweep_point.json
    meta-policy-search sweep GRID.json --processes 4 --output data/my_sweep

GRID.json contains the algorithm, the settings of all runs, and lists of values for the settings that vary:

    {
      "algorithm": "trpo_maml",
      "settings": {"env": "MetaPointEnvCornerGoals", "n_itr": 50},
      "grid": {"inner_lr": [0.05, 0.1], "seed": [1, 2, 3]}
    }

Each run has a folder that is named after its values. At the end, the sweep prints a table of all runs with their
returns, averaged over the last quarter of the iterations (at most ten), and writes it to summary.csv. For failed runs,
it prints the error. The exit status is 0 if all runs are complete, 1 otherwise, and 130 after Ctrl-C.

Ctrl-C stops all runs. To continue a sweep, run the same command with --resume: it resumes interrupted runs, repeats
failed runs and skips complete runs. A sweep never deletes runs.
"""
import argparse
import itertools
import json
import os
import re
from typing import Any, Container, Mapping, Sequence

from meta_policy_search import run_folder
from meta_policy_search.cli.flags import check_type, nonempty_path
from meta_policy_search.cli.runs import mean_returns
from meta_policy_search.cli.train import INTERRUPTED
from meta_policy_search.parallel_runs import Member, train_all
from meta_policy_search.run import check_settings, find_algo_class, find_env_name
from meta_policy_search.settings import read_json
from meta_policy_search.utils.files import write_csv
from meta_policy_search.utils.progress import print_line, text_table

SUMMARY = "summary.csv"
_KEYS = {"algorithm": str, "settings": dict, "grid": dict}


# The runs of a grid ----------------------------------------------------------------------------------------------


def read_grid(path: str, output: str) -> tuple[list[Member], dict[str, dict[str, Any]]]:
    """Reads and checks a grid.

    Args:
        path: path of the JSON file.
        output: parent folder of the run folders.

    Returns:
        The runs of the grid, and by name of the run the values of the settings that vary.

    Raises:
        TypeError, ValueError: the file, a setting or a value is invalid; the message names it.
    """
    content = read_json(path)
    if set(content) != set(_KEYS) or not all(isinstance(content[key], kind) for key, kind in _KEYS.items()):
        raise ValueError(f"{path}: expected an object with the keys algorithm (a name), settings and grid "
                         f"(objects), got {json.dumps(content)}")
    algo, settings, grid = content["algorithm"], content["settings"], content["grid"]
    runs: list[Member] = []
    varied: dict[str, dict[str, Any]] = {}
    try:
        for name, choices in grid.items():
            if not isinstance(choices, list) or not choices:
                raise ValueError(f"grid, {name}: expected a list of at least one value, got {json.dumps(choices)}")
            if name in settings:
                raise ValueError(f"grid, {name}: expected a setting that 'settings' does not contain, got it in both")
        defaults = {"env": find_algo_class(algo).default_settings["env"]}
        for values in itertools.product(*grid.values()):
            chosen = dict(zip(grid, values, strict=True))
            declared = check_settings(algo, {**settings, **chosen})
            for setting, value in {**settings, **chosen}.items():
                check_type(declared[setting], value)
            name = name_of(chosen)
            if any(name == other.name or chosen == varied[other.name] for other in runs):  # 1 and 1.0 are equal
                raise ValueError(f"grid: expected values that differ, got {name} twice")
            varied[name] = chosen
            given = {**defaults, **settings, **chosen}
            runs.append(Member(name, algo, {**given, "env": find_env_name(given["env"])}, os.path.join(output, name)))
    except (TypeError, ValueError) as error:
        raise type(error)(f"{path}: {error}") from error
    return runs, varied


def name_of(varied: Mapping[str, Any]) -> str:
    """Returns the name of a run folder: the values that vary, in characters that are safe in file names and shells."""
    return ",".join(f"{name}={_file_name(value)}" for name, value in varied.items()) or "run"


def _file_name(value: Any) -> str:
    text = re.sub(r"[^\w.+-]+", "-", value if isinstance(value, str) else json.dumps(value))
    text = text.strip("-") if isinstance(value, (list, dict)) else text
    return "none" if text in ("", "null") else text


# The table -------------------------------------------------------------------------------------------------------


def summarize(runs: Sequence[Member], varied: Mapping[str, Mapping[str, Any]],
              failed: Container[str]) -> tuple[list[str], list[list[Any]]]:
    """Summarizes all runs in a table.

    Args:
        runs: all runs of the sweep.
        varied: values of the settings that vary, by name of the run.
        failed: names of the failed runs.

    Returns:
        The header and the rows of the table.
    """
    means = [mean_returns(run.folder) for run in runs]
    labels = list(dict.fromkeys(label for row in means for label in row))
    rows = []
    for run, row in zip(runs, means, strict=True):
        status = "failed" if run.name in failed else "done" if run.is_done else "not done"
        values = [value if isinstance(value, (str, int, float)) else json.dumps(value)
                  for value in varied[run.name].values()]
        rows.append([run.name, *values, status, run_folder.count_rows(run.folder), *map(row.get, labels)])
    return ["run", *varied[runs[0].name], "status", "iterations", *labels], rows


# The command -----------------------------------------------------------------------------------------------------


def run(arguments: argparse.Namespace) -> int:
    """Runs the incomplete runs of a sweep and prints its table; returns the exit status."""
    name = os.path.splitext(os.path.basename(arguments.grid))[0]
    output = arguments.output or os.path.join("data", "sweeps", name)
    runs, varied = read_grid(arguments.grid, output)
    failed, was_interrupted = train_all(output, runs, arguments.processes, arguments.resume)
    header, rows = summarize(runs, varied, failed)
    path = os.path.join(output, SUMMARY)
    write_csv(path, [header, *rows])
    cells = [["" if cell is None else f"{cell:.3f}" if isinstance(cell, float) else str(cell)
              for cell in (row[0], *row[header.index("status"):])] for row in (header, *rows)]
    table = text_table(cells, right=range(2, len(cells[0])))
    print_line(f"\nMeans of the last quarter of the iterations, at most ten\n{table}")
    print_line(f"\nTable: {path}")
    if was_interrupted:
        print_line("Interrupted; run the same command with --resume to continue")
        return INTERRUPTED
    return 0 if all(run.is_done for run in runs) else 1


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of the command."""
    parser.add_argument("grid", metavar="GRID.json", help="JSON file with the algorithm and the settings of the runs")
    parser.add_argument("--processes", type=int, metavar="INT",
                        help="number of runs at a time; they share the cores (default: the number of cores)")
    parser.add_argument("--output", metavar="DIR", type=nonempty_path,
                        help="parent folder of the run folders (default: data/sweeps/GRID)")
    parser.add_argument("--resume", action="store_true",
                        help="continue the runs in the output folder; without this flag, they are an error")

