"""Training returns next to Figure 2 of the ProMP paper (arXiv:1810.06784): a figure and a table per environment.

The published returns were read from the figure, which is accurate to about 3. The public code counts `max_path_length`
steps for each path, also if the path ends early. Steps are counted here in the same way, so equal numbers of steps mean
equal numbers of iterations.
"""
from collections.abc import Iterator, Mapping, Sequence
from typing import Optional

import numpy as np

from experiments.results.draw import AFTER, curve
from experiments.results.entries import Entry
from meta_policy_search.plotting import Progress, plot_comparison, style
from meta_policy_search.utils.statistics import mean_interval

Training = Mapping[str, Mapping[int, Progress]]  # method to seed to logged columns
WINDOW = 5  # iterations whose mean return is compared
COLUMNS = 2  # panels per row of the figure


def counted(entry: Entry, run: Progress) -> Progress:
    """Returns the columns of a run with the number of steps that the public code counts."""
    sizes = [entry.settings[key] for key in ("meta_batch_size", "rollouts_per_meta_task", "max_path_length")]
    collections = entry.settings.get("num_inner_grad_steps", 1) + 1
    return {**run, "n_timesteps": (run["Itr"] + 1.0) * collections * np.prod(sizes)}


def return_at(run: Progress, million_steps: float) -> Optional[float]:
    """Returns the mean return after adaptation of the last `WINDOW` iterations; None if the run has fewer steps."""
    end = int(np.searchsorted(run["n_timesteps"], 1e6 * million_steps))
    return float(np.mean(run[AFTER][max(0, end - WINDOW + 1):end + 1])) if end < len(run[AFTER]) else None


def table(entry: Entry, training: Training) -> Iterator[str]:
    """Yields the rows: published returns and means over seeds with 95% intervals, at the published numbers of steps."""
    points = sorted({point for method in entry.methods for point, _ in method.published_curve})
    columns = " | ".join(f"{point:g}" for point in points)
    yield f"| return in training after million steps | number of seeds | {columns} |"
    yield "|---" * (len(points) + 2) + "|"
    for method in entry.methods:
        runs = [counted(entry, run) for run in training.get(method.name, {}).values()]
        published = dict(method.published_curve)
        if runs and published:
            cells = [f"{published[point]:g}" if point in published else "" for point in points]
            yield f"| {method.label}, published | | {' | '.join(cells)} |"
            yield f"| {method.label} | {len(runs)} | {' | '.join(_cell(runs, point) for point in points)} |"


def _cell(runs: Sequence[Progress], point: float) -> str:
    returns = [value for value in (return_at(run, point) for run in runs) if value is not None]
    if not returns:
        return ""
    mean, half_width = mean_interval(np.array(returns))
    return f"{mean:.0f} ± {half_width:.0f}" if np.isfinite(half_width) else f"{mean:.0f}"


def draw(entries: Mapping[str, Entry], trainings: Mapping[str, Training], path: str) -> None:
    """Plots one panel per environment: returns after adaptation over environment steps, and the published points.

    The legend is that of the environment with most methods.
    """
    columns = min(COLUMNS, len(entries))
    rows = -(-len(entries) // columns)
    title = "Return after adaptation; squares: published; bands: 95% intervals over seeds"
    counts = "environment steps, counted as in the paper"
    with style.figure_axes(path, title, 3.4 * rows, 5.0 * columns, rows, columns) as panels:
        for panel in panels.flat[len(entries):]:
            panel.set_axis_off()
        for panel, (name, entry) in zip(panels.flat, entries.items(), strict=False):
            methods = [method for method in entry.methods if trainings[name].get(method.name)]
            curves = [curve(method.label, [counted(entry, run) for run in trainings[name][method.name].values()],
                            AFTER, "n_timesteps") for method in methods]
            plot_comparison({"return": curves}, x_label=counts, ax=panel)
            panel.get_legend().remove()
            panel.set_title(entry.settings["env"], fontsize=10, color="black")
            for index, method in enumerate(methods):
                points = np.array(method.published_curve) * (1e6, 1.0)
                last = max(steps[-1] for steps, _ in curves[index].runs)
                points = points[points[:, 0] <= 1.1 * last]
                panel.plot(*points.T, "s", markersize=5, color=style.COLORS[index], label=method.label)
            panel.autoscale(axis="y")
            style.limit_to_lines(panel)
        legends = [panel.get_legend_handles_labels() for panel in panels.flat]
        panels.flat[0].figure.legend(*max(legends, key=lambda legend: len(legend[1])), loc="outside lower center",
                                     frameon=False, ncols=columns + 1)
