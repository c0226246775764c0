"""Figures of the results: returns in training with published points and tests, and paths before adaptation."""
from collections.abc import Mapping
from typing import Any, Optional

import numpy as np

import meta_policy_search as mps
from experiments.reproduction import entries
from experiments.reproduction.entries import ENTRIES, Entry
from meta_policy_search.plotting import Curve, Progress, plot_comparison, plot_trajectories, style
from meta_policy_search.plotting import return_columns as columns_of
from meta_policy_search.pretrained_policies import pretrained
from meta_policy_search.utils.statistics import Interval, exact_mean, exact_sum, running_mean

FIGURES = entries.HERE / "figures"
POINTS = 200  # maximum number of points of a curve
WINDOW = 5  # iterations whose mean return is compared with a published curve
CORNERS = ((-2.0, -2.0), (-2.0, 2.0), (2.0, -2.0), (2.0, 2.0))


def counted_steps(entry: Entry, run: Progress) -> np.ndarray:
    """Returns the environment steps of a run by iteration; with published curves, as the public code counts them.

    The public code counts `max_path_length` steps for each path, also if the path ends early. Equal numbers of steps
    then mean equal numbers of iterations.
    """
    if not entry.methods[0].published_curve:
        return run["n_timesteps"]
    sizes = [entry.settings[key] for key in ("meta_batch_size", "rollouts_per_meta_task", "max_path_length")]
    return (run["Itr"] + 1.0) * (entry.settings.get("num_inner_grad_steps", 1) + 1) * np.prod(sizes)


def trial_returns(settings: Mapping[str, Any], run: Progress) -> np.ndarray:
    """Returns the mean return of a trial by iteration.

    A trial of RL2 is one path. Other methods divide a trial among the policies before and after each adaptation step,
    which sample `rollouts_per_meta_task` paths each.
    """
    of_steps = [values for column, values in run.items() if column.endswith("-AverageReturn")]
    return of_steps[0] if len(of_steps) == 1 else settings["rollouts_per_meta_task"] * exact_sum(of_steps)


def return_at(entry: Entry, runs: Mapping[int, Progress], million_steps: float) -> Optional[Interval]:
    """Returns the mean return after adaptation of the last `WINDOW` iterations before a number of steps, over seeds.

    Runs with fewer steps are ignored; None if there is no other run.
    """
    found = []
    for run in runs.values():
        returns = run[list(columns_of(run).values())[-1]]
        end = int(np.searchsorted(counted_steps(entry, run), 1e6 * million_steps))
        if end < len(returns):
            found.append(np.atleast_1d(exact_mean(returns[max(0, end - WINDOW + 1):end + 1])))
    return entries.over_seeds_and_tasks(found)


def curves(name: str) -> dict[str, dict[str, Curve]]:
    """Returns the panels of an entry: returns before and after adaptation over environment steps, by method."""
    entry, training = ENTRIES[name], entries.read_training(name)
    panels: dict[str, dict[str, Curve]] = {}
    for method in entry.methods:
        runs = list(training.get(method.name, {}).values())
        if not (runs and method.snapshot):
            continue
        columns = columns_of(runs[0])  # after 0 steps and after the last one
        if not entry.num_steps:
            settings, columns = {**entry.settings, **method.settings}, {entry.score: "trial"}
            runs = [{**run, "trial": trial_returns(settings, run)} for run in runs]
        for label, column in columns.items():
            every = -(-max(len(run["Itr"]) for run in runs) // POINTS)
            panels.setdefault(label, {})[method.label] = [
                (counted_steps(entry, run)[::every], running_mean(run[column])[0][::every]) for run in runs]
    return panels


def dots(name: str) -> dict[str, tuple[list[float], list[float]]]:
    """Returns the environment steps and the test score of each seed, by method; none if tests are success rates."""
    entry, training, tests = ENTRIES[name], entries.read_training(name), entries.read_tests(name)
    found = {}
    for method in entry.methods if entry.score != "success rate" else ():
        if method.snapshot and method.name in tests.keys() & training.keys():
            runs, column = tests[method.name], entries.trained_column(entry, method)
            found[method.label] = ([counted_steps(entry, training[method.name][seed])[-1] for seed in runs],
                                   [entries.mean_of(run, column) for run in runs.values()])
    return found


def draw(name: str) -> None:
    """Plots the curves of an entry with the published points, and the test of each seed as a dot."""
    entry, training, panels, tests = ENTRIES[name], entries.read_training(name), curves(name), dots(name)
    points = {method.label: np.array(method.published_curve) * (1e6, 1.0) for method in entry.methods
              if method.published_curve and method.name in training}
    if entry.with_paths:
        draw_paths(name)
    if panels:
        title = (f"{entry.settings['env']}, {entry.source}" + ("; dots: test of each seed" if tests else "")
                 + ("; squares: published" if points else ""))
        figure = plot_comparison(panels, None, title, "environment steps", points=points)
        labels = list(dict.fromkeys(label for panel in panels.values() for label in panel))
        columns = -(-len(labels) // len(style.COLORS))
        size = -(-len(labels) // columns)  # curves of a panel
        with style.figure_axes(FIGURES / f"{name}.svg", "", 0.0, rows=len(panels), columns=columns,
                               ax=figure.axes) as axes:
            for label, found in tests.items():
                column, color = divmod(labels.index(label), size)
                row = max(i for i, panel in enumerate(panels.values()) if label in panel)  # after adaptation
                axes[row, column].plot(*found, "o", markersize=4, color=style.COLORS[color])


def draw_paths(name: str) -> None:
    """Draws paths before adaptation in the world with four corners, as Figure 4 of the ProMP paper (arXiv:1810.06784).

    The policies are the pretrained policies of an entry.
    """
    records = [record for record in pretrained() if f" {name} " in f"{record.command} "]
    panels = []
    for record in records:
        evaluator = mps.load_pretrained(record.name)
        evaluator.rollouts_per_meta_task = 5
        recording = evaluator.record(list(map(np.array, CORNERS)), 1)
        positions = [path for task in range(4) for path in recording.trajectories(0, task)]
        scenery, mean_return = recording.env.unwrapped.scenery(), exact_mean(recording.returns[:, 0])
        panels.append((scenery, [positions], [mean_return]))
    labels = {method.name: method.label for method in ENTRIES[name].methods}
    plot_trajectories(panels, FIGURES / f"{name}_paths.svg", "Paths before adaptation",
                      [labels[record.name.partition("/")[2].replace("promp", "pro_mp")] for record in records])
