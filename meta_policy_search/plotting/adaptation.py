"""The picture of what policies return in held-out tasks after each adaptation step."""
import os
from collections.abc import Sequence
from typing import Optional

import numpy as np

from meta_policy_search.plotting import style
from meta_policy_search.utils.files import PathLike
from meta_policy_search.utils.statistics import mean_interval


def plot_adaptation_curve(
    curves: Sequence[tuple[str, np.ndarray]],
    path: PathLike,
    title: str = "Adaptation",
    note: str = "",
    timesteps: Optional[Sequence[np.ndarray]] = None,
) -> str:
    """Draws returns over adaptation steps: means, with their 95% intervals over tasks (Student's t).

    Behind the first curve, that of each of its tasks is drawn faintly; the others are there to compare with.

    Args:
        curves: name and returns `[tasks, K + 1]` of each policy, after 0, ..., K steps.
        path: PNG file to write.
        title: title of the picture.
        note: a smaller line under it.
        timesteps: for a picture over environment steps instead, without single tasks: of each policy `[K + 1]`, how
            many were taken in a task.

    Returns:
        The path of the picture.

    Raises:
        OSError: the picture cannot be written.
    """
    from matplotlib.ticker import EngFormatter, MaxNLocator

    path = os.fspath(path)
    with style.picture(path, title, height=5.0) as figure:
        axes = figure.subplots()
        for index, (name, returns) in enumerate(curves):
            is_first = index == 0
            steps = np.arange(returns.shape[1]) + 0.03 * index  # side by side, or bars would hide each other
            steps = steps if timesteps is None else timesteps[index]
            color = style.GAIN_COLOR if is_first else style.REFERENCE_COLORS[(index - 1) % len(style.REFERENCE_COLORS)]
            mean, half_width = mean_interval(returns)
            if is_first and len(returns) > 1 and timesteps is None:
                axes.plot(steps, returns.T, color=color, alpha=np.clip(6.0 / len(returns), 0.15, 0.5), linewidth=0.8,
                          zorder=1)
            axes.errorbar(steps, mean, half_width, color=color, label=name, linewidth=2.0 if is_first else 1.4,
                          linestyle="-" if is_first else "--", marker="o", markersize=6 if is_first else 4,
                          capsize=4, elinewidth=1.4, zorder=3 if is_first else 2)
        if timesteps is None:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.set_xlabel("adaptation steps in the task")
        else:
            axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
            axes.set_xlabel("environment steps in the task, to adapt to it")
        axes.set_title(note, **style.NOTE_STYLE)
        style.label_y(axes, "mean return of a path")
        figure.legend(loc="outside lower center", frameon=False)
    return path
