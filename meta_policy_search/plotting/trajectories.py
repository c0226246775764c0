"""The picture of where a policy goes in tasks of a world in the plane."""
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import numpy as np

from meta_policy_search.envs.scenery import Scenery, draw_scenery
from meta_policy_search.plotting import style
from meta_policy_search.plotting.style import Figure
from meta_policy_search.types import Task
from meta_policy_search.utils.files import PathLike


class TaskTrajectories(NamedTuple):
    """Where a policy went in a task of a world in the plane."""

    scenery: Scenery  # the world, with the goal of the task
    trajectories: Sequence[Sequence[np.ndarray]]  # after 0, 1, ... adaptation steps, positions on paths, [T + 1, 2]
    returns: Sequence[float]  # after 0, 1, ... adaptation steps, the mean return of a path


def plot_trajectories(tasks: Sequence[TaskTrajectories], path: Optional[PathLike] = None, title: str = "",
                      names: Sequence[str] = (), ax: Any = None) -> Figure:
    """Draws the paths of a policy in the plane: a column for each task, a row for each number of adaptation steps.

    All panels show the same part of the plane. A ring is where a path begins, a dot where it ends. Returns the
    figure.

    Args:
        tasks: at least one, with as many adaptation steps each.
        path: file to write, PNG or, by its ending, SVG; default None, no file.
        title: title of the figure; without effect on that of `ax`.
        names: a name for each task, which stands over its column; by default their numbers.
        ax: Matplotlib axes to draw into, as `pyplot.subplots` returns them for as many rows and columns; default None,
            a new figure.
    """
    num_rounds = len(tasks[0].trajectories)
    names = names or [f"task {number}" for number in range(1, len(tasks) + 1)]
    colors = style.step_colors(num_rounds)
    with style.picture(path, title, 0.8 + 2.4 * num_rounds, 0.6 + 2.4 * len(tasks), num_rounds, len(tasks), ax,
                       sharex=True, sharey=True) as all_axes:
        every = [trajectory for task in tasks for trajectories in task.trajectories for trajectory in trajectories]
        widest = max(task.scenery.half_width for task in tasks)
        for task, name, column in zip(tasks, names, all_axes.T, strict=True):
            rows = zip(column, task.trajectories, task.returns, colors, strict=True)
            for axes, trajectories, mean_return, color in rows:
                for trajectory in trajectories:
                    axes.plot(*trajectory.T, color=color, linewidth=0.8, alpha=0.5)
                    axes.plot(*trajectory[0], "o", color=color, markerfacecolor="white", markersize=4, zorder=3)
                    axes.plot(*trajectory[-1], "o", color=color, markersize=4, zorder=3)
                draw_scenery(axes, task.scenery._replace(half_width=widest), every, scale=0.7)  # the goal on top
                axes.set_xlabel(f"return {mean_return:.2f}", fontsize=9)
            column[0].set_title(textwrap.fill(name, 28), fontsize=9)
        for step, axes in enumerate(all_axes[:, 0]):
            axes.set_ylabel(style.step_label(step), fontsize=10)
    return style.figure_of(all_axes)


def describe_task(task: Task, length: int = 40, env: Any = None) -> str:
    """Returns a task in a few words: numbers with two decimals, cut off after `length` characters.

    With the environment, in which it is then set, directions along a line are called "forward" and "backward".
    """
    text = _in_words(task)
    if isinstance(task, float) and hasattr(getattr(env, "unwrapped", None), "scenery"):
        env.set_task(task)
        direction = env.unwrapped.scenery().direction
        text = text if direction is None else "forward" if direction[0] > 0.0 else "backward"
    return text if len(text) <= length else text[: length - 3] + "..."


def _in_words(task: Task) -> str:
    if isinstance(task, dict):
        return ", ".join(f"{key} {_in_words(value)}" for key, value in task.items())
    if isinstance(task, (list, tuple)) or np.ndim(task) > 0:
        return f"({', '.join(map(_in_words, task))})"
    return f"{task:.2f}" if isinstance(task, (float, np.floating)) else str(task)
