"""The page of the reference table, and a figure per world."""
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from experiments.reproduction import entries, figures, pages, reference
from experiments.reproduction.entries import ByMethod, Entry, Method
from meta_policy_search.plotting import Progress, style
from meta_policy_search.utils.files import write_text
from meta_policy_search.utils.statistics import exact_mean

PAGE = "reference_table.md"


def write(docs: Path) -> None:
    """Writes the page, if a world has data."""
    if reference.stored_worlds():
        write_text(docs / "results" / PAGE, page())


def page() -> str:
    """Returns the page of the reference table, with a section per world that has data."""
    return "\n\n".join(["# Reference table", (entries.HERE / "reference.md").read_text(encoding="utf-8").rstrip(),
                        *("\n\n".join(filter(None, _section(world))) for world in reference.stored_worlds())]) + "\n"


def _section(world: str) -> Iterator[str]:
    entry, tests = reference.entry_of(world), reference.final_runs(world)
    yield f"## {entry.title}"
    if {"trpo_maml", "all_tasks"} <= tests.keys():
        first, second = compared(tests, "after_1"), compared(tests, "after_2")
        yield ("TRPO-MAML compared with one policy for all tasks, both after one gradient step (step sizes below): "
               f"{first}. Compared after the trainings: with the one policy after a second step, {second}.")
    yield (f"Stated return: {reference.WORLDS[world].stated_return:g}. A seed failed if its return is below "
           f"{entry.failed_below:g}.")
    yield pages.main_table(entry, tests, {})
    better = _better(entry, tests)
    rows = [[method.label, better[method.name], failed_in_a_task(entry, method, tests[method.name]),
             _million_steps(tests[method.name]),
             _settings(world, method.name, tests[method.name])]
            for method in entry.methods if method.name in tests]
    yield pages.without_empty_columns(
        ["method", "returns more than", "seeds that failed in a task", "million steps to the stated return",
         "chosen settings"], rows)
    yield reference.WORLDS[world].notes
    yield f"![Test of each seed](../../experiments/reproduction/figures/reference_{world}.svg)"


def compared(tests: ByMethod, column: str) -> str:
    """Compares TRPO-MAML after one gradient step with the one policy for all tasks in a column."""
    found = entries.differences(tests["trpo_maml"], "after_1", tests["all_tasks"], column)
    p = entries.p_value(found)
    return (f"{pages.verdict(entries.over_seeds_and_tasks(found))} ({pages.p_text(p)}; corrected for four worlds: "
            f"{pages.p_text(min(len(reference.WORLDS) * p, 1.0))})")


def _settings(world: str, method: str, runs: Mapping[int, Progress]) -> str:
    """Returns the chosen settings; (-) and (+) after the inner step mark the smallest and the largest searched one."""
    searched = reference.configurations(world, method)
    chosen = searched[reference.chosen_configuration(runs)]
    steps = sorted({values["inner_lr"] for values in searched if "inner_lr" in values})
    step, text = chosen.get("inner_lr"), ", ".join(f"`{name}={value!r}`" for name, value in chosen.items())
    return text + " (-)" * (step in steps[:1]) + " (+)" * (step in steps[-1:])


def failed_in_a_task(entry: Entry, method: Method, runs: Mapping[int, Progress]) -> str:
    """Returns the number of seeds below the limit of a failure in at least one of two or four tasks."""
    lowest = [entries.by_goal(run, entries.trained_column(entry, method)).min(initial=np.inf) for run in runs.values()]
    return "" if np.isinf(lowest).all() else str(int(np.sum(np.array(lowest) < entry.failed_below)))


def _million_steps(runs: Mapping[int, Progress]) -> str:
    """Returns median and range of the steps to the stated return; empty if half of the seeds did not reach it."""
    steps = np.array([run.get("steps_to_return", [np.nan])[0] for run in runs.values()]) / 1e6
    if 2 * np.isfinite(steps).sum() <= len(steps):
        return ""
    high = f"{np.max(steps):.3g}" if np.isfinite(steps).all() else "not reached"
    return f"{np.median(np.nan_to_num(steps, nan=np.inf)):.3g} ({np.nanmin(steps):.3g} to {high})"


def _better(entry: Entry, tests: ByMethod) -> dict[str, str]:
    """Returns the methods that each method returns more than; all intervals together have level 95% (Bonferroni).

    The level is that for all methods of the protocol, also if some were not trained yet.
    """
    methods = {method.name: method for method in entry.methods if method.name in tests}
    level = 1.0 - 0.05 / (len(entry.methods) * (len(entry.methods) - 1) // 2)
    found: dict[str, list[str]] = {name: [] for name in methods}
    for first, second in itertools.permutations(methods, 2):
        interval = entries.over_seeds_and_tasks(entries.differences(
            tests[first], entries.trained_column(entry, methods[first]),
            tests[second], entries.trained_column(entry, methods[second])), level)
        if interval is not None and interval.mean - interval.half_width > 0.0:
            found[first].append(methods[second].label)
    return {name: ", ".join(labels) for name, labels in found.items()}


def draw(world: str) -> None:
    """Plots the test of each seed as a dot, and the mean of each method as a bar."""
    entry, tests = reference.entry_of(world), reference.final_runs(world)
    methods = [method for method in entry.methods if method.name in tests]
    with style.figure_axes(figures.FIGURES / f"reference_{world}.svg", f"{entry.title}; dots: test of each seed",
                           height=1.0 + 0.35 * len(methods)) as all_axes:
        axes = all_axes[0, 0]
        for place, method in enumerate(methods):
            column = entries.trained_column(entry, method)
            returns = [entries.mean_of(run, column) for run in tests[method.name].values()]
            axes.plot(returns, np.full(len(returns), place), "o", markersize=4, color=style.COLORS[0], alpha=0.6)
            axes.plot([exact_mean(returns)], [place], "|", markersize=14, color=style.COLORS[1])
        axes.set_yticks(range(len(methods)), [method.label for method in methods])
        axes.set_ylim(len(methods) - 0.5, -0.5)
        axes.set_xlabel("score")
        axes.grid(color=style.GRID_COLOR, linewidth=0.6)
