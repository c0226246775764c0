"""Files of `experiments/reproduce.py`: data by method and seed, tables and figures."""
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Optional, Union

import numpy as np

from experiments.results import figure_2, leaderboard
from experiments.results.draw import Rows, columns_of, curve, read_groups
from experiments.results.entries import ENTRIES, MEASUREMENTS, Entry, Measurement, Method, all_settings
from meta_policy_search.plotting import Curve, Progress, plot_comparison, return_columns
from meta_policy_search.utils.files import write_csv, write_text
from meta_policy_search.utils.statistics import interquartile_mean, mean_interval

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "papers")
ROOT = os.path.dirname(os.path.dirname(HERE))
PAGE = os.path.join(ROOT, "docs", "papers.md")
README = os.path.join(ROOT, "README.md")
IN_README = {"navigation": "2D navigation", "half_cheetah_direction": "half cheetah, forward or backward",
             "half_cheetah_velocity": "half cheetah, goal velocity"}
_FIGURE_2 = """## Figure 2 of the ProMP paper

The settings are those of the paper (arXiv:1810.06784, appendix), but trainings are shorter. The squares are read from
its figure. The sections "ProMP, figure 2" list the numbers. Each return of this library is the mean of five iterations,
which end at the given number of steps. As in the public code, each path counts as a path of maximum length, even if it
ends early.

![Return after adaptation, and published returns](../experiments/results/papers/figure_2.svg)"""
Runs = dict[tuple[str, int], Rows]  # (method, seed) to rows


# Data ------------------------------------------------------------------------------------------------------------


def weights_path(name: str, method: str, seed: int) -> str:
    """Creates the folder of the weights; returns the path of a policy's file."""
    folder = os.path.join(FOLDER, "weights")
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, f"{name},{method},seed={seed}.npz")


def keep(name: str, method: str, seed: int, scores: np.ndarray, progress: Progress,
         tasks: Optional[Sequence[Any]] = None) -> None:
    """Adds a run to the data of an entry; replaces an earlier run of the same method and seed.

    Args:
        name: name of the entry.
        method: name of the method.
        seed: training seed.
        scores: mean return or success rate in each test task after 0, 1, ... steps, `[tasks, K + 1]`.
        progress: logged columns of the training.
        tasks: the test tasks; numbers are stored in the column `goal`. Default None: no such column.
    """
    goals = [{"goal": f"{task:g}"} if isinstance(task, float) else {} for task in tasks or [None] * len(scores)]
    rows = [{"task": str(task), **goals[task], **{f"after_{step}": f"{value:.6g}" for step, value in enumerate(row)}}
            for task, row in enumerate(scores)]
    returns = [column for column in progress if column.endswith(("-AverageReturn", "EpisodeReturn"))]
    columns = ["Itr", "n_timesteps", "Time", *returns]
    training = [{column: f"{progress[column][i]:.6g}" for column in columns} for i in range(len(progress["Itr"]))]
    _add(_path(name, ".csv"), {(method, seed): rows})
    _add(_path(name, "_training.csv"), {(method, seed): training})


def keep_measured(name: str, method: str, seed: int, by_key: Mapping[int, float]) -> None:
    """Adds the measured values of a method and seed, by key, to the data of an entry."""
    _add(_path(name, ".csv"), {
        (method, seed): [{"key": str(key), "value": f"{value:.6g}"} for key, value in by_key.items()]})


def read_scores(name: str) -> dict[str, dict[int, np.ndarray]]:
    """Reads the scores of an entry: method to seed to array `[tasks, K + 1]`; see `keep`."""
    return _by_method(name, ".csv", lambda rows: np.stack(
        [scores for column, scores in columns_of(rows).items() if column.startswith("after_")], axis=1))


def trained(name: str) -> Iterator[tuple[Method, int]]:
    """Yields the methods of an entry that have data, with their first seeds."""
    scores = read_scores(name)
    yield from ((method, min(scores[method.name])) for method in ENTRIES[name].methods if method.name in scores)


def read_goals(name: str) -> dict[str, dict[int, Optional[np.ndarray]]]:
    """Reads the goals of the test tasks: method to seed to array `[tasks]`, or None for a run without goals."""
    return _by_method(name, ".csv", lambda rows: columns_of(rows).get("goal"))


def read_training(name: str) -> dict[str, dict[int, Progress]]:
    """Reads the training columns of an entry: method to seed to columns."""
    return _by_method(name, "_training.csv", columns_of)


def read_measured(name: str) -> dict[str, dict[int, dict[int, float]]]:
    """Reads the measured values of an entry: method to seed to key to value."""
    return _by_method(name, ".csv", lambda rows: {int(row["key"]): float(row["value"]) for row in rows})


def _by_method(name: str, ending: str, convert: Callable[[Rows], Any]) -> dict[str, dict[int, Any]]:
    """Reads the rows of each run and converts them; returns the results by method and seed."""
    converted: dict[str, dict[int, Any]] = {}
    for (method, seed), rows in _read(_path(name, ending)).items():
        converted.setdefault(method, {})[seed] = convert(rows)
    return converted


def _add(path: str, new: Runs) -> None:
    """Adds runs to a CSV file; replaces runs of the same method and seed."""
    os.makedirs(FOLDER, exist_ok=True)
    kept = {**_read(path), **new}
    header = list(dict.fromkeys(column for run in kept.values() for column in run[0]))
    write_csv(path, [("method", "seed", *header), *(
        (*key, *(row.get(column, "") for column in header)) for key, run in sorted(kept.items()) for row in run)])


def _read(path: str) -> Runs:
    groups = read_groups(path, "method", "seed") if os.path.exists(path) else {}
    return {(method, int(seed)): rows for (method, seed), rows in groups.items()}


def _path(name: str, ending: str) -> str:
    return os.path.join(FOLDER, name + ending)


# Tables and figures ----------------------------------------------------------------------------------------------


def write(*names: str) -> list[str]:
    """Plots some entries and writes the tables of all entries that have data; returns the paths of the files."""
    paths = [draw(name) for name in names if name in ENTRIES and os.path.exists(_path(name, "_training.csv"))]
    boards = read_boards()
    if boards:
        leaderboard.draw(boards, _path("leaderboard", ".svg"))
        paths.append(_path("leaderboard", ".svg"))
    compared = {name: read_training(name) for name in ENTRIES if name.startswith("figure_2_")}
    compared = {name: training for name, training in compared.items() if training}
    if compared:
        figure_2.draw({name: ENTRIES[name] for name in compared}, compared, _path("figure_2", ".svg"))
        paths.append(_path("figure_2", ".svg"))
    write_text(PAGE, page())
    with open(README, encoding="utf-8") as file:
        write_text(README, readme(file.read()))
    return [*paths, PAGE, README]


def draw(name: str) -> str:
    """Plots the returns of an entry before and after adaptation, over environment steps; returns the path."""
    entry, training = ENTRIES[name], read_training(name)
    panels: dict[str, list[Curve]] = {}
    for method in [method for method in entry.methods if method.name in training]:
        runs = list(training[method.name].values())
        columns = return_columns(runs[0]) if entry.num_steps else {entry.score: "Step_0-AverageReturn"}
        for label, column in columns.items():
            panel = "return before adaptation" if label == "return" else label
            panels.setdefault(panel, []).append(curve(method.label, runs, column, "n_timesteps"))
    path, title = _path(name, ".svg"), f"{entry.settings['env']}, {entry.source}"
    plot_comparison(panels, path, title, "environment steps")
    return path


def page() -> str:
    """Returns the text of `docs/papers.md`, with all entries that have data."""
    boards = read_boards()
    sections = [*((name, _section(name, entry)) for name, entry in ENTRIES.items()),
                *((name, _section_of_measurement(name, entry)) for name, entry in MEASUREMENTS.items())]
    parts = ["# Reproducing published results", _read_text("README").rstrip("\n"),
             *(["\n".join(_leaderboards(boards))] if boards else []),
             *([_FIGURE_2] if os.path.exists(_path("figure_2", ".svg")) else []),
             *("\n".join(section) for name, section in sections if os.path.exists(_path(name, ".csv")))]
    return "\n\n".join(parts) + "\n"


def read_boards() -> dict[str, list[leaderboard.Line]]:
    """Returns the leaderboards: heading to lines, without methods that have no data."""
    boards: dict[str, list[leaderboard.Line]] = {}
    for heading, sources in leaderboard.BOARDS.items():
        for name, methods in sources.items():
            entry, returns, training = ENTRIES[name], read_scores(name), read_training(name)
            boards.setdefault(heading, []).extend(
                leaderboard.Line(method.name, method.label, name, _trained_scores(entry, method, returns[method.name]),
                                 _mean_of_last(training[method.name], "n_timesteps") if method.snapshot else 0.0)
                for method in entry.methods if method.name in methods and method.name in returns)
    return {heading: lines for heading, lines in boards.items() if lines}


def _leaderboards(boards: dict[str, list[leaderboard.Line]]) -> Iterator[str]:
    yield "## Leaderboards\n"
    yield _read_text("leaderboard")
    for heading, lines in boards.items():
        yield f"### {heading}\n"
        yield from leaderboard.table(lines)
        yield ""
    yield "![Performance profiles](../experiments/results/papers/leaderboard.svg)"


def _trained_scores(entry: Entry, method: Method, returns: dict[int, np.ndarray]) -> np.ndarray:
    """Returns the scores after as many steps as in training, but at least one; `[seeds, tasks]`.

    Policies that observe the task are scored without steps.
    """
    settings = {**entry.settings, **method.settings}
    steps = 0 if settings.get("observe_task") else _trained_steps(settings)
    return np.array(list(returns.values()))[:, :, min(entry.num_steps, steps)]


def _trained_steps(settings: Mapping[str, Any]) -> int:
    return max(1, settings.get("num_inner_grad_steps", 1))


def _mean_of_last(training: dict[int, Progress], column: str) -> float:
    return float(np.mean([run[column][-1] for run in training.values()]))


def _read_text(name: str) -> str:
    """Returns the text of a Markdown file in the data folder, or an empty string if the file does not exist."""
    if not os.path.exists(_path(name, ".md")):
        return ""
    with open(_path(name, ".md"), encoding="utf-8") as file:
        return file.read()


def readme(text: str) -> str:
    """Replaces the table of returns in sampled tasks, which is between two comments, in the text of the README."""
    rows = ["| experiment | seeds | 0 | 1 | 2 | 3 |", "|---" * 6 + "|"]
    for name, label in IN_README.items():
        returns, methods = read_scores(name), ENTRIES[name].methods
        rows += [f"| {label}, {method.label}, published | | {_cells(method.published, 4)} |"
                 for method in methods if method.published and returns]
        rows += [f"| {label}, {method.label} | {len(returns[method.name])} | {_means(returns[method.name], 4)} |"
                 for method in methods if method.name in returns]
    begin, end = "<!-- returns in sampled tasks -->\n", "\n<!-- end -->"
    return text[:text.index(begin)] + begin + "\n".join(rows) + text[text.index(end):]


def _section(name: str, entry: Entry) -> Iterator[str]:
    returns, training = read_scores(name), read_training(name)
    yield from _begin(name, entry, _conditions(entry))
    steps = range(entry.num_steps + 1)
    middle = f"interquartile mean, column {_trained_steps(entry.settings)}" if entry.num_steps else "interquartile mean"
    yield f"| {entry.score} | seeds | million steps | minutes | {' | '.join(map(str, steps))} | {middle} |"
    yield "|---" * (entry.num_steps + 6) + "|"
    for method in entry.methods:
        if method.name in returns:
            if method.published:
                yield f"| {method.label}, published | | | | {_cells(method.published, len(steps))} | |"
            yield _row(entry, method, returns[method.name], training[method.name])
    if entry.groups:
        yield from _groups(name, entry, returns)
    if entry.methods[0].published_curve:
        yield ""
        yield from figure_2.table(entry, training)
    yield f"\n![Learning curves](../experiments/results/papers/{name}.svg)"
    if os.path.exists(_path(name, "_paths.svg")):
        yield f"\n![Paths of the trained policies](../experiments/results/papers/{name}_paths.svg)"


def _conditions(entry: Entry) -> Iterator[str]:
    """Yields the environment, the samples per iteration of training, and the conditions of the test."""
    yield f"- Environment: `{entry.settings['env']}`"
    configs = [all_settings(method.script, {**entry.settings, **method.settings}) for method in entry.methods]
    tasks, paths, steps = (" or ".join(map(str, dict.fromkeys(config[name] for config in configs)))
                           for name in ("meta_batch_size", "rollouts_per_meta_task", "max_path_length"))
    of_trials = all(method.script == "rl2" for method in entry.methods)
    if of_trials:
        yield f"- Training: {tasks} tasks; trials per task: {paths}; steps per episode: at most {steps}"
    else:
        yield f"- Training: {tasks} tasks; paths per task and adaptation step: {paths}; steps per path: at most {steps}"
    if entry.score == "success rate":
        yield "- Test: evaluation of the metaworld package; per goal, 10 episodes for adaptation and 3 for the score"
    if entry.score == "mean return" and not of_trials:
        sizes = ", all but the first of half the size" if entry.halve_steps else ""
        paths = f"; {entry.rollouts} paths per task and adaptation step" if entry.rollouts else ", with as many paths"
        yield f"- Test: gradient steps as in training{sizes}{paths}"


def _groups(name: str, entry: Entry, returns: dict[str, dict[int, np.ndarray]]) -> Iterator[str]:
    """Yields a table of the returns in groups of tasks, after as many gradient steps as in training."""
    goals = read_goals(name)
    yield f"\n| return of each seed | {' | '.join(entry.groups)} |"
    yield "|---" * (len(entry.groups) + 1) + "|"
    for method in entry.methods:
        runs = {seed: values for seed, values in returns.get(method.name, {}).items()
                if goals[method.name][seed] is not None}
        if runs:
            scores = dict(zip(runs, _trained_scores(entry, method, runs), strict=True))
            cells = [", ".join(f"{scores[seed][goals[method.name][seed] == goal].mean():.0f}" for seed in runs)
                     for goal in entry.groups.values()]
            yield f"| {method.label} | {' | '.join(cells)} |"


def _section_of_measurement(name: str, measurement: Measurement) -> Iterator[str]:
    yield from _begin(name, measurement)
    measured = read_measured(name)
    keys = measurement.columns or list(next(iter(next(iter(measured.values())).values())))
    yield (f"Columns: {measurement.key}. Values: {measurement.value}, mean over seeds ± half the width of its 95% "
           "interval.\n")
    yield f"| | number of seeds | {' | '.join(map(str, keys))} |"
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


def _begin(name: str, entry: Union[Entry, Measurement], conditions: Iterable[str] = ()) -> Iterator[str]:
    yield f"## {entry.title}\n\n{entry.question}\n"
    yield f"- Source: {entry.source}"
    yield from conditions
    if entry.differs:
        yield f"- Differences: {entry.differs}"
    methods = entry.methods if isinstance(entry, Measurement) else [method.name for method in entry.methods]
    yield f"- Command: `python -m experiments.reproduce {name}`"
    yield f"- Methods: {', '.join(f'`{method}`' for method in methods)}\n"
    yield from filter(None, [_read_text(name)])


def _row(entry: Entry, method: Method, returns: dict[int, np.ndarray], training: dict[int, Progress]) -> str:
    middle = interquartile_mean(_trained_scores(entry, method, returns))
    interval = f"{middle.mean:.2f} [{middle.low:.2f}, {middle.high:.2f}]"
    column = " (column 0)" if method.settings.get("observe_task") else ""
    timesteps, minutes = (_mean_of_last(training, column) for column in ("n_timesteps", "Time"))
    cost = " | " if method.snapshot is None else f"{timesteps / 1e6:.1f} | {minutes / 60:.0f}"
    return (f"| {method.label} | {', '.join(map(str, returns))} | {cost} | "
            f"{_means(returns, entry.num_steps + 1)} | {interval}{column} |")


def _means(returns: dict[int, np.ndarray], columns: int) -> str:
    return _cells(np.mean(list(returns.values()), axis=(0, 1)), columns)


def _cells(means: Sequence[Optional[float]], columns: int) -> str:
    cells = ["" if mean is None else f"{mean:.2f}" for mean in means]
    return " | ".join(cells + [""] * (columns - len(means)))
