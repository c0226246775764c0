"""Published results: the settings of the runs that repeat them, their stored data and statistics over seeds.

`entries.json` contains settings, question, source and answer of each entry. `data/NAME.csv` contains the test of each
policy: one row per task, with the return after 0, 1, ... adaptation steps. `data/NAME_training.csv` contains returns in
training. Values of entries that do not train have one column each in `data/NAME.csv`.
"""
import csv
import dataclasses
import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Optional

import numpy as np
from scipy.optimize import brentq

from meta_policy_search.plotting import Progress
from meta_policy_search.registry import get_algorithm
from meta_policy_search.settings import read_json
from meta_policy_search.utils.files import write_csv
from meta_policy_search.utils.statistics import Interval, exact_mean, mean_interval

HERE = Path(__file__).resolve().parent
EXPERIMENTS = HERE.parent
DATA = HERE / "data"
UPDATE_COLUMNS = ("LossBefore", "LossAfter", "KLOuter", "MeanKL")  # stored with trainings, if the method has them
MIN_SEEDS = 3  # fewer have no interval and no verdict
FEW_TASKS = ("HalfCheetahRandDirecEnv", "Walker2DRandDirecEnv", "MetaPointEnvCorner", "MetaPointEnvCornerGoals",
             "MetaPointEnvMomentum")
Runs = dict[tuple[str, int], Progress]  # (method, seed) to columns
ByMethod = Mapping[str, Mapping[int, Progress]]  # method to seed to columns


@dataclasses.dataclass(frozen=True)
class Method:
    """One row of a table, trained or measured once per seed."""

    name: str  # name in folders and files
    label: str
    script: str = ""  # name of a script in `experiments`, without `.py`, or of an algorithm
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    seeds: Sequence[int] = (1, 2, 3)
    published: Sequence[Optional[float]] = ()  # by column, if reported
    published_curve: Sequence[tuple[float, float]] = ()  # (million steps, return after adaptation) of a figure
    chance: Optional[float] = None  # published return of random actions; lower means failed, see `pages.agreement`
    tail: float = 0.25  # fraction of the tasks with the lowest returns that the method trains for
    snapshot: Optional[str] = "last"  # the one that is tested; None for the random initialization
    reference: str = ""  # method that the table compares with; default: the first one
    pretrained: str = ""  # name of the pretrained policy, which is that of the lowest seed


@dataclasses.dataclass(frozen=True)
class Entry:
    """A published result, and the runs that repeat it."""

    title: str
    question: str
    source: str
    answer: str  # at most 40 words, also for the table of all entries; see `pages.fill`
    methods: Sequence[Method]
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # settings of all methods
    num_steps: int = 0  # adaptation steps of the test
    halve_steps: bool = False  # whether steps after the first have half the size, as in the MAML paper
    rollouts: Optional[int] = 20  # paths per new task and number of steps; None: as in training
    test_tasks: int = 40  # tasks of the test
    # success rate: by the metaworld package; return of a trial: of all paths, in RL2 and with gradient steps
    score: Literal["mean return", "success rate", "return of a trial"] = "mean return"
    differs: str = ""  # differences from the published settings
    notes: str = ""  # further findings; see `pages.fill`
    groups: Mapping[str, float] = dataclasses.field(default_factory=dict)  # tasks whose returns are listed separately
    measure: str = ""  # function in `measurements` that replaces training and test
    columns: Sequence[str] = ()  # measured columns in the table
    value: str = ""  # meaning of the measured values
    failed_below: Optional[float] = None  # a seed with a lower score after adaptation failed; see `Method.chance`
    in_readme: bool = False  # whether the table of the README contains it
    in_findings: bool = False  # whether the answer is among the most important findings
    with_paths: bool = False  # whether a figure shows paths of the pretrained policies before adaptation


def script_settings(script: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of `meta_policy_search.train` for a training script with the given settings.

    `script` may also be the name of an algorithm that has no script.
    """
    if not (EXPERIMENTS / f"{script}.py").exists():
        return {"algo": script, **settings}
    module = importlib.import_module(f"experiments.{script}")
    return {"env": get_algorithm(module.ALGORITHM).default_settings["env"], "algo": module.ALGORITHM,
            **module.PUBLISHED, **settings}


def _make_entry(methods: Sequence[Mapping[str, Any]], settings: Mapping[str, Any] = {},  # noqa: B006
                based_on: Optional[str] = None, **fields: Any) -> Entry:
    """Builds an entry; its settings override the settings of the preset `configs/BASED_ON.json`."""
    preset = read_json(str(EXPERIMENTS / "configs" / f"{based_on}.json")) if based_on else {}
    return Entry(settings={**preset, **settings}, methods=[Method(**method) for method in methods], **fields)


ENTRIES = {name: _make_entry(**fields) for name, fields in read_json(str(HERE / "entries.json")).items()}


# Stored data -------------------------------------------------------------------------------------------------------


def read_runs(path: Path) -> Runs:
    """Reads the runs in a CSV file; an empty dict if the file does not exist.

    Raises:
        ValueError: the file is damaged.
    """
    if not path.exists():
        return {}
    text = path.read_text(encoding="utf-8")
    header, *rows = list(csv.reader(text.splitlines())) or [[]]
    groups: dict[tuple[str, int], list[list[str]]] = {}
    try:
        if header[:2] != ["method", "seed"] or not text.endswith("\n"):
            raise ValueError("incomplete")
        for method, seed, *cells in rows:
            groups.setdefault((method, int(seed)), []).append(cells)
        runs = {run: {name: np.array(column, float) for name, column in zip(header[2:], zip(*cells, strict=True),
                                                                             strict=True) if any(column)}
                for run, cells in groups.items()}
        numbered = [next(iter(columns.values())) for columns in runs.values()]  # tasks or iterations
        lengths = set(map(len, numbered))
        if not all(np.array_equal(column, np.arange(len(column))) for column in numbered) or (
                "task" in header and len(lengths) > 1):
            raise ValueError("missing rows")
    except ValueError as error:
        raise ValueError(f"{path}: expected a complete table with the columns method, seed, ..., got a damaged file "
                         f"({error}); restore or delete it") from error
    return runs


def write_runs(path: Path, runs: Runs) -> None:
    """Writes runs to a CSV file, with six significant digits."""
    header = list(dict.fromkeys(column for columns in runs.values() for column in columns))
    rows = [(*run, *(f"{columns[name][i]:.6g}" if name in columns else "" for name in header))
            for run, columns in sorted(runs.items()) for i in range(len(next(iter(columns.values()))))]
    write_csv(path, [("method", "seed", *header), *rows])


def read_machines() -> dict[str, str]:
    """Reads the BLAS kernel and the library versions of stored results, by ENTRY/METHOD/SEED, if recorded."""
    return read_json(str(DATA / "machines.json")) if (DATA / "machines.json").exists() else {}


def by_method(runs: Runs) -> ByMethod:
    """Groups runs: method to seed to columns."""
    return {method: {seed: columns for (other, seed), columns in runs.items() if other == method}
            for method in dict.fromkeys(method for method, _ in runs)}


def read_training(name: str) -> ByMethod:
    """Reads the returns of an entry in training: method to seed to columns."""
    return by_method(read_runs(DATA / f"{name}_training.csv"))


def read_tests(name: str) -> ByMethod:
    """Reads the tests or the measured values of an entry: method to seed to columns."""
    return by_method(read_runs(DATA / f"{name}.csv"))


def stored() -> list[str]:
    """Returns the names of the entries that have data."""
    return [name for name in ENTRIES if (DATA / f"{name}.csv").exists()]


# Statistics --------------------------------------------------------------------------------------------------------


def score_columns(entry: Entry) -> list[str]:
    """Returns the columns of a test: those after 0, 1, ... steps, or the measured columns."""
    return list(entry.columns) or [f"after_{step}" for step in range(entry.num_steps + 1)]


def trained_column(entry: Entry, method: Method) -> str:
    """Returns the column after as many steps as in training, but at least one; without steps for an oracle.

    For measured values, it is the first column.
    """
    settings = {**entry.settings, **method.settings}
    steps = 0 if settings.get("observe_task") else max(1, settings.get("num_inner_grad_steps", 1))
    return score_columns(entry)[min(entry.num_steps, steps)]


Statistic = Callable[[Progress, str], np.ndarray]
"""Values of a column of a run whose mean is its result: one per test task, or a single one."""


def by_goal(run: Progress, column: str) -> np.ndarray:
    """Returns the mean for each goal if the test repeats two or four tasks; otherwise an empty array.

    The test repeats them for forward and backward and for the four corners. There are no other tasks.
    """
    goals = run.get("goal", np.arange(0))
    found = np.unique(goals)
    return np.array([exact_mean(run[column][goals == goal]) for goal in found if len(found) <= 4])


def by_task(run: Progress, column: str) -> np.ndarray:
    """Returns the values of a run by test task, or a single value if the test repeats two or four tasks.

    The single value is the mean over these tasks, with equal weights. It does not depend on a sample of tasks.
    """
    of_goals = by_goal(run, column)
    return np.atleast_1d(exact_mean(of_goals)) if len(of_goals) else run[column]


def mean_of(run: Progress, column: str) -> float:
    """Returns the mean over the test tasks of a run."""
    return float(exact_mean(by_task(run, column)))


def over_seeds_and_tasks(values: Sequence[np.ndarray], level: float = 0.95) -> Optional[Interval]:
    """Returns the mean over seeds and test tasks; its interval is one for new seeds and new tasks.

    All seeds are tested in the same tasks, so an interval over seeds does not contain the variation over tasks. The
    half width is the root of `a^2 + b^2`. `a` is the half width over seeds, from the mean over tasks of each seed; `b`
    is the half width over tasks, from the mean over seeds of each task (both Student's t). With fewer than `MIN_SEEDS`
    seeds, there is no interval: the half width is NaN.

    Args:
        values: for each seed, the values in all tasks. If there is one value per seed, `b` is zero.
        level: confidence level. Default: 0.95.
    """
    if not values:
        return None
    seeds, tasks = mean_interval(exact_mean(values, 1), level), mean_interval(exact_mean(values, 0), level)
    half_width = np.sqrt(seeds.half_width ** 2 + np.nan_to_num(tasks.half_width) ** 2)
    return seeds._replace(half_width=half_width if len(values) >= MIN_SEEDS else np.full_like(half_width, np.nan))


def over_seeds(runs: Mapping[int, Progress], column: str, statistic: Statistic = by_task) -> Optional[Interval]:
    """Returns the mean of a column over seeds and tasks with its interval; None without data."""
    return over_seeds_and_tasks([statistic(run, column) for run in runs.values() if column in run])


def differences(runs: Mapping[int, Progress], column: str, others: Mapping[int, Progress], other_column: str,
                statistic: Statistic = by_task) -> list[np.ndarray]:
    """Returns the differences of two methods, paired by seed and task: for each common seed, those of its tasks."""
    return [statistic(runs[seed], column) - statistic(others[seed], other_column) for seed in runs if seed in others]


def p_value(values: Sequence[np.ndarray]) -> float:
    """Returns the two-sided p-value of the mean over seeds and tasks: an interval of level `1 - p` ends at zero.

    The smallest returned value is 1e-9.
    """
    def distance(p: float) -> float:
        interval: Any = over_seeds_and_tasks(values, 1.0 - p)
        return float(interval.half_width - abs(interval.mean))

    return 1e-9 if distance(1e-9) <= 0.0 else float(brentq(distance, 1e-9, 1.0 - 1e-9))


def has_few_tasks(entry: Entry) -> bool:
    """Returns whether a test repeats two or four tasks, so that it has no worst quarter."""
    return entry.settings.get("env") in FEW_TASKS
