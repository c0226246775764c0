"""Draws the figures of the tutorial and of the page "Meta-reinforcement learning in ten minutes".

    python docs/draw_tutorial.py [--output FOLDER] [--smoke]

Trains the run of the tutorial (about a minute) in a temporary folder. Writes `tutorial.png` and `meta_learning.png`.
"""
import contextlib
import sys
import tempfile
from pathlib import Path
from typing import Optional, Sequence

import numpy as np
from draw_adaptation import parse  # in this folder
from matplotlib import pyplot as plt

import meta_policy_search as mps
from meta_policy_search.cli.main import main as command_line
from meta_policy_search.envs.scenery import draw_scenery
from meta_policy_search.plotting.style import COLORS

GOALS = ((0.5, 0.5), (-0.5, 0.5), (-0.5, -0.5), (0.5, -0.5))
RUN = "data/my_run"
TINY = {"n_itr": 2, "meta_batch_size": 2, "rollouts_per_meta_task": 2, "max_path_length": 5}


def draw_tutorial(path: Path) -> None:
    """Draws the paths of the tutorial with its command."""
    tasks = str([list(goal) for goal in GOALS])
    status = command_line(["plot", RUN, "--trajectories", "--tasks", tasks, "--num_paths", "3", "--output", str(path),
                           "--overwrite"])
    if status != 0:
        sys.exit(f"plot: expected exit status 0, got {status}")


def draw_meta_learning(path: Path) -> None:
    """Draws tasks and paths before adaptation, paths after one gradient step, and the returns in training."""
    recording = mps.load_evaluator(RUN).record(tasks=[np.array(goal) for goal in GOALS], num_steps=1, seed=1)
    figure, axes = plt.subplots(1, 3, figsize=(11.0, 3.9), layout="constrained", width_ratios=(1.0, 1.0, 1.35))
    scenery = mps.MetaPointEnvCornerGoals().scenery()._replace(goal=None, other_goals=())
    paths = [[recording.trajectories(step, task, 3) for task in range(len(GOALS))] for step in range(2)]
    for ax, of_step in zip(axes, paths):
        draw_scenery(ax, scenery, sum(sum(paths, []), []))  # with the same limits in both panels
        for goal, color, trajectories in zip(GOALS, COLORS, of_step):
            ax.plot(*goal, "*", color=color, markersize=15, markeredgecolor="black", markeredgewidth=0.5)
            for trajectory in trajectories:
                ax.plot(*trajectory.T, color=color, linewidth=1.0, alpha=0.7)
                ax.plot(*trajectory[-1], "o", color=color, markersize=4)
        ax.plot(0.0, 0.0, "o", color="black", markerfacecolor="white", markersize=6, zorder=4)
        ax.set(xticks=[], yticks=[])
    axes[0].set_title("1. Tasks: one goal each (star).\nThe policy does not observe the goal")
    axes[1].set_title("2. Adaptation: after one gradient\nstep for each task")
    mps.plotting.plot_learning_curve(RUN, ax=axes[2])
    axes[2].set_title("3. Training with meta-gradients:\nmean return before and after the step")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Trains the run and draws both figures."""
    arguments = parse(__doc__, argv)
    folder = arguments.output.resolve()
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        mps.train("MetaPointEnvCornerGoals", "promp", dump_path=RUN, seed=1,
                  **(TINY if arguments.smoke else {"n_itr": 120}))
        draw_tutorial(folder / "tutorial.png")
        draw_meta_learning(folder / "meta_learning.png")


if __name__ == "__main__":
    main()
