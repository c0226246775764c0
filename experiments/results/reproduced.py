"""The files of `experiments/reproduce.py`: data by method and seed, and the tables and pictures made of them."""
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Union

import numpy as np
from scipy.stats import trim_mean

from experiments.results.draw import read_table
from experiments.results.entries import ENTRIES, MEASUREMENTS, Entry, Measurement, Method
from meta_policy_search.plotting import Curve, Progress, plot_comparison
from meta_policy_search.utils.files import write_csv, write_text
from meta_policy_search.utils.statistics import mean_interval, running_mean

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "papers")
ROOT = os.path.dirname(os.path.dirname(HERE))
PAGE = os.path.join(ROOT, "docs", "papers.md")
README = os.path.join(ROOT, "README.md")
IN_README = {"navigation": "2D navigation", "half_cheetah_direction": "half cheetah, forward or backward",
             "half_cheetah_velocity": "half cheetah, goal velocity"}
RESAMPLINGS = 10_000
POINTS = 200  # of a curve, at most
Rows = dict[tuple[str, int], list[dict[str, str]]]


class Score(NamedTuple):
    """An interquartile mean, and its 95% interval."""

    mean: float
    low: float
    high: float


# Data ------------------------------------------------------------------------------------------------------------


def weights_path(name: str, method: str, seed: int) -> str:
    """Returns the path of the file with a policy's parameters; its folder is there."""
    folder = os.path.join(FOLDER, "weights")
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, f"{name},{method},seed={seed}.npz")


def keep(name: str, method: str, seed: int, scores: np.ndarray, progress: Progress) -> None:
    """Adds a run to the data of an entry, in the place of an earlier one of the same method and seed.

    Args:
        name: of the entry.
        method: its name.
        seed: of training.
        scores: mean return or success rate in each test task after 0, 1, ... steps, `[tasks, K + 1]`.
        progress: the columns of training.
    """
    tasks = [{"task": str(task), **{f"after_{step}": f"{value:.6g}" for step, value in enumerate(row)}}
             for task, row in enumerate(scores)]
    columns = ["Itr", "n_timesteps", "Time", *(column for column in progress if column.endswith("-AverageReturn"))]
    training = [{column: f"{progress[column][i]:.6g}" for column in columns} for i in range(len(progress["Itr"]))]
    _add(_path(name, ".csv"), {(method, seed): tasks})
    _add(_path(name, "_training.csv"), {(method, seed): training})


def keep_measured(name: str, seed: int, measured: Mapping[str, Mapping[int, float]]) -> None:
    """Adds what was measured with a seed, numbers by method and key."""
    _add(_path(name, ".csv"), {
        (method, seed): [{"key": str(key), "value": f"{value:.6g}"} for key, value in by_key.items()]
        for method, by_key in measured.items()})


def read_scores(name: str) -> dict[str, dict[int, np.ndarray]]:
    """Returns the scores of the policies of an entry, `[tasks, K + 1]`, by method and seed."""
    returns: dict[str, dict[int, np.ndarray]] = {}
    for (method, seed), rows in _read(_path(name, ".csv")).items():
        columns = [column for column in rows[0] if column.startswith("after_")]
        returns.setdefault(method, {})[seed] = np.array([[float(row[column]) for column in columns] for row in rows])
    return returns


def read_training(name: str) -> dict[str, dict[int, Progress]]:
    """Returns the columns of training of an entry, by method and seed."""
    training: dict[str, dict[int, Progress]] = {}
    for (method, seed), rows in _read(_path(name, "_training.csv")).items():
        training.setdefault(method, {})[seed] = {
            column: np.array([float(row[column]) for row in rows]) for column, first in rows[0].items() if first}
    return training


def read_measured(name: str) -> dict[str, dict[int, dict[int, float]]]:
    """Returns what was measured, by method, seed and key."""
    measured: dict[str, dict[int, dict[int, float]]] = {}
    for (method, seed), rows in _read(_path(name, ".csv")).items():
        measured.setdefault(method, {})[seed] = {int(row["key"]): float(row["value"]) for row in rows}
    return measured


def _add(path: str, new: Rows) -> None:
    """Adds rows to those of a file, in the place of those of the same method and seed."""
    os.makedirs(FOLDER, exist_ok=True)
    kept = {**_read(path), **new}
    header = list(dict.fromkeys(column for run in kept.values() for column in run[0]))
    write_csv(path, [("method", "seed", *header), *(
        (*key, *(row.get(column, "") for column in header)) for key, run in sorted(kept.items()) for row in run)])


def _read(path: str) -> Rows:
    kept: Rows = {}
    for row in read_table(path) if os.path.exists(path) else ():
        kept.setdefault((row.pop("method"), int(row.pop("seed"))), []).append(row)
    return kept


def _path(name: str, ending: str) -> str:
    return os.path.join(FOLDER, name + ending)


# Statistics ------------------------------------------------------------------------------------------------------


def interquartile_mean(scores: np.ndarray) -> Score:
    """Returns the mean of the middle half of all scores, with its 95% interval by the percentile bootstrap.

    Policies and tasks are drawn again, each with replacement (Agarwal et al. 2021, arXiv:2108.13264, draw the runs of
    each task by themselves; here a run is a policy that is tested in all tasks, so it is drawn as a whole). With one
    seed the interval is over tasks alone.

    Args:
        scores: `[seeds, tasks]`.
    """
    seeds, tasks = scores.shape
    rng = np.random.default_rng(1)
    rows = rng.integers(seeds, size=(RESAMPLINGS, seeds, 1))
    columns = rng.integers(tasks, size=(RESAMPLINGS, 1, tasks))
    means = trim_mean(scores[rows, columns].reshape(RESAMPLINGS, -1), 0.25, axis=1)
    return Score(trim_mean(scores, 0.25, axis=None), *np.quantile(means, (0.025, 0.975)))


# Tables and pictures ---------------------------------------------------------------------------------------------


def write(*names: str) -> list[str]:
    """Draws the pictures of some entries, and writes the tables of all that have data; returns the paths."""
    paths = [draw(name) for name in names if os.path.exists(_path(name, "_training.csv"))]
    write_text(PAGE, page())
    with open(README, encoding="utf-8") as file:
        write_text(README, readme(file.read()))
    return [*paths, PAGE, README]


def draw(name: str) -> str:
    """Draws what an entry's methods return before and after adaptation, over environment steps; returns the path."""
    entry, training = ENTRIES[name], read_training(name)
    steps = entry.settings.get("num_inner_grad_steps", 1)
    panels = {}
    for step, label in ((0, "return before adaptation"), (steps, f"return after {_count(steps, 'step')}")):
        column = f"Step_{step}-AverageReturn"
        panels[label] = [_curve(method.label, training[method.name], column) for method in entry.methods
                         if column in next(iter(training.get(method.name, {}).values()), ())]
    path, title = _path(name, ".svg"), f"{entry.settings['env']}, {entry.source}"
    plot_comparison(panels, path, title, "environment steps")
    return path


def _curve(label: str, runs: dict[int, Progress], column: str) -> Curve:
    every = -(-max(len(run["Itr"]) for run in runs.values()) // POINTS)
    return Curve(label, [(run["n_timesteps"][::every], running_mean(run[column])[0][::every]) for run in runs.values()])


def page() -> str:
    """Returns the page of all entries that have data, in Markdown."""
    parts = ["# Claims of papers, repeated", _PREFACE]
    for name, entry in ENTRIES.items():
        if os.path.exists(_path(name, ".csv")):
            parts.append("\n".join(_section(name, entry)))
    for name, measurement in MEASUREMENTS.items():
        if os.path.exists(_path(name, ".csv")):
            parts.append("\n".join(_section_of_measurement(name, measurement)))
    return "\n\n".join(parts) + "\n"


def readme(text: str) -> str:
    """Returns the text of the README with its table of returns in new tasks, which stands between two comments."""
    rows = ["| experiment | seeds | 0 | 1 | 2 | 3 |", "|---" * 6 + "|"]
    for name, label in IN_README.items():
        returns, methods = read_scores(name), ENTRIES[name].methods
        rows += [f"| {label}, {method.label}, published | | {_cells(method.published, 4)} |"
                 for method in methods if method.published and returns]
        rows += [f"| {label}, {method.label} | {len(returns[method.name])} | {_means(returns[method.name], 4)} |"
                 for method in methods if method.name in returns]
    begin, end = "<!-- returns in new tasks -->\n", "\n<!-- end -->"
    return text[:text.index(begin)] + begin + "\n".join(rows) + text[text.index(end):]


_PREFACE = """\
`python experiments/reproduce.py NAME` trains, tests, measures and writes all that follows; data and weights are in
`experiments/results/papers`. Policies are tested in 40 tasks that they were not trained on, the same for all. Columns
0, 1, ... are means over tasks and seeds after so many gradient steps. The last column is the interquartile mean after
as many steps as in training, over all seeds and tasks, with its 95% bootstrap interval over seeds and tasks (over tasks
alone where there is one seed; with three seeds such intervals are too narrow rather than too wide). Minutes are those
that training took, beside whatever else the machine did."""


def _section(name: str, entry: Entry) -> Iterator[str]:
    returns, training = read_scores(name), read_training(name)
    yield from _begin(name, entry, f"{entry.source}; `{entry.settings['env']}`")
    steps = range(entry.num_steps + 1)
    yield f"| {entry.score} | seeds | million steps | minutes | {' | '.join(map(str, steps))} | interquartile mean |"
    yield "|---" * (entry.num_steps + 6) + "|"
    for method in entry.methods:
        if method.published:
            yield f"| {method.label}, published | | | | {_cells(method.published, len(steps))} | |"
        if method.name in returns:
            yield _row(entry, method, returns[method.name], training[method.name])
    yield f"\n![Learning curves](../experiments/results/papers/{name}.svg)"


def _section_of_measurement(name: str, measurement: Measurement) -> Iterator[str]:
    yield from _begin(name, measurement, measurement.source)
    measured = read_measured(name)
    keys = list(next(iter(next(iter(measured.values())).values())))
    yield f"Columns: {measurement.key}; numbers: {measurement.value}, mean over seeds with half of its 95% interval.\n"
    yield f"| | seeds | {' | '.join(map(str, keys))} |"
    yield "|---" * (len(keys) + 2) + "|"
    for method, label in measurement.methods.items():
        if method in measurement.published:
            yield f"| {label}, published | | {_cells(measurement.published[method], len(keys))} |"
        if method in measured:
            yield f"| {label} | {len(measured[method])} | {' | '.join(_intervals(measured[method], keys))} |"


def _intervals(measured: dict[int, dict[int, float]], keys: Sequence[int]) -> list[str]:
    mean, half_width = mean_interval(np.array([[run[key] for key in keys] for run in measured.values()]))
    return [f"{value:.2f} ± {width:.2f}" if np.isfinite(width) else f"{value:.2f}"
            for value, width in zip(mean, half_width, strict=True)]


def _begin(name: str, entry: Union[Entry, Measurement], source: str) -> Iterator[str]:
    yield f"## {entry.claim}: `{name}`\n"
    yield f"{source}." + (f" Different here: {entry.differs}." if entry.differs else "") + "\n"
    if os.path.exists(_path(name, ".md")):  # what came of it
        with open(_path(name, ".md"), encoding="utf-8") as file:
            yield file.read()


def _row(entry: Entry, method: Method, returns: dict[int, np.ndarray], training: dict[int, Progress]) -> str:
    scores = np.array(list(returns.values()))
    trained = {**entry.settings, **method.settings}.get("num_inner_grad_steps", 1)
    middle = interquartile_mean(scores[:, :, trained])
    runs = list(training.values())
    timesteps, minutes = (np.mean([run[column][-1] for run in runs]) for column in ("n_timesteps", "Time"))
    return (f"| {method.label} | {', '.join(map(str, returns))} | {timesteps / 1e6:.1f} | {minutes / 60:.0f} | "
            f"{_means(returns, entry.num_steps + 1)} | {middle.mean:.2f} [{middle.low:.2f}, {middle.high:.2f}] |")


def _means(returns: dict[int, np.ndarray], columns: int) -> str:
    return _cells(np.mean(list(returns.values()), axis=(0, 1)), columns)


def _cells(means: Sequence[float], columns: int) -> str:
    cells = ["" if np.isnan(mean) else f"{mean:.2f}" for mean in means]
    return " | ".join(cells + [""] * (columns - len(means)))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
