"""Trains with all combinations of some settings (a grid), several runs at a time.

    meta-policy-search sweep experiments/configs/sweep_point.json
    meta-policy-search sweep GRID.json --processes 4 --output data/my_sweep

GRID.json contains the algorithm, the settings of all runs, and lists of values for the settings that vary:

    {
      "algorithm": "trpo_maml",
      "settings": {"env": "MetaPointEnvCornerGoals", "n_itr": 50},
      "grid": {"inner_lr": [0.05, 0.1], "seed": [1, 2, 3]}
    }

To compare algorithms, omit "algorithm" and add "algo", a list of names, to the grid. An entry of "settings" is passed
to the algorithms that have this setting. Each of the algorithms needs the other settings of the grid.

Each run has a folder that is named after its values. At the end, the sweep prints a table with a row for each
combination of settings and means over its seeds, see `meta_policy_search.sweep`. The file summary.csv has a row for
each run. For failed runs, the sweep prints the error. The exit status is 0 if all runs are complete, 1 otherwise, and
130 after Ctrl-C.

Ctrl-C stops all runs. To continue a sweep, run the same command with --resume: it resumes interrupted runs, repeats
failed runs and skips complete runs. A sweep never deletes runs.
"""
import argparse
import os
import reprlib
from typing import Any

from meta_policy_search.cli.flags import nonempty_path
from meta_policy_search.cli.train import INTERRUPTED
from meta_policy_search.comparison import SUMMARY, sweep
from meta_policy_search.run import find_algo_class
from meta_policy_search.settings import read_json
from meta_policy_search.utils.checks import did_you_mean
from meta_policy_search.utils.progress import print_line

_KEYS = {"algorithm": str, "settings": dict, "grid": dict}
_FLAGS = {"folder": "--output", "dump_path": "--output", "processes": "--processes", "resume": "--resume"}


def run(arguments: argparse.Namespace) -> int:
    """Runs the incomplete runs of a sweep and prints its table; returns the exit status."""
    path = arguments.grid
    content: Any = read_json(path)
    grid, keys = content.get("grid"), dict(_KEYS)
    if isinstance(grid, dict) and "algo" in grid:
        del keys["algorithm"]
    if set(content) != set(keys) or not all(isinstance(content[key], kind) for key, kind in keys.items()):
        raise ValueError(f"{path}: expected an object with the keys algorithm (a name; omitted if the grid contains "
                         f"algo), settings and grid (objects) and no others, got {reprlib.repr(content)}"
                         + "".join(did_you_mean(key, _KEYS) for key in content if key not in _KEYS))
    settings, algo = content["settings"], content.get("algorithm")
    for name in _FLAGS.keys() & settings:
        raise ValueError(f"{path}: settings: expected no {name}; use the flag {_FLAGS[name]}")
    output = arguments.output or os.path.join("data", "sweeps", os.path.splitext(os.path.basename(path))[0])
    try:
        env = settings.pop("env", None)
        if env is None and "env" not in grid and algo is not None:
            env = find_algo_class(algo).default_settings["env"]
            print_line(f"settings contain no env: training on {env}, the default of {algo}")
        comparison = sweep(env, algo, grid, output, arguments.processes, arguments.resume, **settings)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{path}: {error}") from error
    except RuntimeError as error:
        print_line(str(error))
        return 1
    print_line(f"\n{comparison}\n\nTable of all runs: {os.path.join(output, SUMMARY)}")
    return INTERRUPTED if comparison.was_interrupted else int(not comparison.is_complete)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of the command."""
    parser.add_argument("grid", metavar="GRID.json", help="JSON file with the algorithm and the settings of the runs")
    parser.add_argument("--processes", type=int, metavar="INT",
                        help="number of runs at a time; they share the cores (default: the number of cores)")
    parser.add_argument("--output", metavar="DIR", type=nonempty_path,
                        help="parent folder of the run folders (default: data/sweeps/GRID)")
    parser.add_argument("--resume", action="store_true",
                        help="continue the runs in the output folder; without this flag, they are an error")
