"""Plots that compare runs or adapted policies: means with 95% intervals."""
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional

import numpy as np

from meta_policy_search.plotting import style
from meta_policy_search.plotting.style import Figure
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.files import PathLike
from meta_policy_search.utils.statistics import Interval, mean_interval, running_mean

_STYLES = ("-", "--", ":", "-.")
_LEGEND_WIDTH = 100  # characters in a line of the legend


class Curve(NamedTuple):
    """One curve of a comparison: a quantity in runs that differ only in their seed."""

    label: str
    runs: Sequence[tuple[np.ndarray, np.ndarray]]  # x and y of each run, both [n]; x increases


def mean_curve(curve: Curve) -> tuple[np.ndarray, Interval]:
    """Averages the runs of a curve.

    Each run is interpolated linearly at all `x` where at least one run has a finite value.

    Returns:
        The values of `x` that lie within all runs, float64 `[n]`, and the means with their 95% intervals over runs
        (Student's t), `[n]` each. All are empty if a run has no finite value.
    """
    runs = [(x[np.isfinite(y)], y[np.isfinite(y)]) for x, y in curve.runs]
    if not all(len(x) for x, _ in runs):
        return np.empty(0), Interval(np.empty(0), np.empty(0))
    places = np.unique(np.concatenate([x for x, _ in runs]))
    begin, end = max(x[0] for x, _ in runs), min(x[-1] for x, _ in runs)
    places = places[(begin <= places) & (places <= end)]
    return places, mean_interval(np.array([np.interp(places, x, y) for x, y in runs]))


def plot_comparison(panels: Mapping[str, Sequence[Curve]], path: Optional[PathLike] = None, title: str = "",
                    x_label: str = "iteration", is_count: bool = True, smooth: int = 1, ax: Any = None) -> Figure:
    """Plots the means of several runs with 95% intervals over runs, and the single runs as thin lines.

    Args:
        panels: one panel per entry: label of the vertical axis to curves. Curves with the same label have the same
            color and line style in all panels.
        path: file to write: SVG if the name ends with `.svg`, otherwise PNG. Default None: no file.
        title: title of the figure; ignored if `ax` is given. The label of a single curve is the default title, and
            a new figure then has no legend.
        x_label: label of the horizontal axis; default `"iteration"`.
        is_count: whether the horizontal axis shows integers, such as a number of steps; default True.
        smooth: width of the running mean in rows, centered at each row; even numbers are rounded down to odd numbers.
            Default 1: no smoothing.
        ax: Matplotlib axes to draw into: one per panel, a single object or an array. Default None: a new figure.

    Returns:
        The figure.

    Raises:
        ValueError: `smooth` is below 1, or the number of axes differs from the number of panels.
    """
    reach = (check_positive_int("smooth", smooth) - 1) // 2
    labels = list(dict.fromkeys(curve.label for curves in panels.values() for curve in curves))
    legend = [textwrap.fill(label, _LEGEND_WIDTH) for label in labels]
    title = title or (labels[0] if len(labels) == 1 else "")
    height = 1.2 + 2.6 * len(panels) + 0.25 * "\n".join(legend).count("\n")
    with style.picture(path, title, height, rows=len(panels), ax=ax, sharex=True) as all_axes:
        handles = {}
        for axes, (quantity, curves) in zip(all_axes.flat, panels.items(), strict=True):
            for curve in curves:
                index = labels.index(curve.label)
                smoothed = [(x, running_mean(y, reach)[0]) for x, y in curve.runs]
                handles[index] = _draw_curve(axes, curve._replace(runs=smoothed), index)
            style.limit_to_lines(axes)
            style.label_y(axes, quantity)
        if any(len(curve.runs) > 1 for curves in panels.values() for curve in curves):
            all_axes[0, 0].set_title("Bands: 95% interval over runs. Thin lines: single runs.", **style.NOTE_STYLE)
        style.label_x(all_axes[-1, 0], x_label, is_count)
        if len(labels) > 1 or ax is not None:
            style.label_curves(all_axes, ax, [handles[i] for i in range(len(labels))], legend)
    return style.figure_of(all_axes)


def plot_adaptation_curve(curves: Sequence[tuple[str, np.ndarray]], path: Optional[PathLike] = None,
                          title: str = "Adaptation", note: str = "", timesteps: Optional[Sequence[np.ndarray]] = None,
                          ax: Any = None) -> Figure:
    """Plots mean returns over adaptation steps, with 95% intervals over tasks (Student's t).

    Thin lines show the single tasks of the first policy.

    Args:
        curves: for each policy, its name and its returns `[tasks, K + 1]` after 0, 1, ..., `K` adaptation steps.
        path: file to write: SVG if the name ends with `.svg`, otherwise PNG. Default None: no file.
        title: title of the figure; ignored if `ax` is given. Default `"Adaptation"`.
        note: subtitle in a smaller font; default none.
        timesteps: for each policy, the mean number of environment steps in a task after each adaptation step,
            `[K + 1]`. If given, the horizontal axis shows these steps, and single tasks are not drawn. Default None.
        ax: Matplotlib axes to draw into. Default None: a new figure.

    Returns:
        The figure.
    """
    from matplotlib.ticker import EngFormatter, MaxNLocator

    with style.picture(path, title, height=5.0, ax=ax) as all_axes:
        axes = all_axes[0, 0]
        for index, (name, returns) in enumerate(curves):
            steps = np.arange(returns.shape[1]) + 0.03 * index  # shifted so that error bars do not overlap
            steps = steps if timesteps is None else timesteps[index]
            color = style.REFERENCE_COLORS[(index - 1) % len(style.REFERENCE_COLORS)]
            look = {"linewidth": 1.4, "linestyle": "--", "markersize": 4, "zorder": 2}
            if index == 0:
                color, look = style.GAIN_COLOR, {"linewidth": 2.0, "linestyle": "-", "markersize": 6, "zorder": 3}
                if len(returns) > 1 and timesteps is None:
                    alpha = np.clip(6.0 / len(returns), 0.15, 0.5)
                    axes.plot(steps, returns.T, color=color, alpha=alpha, linewidth=0.8, zorder=1)
            axes.errorbar(steps, *mean_interval(returns), color=color, label=name, marker="o", capsize=4,
                          elinewidth=1.4, **look)
        if timesteps is None:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.set_xlabel("adaptation steps in the task")
        else:
            axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
            axes.set_xlabel("environment steps in the task, to adapt to it")
        axes.set_title(note, **style.NOTE_STYLE)
        style.label_y(axes, "mean return of a path")
        style.label_curves(all_axes, ax)
    return style.figure_of(all_axes)


def _draw_curve(axes: Any, curve: Curve, index: int) -> Any:
    """Draws the runs of a curve and their mean with its interval; returns the line for the legend."""
    again, color = divmod(index, len(style.COLORS))
    look = {"color": style.COLORS[color], "linestyle": _STYLES[again % len(_STYLES)]}
    places, (mean, half_width) = mean_curve(curve)
    if len(curve.runs) > 1:
        for x, y in curve.runs:
            axes.plot(x, y, **look, alpha=0.35, linewidth=0.7)
        axes.fill_between(places, mean - half_width, mean + half_width, color=look["color"], alpha=0.2, linewidth=0.0)
    (line,) = axes.plot(places, mean, **look, linewidth=1.8, **style.point_marker(places))
    return line
