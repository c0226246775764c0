"""Pages of the results: one per entry, the leaderboards, the overview and the table of the README.

Every number on these pages is computed from the data in `data`. All intervals are 95% intervals over seeds (Student's
t, one number per seed); those of differences also contain the variation over test tasks.
"""
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

import numpy as np

from experiments.reproduction import figures
from experiments.reproduction.entries import (
    ENTRIES,
    EXPERIMENTS,
    HERE,
    ByMethod,
    Entry,
    Method,
    by_task,
    over_seeds,
    over_seeds_and_tasks,
    read_tests,
    read_training,
    score_columns,
    stored,
    trained_column,
)
from experiments.reproduction.entries import difference as difference_of
from meta_policy_search.plotting import Progress
from meta_policy_search.utils.files import write_text
from meta_policy_search.utils.statistics import Interval, exact_mean, worst_quarter

DOCS, README = EXPERIMENTS.parent / "docs", EXPERIMENTS.parent / "README.md"
REFERENCE = "pro_mp"  # the method that leaderboards compare with


# Cells -------------------------------------------------------------------------------------------------------------


def cell(interval: Optional[Interval], sign: str = "") -> str:
    """Formats a mean and its interval; a single seed has no interval."""
    if interval is None:
        return ""
    largest = np.nanmax(np.abs(interval))
    exponent = int(f"{largest or 1.0:.12e}".partition("e")[2])  # of ten
    places = min(max(2 - exponent, 0), 6)  # three significant digits
    width = f" ± {interval.half_width:.{places}f}" if np.isfinite(interval.half_width) else ""
    return f"{interval.mean:{sign}.{places}f}{width}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Formats a Markdown table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, ["---"] * len(header), *rows])


def verdict(difference: Optional[Interval]) -> str:
    """Says whether a difference was found; only an interval without zero is a difference."""
    if difference is None:
        return "not measured"
    if np.isnan(difference.half_width):
        return f"{cell(difference, '+')} (one seed, no interval)"
    found = abs(difference.mean) > difference.half_width
    return cell(difference, "+") if found else f"no difference was found ({cell(difference, '+')})"


def fill(name: str, text: str) -> str:
    """Replaces expressions in a text by numbers, for methods A and B.

    `{A}` is the mean after as many steps as in training, `{A 2}` the mean in column 2 (counted from 0). `{A - B}` and
    `{A - B 2}` are differences, paired by seed and task; `{A - before}` is the adaptation gain. `{A - zero 2}` says
    whether the mean differs from zero, `{A - published 2}` whether it differs from the published value, and
    `{A - curve 30}` whether the return in training after 30 million steps does. `{worst A - B}` is the difference in
    the worst quarter of the tasks.
    """
    entry, tests = ENTRIES[name], read_tests(name)
    methods = {method.name: method for method in entry.methods}

    def value(match: re.Match) -> str:
        is_worst, first, second, column = match.groups()
        if second == "curve":
            ours = figures.return_at(entry, read_training(name).get(first, {}), float(column))
            return verdict(_minus(ours, dict(methods[first].published_curve)[float(column)]))
        columns = [score_columns(entry)[int(column)] if column else trained_column(entry, methods[method])
                   for method in (first, second if second in methods else first)]
        if second in ("published", "zero"):
            published = methods[first].published if second == "published" else [0.0] * 99
            ours = over_seeds_and_tasks([by_task(run, columns[0]) for run in tests.get(first, {}).values()])
            return verdict(_minus(ours, published[score_columns(entry).index(columns[0])]))
        if second is None:
            return cell(over_seeds(tests.get(first, {}), columns[0])) or "not measured"
        if second == "before":
            second, columns[1] = first, score_columns(entry)[0]
        statistic = (lambda run, column: worst_quarter(run[column])) if is_worst else by_task
        return verdict(difference_of(tests.get(first, {}), columns[0], tests.get(second, {}), columns[1], statistic))

    return re.sub(r"\{(worst )?(\w+)(?: - (\w+))?(?: (\d+))?\}", value, text)


def _minus(interval: Optional[Interval], value: Any) -> Optional[Interval]:
    return interval and interval._replace(mean=interval.mean - value)


def cost(method: Method, training: Mapping[int, Progress]) -> list[str]:
    """Returns the cells million steps and minutes of a training."""
    found = [over_seeds(training, column, lambda values: values[-1]) if method.snapshot else None
             for column in ("n_timesteps", "Time")]
    return ["" if each is None else f"{each.mean / unit:.{places}f}"
            for each, unit, places in zip(found, (1e6, 60.0), (1, 0), strict=True)]


def worst(runs: Mapping[int, Progress], column: str) -> str:
    """Returns the cell of the worst quarter of the tasks; empty if single tasks were not recorded."""
    has_tasks = min(len(columns["task"]) for columns in runs.values()) > 1
    return cell(over_seeds(runs, column, worst_quarter)) if has_tasks else ""


def published(method: Method, columns: int) -> list[str]:
    """Returns the published values of a method by column; an empty list if there are none."""
    values = [*method.published, *[None] * columns][:columns]
    return ["" if value is None else f"{value:g}" for value in values] if any(method.published) else []


# Pages -------------------------------------------------------------------------------------------------------------


def page(name: str) -> str:
    """Returns the page of an entry that has data."""
    entry, tests, training = ENTRIES[name], read_tests(name), read_training(name)
    parts = [f"# {entry.title}", f"{entry.question} {fill(name, entry.answer)}", "\n".join(_conditions(name, entry)),
             _main_table(entry, tests, training)]
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
        tested = f"{entry.test_tasks} sampled tasks; paths per task and step: {paths}{sizes}"
        yield "- Test: " + ("evaluation of the metaworld package" if entry.score == "success rate" else tested if
                              entry.test_tasks else "means of the last 20 iterations of training")
    if entry.differs:
        yield f"- Differences: {entry.differs}"
    yield (f"- Command: `python -m experiments.reproduce {name}`" if entry.settings or entry.measure else
           "- The script that measured these values is not part of this version.")


def _listed(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"`{key}={value!r}`" for key, value in settings.items())


def _main_table(entry: Entry, tests: ByMethod, training: ByMethod) -> str:
    columns, rows = score_columns(entry), []
    methods = {method.name: method for method in entry.methods if method.name in tests}
    for method in entry.methods:
        if values := published(method, len(columns)):
            rows.append([f"{method.label}, published", "", *values, *[""] * 4])
        if runs := tests.get(method.name):
            column, reference = trained_column(entry, method), methods.get(method.reference or next(iter(methods)))
            cells = [cell(over_seeds(runs, each)) for each in columns] if not entry.columns else [
                cell(over_seeds_and_tasks([run[each] for run in runs.values() if each in run])) for each in columns]
            difference = cell(difference_of(runs, column, tests[reference.name], trained_column(entry, reference)),
                              "+") if reference and reference is not method else ""
            named = f" ({reference.label})" if reference and method.reference and difference else ""
            rows.append([method.label, str(len(runs)), *cells, worst(runs, column), difference + named,
                         *cost(method, training.get(method.name, {}))])
    names = [each.removeprefix("after_") for each in columns]
    header = ([f"{entry.score} after 0, 1, ... steps", "seeds", *names] if entry.num_steps else
              [entry.value or "method", "seeds", *(names if entry.columns else [entry.score])])
    return table(header, [row[:-4] for row in rows]) if entry.columns else table(
        [*header, "worst quarter", "difference from the first method", "million steps", "minutes"], rows)


def _groups(entry: Entry, tests: ByMethod) -> str:
    rows = []
    for method in entry.methods:
        runs = [run for run in tests.get(method.name, {}).values() if "goal" in run]
        rows.append([method.label, *(
            ", ".join(f"{exact_mean(run[trained_column(entry, method)][run['goal'] == goal]):.0f}" for run in runs)
            for goal in entry.groups.values())] if runs else [])
    return table(["return of each seed", *entry.groups], list(filter(None, rows)))


def _curve_table(entry: Entry, training: ByMethod) -> str:
    points = sorted({point for method in entry.methods for point, _ in method.published_curve})
    rows = []
    for method in entry.methods:
        runs, curve = training.get(method.name), dict(method.published_curve)
        if runs and curve:
            rows.append([f"{method.label}, published", "", *(f"{curve[p]:g}" if p in curve else "" for p in points)])
            rows.append([method.label, str(len(runs)), *(cell(figures.return_at(entry, runs, p)) for p in points)])
    return table(["return in training after million steps", "seeds", *(f"{point:g}" for point in points)], rows)


def headline(name: str) -> tuple[str, str, str]:
    """Returns what was published, what was measured and the number of seeds, for the first method that has both."""
    entry, tests, training = ENTRIES[name], read_tests(name), read_training(name)
    found = []
    for method in (method for method in entry.methods if method.name in tests):
        column, label = trained_column(entry, method), method.label
        ours = over_seeds(tests[method.name], column)
        value = dict(zip(score_columns(entry), method.published, strict=False)).get(column)
        for point, at_point in method.published_curve:
            reached = figures.return_at(entry, training[method.name], point)
            if reached is not None:
                ours, value, label = reached, at_point, f"{method.label} after {point:g} million steps"
        found.append((value is None, label, value, cell(ours), str(len(tests[method.name]))))
    _, label, value, ours, seeds = min(found, key=lambda each: each[0])
    if value is not None:
        return f"{label}: {value:g}", ours, seeds
    return "", "" if entry.columns else f"{label}: {ours}", seeds


def seeds_and_minutes(name: str) -> tuple[str, str]:
    """Returns the numbers of seeds of the methods, and the minutes of all trainings together."""
    counts = sorted({len(runs) for runs in read_tests(name).values()})
    times = [run["Time"][-1] for runs in read_training(name).values() for run in runs.values() if "Time" in run]
    return (" to ".join(map(str, dict.fromkeys([*counts[:1], *counts[-1:]]))),
            f"{math.fsum(times) / 60.0:.0f}" if times else "")


def overview() -> str:
    """Returns the table of all entries that have data."""
    rows = [[f"[{name}](results/{name}.md)", ENTRIES[name].question, fill(name, ENTRIES[name].answer),
             *headline(name)[:2], *seeds_and_minutes(name)] for name in stored()]
    entries = table(["entry", "question", "answer", "published", "here", "seeds", "minutes"], rows)
    return f"{entries}\n\n```{{toctree}}\n:hidden:\n:glob:\n\nresults/*\n```"


def leaderboards() -> str:
    """Returns the tables of all methods in an environment, best method first."""
    boards: dict[str, list[tuple[str, Method]]] = {}
    for name in stored():
        for method in ENTRIES[name].methods:
            if method.board and method.name in read_tests(name):
                boards.setdefault(method.board, []).append((name, method))
    parts = []
    for heading, lines in boards.items():
        (others, reference), = ((name, method) for name, method in lines if method.name == REFERENCE)
        rows = []
        for name, method in lines:
            runs, column = read_tests(name)[method.name], trained_column(ENTRIES[name], method)
            mean: Any = over_seeds(runs, column)
            difference = None if method is reference else difference_of(
                runs, column, read_tests(others)[REFERENCE], trained_column(ENTRIES[others], reference))
            rows.append((-mean.mean, [
                method.label, f"[{name}]({name}.md)", str(len(runs)), cell(mean), worst(runs, column),
                cell(difference, "+"), cost(method, read_training(name)[method.name])[0]]))
        header = ["method", "entry", "seeds", "mean return", "worst quarter", "difference from ProMP", "million steps"]
        parts.append(f"## {heading}\n\n{table(header, [row for _, row in sorted(rows)])}")
    return "\n\n".join(parts)


def readme(text: str) -> str:
    """Replaces the table between two comments in the text of the README."""
    rows = [[f"[{ENTRIES[name].title}](docs/results/{name}.md)", *headline(name)]
            for name in stored() if ENTRIES[name].in_readme]
    begin, end = "<!-- results -->\n", "\n<!-- end -->"
    return (text[:text.index(begin)] + begin + table(["experiment", "published", "here", "seeds"], rows)
            + text[text.index(end):])


def write(docs: Path = DOCS, path: Path = README) -> None:
    """Writes all pages and the table of the README."""
    (docs / "results").mkdir(exist_ok=True)
    for name in stored():
        write_text(docs / "results" / f"{name}.md", page(name))
    for target, content in (("results", overview()), ("results/leaderboards", leaderboards())):
        begin = (HERE / f"{Path(target).name}.md").read_text(encoding="utf-8")
        write_text(docs / f"{target}.md", f"{begin}\n{content}\n")
    write_text(path, readme(path.read_text(encoding="utf-8")))
