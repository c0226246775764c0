"""Trains with all combinations of some settings in parallel processes, and compares the returns."""
import copy
import functools
import hashlib
import itertools
import json
import os
import re
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Union

import numpy as np

from meta_policy_search.parallel_runs import train_all
from meta_policy_search.plotting import collect_curves, plot_comparison
from meta_policy_search.plotting.style import Figure
from meta_policy_search.registry import find_algorithm, title_of
from meta_policy_search.run import check_settings, find_algo_class, find_env_name, load_run, others_with
from meta_policy_search.run_folder import RunInfo, now
from meta_policy_search.run_spec import as_json
from meta_policy_search.settings import check_names
from meta_policy_search.types import Task
from meta_policy_search.utils.checks import check_bool, check_int_at_least, check_positive_int, check_type
from meta_policy_search.utils.files import PathLike, user_path, write_csv
from meta_policy_search.utils.progress import print_line, shown_as_text, text_table
from meta_policy_search.utils.statistics import exact_mean, mean_interval

SUMMARY = "summary.csv"
_MAX_NAME = 100  # bytes of the name of a run folder; the limit of file systems is 255


@shown_as_text
class Comparison:
    """Runs of several algorithms, or with several settings. Returned by `compare` and `sweep`; shown as a table.

    Each row of the table is an algorithm, or a combination of settings, with all its seeds. All values are means over
    seeds of the means over the last quarter of the iterations of each complete run, at most ten, or of the means over
    the tasks of `evaluate`. Numbers after `+-` are
    half the width of the 95% interval over seeds (Student's t, one number per seed); a single seed has no interval.

    * `return`: return after adaptation;
    * `worst quarter`: the same over the 25% of tasks with the lowest return; empty for RL2;
    * `gain`: return after adaptation minus return before, with the lowest gain of a run in brackets;
    * `difference`: difference of the return from that of the first row, paired by seed: runs with the same seed have
      the same tasks. With a `task_sampler`, they have different tasks; compare evaluations of the runs instead. Empty
      if only one of the two adapts, because the other one learns a single task;
    * `success`: success rate after adaptation, if a run has one;
    * `steps`: mean number of environment steps of a run;
    * `runs`: number of complete runs and of all runs.

    For RL2, the return before and after adaptation is that of the first and last episode of a trial.

    Args:
        title (str): title of plots.
        runs (dict): for each row, the numbers of iterations of its runs by folder.
        was_interrupted (bool): whether Ctrl-C stopped the runs; default False.

    Attributes:
        runs (dict): for each row, the list of the folders of its complete runs.
        is_complete (bool): whether all runs are complete.
    """

    def __init__(self, title: str, runs: Mapping[str, Mapping[str, int]], was_interrupted: bool = False) -> None:
        self.title, self.was_interrupted = title, was_interrupted
        self._numbers = {name: len(group) for name, group in runs.items()}
        self._infos = {name: {i: info for i, (folder, n_itr) in enumerate(group.items())
                              if (info := RunInfo.read(folder)).is_done(n_itr)}
                       for name, group in runs.items()}  # by number of the seed
        self.runs = {name: [info.folder for info in infos.values()] for name, infos in self._infos.items()}
        self.is_complete = all(len(self.runs[name]) == count for name, count in self._numbers.items())
        self._results, self._source = self._infos, "the last quarter of the iterations (at most ten)"
        self._titles = {name: title_of(name) for name in runs}
        if len(set(self._titles.values())) < len(self._titles):  # a class with the name of a built-in algorithm
            self._titles = {name: name for name in runs}

    def evaluate(self, tasks: Union[int, str, Sequence[Task]] = 40, num_steps: Optional[int] = None,
                 seeds: Sequence[int] = (1,), deterministic: bool = False) -> "Comparison":
        """Evaluates the last policies of all complete runs in the same tasks, for example in test tasks.

        Args:
            tasks: the tasks, their number, or `"test"`: the fixed test tasks of the environment, see `Run.evaluate`.
                Default 40.
            num_steps: number of adaptation steps; default None, that of each run.
            seeds: seeds of tasks and paths, see `Run.evaluate`; default `(1,)`.
            deterministic: whether to measure returns without the noise of the policies; default False.

        Returns:
            A comparison whose table contains the returns in these tasks.

        Raises:
            TypeError: an algorithm learns a single task.
            SnapshotError, ValueError: a run has no snapshot, or an argument is invalid.
        """
        evaluated = copy.copy(self)
        evaluated._results = {name: {} for name in self._infos}
        for name, infos in self._infos.items():
            for seed, info in infos.items():
                run = load_run(info.folder).evaluate(tasks, num_steps, seeds=seeds, deterministic=deterministic)
                columns = {f"Step_{step}-AverageReturn": value for step, value in enumerate(run.mean_return.mean)}
                if run.success_rate is not None:
                    columns[f"Step_{len(columns) - 1}-SuccessRate"] = run.success_rate[-1]
                columns.update(WorstQuarterReturn=run.worst_quarter[-1], n_timesteps=info.progress["n_timesteps"][-1])
                evaluated._results[name][seed] = info._replace(
                    progress={column: np.array([value]) for column, value in columns.items()})
                evaluated._source = f"{len(run.task_returns)} {f'{tasks} ' * isinstance(tasks, str)}tasks"
        return evaluated

    def plot(self, path: Optional[PathLike] = None, ax: Any = None) -> Figure:
        """Plots the mean returns of each row over environment steps, and the single runs as thin lines.

        Rows with at least five runs have bands, 95% intervals over seeds. For runs with many iterations, lines are
        running means over about 2% of the iterations.

        Args:
            path: file to write: the ending (such as `.svg` or `.png`) determines the format. Default None: no file.
            ax: Matplotlib axes to draw into, see `plotting.plot_comparison`. Default None: a new figure.

        Raises:
            ValueError: no run is complete, or the number of axes is wrong.
        """
        panels = collect_curves({self._titles[name]: [info.progress for info in infos.values()]
                                 for name, infos in self._infos.items()})
        if not panels:
            raise ValueError("plot: expected at least one complete run, got none")
        names = [name for name, infos in self._infos.items() if infos]
        title = self.title if len(names) > 1 else f"{self._titles[names[0]]} on {self.title}"
        smooth = max(len(x) for curves in panels.values() for curve in curves.values() for x, _ in curve) // 50
        return plot_comparison(panels, path, title, "environment steps, all tasks", smooth=max(1, smooth), ax=ax)

    def __str__(self) -> str:
        table = [["", "return", "worst quarter", "gain (lowest)", "difference", "success", "steps", "runs"]]
        first = next(iter(self._results.values()))
        for number, (name, infos) in enumerate(self._results.items()):
            runs = list(infos.values())
            worst, gains, rates = ([value for value in values if value is not None] for values in (
                [run.worst_quarter for run in runs], [run.gain for run in runs], [run.success for run in runs]))
            paired = [run.after - first[seed].after for seed, run in infos.items()
                      if seed in first and number and (run.gain is None) == (first[seed].gain is None)]
            table.append([self._titles[name], _interval([run.after for run in runs]), _interval(worst),
                          f"{_interval(gains, '+')} ({np.min(gains):+.2f})" if gains else "", _interval(paired, "+"),
                          f"{exact_mean(rates):.2f}" if rates else "",
                          f"{exact_mean([run.progress['n_timesteps'][-1] for run in runs]):,.0f}" if runs else "",
                          f"{len(runs)} of {self._numbers[name]}"])
        notes = [text for column, text in (
            (2, "worst quarter: return in the 25% of tasks with the lowest returns"),
            (3, "gain: return after minus before adaptation, in brackets that of the run with the lowest gain"),
            (4, "difference: from the return of the first row, paired by seed")) if any(
                row[column] for row in table[1:])]
        if not any(row[5] for row in table[1:]):
            table = [[*row[:5], *row[6:]] for row in table]
        note = "one seed: no intervals" if max(self._numbers.values()) == 1 else "+-: 95% intervals over seeds"
        adapts = any(row[3] for row in table[1:])
        title = f"{self.title}, return{' after adaptation' * adapts} ({note})"
        lines = text_table(table, right=range(1, len(table[0])))
        return "\n".join([title, f"Means over {self._source}", *notes, lines])


def _interval(values: Sequence[float], sign: str = "") -> str:
    return f"{mean_interval(np.array(values)):{sign}.2f}" if values else ""


def sweep(env: Any, algo: Union[str, type, None], grid: Mapping[str, Iterable[Any]],
          folder: Optional[PathLike] = None, processes: Optional[int] = None, resume: bool = False,
          **settings: Any) -> Comparison:
    """Trains with all combinations of some settings in parallel processes, and compares the returns.

    Each run has a folder that is named after its values. The file `summary.csv` contains a row for each run. Ctrl-C
    stops all runs. To continue, call the function again with the same arguments, the `folder` and `resume=True`: it
    skips complete runs, resumes interrupted runs and repeats failed runs. A larger `n_itr` or a larger grid extends a
    sweep. All settings must equal those in the `params.json` of the runs; of objects such as environments and policies,
    only what this file records is compared. If the file of a module that a name MODULE:NAME refers to has changed, a
    warning is printed.

    Environments and classes may be defined in a script or notebook. The processes of the runs import the user's modules
    again, so assignments to variables of these modules have no effect on the runs.

    Args:
        env: environment, or the name of one, as for `train`; None if `env` is in the grid.
        algo: algorithm, as for `train`; None if `algo` is in the grid.
        grid: for each setting that varies, the list of its values, such as `{"inner_lr": [0.1, 0.2], "seed": [1, 2]}`.
        folder: folder of the runs. Default None: `data/sweeps/<environment>/<time>`.
        processes: number of runs at a time, which share the cores. Default None: the number of cores.
        resume: whether to continue the runs in `folder`. Default False: a folder with runs is an error.
        **settings: settings of `train` for all runs, such as `n_itr`.

    Returns:
        The comparison of the complete runs, with a row for each combination of settings other than the seed. The errors
        of failed runs are printed.

    Raises:
        TypeError, ValueError: an argument is invalid, or the folder contains runs, and `resume` is False or their
            settings differ.
        RuntimeError: all runs failed.
    """
    return _sweep("sweeps", {"env": env, "algo": algo, **settings}, grid, {}, folder, processes, resume)


def compare(env: Any, algorithms: Sequence[Union[str, type]],
            seeds: Union[int, Sequence[int]] = 3, n_itr: int = 100, folder: Optional[PathLike] = None,
            processes: Optional[int] = None, settings_of: Optional[Mapping[str, Mapping[str, Any]]] = None,
            resume: bool = False, **settings: Any) -> Comparison:
    """Trains several algorithms with several seeds in parallel processes, and compares their returns.

    This is a `sweep` over `algo` and `seed`; see there for Ctrl-C, `resume`, and environments and classes of a script.

    Args:
        env: environment, or the name of one, as for `train`.
        algorithms: names or classes, as for `train`. `Comparison.runs` names a class by its class name.
        seeds: number of seeds, which are then 1, 2, ..., or a list of seeds. Default 3.
        n_itr: number of iterations of each run; default 100.
        folder: folder of the runs. Default None: `data/comparison/<environment>/<time>`.
        processes: number of runs at a time, which share the cores. Default None: the number of cores.
        settings_of: further settings of single algorithms, by their names in `Comparison.runs`, such as
            `{"trpo_maml": {"step_size": 0.02}}`. Default None.
        resume: whether to continue the runs in `folder`. Default False: a folder with runs is an error.
        **settings: settings of `train` such as `meta_batch_size`. Each setting is passed to every algorithm that has
            it.

    Returns:
        The comparison of the complete runs. The errors of failed runs are printed.

    Raises:
        TypeError, ValueError: an argument is invalid, no algorithm has a setting, or the folder contains runs, and
            `resume` is False or their settings differ.
        RuntimeError: all runs failed.
    """
    if isinstance(seeds, (int, np.integer)):
        seeds = range(1, check_positive_int("seeds", seeds) + 1)
    check_type("seeds", seeds, Iterable, "a number of seeds or a list of seeds")
    numbers = [check_int_at_least("seeds", seed, 0) for seed in seeds]
    if isinstance(algorithms, (str, type, Mapping)) or not isinstance(algorithms, Iterable):
        raise TypeError(f"algorithms: expected a list of names or classes, got {algorithms!r}")
    algorithms = list(algorithms)
    names = [_name_of(algorithm) for algorithm in algorithms]
    for argument, values in (("algorithms", names), ("seeds", numbers)):
        if not values or len({*values}) < len(values):
            raise ValueError(f"{argument}: expected at least one, without duplicates, got {values}")
    settings_of = check_type("settings_of", settings_of or {}, Mapping, "a dict of dicts")
    for name, changed in settings_of.items():
        if name not in names:
            raise ValueError(f"settings_of: expected names among {', '.join(names)}, got {name!r}")
        if {"env", "seed"} & check_type("settings_of", changed, Mapping, "a dict of dicts").keys():
            raise ValueError(f"settings_of: expected neither 'env' nor 'seed', which the arguments of compare set, got "
                             f"{settings_of}")
    return _sweep("comparison", {"env": env, "n_itr": check_positive_int("n_itr", n_itr), **settings},
                  {"seed": numbers, "algo": algorithms}, settings_of, folder, processes, resume)


def _sweep(kind: str, fixed: Mapping[str, Any], grid: Mapping[str, Iterable[Any]],
           settings_of: Mapping[str, Mapping[str, Any]], folder: Optional[PathLike], processes: Optional[int],
           resume: bool) -> Comparison:
    """Trains with all combinations of settings, see `sweep`; a setting is passed to every algorithm that has it."""
    if check_bool("resume", resume) and folder is None:
        raise ValueError("folder: expected the folder of the runs, because resume=True was given, got None")
    check_type("grid", grid, Mapping, "a dict of lists")
    fixed = {name: value for name, value in fixed.items() if value is not None or name not in grid}
    for name, choices in grid.items():
        if isinstance(choices, (str, Mapping)) or not isinstance(choices, Iterable) or not list(choices):
            raise ValueError(f"grid, {name}: expected a list of at least one value, got {choices!r}")
        if name in fixed:
            raise ValueError(f"{name}: expected no value for a setting that varies (grid of sweep; seeds and "
                             f"algorithms of compare), got {fixed[name]!r}")
    runs: Dict[str, Dict[str, Any]] = {}
    groups: Dict[str, Dict[str, int]] = {}
    having: Dict[str, Set[str]] = {}  # settings of each algorithm
    varied: Dict[str, Dict[str, Any]] = {}  # values of the grid by name of the run
    env_name = find_env_name(fixed["env"]).rpartition(":")[2] if "env" in fixed else "environments"
    output = os.path.join("data", kind, env_name, f"{now():%Y-%m-%d_%H-%M-%S}")
    output = os.path.abspath(user_path("folder", output if folder is None else folder))
    for values in itertools.product(*grid.values()):
        chosen = dict(zip(grid, values, strict=True))
        algo = {**fixed, **chosen}["algo"]
        algo_name = _name_of(algo)
        own = {**settings_of.get(algo_name, {}), **{name: value for name, value in chosen.items() if name != "algo"}}
        given = {**fixed, **own}
        declared = check_settings(algo, {"policy": given.get("policy"), **own})
        having[algo_name] = set(declared)
        if isinstance(given["env"], str):
            given["env"] = find_env_name(given["env"])
        shown = {name: algo_name if name == "algo" else as_json(value) for name, value in chosen.items()}
        name = run_name(shown)
        if name in varied or shown in varied.values():  # 1 and 1.0 are equal
            raise ValueError(f"grid: expected values that differ, got {name} twice")
        varied[name] = shown
        n_itr = declared["n_itr"].default if given.get("n_itr") is None else given["n_itr"]
        given["n_itr"] = check_positive_int("n_itr", n_itr)
        runs[name] = {"algo": algo, **{key: value for key, value in given.items() if key in declared}}
        label = run_name({key: value for key, value in shown.items() if key != "seed"}, algo_name)
        groups.setdefault(label, {})[os.path.join(output, name)] = given["n_itr"]
    check_names(fixed.keys() - {"algo"}, set().union({"folder"}, *having.values()), "for any of the algorithms",
                functools.partial(others_with, None))
    for setting in fixed:
        if others := [name for name, settings in having.items() if setting not in settings | {"algo"}]:
            print_line(f"{setting}: not a setting of {', '.join(others)}, which ignores it")
    failed, was_interrupted = train_all(output, runs, processes, resume)
    write_csv(os.path.join(output, SUMMARY), _summarize(output, runs, varied, failed))
    if len(failed) == len(runs):
        raise RuntimeError(f"all runs failed; their errors are printed above, their folders are in {output}")
    if was_interrupted:
        print_line(f"Interrupted. To continue, repeat the call with folder={output!r} and resume=True (on the command "
                   "line: --resume)")
    seeds = [str(seed) for seed in grid.get("seed", [fixed.get("seed", 1)])]
    return Comparison(f"{env_name}, seed{'s' * (len(seeds) > 1)} {', '.join(seeds)}", groups, was_interrupted)


def _summarize(output: str, runs: Mapping[str, Mapping[str, Any]], varied: Mapping[str, Mapping[str, Any]],
               failed: Sequence[str]) -> List[List[Any]]:
    """Returns a table with a row for each run: its values of the grid, its status and its returns."""
    infos = [RunInfo.read(os.path.join(output, name)) for name in runs]
    results = [{**info.returns, **({} if info.success is None else {"success rate": info.success})} for info in infos]
    labels = list(dict.fromkeys(label for result in results for label in result))
    table: List[List[Any]] = [["run", *next(iter(varied.values())), "status", "iterations", *labels]]
    for (name, run), info, result in zip(runs.items(), infos, results, strict=True):
        status = "failed" if name in failed else "done" if info.is_done(run["n_itr"]) else "not done"
        values = [value if isinstance(value, (str, int, float)) else json.dumps(value)
                  for value in varied[name].values()]
        table.append([name, *values, status, info.iterations, *map(result.get, labels)])
    return table


def run_name(varied: Mapping[str, Any], default: str = "run") -> str:
    """Returns the name of a run folder, in characters that are safe in file names and shells.

    Args:
        varied: values of the settings that vary, as JSON types. The seed is the last part of the name.
        default: the name if no setting varies.
    """
    parts = [_file_name(value) if name == "algo" else f"{name}={_file_name(value)}"
             for name, value in sorted(varied.items(), key=lambda item: item[0] == "seed")]
    name = ",".join(parts) or default
    if len(name.encode()) <= _MAX_NAME:
        return name
    return f"{name.encode()[:_MAX_NAME - 9].decode(errors='ignore')}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _file_name(value: Any) -> str:
    text = re.sub(r"[^\w.+-]+", "-", value if isinstance(value, str) else json.dumps(value))
    text = text.strip("-") if isinstance(value, (list, dict)) else text
    return "none" if text in ("", "null") else text


def _name_of(algorithm: Any) -> str:
    """Returns the name of an algorithm in the table; raises `TypeError` if it is neither a name nor a class."""
    if isinstance(algorithm, str):
        return find_algorithm(algorithm).rpartition(":")[2]
    return find_algo_class(algorithm).__name__
