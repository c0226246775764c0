"""Plots the results in the CSV files of this folder as SVG files.

    python -m experiments.results.draw            # all files
    python -m experiments.results.draw NAME ...   # some files

For several seeds, a plot shows the mean, its 95% interval over seeds (Student's t), and a thin line per seed. Titles,
labels and published returns (MAML with TRPO, arXiv:1703.03400) are in `pictures.json`.
"""
import csv
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Optional

import numpy as np

from meta_policy_search.plotting import Curve, Progress, describe_settings, plot_comparison, style
from meta_policy_search.settings import read_json
from meta_policy_search.utils.statistics import running_mean

HERE = os.path.dirname(os.path.abspath(__file__))
_PICTURES = read_json(os.path.join(HERE, "pictures.json"))
RUNS, EVALUATIONS = _PICTURES["runs"], _PICTURES["evaluations"]
BEFORE, AFTER, GAIN = "Step_0-AverageReturn", "Step_1-AverageReturn", "AdaptationGain"
SINGLE = {"AverageReturn": "mean", "Evaluation-AverageReturn": "without exploration",
          "BestCandidateReturn": "best candidate"}
POINTS = 200  # maximum number of points of a curve
Rows = list[dict[str, str]]


def read_groups(path: str, *keys: str) -> dict[tuple[str, ...], Rows]:
    """Reads a CSV file and groups its rows by the columns `keys`, which are removed from the rows."""
    groups: dict[tuple[str, ...], Rows] = {}
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            groups.setdefault(tuple(row.pop(key) for key in keys), []).append(row)
    return groups


def columns_of(rows: Rows) -> Progress:
    """Converts rows to columns of numbers, without empty columns."""
    return {key: np.array([float(row[key]) for row in rows]) for key, first in rows[0].items() if first}


def read_runs(name: str, key: str = "run") -> dict[str, Progress]:
    """Reads the columns of each run in `NAME.csv`, by its value in the column `key`."""
    groups = read_groups(os.path.join(HERE, f"{name}.csv"), key)
    return {label: columns_of(rows) for (label,), rows in groups.items()}


def draw_runs(name: str) -> None:
    """Plots the learning curves of runs that differ in the seed."""
    runs = list(read_runs(name).values())
    title = describe_settings(seeds=range(1, len(runs) + 1), **RUNS[name])
    if BEFORE in runs[0]:
        panels = {"mean return of a path": _curves(runs, {BEFORE: "before adaptation", AFTER: "after one step"}),
                  "gain from adaptation": _curves(runs, {GAIN: "gain"})}
        plot_comparison(panels, _path(name), title)
    else:
        panels = {"return of a path": _curves(runs, SINGLE, "n_timesteps")}
        plot_comparison(panels, _path(name), title, "environment steps")


def draw_maml_next_to_e_maml(name: str) -> None:
    """Plots TRPO-MAML and E-MAML, which differ only in the exploration term."""
    runs = {"TRPO-MAML": read_runs("trpo_maml_point_env_corner"), "E-MAML": read_runs("e_maml_point_env_corner")}
    panels = {quantity: [curve(label, list(own.values()), column) for label, own in runs.items()]
              for quantity, column in (("return before adaptation", BEFORE), ("return after adaptation", AFTER))}
    plot_comparison(panels, _path(name), "MetaPointEnvCorner, seeds 1, 2, 3, inner step 0.1")


def draw_stability(name: str) -> None:
    """Plots the variants that `stability.py` trains."""
    runs = read_runs(name, "variant")
    panels = {quantity: [curve(label, [run], column) for label, run in runs.items()] for quantity, column in (
        ("forward tasks before adaptation", "forward_before"), ("forward tasks after one step", "forward_after"),
        ("backward tasks after one step", "backward_after"))}
    title = "ProMP on HalfCheetahRandDirecEnv, with other settings from iteration 75 on"
    plot_comparison(panels, _path(name), title, "iterations")


def draw_evaluation(name: str) -> None:
    """Plots returns in tasks that were not used in training, over adaptation steps or environment steps."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    evaluation, policies = EVALUATIONS[name], read_runs(name, "policy")
    over_steps = "timesteps" in next(iter(policies.values()))
    with style.figure_axes(_path(name), f"{evaluation['title']}: 40 tasks that were not trained on", 4.0) as all_axes:
        axes = all_axes[0, 0]
        for index, (policy, columns) in enumerate(policies.items()):
            x = columns["timesteps"] if over_steps else columns["step"] + 0.03 * index
            axes.errorbar(x, columns["return"], columns["return_ci95"], marker="o", markersize=4, capsize=3,
                          label=evaluation["labels"].get(policy, policy), color=style.COLORS[index])
        if evaluation["published"]:
            axes.plot(evaluation["published"], "s--", color="#333333", markersize=5, label="MAML, published")
        style.label_y(axes, "mean return of a path")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("environment steps in a task" if over_steps else "gradient steps in a task")
        if over_steps:
            axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
        axes.set_title("Bars: 95% interval over tasks", **style.NOTE_STYLE)
        axes.figure.legend(loc="outside lower center", frameon=False, ncols=3)


def _curves(runs: Sequence[Progress], columns: Mapping[str, str], x: str = "Itr") -> list[Curve]:
    return [curve(label, runs, column, x) for column, label in columns.items() if column in runs[0]]


def curve(label: str, runs: Sequence[Progress], column: str, x: str = "Itr") -> Curve:
    """Returns a curve with running means over about 2% of the rows, and at most about `POINTS` points per run."""
    every = -(-max(len(run[x]) for run in runs) // POINTS)
    return Curve(label, [(run[x][::every], running_mean(run[column])[0][::every]) for run in runs])


def _path(name: str) -> str:
    return os.path.join(HERE, f"{name}.svg")


DRAWINGS = {**dict.fromkeys(RUNS, draw_runs), **dict.fromkeys(EVALUATIONS, draw_evaluation),
            "maml_and_e_maml_point_env_corner": draw_maml_next_to_e_maml, "pro_mp_stability": draw_stability}


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Plots the files named on the command line (default: all)."""
    for name in (sys.argv[1:] if argv is None else argv) or DRAWINGS:
        DRAWINGS[name](name)
        print(os.path.relpath(_path(name)))


if __name__ == "__main__":
    main()
