"""Draws the results in the CSV files beside this file as SVG pictures.

    python experiments/results/draw.py            # all
    python experiments/results/draw.py NAME ...   # some

Several seeds are drawn as their mean with its 95% interval over seeds (Student's t), and a faint line for each seed.
"""
import csv
import os
import sys
from typing import Dict, List, Optional, Sequence

import numpy as np

from meta_policy_search.plotting import Curve, describe_settings, plot_comparison, style
from meta_policy_search.utils.statistics import running_mean

HERE = os.path.dirname(os.path.abspath(__file__))
CHEETAH, CORNER, NAVIGATION = "HalfCheetahRandDirecEnv", "MetaPointEnvCorner", "MetaPointEnvNavigation"
RUNS = {  # script, environment, size of the inner step
    "pro_mp_half_cheetah_rand_direc": ("pro_mp", CHEETAH, 0.1),
    "pro_mp_half_cheetah_rand_direc_horizon_200": ("pro_mp", CHEETAH + ", paths of 200 steps", 0.1),
    "pro_mp_point_env_corner": ("pro_mp", CORNER, 0.1),
    "trpo_maml_navigation": ("maml_trpo", NAVIGATION, 0.5),
    "trpo_maml_point_env_corner": ("maml_trpo", CORNER, 0.1),
    "e_maml_point_env_corner": ("e_maml", CORNER, 0.1),
    "vpg_maml_point_env_corner": ("vpg_maml", CORNER, 0.1),
    "dice_maml_navigation": ("dice_maml", NAVIGATION, 0.1),
    "cem_cart_pole": ("cem", "CartPole-v1", None),
    "cma_es_cart_pole": ("cma_es", "CartPole-v1", None),
    "ddpg_pendulum": ("ddpg", "Pendulum-v1", None),
}
EVALUATIONS = {  # label of the policy, title
    "pro_mp_half_cheetah_rand_direc_horizon_200_evaluation": ("ProMP, 1 seed", "Half cheetah, paths of 200 steps"),
    "trpo_maml_navigation_evaluation": ("TRPO-MAML", "2D navigation"),
    "trpo_maml_navigation_comparison": ("TRPO-MAML", "2D navigation, at equal environment steps"),
}
PUBLISHED = {  # MAML with TRPO, arXiv:1703.03400, after 0, 1, ... gradient steps
    "pro_mp_half_cheetah_rand_direc_horizon_200_evaluation": (-50.69, 293.19, 313.48, 315.65),
    "trpo_maml_navigation_evaluation": (-40.41, -11.68, -3.33, -3.23),
}
BEFORE, AFTER, GAIN = "Step_0-AverageReturn", "Step_1-AverageReturn", "AdaptationGain"
SINGLE = {"AverageReturn": "mean", "Evaluation-AverageReturn": "without exploration",
          "BestCandidateReturn": "best candidate"}
POINTS = 200  # of a curve, at most


def read_table(path: str) -> List[Dict[str, str]]:
    """Returns the rows of a CSV file, with their cells by column."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_runs(name: str) -> List[Dict[str, np.ndarray]]:
    """Returns the columns of `NAME.csv`, for each run."""
    rows = read_table(os.path.join(HERE, f"{name}.csv"))
    numbers = list(dict.fromkeys(row["run"] for row in rows))
    return [{key: np.array([float(row[key]) for row in rows if row["run"] == number]) for key in rows[0]}
            for number in numbers]


def draw_runs(name: str) -> str:
    """Draws the learning curve of some runs; returns the path."""
    script, env, inner_lr = RUNS[name]
    runs = read_runs(name)
    title = describe_settings(script, env, range(1, len(runs) + 1), inner_lr)
    if BEFORE in runs[0]:
        panels = {"mean return of a path": _curves(runs, {BEFORE: "before adaptation", AFTER: "after one step"}),
                  "gain from adaptation": _curves(runs, {GAIN: "gain"})}
        plot_comparison(panels, _path(name), title)
    else:
        panels = {"return of a path": _curves(runs, SINGLE, "n_timesteps")}
        plot_comparison(panels, _path(name), title, "environment steps")
    return _path(name)


def draw_maml_next_to_e_maml() -> str:
    """Draws TRPO-MAML and E-MAML, which differ in the exploration term; returns the path."""
    names = {"trpo_maml_point_env_corner": "TRPO-MAML", "e_maml_point_env_corner": "E-MAML"}
    panels = {quantity: [curve(label, read_runs(name), column) for name, label in names.items()]
              for quantity, column in (("return before adaptation", BEFORE), ("return after adaptation", AFTER))}
    path = _path("maml_and_e_maml_point_env_corner")
    plot_comparison(panels, path, f"{CORNER}, seeds 1, 2, 3, inner step 0.1")
    return path


def draw_evaluation(name: str) -> str:
    """Draws returns in tasks that were not trained on, over adaptation steps; returns the path."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    (first, title), path = EVALUATIONS[name], _path(name)
    rows = read_table(os.path.join(HERE, f"{name}.csv"))
    over_steps = "timesteps" in rows[0]
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    with style.picture(path, f"{title}: 40 tasks that were not trained on", height=4.0) as all_axes:
        axes = all_axes[0, 0]
        for index, policy in enumerate(policies):
            mine = [row for row in rows if row["policy"] == policy]
            x, y, error = ([float(row[key]) for row in mine]
                           for key in ("timesteps" if over_steps else "step", "return", "return_ci95"))
            label = policy.replace(", iteration 99", "").replace("seed", "seed ").replace("run, iteration 119", "")
            label = first if not label else f"{first}, {label}" if label.startswith("seed") else label
            axes.errorbar(np.array(x) + (0 if over_steps else 0.03 * index), y, error, marker="o", markersize=4,
                          capsize=3, label=label, color=style.COLORS[index])
        if name in PUBLISHED:
            axes.plot(PUBLISHED[name], "s--", color="#333333", markersize=5, label="MAML, published")
        style.label_y(axes, "mean return of a path")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("environment steps in a task" if over_steps else "gradient steps in a task")
        if over_steps:
            axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
        axes.set_title("Bars: 95% interval over tasks", **style.NOTE_STYLE)
        axes.figure.legend(loc="outside lower center", frameon=False, ncols=3)
    return path


def _curves(runs: Sequence[Dict[str, np.ndarray]], columns: Dict[str, str], x: str = "Itr") -> List[Curve]:
    return [curve(label, runs, column, x) for column, label in columns.items() if column in runs[0]]


def curve(label: str, runs: Sequence[Dict[str, np.ndarray]], column: str, x: str = "Itr") -> Curve:
    """Returns a curve of running means over about 2% of the rows, with at most about `POINTS` points per run."""
    every = -(-max(len(run[x]) for run in runs) // POINTS)
    return Curve(label, [(run[x][::every], running_mean(run[column])[0][::every]) for run in runs])


def _path(name: str) -> str:
    return os.path.join(HERE, f"{name}.svg")


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Draws the pictures that the command line names, by default all."""
    wanted = list(sys.argv[1:] if argv is None else argv)
    paths = [draw_one(name) for names, draw_one in ((RUNS, draw_runs), (EVALUATIONS, draw_evaluation))
             for name in names if not wanted or name in wanted]
    if not wanted:
        paths.append(draw_maml_next_to_e_maml())
    for path in paths:
        print(f"{os.path.relpath(path)}: {os.path.getsize(path) / 1024:.0f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
