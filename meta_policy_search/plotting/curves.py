"""Plots of curves: a single run, a comparison of runs, and adapted policies, with 95% intervals."""
import os
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional

import numpy as np

from meta_policy_search.plotting import style
from meta_policy_search.plotting.progress import (
    Progress,
    columns,
    describe_run,
    read_progress,
    return_columns,
    step_columns,
)
from meta_policy_search.plotting.style import Figure
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.files import PathLike, user_path
from meta_policy_search.utils.statistics import Interval, mean_interval, running_mean

_STYLES = ("-", "--", ":", "-.")
MIN_RUNS_OF_BAND = 5  # fewer runs have no band
_LEGEND_WIDTH = 100  # characters in a line of the legend


Curve = Sequence[tuple[np.ndarray, np.ndarray]]
"""A quantity in runs that differ only in their seed: x and y of each run, both `[n]`; x increases."""


def mean_curve(curve: Curve) -> tuple[np.ndarray, Interval]:
    """Averages the runs of a curve.

    Each run is interpolated linearly at all `x` where at least one run has a finite value.

    Returns:
        The values of `x` that lie within all runs, float64 `[n]`, and the means with their 95% intervals over runs
        (Student's t), `[n]` each. All are empty if a run has no finite value.
    """
    runs = _finite(curve)
    if not all(len(x) for x, _ in runs):
        return np.empty(0), Interval(np.empty(0), np.empty(0))
    places = np.unique(np.concatenate([x for x, _ in runs]))
    begin, end = max(x[0] for x, _ in runs), min(x[-1] for x, _ in runs)
    places = places[(begin <= places) & (places <= end)]
    return places, mean_interval(np.array([np.interp(places, x, y) for x, y in runs]))


def _finite(curve: Curve) -> Curve:
    """Returns the runs of a curve without missing values; a column may be logged in some iterations only."""
    return [(x[np.isfinite(y)], y[np.isfinite(y)]) for x, y in curve]


def collect_curves(groups: Mapping[str, Sequence[Progress]], x: str = "n_timesteps", unit: float = 1.0,
                   names: Optional[Sequence[str]] = None) -> dict[str, dict[str, Curve]]:
    """Returns the panels of `plot_comparison` for runs.

    Args:
        groups: for each label, the columns of the runs that form one curve.
        x: column of the horizontal axis; default `"n_timesteps"`.
        unit: unit of the horizontal axis, in that of the column; default 1.
        names: columns, one panel each; runs that lack a column are omitted. Default None: the mean returns
            (`return_columns`).

    Raises:
        ValueError: a run lacks the column `x`, or has no mean returns.
    """
    panels: dict[str, dict[str, list[Any]]] = {}
    for label, runs in groups.items():
        for progress in runs:
            (places,) = columns(progress, x)
            quantities = return_columns(progress) if names is None else {
                name: name for name in names if name in progress}
            for quantity, column in quantities.items():
                panels.setdefault(quantity, {}).setdefault(label, []).append((places / unit, progress[column]))
    return panels  # type: ignore[return-value]  # a list of runs is a curve


def plot_comparison(panels: Mapping[str, Mapping[str, Curve]], path: Optional[PathLike] = None, title: str = "",
                    x_label: str = "iteration", is_count: bool = True, smooth: int = 1, ax: Any = None,
                    points: Optional[Mapping[str, np.ndarray]] = None, lines: str = "runs") -> Figure:
    """Plots the means of several runs, and the single runs as thin lines.

    Curves of at least five runs have a band, the 95% interval over runs (Student's t). Panels of returns share their
    vertical axis. A new figure shows at most seven curves per panel and further curves in additional panels. The legend
    lists the curves in the order of their last values in the lowest panel.

    Args:
        panels: one panel per entry: label of the vertical axis to curves by label. Curves with the same label have the
            same color and line style in all panels.
        path: file to write; the ending (such as `.svg` or `.png`) determines the format. Default None: no file.
        title: title of the figure; ignored if `ax` is given. The label of a single curve is the default title, and
            a new figure then has no legend.
        x_label: label of the horizontal axis; default `"iteration"`.
        is_count: whether the horizontal axis shows integers, such as a number of steps; default True.
        smooth: width of the running mean in rows, centered at each row; even numbers are rounded down to odd numbers.
            Default 1: no smoothing.
        ax: Matplotlib axes to draw into: one per panel, a single object or an array. Default None: a new figure.
        points: further points in the lowest panel, drawn as squares: label of a curve to `[n, 2]`. Default None.
        lines: name of the thin lines in the note below the title; default `"runs"`.

    Returns:
        The figure.

    Raises:
        ValueError: `smooth` is below 1, or the number of axes differs from the number of panels.
    """
    reach = (check_positive_int("smooth", smooth) - 1) // 2
    labels = list(dict.fromkeys(label for curves in panels.values() for label in curves))
    columns = 1 if ax is not None else max(1, -(-len(labels) // len(style.COLORS)))
    size = -(-len(labels) // columns)  # curves of a panel
    title = title or (labels[0] if len(labels) == 1 else "")
    height = 1.2 + 2.6 * len(panels) + 0.25 * sum(len(label) // _LEGEND_WIDTH for label in labels)
    height += 0.25 * max(0, len(labels) - 5)  # the first five rows of the legend fit without
    with style.figure_axes(path, title, height, 3.0 + 5.0 * columns, len(panels), columns, ax,
                           sharex=True) as all_axes:
        last, numbers = {}, []
        for row, (quantity, curves) in zip(all_axes, panels.items(), strict=True):
            for label, curve in curves.items():
                column, index = divmod(labels.index(label), size)
                smoothed = [(x, running_mean(y, reach)[0]) for x, y in _finite(curve)]
                last[label] = _draw_curve(row[column], smoothed, index + column * len(style.COLORS))
                numbers.append(len(curve))
                if quantity == list(panels)[-1] and points and label in points:
                    reached = points[label]
                    reached = reached[reached[:, 0] <= 1.1 * max(x[-1] for x, _ in curve)]
                    row[column].plot(*reached.T, "s", markersize=5, color=last[label].get_color())
            for axes in row:
                style.label_y(axes, quantity)
        _share_limits([axes for row, quantity in zip(all_axes, panels, strict=True) if quantity.startswith("return")
                       for axes in row])
        if max(numbers, default=0) > 1:
            band = f". Bands: 95% intervals over {lines}" if max(numbers) >= MIN_RUNS_OF_BAND else ""
            all_axes[0, 0].set_title(f"Thick lines: means. Thin lines: single {lines}{band}.", **style.NOTE_STYLE)
        for axes in all_axes[-1]:
            style.label_x(axes, x_label, is_count)
        if len(labels) > 1 or ax is not None:
            in_order = sorted(last.items(), key=lambda item: -np.append(0.0, item[1].get_ydata())[-1])
            style.label_curves(all_axes, ax, [line for _, line in in_order],
                               [textwrap.fill(label, _LEGEND_WIDTH) for label, _ in in_order])
    return style.figure_of(all_axes)


def _share_limits(panels: Sequence[Any]) -> None:
    """Gives all panels the same limits of the vertical axis."""
    limits = [axes.get_ylim() for axes in panels if axes.lines]
    for axes in panels if limits else ():
        axes.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))


def plot_adaptation_curve(curves: Sequence[tuple[str, np.ndarray]], path: Optional[PathLike] = None,
                          title: str = "Adaptation", note: str = "", timesteps: Optional[Sequence[np.ndarray]] = None,
                          ax: Any = None) -> Figure:
    """Plots mean returns over adaptation steps, with 95% intervals over tasks (Student's t).

    Thin lines show the single tasks of the first policy.

    Args:
        curves: for each policy, its name and its returns `[tasks, K + 1]` after 0, 1, ..., `K` adaptation steps.
        path: file to write: the ending (such as `.svg` or `.png`) determines the format. Default None: no file.
        title: title of the figure; ignored if `ax` is given. Default `"Adaptation"`.
        note: subtitle in a smaller font; default none.
        timesteps: for each policy, the mean number of environment steps in a task after each adaptation step,
            `[K + 1]`. If given, the horizontal axis shows these steps, and single tasks are not drawn. Default None.
        ax: Matplotlib axes to draw into. Default None: a new figure.

    Returns:
        The figure.
    """
    from matplotlib.ticker import EngFormatter, MaxNLocator

    with style.figure_axes(path, title, height=5.0, ax=ax) as all_axes:
        axes = all_axes[0, 0]
        for index, (name, returns) in enumerate(curves):
            steps = np.arange(returns.shape[1]) + 0.03 * index  # shifted so that error bars do not overlap
            steps = steps if timesteps is None else timesteps[index]
            color = style.REFERENCE_COLORS[(index - 1) % len(style.REFERENCE_COLORS)]
            line_style = {"linewidth": 1.4, "linestyle": "--", "markersize": 4, "zorder": 2}
            if index == 0:
                color, line_style = style.GAIN_COLOR, {"linewidth": 2.0, "linestyle": "-", "markersize": 6, "zorder": 3}
                if len(returns) > 1 and timesteps is None:
                    alpha = np.clip(6.0 / len(returns), 0.15, 0.5)
                    axes.plot(steps, returns.T, color=color, alpha=alpha, linewidth=0.8, zorder=1)
            axes.errorbar(steps, *mean_interval(returns), color=color, label=name, marker="o", capsize=4,
                          elinewidth=1.4, **line_style)
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
    line_style = {"color": style.COLORS[color], "linestyle": _STYLES[again % len(_STYLES)]}
    places, (mean, half_width) = mean_curve(curve)
    if len(curve) > 1:
        for x, y in curve:
            axes.plot(x, y, **line_style, alpha=0.35, linewidth=0.7)
    if len(curve) >= MIN_RUNS_OF_BAND:
        axes.fill_between(places, mean - half_width, mean + half_width, color=line_style["color"], alpha=0.2,
                          linewidth=0.0)
    (line,) = axes.plot(places, mean, **line_style, linewidth=1.8, **style.point_marker(places))
    return line


def draw_pictures(run_folder: str) -> None:
    """Draws `learning_curve.png` and, if gradient diagnostics are logged, `diagnostics.png` in the folder of a run.

    A picture that cannot be drawn, for example because the disk is full, causes only a warning.
    """
    try:
        plot_learning_curve(run_folder)
        if "MetaGradVariance" in read_progress(run_folder):
            plot_diagnostics(run_folder)
    except Exception as error:
        logger.warn(f"could not draw the learning curve: {error}")


Panel = Callable[[Any, Progress, np.ndarray], None]
"""Function that draws columns of a run into axes, over environment steps, float64 `[iterations]`."""


def plot_learning_curve(run_folder: PathLike, path: Optional[PathLike] = None, title: Optional[str] = None,
                        ax: Any = None) -> Figure:
    """Plots the returns before and after adaptation over environment steps, and the adaptation gain in a second panel.

    The gain has its 95% interval over tasks (columns `AdaptationGain` and `AdaptationGainCI95`). For runs with at least
    100 iterations, lines are running means over about 2% of the iterations. The interval is then the interval of this
    mean, and faint lines show the values of single iterations. Runs without adaptation steps have no second panel.

    For a run of a `LocalRunner`, the curves are the mean return of each epoch (`AverageReturn`) and, if the columns
    exist, the return of the best candidate (`BestCandidateReturn`) and of the policy without exploration
    (`Evaluation-AverageReturn`).

    Args:
        run_folder: folder with a `progress.csv`.
        path: file to write: the ending (such as `.svg` or `.png`) determines the format. Default None:
            `learning_curve.png` in the run folder, or no file if `ax` is given.
        title: title of the figure; ignored if `ax` is given. Default None: the text of `describe_run`.
        ax: Matplotlib axes to draw into: an array with one per panel from top to bottom, or a single one for the first
            panel. Default None: a new figure.

    Returns:
        The figure.

    Raises:
        ValueError: `progress.csv` has no rows or lacks a column, or the number of axes is wrong.
    """
    progress = read_progress(run_folder)
    panels: list[tuple[Panel, float]] = [(_draw_returns, 3), (_draw_gain, 2)]
    if "AverageReturn" in progress:
        panels = [(_draw_epoch_returns, 1)]
    elif len(step_columns(progress, "AverageReturn")[0]) == 1:
        panels = panels[:1]
    return _plot(run_folder, path, "learning_curve.png", title, ax, panels)


def plot_diagnostics(run_folder: PathLike, path: Optional[PathLike] = None, title: Optional[str] = None,
                     ax: Any = None) -> Figure:
    """Plots the gradient diagnostics of a run (`Trainer(diagnostics=True)`) over environment steps.

    The panels from top to bottom:

    1. Norm of the meta-gradient and its standard deviation. If they are equal, the estimate is only noise.
    2. Cosine of the angle between the meta-gradients of two halves of the tasks, and between the gradients before and
       after adaptation.
    3. KL divergence of each adaptation step, in nats.

    The default file is `diagnostics.png` in the run folder. Arguments, return value and errors are otherwise as for
    `plot_learning_curve`.
    """
    return _plot(run_folder, path, "diagnostics.png", title, ax, [(_draw_noise, 3), (_draw_cosines, 3), (_draw_kl, 2)])


def _plot(run_folder: PathLike, path: Optional[PathLike], name: str, title: Optional[str], ax: Any,
          panels: Sequence[tuple[Panel, float]]) -> Figure:
    """Draws panels with their relative heights, from top to bottom; `name` is the default file name."""
    progress = read_progress(run_folder)
    (timesteps,) = columns(progress, "n_timesteps")
    folder = os.path.abspath(user_path("run_folder", run_folder))
    path = os.path.join(folder, name) if path is None and ax is None else path
    title = describe_run(folder) if title is None else title
    panels = panels[:1] if np.size(ax) == 1 and ax is not None else panels
    with style.figure_axes(path, title, 2.0 + 2.0 * len(panels), rows=len(panels), ax=ax, sharex=True,
                           height_ratios=[height for _, height in panels]) as all_axes:
        for axes, (draw, _) in zip(all_axes.flat, panels, strict=True):
            draw(axes, progress, timesteps)
            axes.legend(loc="best", frameon=False)
        style.label_x(all_axes[-1, 0], "environment steps, all tasks")
    return style.figure_of(all_axes)


def _draw_returns(axes: Any, progress: Progress, timesteps: np.ndarray) -> None:
    steps, returns = step_columns(progress, "AverageReturn")
    for step, values, color in zip(steps, returns, style.step_colors(len(steps)), strict=True):
        linewidth = 1.8 if step in (steps[0], steps[-1]) else 1.0
        label = style.step_label(step) if len(steps) > 1 else "return"
        _draw_line(axes, timesteps, values, color, label, linewidth)
    style.label_y(axes, "mean return of a path")


def _draw_epoch_returns(axes: Any, progress: Progress, timesteps: np.ndarray) -> None:
    (returns,) = columns(progress, "AverageReturn")
    _draw_line(axes, timesteps, returns, style.GAIN_COLOR, "mean")
    others = {"BestCandidateReturn": "best candidate", "Evaluation-AverageReturn": "without exploration"}
    for color, (key, label) in zip(style.REFERENCE_COLORS[1:], others.items()):
        if key in progress:
            _draw_line(axes, timesteps, progress[key], color, label, 1.4)
    style.label_y(axes, "return of a path")


def _draw_gain(axes: Any, progress: Progress, timesteps: np.ndarray) -> None:
    gains, half_widths = columns(progress, "AdaptationGain", "AdaptationGainCI95")
    mean, count = running_mean(gains)
    half_width = np.sqrt(running_mean(np.square(half_widths))[0] / count)
    label = "gain" if count.max() == 1 else f"gain, mean of {count.max()} iterations"
    axes.axhline(0.0, color="black", linewidth=0.8)
    _draw_line(axes, timesteps, gains, style.GAIN_COLOR, label)
    if np.isfinite(half_width).any():  # all NaN with one task per iteration
        axes.fill_between(timesteps, mean - half_width, mean + half_width, color=style.GAIN_COLOR, alpha=0.25,
                          linewidth=0.0, label="its 95% interval over tasks")
    style.label_y(axes, "gain from adaptation")


def _draw_noise(axes: Any, progress: Progress, timesteps: np.ndarray) -> None:
    norms, variances = columns(progress, "MetaGradNorm", "MetaGradVariance")
    _draw_line(axes, timesteps, norms, style.GAIN_COLOR, "norm")
    _draw_line(axes, timesteps, np.sqrt(variances), style.NOISE_COLOR, "standard deviation")
    width = running_mean(norms)[1].max()
    note = "Single iterations" if width == 1 else f"Means of {width} iterations, faint lines: single iterations"
    axes.set_title(f"{note}, without intervals", **style.NOTE_STYLE)
    style.label_y(axes, "meta-gradient", scale="log")


def _draw_cosines(axes: Any, progress: Progress, timesteps: np.ndarray) -> None:
    halves, pre_post = columns(progress, "MetaGradHalvesCosine", "PrePostGradCosine")
    axes.axhline(0.0, color="black", linewidth=0.8)
    _draw_line(axes, timesteps, halves, style.GAIN_COLOR, "meta-gradients of two halves of the tasks")
    _draw_line(axes, timesteps, pre_post, style.NOISE_COLOR, "gradients before and after adaptation")
    style.label_y(axes, "cosine between")
    axes.set_ylim(-1.05, 1.05)


def _draw_kl(axes: Any, progress: Progress, timesteps: np.ndarray) -> None:
    steps, divergences = step_columns(progress, "AdaptationKL")
    for step, values, color in zip(steps, divergences, style.step_colors(len(steps)), strict=True):
        _draw_line(axes, timesteps, values, color, f"adaptation step {step + 1}")
    style.label_y(axes, "divergence, nats", scale="log")


def _draw_line(axes: Any, x: np.ndarray, y: np.ndarray, color: Any, label: str, linewidth: float = 1.8) -> None:
    """Draws the running mean of a curve, and the unsmoothed values as a faint line."""
    mean, count = running_mean(y)
    if count.max() > 1:
        axes.plot(x, y, color=color, alpha=0.25, linewidth=0.6)
    axes.plot(x, mean, color=color, label=label, linewidth=linewidth, **style.point_marker(x))
