"""Plots of a single run: returns, adaptation gain and gradient diagnostics."""
import os
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional

import numpy as np

from meta_policy_search.plotting import style
from meta_policy_search.plotting.progress import Progress, columns, describe_run, read_progress, step_columns
from meta_policy_search.plotting.style import Figure
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import check_int_at_least
from meta_policy_search.utils.files import PathLike
from meta_policy_search.utils.serializable import Configurable
from meta_policy_search.utils.statistics import running_mean


class PlotCallback(Configurable):
    """Callback that draws `learning_curve.png` and, if gradient diagnostics are logged, `diagnostics.png`.

    A picture that cannot be drawn, for example because the disk is full, causes only a warning.

    Args:
        every (int): number of iterations between updates of the pictures, at least 0. They contain the iterations
            before the current one. 0 means never: only `train` draws them, at its end. Default 20.
    """

    def __init__(self, every: int = 20) -> None:
        self.every = check_int_at_least("every", every, 0)

    def __call__(self, trainer: Any, row: Mapping[str, Any]) -> None:
        """Draws the pictures if this is due."""
        if self.every and row["Itr"] and row["Itr"] % self.every == 0:
            self.draw(str(logger.get_dir()))

    def draw(self, run_folder: str) -> None:
        """Draws the pictures of a run."""
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
        path: file to write: SVG if the name ends with `.svg`, otherwise PNG. Default None: `learning_curve.png` in the
            run folder, or no file if `ax` is given.
        title: title of the figure; ignored if `ax` is given. Default None: the text of `describe_run`.
        ax: Matplotlib axes to draw into: an array with one per panel from top to bottom, or a single one for the first
            panel. Default None: a new figure.

    Returns:
        The figure.

    Raises:
        ValueError: `progress.csv` has no rows or lacks a column, or the number of axes is wrong.
    """
    progress = read_progress(run_folder)
    panels: list[tuple[Panel, float]] = [(_draw_epoch_returns, 1)]
    if "AverageReturn" not in progress:
        steps, _ = step_columns(progress, "AverageReturn")
        both: list[tuple[Panel, float]] = [(_draw_returns, 3), (_draw_gain, 2)]
        panels = both[:len(steps)]
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
    folder = os.path.abspath(os.fspath(run_folder))
    path = os.path.join(folder, name) if path is None and ax is None else path
    title = describe_run(folder) if title is None else title
    panels = panels[:1] if np.size(ax) == 1 and ax is not None else panels
    with style.picture(path, title, 2.0 + 2.0 * len(panels), rows=len(panels), ax=ax, sharex=True,
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
