"""Pictures of a run, drawn from the `progress.csv` in its folder; matplotlib is loaded when something is drawn."""
import contextlib
import csv
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, Callable, NamedTuple, Optional

import numpy as np

from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.snapshotter import PathLike, atomic_file
from meta_policy_search.utils.statistics import half_width_of_mean, mean_interval

__all__ = ["MeanGain", "Progress", "mean_gain", "plot_adaptation_curve", "plot_diagnostics", "plot_learning_curve",
           "plot_returns", "read_progress"]

Progress = dict[str, np.ndarray]
"""Columns of `progress.csv` by name, each float64 `[iterations]`; NaN where a row has no number."""

_GAIN_COLOR = "#2a7f62"
_NOISE_COLOR = "#c0504d"
_REFERENCE_COLORS = ("#777777", "#c0504d", "#4472a8", "#b8860b")
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
    curves: Sequence[tuple[str, np.ndarray]], path: PathLike, title: str = "Adaptation", note: str = ""
) -> str:
    """Draws returns over gradient steps: means, with their 95% intervals over tasks (Student's t).

    Behind the first curve, that of each of its tasks is drawn faintly; the others are there to compare with.

    Args:
        curves: name and returns `[tasks, K + 1]` of each policy, after 0, ..., K steps.
        path: PNG file to write.
        title: title of the picture.
        note: a smaller line under it.

    Returns:
        The path of the picture.

    Raises:
        OSError: the picture cannot be written.
    """
    from matplotlib.ticker import MaxNLocator

    path = os.fspath(path)
    with _picture(path, title, height=5.0) as figure:
        axes = figure.subplots()
        for index, (name, returns) in enumerate(curves):
            is_first = index == 0
            steps = np.arange(returns.shape[1]) + 0.03 * index  # side by side, or bars would hide each other
            color = _GAIN_COLOR if is_first else _REFERENCE_COLORS[(index - 1) % len(_REFERENCE_COLORS)]
            mean, half_width = mean_interval(returns)
            if is_first and len(returns) > 1:
                axes.plot(steps, returns.T, color=color, alpha=np.clip(6.0 / len(returns), 0.15, 0.5), linewidth=0.8,
                          zorder=1)
            axes.errorbar(steps, mean, half_width, color=color, label=name, linewidth=2.0 if is_first else 1.4,
                          linestyle="-" if is_first else "--", marker="o", markersize=6 if is_first else 4,
                          capsize=4, elinewidth=1.4, zorder=3 if is_first else 2)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("gradient steps on the task")
        axes.set_title(note, fontsize=9, color="#555555")
        _style(axes, "mean return of a path")
        figure.legend(loc="outside lower center", frameon=False)
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
        _style_steps(all_axes[-1])
    return path


@contextlib.contextmanager
def _picture(path: str, title: str, height: float) -> Iterator[Any]:
    """Gives a figure, 8 inches wide, that is written as the PNG file `path` when the block ends."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # draws without a display, and without pyplot's state
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, height), layout="constrained")
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
        label = "before adaptation" if step == 0 else f"after {step} adaptation step{'s' if step > 1 else ''}"
        _draw_line(axes, timesteps, values, color, label, linewidth=1.8 if index == 0 or is_last else 1.0)
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


def _style_steps(axes: Any) -> None:
    from matplotlib.ticker import EngFormatter

    axes.set_xlim(left=0.0)
    axes.set_xlabel("environment steps, all tasks")
    axes.xaxis.set_major_formatter(EngFormatter(sep=" "))


def _running_mean(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns means over about 2% of the values around each (fewer at the ends), and of how many: each `[n]`."""
    n = len(values)
    reach = n // 100
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
