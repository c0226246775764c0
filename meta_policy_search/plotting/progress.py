"""Reads the logged columns of runs from `progress.csv`."""
import csv
import os
import re
from collections.abc import Mapping, Sequence
from typing import Optional

import numpy as np

from meta_policy_search.registry import title_of
from meta_policy_search.settings import read_json
from meta_policy_search.utils.checks import Columns, check_positive_int
from meta_policy_search.utils.files import PathLike, user_path
from meta_policy_search.utils.statistics import Interval, exact_mean, half_width_of_mean

Progress = dict[str, np.ndarray]
"""Columns of `progress.csv` by name, each float64 `[iterations]`; NaN if a cell is not a number."""


def read_progress(run_folder: PathLike) -> Progress:
    """Reads the `progress.csv` of a run, which may still be in progress.

    An incomplete last line is ignored.

    Args:
        run_folder: folder of the run.

    Returns:
        The columns by name, in the order of the file.

    Raises:
        ValueError: the file is missing, contains no rows or is not a CSV table.
    """
    path = os.path.join(user_path("run_folder", run_folder), "progress.csv")
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(line for line in file if line.endswith("\n")))
    except (OSError, csv.Error) as error:
        raise ValueError(f"run_folder: expected a folder with a progress.csv, got {run_folder}: {error}") from error
    if len(rows) < 2:
        raise ValueError(f"run_folder: expected at least one row in {path}, got none")
    rows, keys = rows[1:], rows[0]
    if len(keys) == 1 and ";" in keys[0]:
        raise ValueError(f"run_folder: expected commas between the columns of {path}, got {keys[0][:60]!r}")
    return Columns({key: np.array([_number(row[column]) if column < len(row) else np.nan for row in rows])
                    for column, key in enumerate(keys)})


def describe_run(run_folder: PathLike) -> str:
    """Returns a short description of a run, such as "ProMP on HalfCheetahRandDirecEnv, seed 1, inner step 0.1".

    The settings are read from `params.json`. If that is not possible, the description is the last three parts of the
    folder's path.
    """
    folder = os.path.abspath(user_path("run_folder", run_folder))
    try:
        params = read_json(os.path.join(folder, "params.json"))
        settings = params["settings"]
        seeds = [settings["seed"]] if "seed" in settings else []
        return describe_settings(params["algorithm"], settings["env"], seeds, settings.get("inner_lr"))
    except (ValueError, KeyError, TypeError):
        return "/".join(folder.split(os.sep)[-3:])


def describe_settings(algorithm: Optional[str], env: str, seeds: Sequence[int],
                      inner_lr: Optional[float] = None) -> str:
    """Returns a short description of runs from their common settings; None and empty seeds are omitted."""
    title = "" if algorithm is None else f"{title_of(algorithm)} on "
    seed = f", seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}" if len(seeds) else ""
    return f"{title}{env.rpartition(':')[2]}{seed}" + ("" if inner_lr is None else f", inner step {inner_lr:g}")


def return_columns(progress: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Returns the columns with mean returns, as a dict from a label to the column name.

    The labels are `return before adaptation` and `return after adaptation`: after the last adaptation step, or for RL2
    the first and the last episode of a trial. For a run without adaptation, the only label is `return`.
    """
    if "AverageReturn" in progress:
        return {"return": "AverageReturn"}
    if "Step_0-LastEpisodeReturn" in progress:
        first, last = "Step_0-FirstEpisodeReturn", "Step_0-LastEpisodeReturn"
    else:
        steps, _ = step_columns(progress, "AverageReturn")
        first, last = (f"Step_{step}-AverageReturn" for step in (steps[0], steps[-1]))
    return {"return": first} if first == last else {"return before adaptation": first, "return after adaptation": last}


def number_of_last(progress: Mapping[str, np.ndarray]) -> int:
    """Returns the number of iterations that results are averaged over: the last quarter, at most ten."""
    return min(10, -(-len(next(iter(progress.values()), ())) // 4))


def final_returns(progress: Mapping[str, np.ndarray], last: Optional[int] = None) -> dict[str, float]:
    """Returns the means of the last iterations of a run, by the labels of `return_columns`.

    Args:
        progress: return value of `read_progress`.
        last: number of iterations to average. Default None: the last quarter, at most ten.
    """
    last = number_of_last(progress) if last is None else check_positive_int("last", last)
    return {label: float(exact_mean(progress[column][-last:])) for label, column in return_columns(progress).items()}


def final_success(progress: Mapping[str, np.ndarray]) -> Optional[float]:
    """Returns the mean success rate of the iterations of `final_returns`, after adaptation; None if there is none."""
    is_step = any(name.startswith("Step_") and name.endswith("-SuccessRate") for name in progress)
    every = step_columns(progress, "SuccessRate")[1][-1] if is_step else progress.get("SuccessRate", np.array([np.nan]))
    rates = every[-number_of_last(progress):]
    return None if np.isnan(rates).all() else float(exact_mean(rates[~np.isnan(rates)]))


def mean_gain(progress: Mapping[str, np.ndarray], last: Optional[int] = None,
              num_tasks: Optional[int] = None) -> Interval:
    """Returns the mean adaptation gain of the last iterations of a run, and its 95% interval over tasks.

    Each iteration samples new tasks, so the mean gains of the iterations are independent; see
    `utils.statistics.half_width_of_mean` for the interval.

    Args:
        progress: return value of `read_progress`.
        last: number of iterations to average, at least 1; all iterations if the run has fewer. Default None: the last
            quarter, at most ten.
        num_tasks: number of tasks of an iteration. Default None: unknown, so the interval is slightly too wide.

    Raises:
        ValueError: `last` is below 1, or `progress` lacks a column.
    """
    last = number_of_last(progress) if last is None else check_positive_int("last", last)
    gains, half_widths = (column[-last:] for column in columns(progress, "AdaptationGain", "AdaptationGainCI95"))
    return Interval(exact_mean(gains), np.asarray(half_width_of_mean(half_widths, num_tasks)))


def columns(progress: Mapping[str, np.ndarray], *keys: str) -> tuple[np.ndarray, ...]:
    """Returns columns by name; raises `ValueError` if one is missing."""
    for key in keys:
        if key not in progress:
            raise ValueError(f"progress: expected a column {key!r}, got only {', '.join(progress)}")
    return tuple(progress[key] for key in keys)


def step_columns(progress: Mapping[str, np.ndarray], name: str) -> tuple[list[int], np.ndarray]:
    """Returns the columns `Step_<k>-<name>` of all adaptation steps.

    Returns:
        The sorted step numbers, and the columns, float64 `[steps, iterations]`.
    """
    pattern = re.compile(rf"Step_(\d+)-{name}")
    found = {int(match[1]): match[0] for match in map(pattern.fullmatch, progress) if match}
    if not found:
        columns(progress, f"Step_0-{name}")  # raises an error that names the missing column
    return sorted(found), np.stack([progress[found[step]] for step in sorted(found)])


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")
