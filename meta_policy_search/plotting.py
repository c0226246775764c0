"""Pictures of runs, drawn from the `progress.csv` in their folders, and of what policies do.

Nothing here loads matplotlib before something is drawn.
"""
import contextlib
import csv
import os
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable, NamedTuple, Optional

import numpy as np

from meta_policy_search.envs.scenery import Scenery, draw_scenery
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.files import PathLike, atomic_file
from meta_policy_search.utils.statistics import Interval, half_width_of_mean, mean_interval

__all__ = ["Curve", "MeanGain", "Progress", "TaskTrajectories", "mean_curve", "mean_gain", "plot_adaptation_curve",
           "plot_comparison", "plot_diagnostics", "plot_learning_curve", "plot_returns", "plot_trajectories",
           "read_progress", "return_columns", "step_label"]

Progress = dict[str, np.ndarray]
"""Columns of `progress.csv` by name, each float64 `[iterations]`; NaN where a row has no number."""

_GAIN_COLOR = "#2a7f62"
_NOISE_COLOR = "#c0504d"
_REFERENCE_COLORS = ("#777777", "#c0504d", "#4472a8", "#b8860b")
_GRID_COLOR = "#dddddd"
# Told apart without red and green; the first two of them are blue and orange.
_GROUP_COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#555555")
_GROUP_STYLES = ("-", "--", ":", "-.")
_LEGEND_WIDTH = 100  # characters in a line of the legend


class MeanGain(NamedTuple):
    """What adaptation gained in the last iterations of a run; returns are undiscounted sums of rewards."""

    mean: float
    half_width: float  # of the 95% interval over tasks; NaN for one task per iteration
    before: float  # mean return before adaptation
    after: float  # mean return after the last inner step
    num_itr: int  # iterations that were averaged


class Curve(NamedTuple):
    """A line of a comparison: the same quantity in runs that differ in nothing but the seed."""

    label: str
    runs: Sequence[tuple[np.ndarray, np.ndarray]]  # of each run, x and y, each [n]; x increases


class TaskTrajectories(NamedTuple):
    """Where a policy went in a task of a world in the plane."""

    scenery: Scenery  # the world, with the goal of the task
    ways: Sequence[Sequence[np.ndarray]]  # after 0, 1, ... adaptation steps, the positions on each path, [T + 1, 2]
    returns: Sequence[float]  # after 0, 1, ... adaptation steps, the mean return of a path


def read_progress(run_folder: PathLike) -> Progress:
    """Reads `progress.csv`.

    Args:
        run_folder: folder of the run, which may still be going on: a last line that is not whole is left out.

    Returns:
        Columns by name, in the order of the file.

    Raises:
        ValueError: the file is missing or holds no row.
    """
    path = os.path.join(os.fspath(run_folder), "progress.csv")
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(line for line in file if line.endswith("\n")))
    except OSError as error:
        raise ValueError(f"run_folder: expected a folder with a progress.csv, got {run_folder}: {error}") from error
    if len(rows) < 2:
        raise ValueError(f"run_folder: expected at least one row in {path}, got none")
    return {key: np.array([_number(row[column]) for row in rows[1:]]) for column, key in enumerate(rows[0])}


def return_columns(progress: Progress) -> dict[str, str]:
    """Returns the columns of a run that hold mean returns of a path, by what they mean.

    These are the returns before adaptation and after its last step or, of a run in a single task, just the return.

    Raises:
        ValueError: there is no such column.
    """
    if "AverageReturn" in progress:
        return {"return": "AverageReturn"}
    steps, _ = _step_columns(progress, "AverageReturn")
    return {"return before adaptation": f"Step_{steps[0]}-AverageReturn",
            "return after adaptation": f"Step_{steps[-1]}-AverageReturn"}


def mean_gain(progress: Progress, last: int = 10) -> MeanGain:
    """Averages what adaptation gained over the last iterations of a run.

    Every iteration draws tasks of its own, so the variances of their mean gains add up: with half widths `h_i`, the
    mean over `n` iterations has the half width `sqrt(sum_i h_i^2) / n`.

    Args:
        progress: what `read_progress` returned.
        last: iterations to average, at least 1; all if there are fewer.

    Raises:
        ValueError: a column is missing, or `last` is below 1.
    """
    gains, half_widths = _columns(progress, "AdaptationGain", "AdaptationGainCI95")
    _, returns = _step_columns(progress, "AverageReturn")
    rows = slice(-min(check_positive_int("last", last), len(gains)), None)
    num_itr = len(gains[rows])
    return MeanGain(
        mean=float(np.mean(gains[rows])),
        half_width=half_width_of_mean(half_widths[rows]),
        before=float(np.mean(returns[0, rows])),
        after=float(np.mean(returns[-1, rows])),
        num_itr=num_itr,
    )


def plot_learning_curve(run_folder: PathLike, path: Optional[PathLike] = None, title: Optional[str] = None) -> str:
    """Draws the returns before and after adaptation over environment steps, and below what adaptation gained.

    The gain has its 95% interval over tasks (columns `AdaptationGain`, `AdaptationGainCI95`). From 100 iterations on,
    lines are running means over about 2% of them, with the interval of that mean, and the iterations themselves are
    drawn faintly behind. The picture appears under its name when it is complete.

    Args:
        run_folder: folder with a `progress.csv`.
        path: PNG file to write; by default `learning_curve.png` in the run folder.
        title: title of the picture; by default the last parts of the folder's path.

    Returns:
        The path of the picture.

    Raises:
        ValueError: there is no row to draw, or a column is missing.
        OSError: the picture cannot be written.
    """
    return _draw(run_folder, path, "learning_curve.png", title, [(_draw_returns, 3), (_draw_gain, 2)])


def plot_returns(run_folder: PathLike, path: Optional[PathLike] = None, title: Optional[str] = None) -> str:
    """Draws the returns of a run of a `LocalRunner` over environment steps.

    That is the mean return of each epoch and, where there are such columns, that of the best candidate and that of
    the policy without exploration (`AverageReturn`, `BestCandidateReturn`, `Evaluation-AverageReturn`). Long runs are
    drawn as by `plot_learning_curve`.

    Args:
        run_folder: folder with a `progress.csv`.
        path: PNG file to write; by default `learning_curve.png` in the run folder.
        title: title of the picture; by default the last parts of the folder's path.

    Returns:
        The path of the picture.

    Raises:
        ValueError: there is no row to draw, or a column is missing.
        OSError: the picture cannot be written.
    """
    return _draw(run_folder, path, "learning_curve.png", title, [(_draw_epoch_returns, 1)])


def plot_diagnostics(run_folder: PathLike, path: Optional[PathLike] = None, title: Optional[str] = None) -> str:
    """Draws the diagnostics of the estimates (`Trainer(diagnostics=True)`) over environment steps.

    From top to bottom: the length of the meta-gradient and its standard deviation, in the same unit, so that where the
    lines meet there is nothing but noise; the cosines of the angles between the meta-gradients of two halves of the
    tasks, and between the gradients before and after adaptation; and the divergence of each adaptation step. Long runs
    are drawn as by `plot_learning_curve`.

    Args:
        run_folder: folder with a `progress.csv`.
        path: PNG file to write; by default `diagnostics.png` in the run folder.
        title: title of the picture; by default the last parts of the folder's path.

    Returns:
        The path of the picture.

    Raises:
        ValueError: there is no row to draw, or a column is missing.
        OSError: the picture cannot be written.
    """
    return _draw(run_folder, path, "diagnostics.png", title, [(_draw_noise, 3), (_draw_cosines, 3), (_draw_kl, 2)])


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
    with _picture(path, title, height=5.0) as figure:
        axes = figure.subplots()
        for index, (name, returns) in enumerate(curves):
            is_first = index == 0
            steps = np.arange(returns.shape[1]) + 0.03 * index  # side by side, or bars would hide each other
            steps = steps if timesteps is None else timesteps[index]
            color = _GAIN_COLOR if is_first else _REFERENCE_COLORS[(index - 1) % len(_REFERENCE_COLORS)]
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
        axes.set_title(note, fontsize=9, color="#555555")
        _style(axes, "mean return of a path")
        figure.legend(loc="outside lower center", frameon=False)
    return path


def mean_curve(curve: Curve) -> tuple[np.ndarray, Interval]:
    """Averages the runs of a curve where all of them have numbers.

    Each run is interpolated linearly, at the places where any run has a number, from where the last one begins to where
    the first one ends. What is not finite is left out.

    Returns:
        The places, float64 `[n]`, and the means with their 95% intervals over runs (Student's t), `[n]` each; `n` is
        zero if there is no place that all runs reach.
    """
    runs = [(x[np.isfinite(y)], y[np.isfinite(y)]) for x, y in curve.runs]
    if not all(len(x) for x, _ in runs):
        return np.empty(0), Interval(np.empty(0), np.empty(0))
    places = np.unique(np.concatenate([x for x, _ in runs]))
    begin, end = max(x[0] for x, _ in runs), min(x[-1] for x, _ in runs)
    places = places[(begin <= places) & (places <= end)]
    return places, mean_interval(np.array([np.interp(places, x, y) for x, y in runs]))


def plot_comparison(
    panels: Mapping[str, Sequence[Curve]],
    path: PathLike,
    title: str,
    x_label: str = "iteration",
    is_count: bool = True,
    smooth: int = 1,
) -> str:
    """Draws means over runs with their 95% intervals, a panel for each quantity, and every run faintly behind.

    Curves of the same label look the same in all panels.

    Args:
        panels: curves by quantity, which the axis is labelled with.
        path: PNG file to write.
        title: title of the picture.
        x_label: what the curves are drawn over.
        is_count: whether that is a whole number, such as of steps.
        smooth: how many rows of a run are averaged around each row, itself among them; even numbers count as the odd
            ones below.

    Returns:
        The path of the picture.

    Raises:
        ValueError: `smooth` is below 1.
        OSError: the picture cannot be written.
    """
    path, reach = os.fspath(path), (check_positive_int("smooth", smooth) - 1) // 2
    labels = list(dict.fromkeys(curve.label for curves in panels.values() for curve in curves))
    legend = [textwrap.fill(label, _LEGEND_WIDTH) for label in labels]
    with _picture(path, title, height=1.2 + 2.6 * len(panels) + 0.25 * "\n".join(legend).count("\n")) as figure:
        all_axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        handles = {}
        for axes, (quantity, curves) in zip(all_axes, panels.items(), strict=True):
            for curve in curves:
                index = labels.index(curve.label)
                smoothed = [(x, _running_mean(y, reach)[0]) for x, y in curve.runs]
                handles[index] = _draw_curve(axes, curve._replace(runs=smoothed), index)
            _style(axes, quantity)
        if any(len(curve.runs) > 1 for curves in panels.values() for curve in curves):
            note = "Bands: 95% interval over runs. Thin lines: single runs."
            all_axes[0].set_title(note, fontsize=9, color="#555555")
        _style_x(all_axes[-1], x_label, is_count)
        figure.legend([handles[index] for index in range(len(labels))], legend, loc="outside lower center",
                      frameon=False)
    return path


def plot_trajectories(tasks: Sequence[TaskTrajectories], path: PathLike, title: str, names: Sequence[str] = ()) -> str:
    """Draws the ways of a policy in the plane: a column for each task, a row for each number of adaptation steps.

    A ring is where a path begins, a dot where it ends.

    Args:
        tasks: at least one, with as many adaptation steps each.
        path: PNG file to write.
        title: title of the picture.
        names: a name for each task, which stands over its column; by default their numbers.

    Returns:
        The path of the picture.

    Raises:
        OSError: the picture cannot be written.
    """
    path, num_rounds = os.fspath(path), len(tasks[0].ways)
    names = names or [f"task {number}" for number in range(1, len(tasks) + 1)]
    colors = _step_colors(num_rounds)
    with _picture(path, title, height=0.8 + 2.4 * num_rounds, width=0.6 + 2.4 * len(tasks)) as figure:
        all_axes = figure.subplots(num_rounds, len(tasks), squeeze=False)
        for column, (task, name) in enumerate(zip(tasks, names, strict=True)):
            ways = [way for ways in task.ways for way in ways]
            for step, axes in enumerate(all_axes[:, column]):
                for way in task.ways[step]:
                    axes.plot(*way.T, color=colors[step], linewidth=0.8, alpha=0.5)
                    axes.plot(*way[0], "o", color=colors[step], markerfacecolor="white", markersize=4, zorder=3)
                    axes.plot(*way[-1], "o", color=colors[step], markersize=4, zorder=3)
                draw_scenery(axes, task.scenery, ways, scale=0.7)  # the goal on top
                axes.set_xlabel(f"return {task.returns[step]:.2f}", fontsize=9)
            all_axes[0, column].set_title(textwrap.fill(name, 28), fontsize=9)
        for step, axes in enumerate(all_axes[:, 0]):
            axes.set_ylabel(step_label(step), fontsize=10)
    return path


def _draw(
    run_folder: PathLike,
    path: Optional[PathLike],
    name: str,
    title: Optional[str],
    panels: Sequence[tuple[Callable[[Any, Progress], None], float]],
) -> str:
    """Draws panels, from top to bottom in order, each with its share of the height; returns the picture's path."""
    progress = read_progress(run_folder)
    folder = os.path.abspath(os.fspath(run_folder))
    path = os.path.join(folder, name) if path is None else os.fspath(path)
    title = "/".join(folder.split(os.sep)[-3:]) if title is None else title
    with _picture(path, title, height=2.0 + 2.0 * len(panels)) as figure:
        ratios = [height for _, height in panels]
        all_axes = figure.subplots(len(panels), 1, sharex=True, height_ratios=ratios, squeeze=False)[:, 0]
        for axes, (draw, _) in zip(all_axes, panels, strict=True):
            draw(axes, progress)
            axes.legend(loc="best", frameon=False)
        _style_x(all_axes[-1], "environment steps, all tasks")
    return path


@contextlib.contextmanager
def _picture(path: str, title: str, height: float, width: float = 8.0) -> Iterator[Any]:
    """Gives a figure, sizes in inches, that is written as the PNG file `path` when the block ends."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # draws without a display, and without pyplot's state
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=11)
    yield figure
    with atomic_file(path) as file:
        figure.savefig(file, format="png", dpi=120)


def _draw_returns(axes: Any, progress: Progress) -> None:
    steps, returns = _step_columns(progress, "AverageReturn")
    (timesteps,) = _columns(progress, "n_timesteps")
    for index, (step, values, color) in enumerate(zip(steps, returns, _step_colors(len(steps)), strict=True)):
        is_last = index == len(steps) - 1
        _draw_line(axes, timesteps, values, color, step_label(step),
                   linewidth=1.8 if index == 0 or is_last else 1.0)
    _style(axes, "mean return of a path")


def _draw_epoch_returns(axes: Any, progress: Progress) -> None:
    timesteps, averages = _columns(progress, "n_timesteps", "AverageReturn")
    _draw_line(axes, timesteps, averages, _GAIN_COLOR, "mean", linewidth=1.8)
    others = {"BestCandidateReturn": "best candidate", "Evaluation-AverageReturn": "without exploration"}
    for color, (key, label) in zip(_REFERENCE_COLORS[1:], others.items()):
        if key in progress:
            _draw_line(axes, timesteps, progress[key], color, label, linewidth=1.4)
    _style(axes, "return of a path")


def _draw_gain(axes: Any, progress: Progress) -> None:
    timesteps, gains, half_widths = _columns(progress, "n_timesteps", "AdaptationGain", "AdaptationGainCI95")
    mean, count = _running_mean(gains)
    half_width = np.sqrt(_running_mean(np.square(half_widths))[0] / count)
    label = "gain" if count.max() == 1 else f"gain, mean of {count.max()} iterations"
    axes.axhline(0.0, color="black", linewidth=0.8)
    _draw_line(axes, timesteps, gains, _GAIN_COLOR, label, linewidth=1.8)
    if np.isfinite(half_width).any():  # one task per iteration has no interval
        axes.fill_between(timesteps, mean - half_width, mean + half_width, color=_GAIN_COLOR, alpha=0.25,
                          linewidth=0.0, label="its 95% interval over tasks")
    _style(axes, "gain from adaptation")


def _draw_noise(axes: Any, progress: Progress) -> None:
    timesteps, norms, variances = _columns(progress, "n_timesteps", "MetaGradNorm", "MetaGradVariance")
    _draw_line(axes, timesteps, norms, _GAIN_COLOR, "length", linewidth=1.8)
    _draw_line(axes, timesteps, np.sqrt(variances), _NOISE_COLOR, "standard deviation", linewidth=1.8)
    _style(axes, "meta-gradient", scale="log")


def _draw_cosines(axes: Any, progress: Progress) -> None:
    keys = ("MetaGradHalvesCosine", "PrePostGradCosine")
    timesteps, halves, pre_post = _columns(progress, "n_timesteps", *keys)
    axes.axhline(0.0, color="black", linewidth=0.8)
    _draw_line(axes, timesteps, halves, _GAIN_COLOR, "meta-gradients of two halves of the tasks", linewidth=1.8)
    _draw_line(axes, timesteps, pre_post, _NOISE_COLOR, "gradients before and after adaptation", linewidth=1.8)
    _style(axes, "cosine between")
    axes.set_ylim(-1.05, 1.05)


def _draw_kl(axes: Any, progress: Progress) -> None:
    steps, divergences = _step_columns(progress, "AdaptationKL")
    (timesteps,) = _columns(progress, "n_timesteps")
    for step, values, color in zip(steps, divergences, _step_colors(len(steps)), strict=True):
        _draw_line(axes, timesteps, values, color, f"adaptation step {step + 1}", linewidth=1.8)
    _style(axes, "divergence, nats", scale="log")


def _draw_curve(axes: Any, curve: Curve, index: int) -> Any:
    """Draws the mean of some runs with its interval, and the runs; returns what stands for them in the legend."""
    color = _GROUP_COLORS[index % len(_GROUP_COLORS)]
    style = _GROUP_STYLES[index // len(_GROUP_COLORS) % len(_GROUP_STYLES)]
    places, (mean, half_width) = mean_curve(curve)
    if len(curve.runs) > 1:
        for x, y in curve.runs:
            axes.plot(x, y, color=color, linestyle=style, alpha=0.35, linewidth=0.7)
        axes.fill_between(places, mean - half_width, mean + half_width, color=color, alpha=0.2, linewidth=0.0)
    (line,) = axes.plot(places, mean, color=color, linestyle=style, linewidth=1.8,
                        marker="o" if len(places) <= 20 else None, markersize=4)
    return line


def step_label(step: int) -> str:
    """Returns when something was after so many adaptation steps, in words."""
    return "before adaptation" if step == 0 else f"after {step} adaptation step{'s' if step > 1 else ''}"


def _step_colors(number: int) -> Any:
    from matplotlib import colormaps

    return colormaps["plasma"](np.linspace(0.1, 0.65, number))


def _draw_line(axes: Any, x: np.ndarray, y: np.ndarray, color: Any, label: Optional[str], linewidth: float) -> None:
    """Draws a running mean, and what it is of; single points where there are few."""
    mean, count = _running_mean(y)
    if count.max() > 1:
        axes.plot(x, y, color=color, alpha=0.25, linewidth=0.6)
    axes.plot(x, mean, color=color, label=label, linewidth=linewidth, marker="o" if len(x) <= 20 else None,
              markersize=4)


def _style(axes: Any, label: str, scale: str = "linear") -> None:
    axes.set_ylabel(label)
    axes.set_yscale(scale)
    axes.grid(color=_GRID_COLOR, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _style_x(axes: Any, label: str, is_count: bool = True) -> None:
    from matplotlib.ticker import EngFormatter, MaxNLocator

    axes.set_xlim(left=0.0)
    axes.set_xlabel(label)
    if is_count:
        axes.xaxis.set_major_locator(MaxNLocator("auto", steps=(1, 2, 2.5, 5, 10), integer=True))
        axes.xaxis.set_major_formatter(EngFormatter(sep=" "))


def _running_mean(values: np.ndarray, reach: Optional[int] = None) -> tuple[np.ndarray, np.ndarray]:
    """Returns means over the values around each and of how many (fewer at the ends): each `[n]`.

    Args:
        values: `[n]`.
        reach: how many of them to either side; by default so many that means are over about 2%.
    """
    n = len(values)
    reach = n // 100 if reach is None else reach
    start, end = np.maximum(np.arange(n) - reach, 0), np.minimum(np.arange(n) + reach + 1, n)
    return np.array([np.mean(values[i:j]) for i, j in zip(start, end, strict=True)]), end - start


def _step_columns(progress: Progress, name: str) -> tuple[list[int], np.ndarray]:
    """Returns the numbers of the adaptation steps that have a column, and these columns, `[steps, iterations]`."""
    pattern = re.compile(rf"Step_(\d+)-{name}")
    columns = {int(match[1]): match[0] for match in map(pattern.fullmatch, progress) if match}
    if not columns:
        _columns(progress, f"Step_0-{name}")
    return sorted(columns), np.stack([progress[columns[step]] for step in sorted(columns)])


def _columns(progress: Progress, *keys: str) -> tuple[np.ndarray, ...]:
    for key in keys:
        if key not in progress:
            raise ValueError(f"progress: expected a column {key!r}, got only {', '.join(progress)}")
    return tuple(progress[key] for key in keys)


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")
