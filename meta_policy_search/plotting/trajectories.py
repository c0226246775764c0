"""Plot of a policy's trajectories in tasks of a planar environment."""
import textwrap
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from meta_policy_search.envs.scenery import Scenery, draw_scenery
from meta_policy_search.plotting import style
from meta_policy_search.plotting.style import Figure
from meta_policy_search.types import Task
from meta_policy_search.utils.files import PathLike


def plot_trajectories(tasks: Sequence[tuple[Scenery, Sequence[Sequence[np.ndarray]], Sequence[float]]],
                      path: Optional[PathLike] = None, title: str = "", names: Sequence[str] = (),
                      ax: Any = None) -> Figure:
    """Plots the paths of a policy in the plane, with one column per task and one row per number of adaptation steps.

    All panels show the same part of the plane. A ring marks the start of a path, and a dot marks the end. The mean
    return is above each panel.

    Args:
        tasks: for each task, its scenery, and after 0, 1, ... adaptation steps, the positions of each path
            `[T + 1, 2]`, and the mean return. All tasks have the same number of steps.
        path: file to write: the ending (such as `.svg` or `.png`) determines the format. Default None: no file.
        title: title of the figure; ignored if `ax` is given.
        names: title of each column. Default: "task 1", "task 2", ...
        ax: Matplotlib axes to draw into, an array `[rows, columns]` as returned by `pyplot.subplots`. Default None: a
            new figure.

    Returns:
        The figure.

    Raises:
        ValueError: the number of axes is wrong.
    """
    sceneries, trajectories_of_tasks, _ = zip(*tasks, strict=True)
    num_rounds = len(trajectories_of_tasks[0])
    names = names or [f"task {number}" for number in range(1, len(tasks) + 1)]
    colors = style.step_colors(num_rounds)
    with style.figure_axes(path, title, 0.8 + 2.4 * num_rounds, 0.6 + 2.4 * len(tasks), num_rounds, len(tasks), ax,
                           sharex=True, sharey=True) as all_axes:
        every = [trajectory for rounds in trajectories_of_tasks for paths in rounds for trajectory in paths]
        widest = max(scenery.half_width for scenery in sceneries)
        for (scenery, rounds, returns), name, column in zip(tasks, names, all_axes.T, strict=True):
            for axes, trajectories, mean_return, color in zip(column, rounds, returns, colors, strict=True):
                for trajectory in trajectories:
                    axes.plot(*trajectory.T, color=color, linewidth=0.8, alpha=0.5)
                    axes.plot(*trajectory[0], "o", color=color, markerfacecolor="white", markersize=4, zorder=3)
                    axes.plot(*trajectory[-1], "o", color=color, markersize=4, zorder=3)
                draw_scenery(axes, scenery._replace(half_width=widest), every, scale=0.7)  # last: goal on top
                axes.locator_params(nbins=4)  # more labels would overlap those of the next panel
                heading = textwrap.fill(name, 28) + "\n" if axes is column[0] else ""
                axes.set_title(f"{heading}return {mean_return:.2f}", fontsize=9)
        for step, axes in enumerate(all_axes[:, 0]):
            axes.set_ylabel(style.step_label(step), fontsize=10)
    return style.figure_of(all_axes)


def describe_task(task: Task, length: int = 40, env: Any = None) -> str:
    """Returns a short description of a task: numbers with two decimals, truncated to `length` characters.

    Args:
        task: a task of any type, such as a number, an array or a dict.
        length: maximum number of characters; default 40.
        env: environment of the task. If given and planar, the task is set in it, and directions along a line are
            described as "forward" or "backward". Default None.
    """
    text = _as_text(task)
    if isinstance(task, float) and hasattr(getattr(env, "unwrapped", None), "scenery"):
        env.set_task(task)
        direction = env.unwrapped.scenery().direction
        text = text if direction is None else "forward" if direction[0] > 0.0 else "backward"
    return text if len(text) <= length else text[: length - 3] + "..."


def _as_text(task: Task) -> str:
    if isinstance(task, dict):
        return ", ".join(f"{key} {_as_text(value)}" for key, value in task.items())
    if isinstance(task, (list, tuple)) or np.ndim(task) > 0:
        return f"({', '.join(map(_as_text, task))})"
    return f"{round(float(task), 2) + 0.0:.2f}" if isinstance(task, (float, np.floating)) else str(task)  # no -0.00
