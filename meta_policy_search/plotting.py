"""Learning curves of a run folder, drawn from its `progress.csv`; matplotlib is loaded when something is drawn."""
import csv
import os
import re
from typing import Any, NamedTuple, Optional

import numpy as np

from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.snapshotter import PathLike, atomic_file

__all__ = ["MeanGain", "Progress", "mean_gain", "plot_learning_curve", "read_progress"]

Progress = dict[str, np.ndarray]
"""Columns of `progress.csv` by name, each float64 `[iterations]`; NaN where a row has no number."""

_RETURN_COLUMN = re.compile(r"Step_(\d+)-AverageReturn")
_GAIN_COLOR = "#2a7f62"
_GRID_COLOR = "#dddddd"


class MeanGain(NamedTuple):
    """What adaptation gained in the last iterations of a run; returns are undiscounted sums of rewards."""

    mean: float
    half_width: float  # of the 95% interval over tasks; NaN for one task per iteration
    before: float  # mean return before adaptation
    after: float  # mean return after the last inner step
    num_itr: int  # iterations that were averaged


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
    _, returns = _returns(progress)
    rows = slice(-min(check_positive_int("last", last), len(gains)), None)
    num_itr = len(gains[rows])
    return MeanGain(
        mean=float(np.mean(gains[rows])),
        half_width=float(np.sqrt(np.sum(np.square(half_widths[rows]))) / num_itr),
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
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # draws without a display, and without pyplot's state
    from matplotlib.figure import Figure

    progress = read_progress(run_folder)
    folder = os.path.abspath(os.fspath(run_folder))
    path = os.path.join(folder, "learning_curve.png") if path is None else os.fspath(path)
    figure = Figure(figsize=(8.0, 6.0), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle("/".join(folder.split(os.sep)[-3:]) if title is None else title, fontsize=11)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    _draw_returns(top, progress)
    _draw_gain(bottom, progress)
    with atomic_file(path) as file:
        figure.savefig(file, format="png", dpi=120)
    return path


def _draw_returns(axes: Any, progress: Progress) -> None:
    from matplotlib import colormaps

    steps, returns = _returns(progress)
    (timesteps,) = _columns(progress, "n_timesteps")
    colors = colormaps["plasma"](np.linspace(0.1, 0.65, len(steps)))
    for index, (step, values, color) in enumerate(zip(steps, returns, colors, strict=True)):
        is_last = index == len(steps) - 1
        label = "before adaptation" if step == 0 else f"after {step} adaptation step{'s' if step > 1 else ''}"
        _draw_line(axes, timesteps, values, color, label, linewidth=1.8 if index == 0 or is_last else 1.0)
    _style(axes, "mean return of a path")
    axes.legend(loc="best", frameon=False)


def _draw_gain(axes: Any, progress: Progress) -> None:
    from matplotlib.ticker import EngFormatter

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
    axes.set_xlim(left=0.0)
    axes.set_xlabel("environment steps, all tasks")
    axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
    axes.legend(loc="best", frameon=False)


def _draw_line(axes: Any, x: np.ndarray, y: np.ndarray, color: Any, label: Optional[str], linewidth: float) -> None:
    """Draws a running mean, and what it is of; single points where there are few."""
    mean, count = _running_mean(y)
    if count.max() > 1:
        axes.plot(x, y, color=color, alpha=0.25, linewidth=0.6)
    axes.plot(x, mean, color=color, label=label, linewidth=linewidth, marker="o" if len(x) <= 20 else None,
              markersize=4)


def _style(axes: Any, label: str) -> None:
    axes.set_ylabel(label)
    axes.grid(color=_GRID_COLOR, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _running_mean(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns means over about 2% of the values around each (fewer at the ends), and of how many: each `[n]`."""
    n = len(values)
    reach = n // 100
    start, end = np.maximum(np.arange(n) - reach, 0), np.minimum(np.arange(n) + reach + 1, n)
    return np.array([np.mean(values[i:j]) for i, j in zip(start, end, strict=True)]), end - start


def _returns(progress: Progress) -> tuple[list[int], np.ndarray]:
    """Returns the numbers of the inner steps, and the mean return after each, `[steps, iterations]`."""
    columns = {int(match[1]): match[0] for match in map(_RETURN_COLUMN.fullmatch, progress) if match}
    if not columns:
        _columns(progress, "Step_0-AverageReturn")
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
