"""Pages of the results: one per entry, the overview and the table of the README.

Every number on these pages is computed from the data in `data`. All intervals are 95% intervals for new seeds and new
test tasks (`over_seeds_and_tasks`).
"""
import functools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

import numpy as np

from experiments.reproduction import entries, figures
from experiments.reproduction.entries import ENTRIES, ByMethod, Entry, Method, Statistic
from meta_policy_search.plotting import Progress
from meta_policy_search.utils.files import write_text
from meta_policy_search.utils.statistics import Interval, exact_mean, holm, tail_values

DOCS, README = entries.EXPERIMENTS.parent / "docs", entries.EXPERIMENTS.parent / "README.md"
MARGIN = 0.1  # of a published value, within which it is reproduced


# Cells -------------------------------------------------------------------------------------------------------------


def cell(interval: Optional[Interval], sign: str = "") -> str:
    """Formats a mean and its interval, with three significant digits of the larger one, two of the half width.

    Few seeds have no interval.
    """
    if interval is None:
        return ""
    exponents = [int(f"{value or 1.0:.12e}".partition("e")[2])  # of ten
                 for value in (np.nanmax(np.abs(interval)), interval.half_width) if np.isfinite(value)]
    places = min(max(2 - exponents[0], 1 - exponents[-1], 0), 6)
    width = f" ± {interval.half_width:.{places}f}" if np.isfinite(interval.half_width) else ""
    return f"{interval.mean:{sign}.{places}f}{width}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Formats a Markdown table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, ["---"] * len(header), *rows])


def without_empty_columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Formats a table without the columns that have no cells."""
    columns = [column for column in zip(header, *rows, strict=True) if any(column[1:])]
    kept, *others = zip(*columns, strict=True)
    return table(kept, others)


def verdict(difference: Optional[Interval]) -> str:
    """Says whether a difference was found; only an interval without zero is a difference."""
    if difference is None:
        return "not measured"
    if np.isnan(difference.half_width):
        return "undecided (too few seeds)"
    found = abs(difference.mean) > difference.half_width
    return cell(difference, "+") if found else f"no difference was found ({cell(difference, '+')})"


def p_text(p: float) -> str:
    """Formats a p-value."""
    return f"p = {p:.2g}" if p >= 0.001 else "p < 0.001"


def agreement(measured: Optional[Interval], value: float, method: Method) -> str:
    """Says whether a published value is reproduced: two one-sided t-tests at level 2.5%, with the margin `MARGIN`.

    It is reproduced if the 95% interval of the difference lies within the margin, not reproduced if it lies outside.
    The margin is a fraction of the published value, or of its difference from the return of random actions. The text
    also states difference and margin. Few seeds have no interval, and no difference.
    """
    if measured is None:
        return "not measured"
    if np.isnan(measured.half_width):
        return "undecided (too few seeds)"
    distance, margin = abs(measured.mean - value), MARGIN * abs(value - (method.chance or 0.0))
    said = "not reproduced" if distance - measured.half_width > margin else "undecided"
    if distance + measured.half_width <= margin:
        said = "reproduced"
    return f"{said} ({cell(measured._replace(mean=measured.mean - value), '+')}, margin {margin:.3g})"


def fill(name: str, text: str) -> str:
    """Replaces expressions in a text by numbers, for methods A and B.

    `{A}` is the mean after as many steps as in training, `{A 2}` the mean in column 2 (counted from 0). `{A - B}` and
    `{A - B 2}` are differences, paired by seed and task; `{A - before}` is the adaptation gain. `{A - zero 2}` says
    whether the mean differs from zero, `{A - published 2}` whether it reproduces the published value, and
    `{A - curve 30}` whether the return in training after 30 million steps does. `{worst A - B}` is the difference in
    the worst quarter of the tasks, `{tail A}` that from the first method in the tail that A trains for. `{failed A}` is
    the number of seeds that failed, and `{seeds A 2}` lists the means of the seeds.
    """
    entry, tests = ENTRIES[name], entries.read_tests(name)
    methods, score_columns = {method.name: method for method in entry.methods}, entries.score_columns(entry)

    def value(match: re.Match) -> str:
        kind, first, second, column = match.groups()
        if first not in tests:
            return "not measured"
        method, runs = methods[first], tests[first]
        if second == "curve":
            ours = figures.return_at(entry, entries.read_training(name).get(first, {}), float(column))
            return agreement(ours, dict(method.published_curve)[float(column)], method)
        column, other_column = (score_columns[int(column)] if column else entries.trained_column(entry, each)
                                for each in (method, methods.get(second, method)))
        ours = entries.over_seeds(runs, column)
        if second == "published":
            return agreement(ours, method.published[score_columns.index(column)], method)
        if second == "zero":
            return verdict(ours)
        if second == "before":
            second, other_column = first, score_columns[0]
        if second:
            return verdict(entries.over_seeds_and_tasks(entries.differences(
                runs, column, tests.get(second, {}), other_column, in_tail() if kind else entries.by_task)))
        if kind == "tail":
            return tail_difference(name, method)
        if kind == "failed":
            return f"{failures(entry, method, runs)} of {len(runs)}"
        if kind == "seeds":
            return ", ".join(f"{entries.mean_of(run, column):.3g}" for run in runs.values())
        return cell(ours) or "not measured"

    return re.sub(r"\{(?:(worst|tail|failed|seeds) )?(\w+)(?: - (\w+))?(?: (\d+))?\}", value, text)


def in_tail(fraction: float = 0.25) -> Statistic:
    """Returns the statistic whose mean is the mean return in the tasks with the lowest returns."""
    return lambda run, column: tail_values(run[column], fraction)


@functools.cache
def tail_p_values() -> Mapping[tuple[str, str], float]:
    """Returns the p-values of all methods with a task sampler, by entry and method; Holm-corrected for their number.

    Each is compared with the first method of its entry, in the tail that it trains for.
    """
    found = {(name, method.name): _tail_differences(name, method) for name in entries.stored()
             for method in ENTRIES[name].methods if "task_sampler" in method.settings}
    found = {key: values for key, values in found.items() if len(values) >= entries.MIN_SEEDS}
    return dict(zip(found, holm(list(map(entries.p_value, found.values()))), strict=True))


def _tail_differences(name: str, method: Method) -> list[np.ndarray]:
    entry, tests = ENTRIES[name], entries.read_tests(name)
    column = entries.trained_column(entry, method)
    return entries.differences(tests.get(method.name, {}), column, tests.get(entry.methods[0].name, {}), column,
                       in_tail(method.tail))


def tail_difference(name: str, method: Method) -> str:
    """Returns the difference of a method from the first method in the tail that it trains for, and its p-value."""
    p = tail_p_values().get((name, method.name))
    if p is None:
        return "undecided (too few seeds)"
    interval = cell(entries.over_seeds_and_tasks(_tail_differences(name, method)), "+")
    if p < 0.05:
        return f"{interval} (corrected {p_text(p)})"
    return f"no difference found after correction ({p_text(p)}; before: {interval})"


def million_steps(method: Method, training: Mapping[int, Progress]) -> str:
    """Returns the cell of the environment steps of a training, a mean over seeds."""
    steps = [run["n_timesteps"][-1] for run in training.values() if "n_timesteps" in run and method.snapshot]
    return f"{exact_mean(steps) / 1e6:.1f}" if steps else ""


def worst(entry: Entry, runs: Mapping[int, Progress], column: str) -> str:
    """Returns the cell of the worst quarter of the tasks; empty for few or unknown tasks and for rates."""
    is_rate = entry.score == "success rate"  # of actions without noise, so each task has 0 or 1
    has_tasks = min(len(columns["task"]) for columns in runs.values()) > 1 and not entries.has_few_tasks(entry)
    return cell(entries.over_seeds(runs, column, in_tail())) if has_tasks and not is_rate else ""


def trained_seeds(method: Method, runs: Mapping[int, Progress]) -> str:
    """Returns the number of seeds with data; with the planned number if there are fewer."""
    missing = len(set(method.seeds) - set(runs))
    return f"{len(runs)} of {len(runs) + missing}" if missing else str(len(runs))


def failures(entry: Entry, method: Method, runs: Mapping[int, Progress]) -> str:
    """Returns the cell of the number of seeds whose score after adaptation is below the limit; empty without one."""
    limit = entry.failed_below if method.chance is None else method.chance
    column = entries.trained_column(entry, method)
    return "" if limit is None else str(sum(entries.mean_of(run, column) < limit for run in runs.values()))


def difference_cell(runs: Mapping[int, Progress], column: str, others: Mapping[int, Progress],
                    other_column: str) -> str:
    """Returns the cell of a difference; empty if there are too few common seeds for an interval."""
    interval = entries.over_seeds_and_tasks(entries.differences(runs, column, others, other_column))
    return "" if interval is None or np.isnan(interval.half_width) else cell(interval, "+")


def published(method: Method, columns: int) -> list[str]:
    """Returns the published values of a method by column; an empty list if there are none."""
    values = [*method.published, *[None] * columns][:columns]
    return ["" if value is None else f"{value:g}" for value in values] if any(method.published) else []


# Pages -------------------------------------------------------------------------------------------------------------


def page(name: str) -> str:
    """Returns the page of an entry that has data."""
    entry, tests, training = ENTRIES[name], entries.read_tests(name), entries.read_training(name)
    parts = [f"# {entry.title}", f"{entry.question} {fill(name, entry.answer)}", "\n".join(_conditions(name, entry)),
             main_table(entry, tests, training)]
    if entry.groups:
        parts.append(_groups(entry, tests))
    if any(method.published_curve for method in entry.methods):
        parts.append(_curve_table(entry, training))
    parts += [f"![{alt}](../../experiments/reproduction/figures/{file})" for file, alt in (
        (f"{name}.svg", "Learning curves"), (f"{name}_paths.svg", "Paths before adaptation"))
        if (figures.FIGURES / file).exists()]
    return "\n\n".join([*parts, fill(name, entry.notes)]).rstrip() + "\n"


def _conditions(name: str, entry: Entry) -> Iterator[str]:
    yield f"- Source: {entry.source}"
    if entry.settings:
        yield f"- Training: {_listed(entry.settings)}, and the settings of the training scripts"
        yield from (f"    - {method.label}: {_listed(method.settings)}" for method in entry.methods if method.settings)
        sizes = "; steps after the first have half the size" if entry.halve_steps else ""
        paths = entry.rollouts or "as in training"
        yield "- Test: " + (
            "evaluation of the metaworld package, one goal at a time" if entry.score == "success rate" else
            f"{entry.test_tasks} sampled tasks; paths per task and step: {paths}{sizes}")
    chances = {f"{method.chance:g}" for method in entry.methods if method.chance is not None}
    if chances or entry.failed_below is not None:
        limit = f"that of random actions ({', '.join(sorted(chances))})" if chances else f"{entry.failed_below:g}"
        yield f"- A seed failed if its {entry.score}{' after adaptation' if entry.num_steps else ''} is below {limit}"
    if entry.differs:
        yield f"- Differences: {entry.differs}"
    yield f"- Command: `python -m experiments.reproduce {name}`"


def _listed(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"`{key}={value!r}`" for key, value in settings.items())


def main_table(entry: Entry, tests: ByMethod, training: ByMethod) -> str:
    """Returns the table of the methods that have data or published values."""
    columns, rows = entries.score_columns(entry), []
    methods = {method.name: method for method in entry.methods if method.name in tests}
    for method in entry.methods:
        if values := published(method, len(columns)):
            rows.append([f"{method.label}, published", "", "", *values, *[""] * 3])
        if runs := tests.get(method.name):
            column, difference = entries.trained_column(entry, method), ""
            reference = methods.get(method.reference or next(iter(methods)), method)
            if reference is not method:
                difference = difference_cell(runs, column, tests[reference.name],
                                             entries.trained_column(entry, reference))
            if difference and method.reference:
                difference += f" ({reference.label})"
            rows.append([method.label, trained_seeds(method, runs), failures(entry, method, runs),
                         *(cell(entries.over_seeds(runs, each)) for each in columns), worst(entry, runs, column),
                         difference, million_steps(method, training.get(method.name, {}))])
    names = [each.removeprefix("after_") for each in columns]
    header = [f"{entry.score} after 0, 1, ... steps" if entry.num_steps else entry.value or "method", "seeds",
              "seeds that failed", *(names if entry.num_steps or entry.columns else [entry.score]), "worst quarter",
              "difference from the first method", "million steps"]
    end = -3 if entry.columns else None  # measured values have no training
    return without_empty_columns(header[:end], [row[:end] for row in rows])


def _groups(entry: Entry, tests: ByMethod) -> str:
    rows = []
    for method in entry.methods:
        column = entries.trained_column(entry, method)
        if runs := [run for run in tests.get(method.name, {}).values() if "goal" in run]:
            rows.append([method.label, *(
                ", ".join(f"{exact_mean(run[column][run['goal'] == goal]):.3g}" for run in runs)
                for goal in entry.groups.values())])
    return table(["return of each seed", *entry.groups], rows)


def _curve_table(entry: Entry, training: ByMethod) -> str:
    points = sorted({point for method in entry.methods for point, _ in method.published_curve})
    rows = []
    for method in entry.methods:
        runs, curve = training.get(method.name), dict(method.published_curve)
        if runs and curve:
            rows.append([f"{method.label}, published", "", *(f"{curve[p]:g}" if p in curve else "" for p in points)])
            rows.append([method.label, trained_seeds(method, runs),
                         *(cell(figures.return_at(entry, runs, p)) for p in points)])
    return table(["return in training after million steps", "seeds", *(f"{point:g}" for point in points)], rows)


def _first_result(name: str) -> tuple[str, Optional[float], Optional[Interval], Method, str]:
    """Returns label, published value, measured interval, method and seeds of the first method that has both values.

    If none has both, it is the first method.
    """
    entry, tests, training = ENTRIES[name], entries.read_tests(name), entries.read_training(name)
    found = []
    for method in (method for method in entry.methods if method.name in tests):
        column, label = entries.trained_column(entry, method), method.label
        ours = entries.over_seeds(tests[method.name], column)
        value = dict(zip(entries.score_columns(entry), method.published, strict=False)).get(column)
        for point, at_point in method.published_curve:
            reached = figures.return_at(entry, training[method.name], point)
            if reached is not None:
                ours, value, label = reached, at_point, f"{method.label} after {point:g} million steps"
        found.append((label, value, ours, method, trained_seeds(method, tests[method.name])))
    return min(found, key=lambda each: each[1] is None)


def headline(name: str) -> tuple[str, str, str, str]:
    """Returns what was published, what was measured, the verdict and the seeds; all of one method."""
    label, value, ours, method, seeds = _first_result(name)
    if value is not None:
        return f"{label}: {value:g}", cell(ours), agreement(ours, value, method).partition(" (")[0], seeds
    return "", f"{label}: {cell(ours)}", "", seeds


def seeds_and_minutes(name: str) -> tuple[str, str]:
    """Returns the numbers of seeds of the methods, and the minutes of all trainings together."""
    counts = sorted({len(runs) for runs in entries.read_tests(name).values()})
    times = [run["Time"][-1] for runs in entries.read_training(name).values() for run in runs.values() if "Time" in run]
    return (" to ".join(map(str, dict.fromkeys([*counts[:1], *counts[-1:]]))),
            f"{math.fsum(times) / 60.0:.0f}" if times else "")


def overview() -> str:
    """Returns the page of all results: the template with the most important findings and a row for each entry."""
    findings, rows = [], []
    for name in entries.stored():
        entry = ENTRIES[name]
        link, answer = f"[{entry.title}](results/{name}.md)", fill(name, entry.answer)
        label, _, ours, _, seeds = _first_result(name)
        if entry.in_findings:
            findings.append(f"- {link}. {answer}")
        rows.append([link, "see above" if entry.in_findings else answer, "" if entry.columns or (
            entry.score == "success rate") else f"{label}: {cell(ours)}", seeds])
    text = (entries.HERE / "results.md").read_text(encoding="utf-8")
    for mark, content in (("findings", "\n".join(findings)),
                          ("entries", table(["experiment", "result", "return", "seeds"], rows))):
        text = text.replace(f"<!-- {mark} -->", content)
    return f"{text}\n```{{toctree}}\n:hidden:\n:glob:\n\nresults/*\n```\n"


def readme(text: str) -> str:
    """Replaces the table between two comments in the text of the README."""
    rows = [[f"[{ENTRIES[name].title}](docs/results/{name}.md)", *headline(name)]
            for name in entries.stored() if ENTRIES[name].in_readme]
    begin, end = "<!-- results -->\n", "\n<!-- end -->"
    return (text[:text.index(begin)] + begin + table(["experiment", "published", "here", "verdict", "seeds"], rows)
            + text[text.index(end):])


def write(docs: Path = DOCS, path: Path = README) -> None:
    """Writes all pages and the table of the README."""
    (docs / "results").mkdir(exist_ok=True)
    for name in entries.stored():
        write_text(docs / "results" / f"{name}.md", page(name))
    write_text(docs / "results.md", overview())
    write_text(path, readme(path.read_text(encoding="utf-8")))
