"""Compares algorithms on an environment, with several seeds of each, in parallel processes."""
import os
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Union

import numpy as np

from meta_policy_search.parallel_runs import Member, train_all
from meta_policy_search.plotting import (
    Progress,
    collect_curves,
    final_returns,
    final_success,
    plot_comparison,
    read_progress,
)
from meta_policy_search.plotting.progress import number_of_last
from meta_policy_search.plotting.style import Figure
from meta_policy_search.registry import find_algorithm, title_of
from meta_policy_search.run import find_algo_class, find_env_name, settings_of_algorithm
from meta_policy_search.run_folder import now
from meta_policy_search.settings import check_names
from meta_policy_search.utils.checks import check_int_at_least, check_positive_int, check_type
from meta_policy_search.utils.files import PathLike, check_folder
from meta_policy_search.utils.progress import print_line, shown_as_text, text_table
from meta_policy_search.utils.statistics import mean_interval


@shown_as_text
class Comparison:
    """Complete runs of several algorithms on an environment. Returned by `compare`; shown as a table.

    Each row of the table is an algorithm. All values are means over seeds of the means over the last quarter of the
    iterations of each run, at most ten. Numbers after `+-` are half the width of the 95% interval over seeds (Student's
    t, one number per seed); a single seed has no interval.

    * `return`: return after adaptation;
    * `worst quarter`: the same over the 25% of tasks with the lowest return; empty for RL2;
    * `gain`: return after adaptation minus return before, with the lowest gain of a run in brackets;
    * `difference`: difference of the return from that of the first algorithm, paired by seed: runs with the same seed
      have the same tasks. With a `task_sampler`, they have different tasks; compare evaluations of the runs instead;
    * `success`: success rate after adaptation, if a run has one;
    * `steps`: mean number of environment steps of a run;
    * `runs`: number of complete runs and of all runs.

    For RL2, the return before and after adaptation is that of the first and last episode of a trial.

    Args:
        title (str): title of plots.
        runs (dict): for each algorithm, the list of its runs (`parallel_runs.Member`).

    Attributes:
        runs (dict): for each algorithm, the list of the folders of its complete runs.
    """

    def __init__(self, title: str, runs: Mapping[str, Sequence[Member]]) -> None:
        self.title = title
        self.runs = {name: [run.folder for run in group if run.is_done] for name, group in runs.items()}
        self._numbers = {name: len(group) for name, group in runs.items()}
        self._progress = {name: {i: read_progress(run.folder) for i, run in enumerate(group) if run.is_done}
                          for name, group in runs.items()}  # by number of the seed

    def plot(self, path: Optional[PathLike] = None, ax: Any = None) -> Figure:
        """Plots the mean returns of each algorithm over environment steps, and the single runs as thin lines.

        Algorithms with at least five runs have bands, 95% intervals over seeds. For runs with many iterations, lines
        are running means over about 2% of the iterations.

        Args:
            path: file to write: the ending (such as `.svg` or `.png`) determines the format. Default None: no file.
            ax: Matplotlib axes to draw into, see `plotting.plot_comparison`. Default None: a new figure.

        Raises:
            ValueError: no run is complete, or the number of axes is wrong.
        """
        titles = {name: title_of(name) for name in self._progress}
        if len(set(titles.values())) < len(titles):  # a class with the name of a built-in algorithm
            titles = {name: name for name in titles}
        panels = collect_curves({titles[name]: list(runs.values()) for name, runs in self._progress.items()})
        if not panels:
            raise ValueError("plot: expected at least one complete run, got none")
        names = [name for name, group in self._progress.items() if group]
        title = self.title if len(names) > 1 else f"{titles[names[0]]} on {self.title}"
        smooth = max(len(x) for curves in panels.values() for curve in curves.values() for x, _ in curve) // 50
        return plot_comparison(panels, path, title, "environment steps, all tasks", smooth=max(1, smooth), ax=ax)

    def __str__(self) -> str:
        table = [["algorithm", "return", "worst quarter", "gain (lowest)", "difference", "steps", "runs"]]
        first = _returns(next(iter(self._progress.values())))
        for number, (name, runs) in enumerate(self._progress.items()):
            returns = _returns(runs)
            paired = [returns[seed] - first[seed] for seed in returns if seed in first and number]
            table.append([name, *(_cells(returns, runs) if runs else [""] * 3),
                          f"{mean_interval(np.array(paired)):+.2f}" if paired else "",
                          f"{np.mean([run['n_timesteps'][-1] for run in runs.values()]):,.0f}" if runs else "",
                          f"{len(runs)} of {self._numbers[name]}"])
        rates = [[rate for rate in map(final_success, runs.values()) if rate is not None]
                 for runs in self._progress.values()]
        if any(rates):
            for row, cell in zip(table, ["success", *(f"{np.mean(each):.2f}" if each else "" for each in rates)]):
                row.insert(5, cell)
        note = "one seed: no intervals" if max(self._numbers.values()) == 1 else "+-: 95% intervals over seeds"
        adapts = any(len(final_returns(run)) > 1 for runs in self._progress.values() for run in runs.values())
        title = f"{self.title}, return{' after adaptation' * adapts} ({note})"
        return f"{title}\n{text_table(table, right=range(1, len(table[0])))}"


def _returns(runs: Mapping[int, Progress]) -> Dict[int, float]:
    """Returns the return after adaptation of each run, by seed."""
    return {seed: list(final_returns(progress).values())[-1] for seed, progress in runs.items()}


def _cells(returns: Mapping[int, float], runs: Mapping[int, Progress]) -> List[str]:
    """Returns the cells return, worst quarter and gain of the complete runs of an algorithm."""
    worst = [np.mean(progress["WorstQuarterReturn"][-number_of_last(progress):]) for progress in runs.values()
             if "WorstQuarterReturn" in progress and "Step_0-LastEpisodeReturn" not in progress]
    means = [list(final_returns(progress).values()) for progress in runs.values()]
    gains = np.array([each[-1] - each[0] for each in means if len(each) > 1])
    return [f"{mean_interval(np.array(list(returns.values()))):.2f}",
            f"{mean_interval(np.array(worst)):.2f}" if worst else "",
            f"{mean_interval(gains):+.2f} ({min(gains):+.2f})" if len(gains) else ""]


def compare(env: Any, algorithms: Sequence[Union[str, type]],
            seeds: Union[int, Sequence[int]] = 3, n_itr: int = 100, folder: Optional[PathLike] = None,
            processes: Optional[int] = None, settings_of: Optional[Mapping[str, Mapping[str, Any]]] = None,
            resume: bool = False, **settings: Any) -> Comparison:
    """Trains several algorithms with several seeds in parallel processes, and compares their returns.

    Ctrl-C stops all runs and returns the comparison of the complete runs. To continue, call the function again with
    the same arguments, the `folder` and `resume=True`: it skips complete runs, resumes interrupted runs and repeats
    failed runs. A larger `n_itr` or more seeds or algorithms extend a comparison. All settings must equal those in the
    `params.json` of the runs; of objects such as environments and policies, only what this file records is compared.
    If the file of a module that a name MODULE:NAME refers to has changed, a warning is printed.

    Environments and classes may be defined in a script or notebook. The processes of the runs import the user's modules
    again, so assignments to variables of these modules have no effect on the runs.

    Args:
        env: environment, or the name of one, as for `train`.
        algorithms: names or classes, as for `train`. The table and `runs` name a class by its class name.
        seeds: number of seeds, which are then 1, 2, ..., or a list of seeds. Default 3.
        n_itr: number of iterations of each run; default 100.
        folder: folder of the runs. Default None: `data/comparison/<environment>/<time>`.
        processes: number of runs at a time, which share the cores. Default None: the number of cores.
        settings_of: further settings of single algorithms, by their names in the table, such as
            `{"trpo_maml": {"step_size": 0.02}}`. Default None.
        resume: whether to continue the runs in `folder`. Default False: a folder with runs is an error.
        **settings: settings of `train` such as `meta_batch_size`. Each setting is passed to every algorithm that has
            it.

    Returns:
        The comparison of the complete runs. The errors of failed runs are printed.

    Raises:
        TypeError, ValueError: an argument is invalid, no algorithm has a setting, or the folder contains runs, and
            `resume` is False or their settings differ.
    """
    if isinstance(seeds, (int, np.integer)):
        seeds = range(1, check_positive_int("seeds", seeds) + 1)
    check_type("seeds", seeds, Iterable, "a number of seeds or a list of seeds")
    numbers = [check_int_at_least("seeds", seed, 0) for seed in seeds]
    n_itr = check_positive_int("n_itr", n_itr)
    if isinstance(algorithms, (str, type, Mapping)) or not isinstance(algorithms, Iterable):
        raise TypeError(f"algorithms: expected a list of names or classes, got {algorithms!r}")
    algorithms = list(algorithms)
    by_name = {_name_of(algorithm): algorithm for algorithm in algorithms}
    settings_of = check_type("settings_of", settings_of or {}, Mapping, "a dict of dicts")
    for changed in settings_of.values():
        check_type("settings_of", changed, Mapping, "a dict of dicts")
    if len(by_name) < len(algorithms) or len(set(numbers)) < len(numbers) or not by_name or not numbers:
        raise ValueError(f"compare: expected different algorithms and different seeds, got {algorithms} and {seeds}")
    for name in settings_of.keys() - by_name.keys():
        raise ValueError(f"settings_of: expected names among {', '.join(by_name)}, got {name!r}")
    if any({"env", "seed"} & changed.keys() for changed in settings_of.values()):
        raise ValueError(f"settings_of: expected neither 'env' nor 'seed', which the arguments of compare set, got "
                         f"{settings_of}")
    settings_by_name = {}
    for name, algo in by_name.items():
        policy = {**settings, **settings_of.get(name, {})}.get("policy")
        settings_by_name[name] = settings_of_algorithm(find_algo_class(algo), policy)
    check_names(settings, set().union(*settings_by_name.values()) - {"seed", "env"}, "for any of the algorithms")
    for name, changed in settings_of.items():
        check_names(changed, settings_by_name[name], f"for {name}")
    env_name = find_env_name(env)
    env = env_name if isinstance(env, str) else env
    env_name = env_name.rpartition(":")[2]
    if folder is None:
        folder = os.path.join("data", "comparison", env_name, f"{now():%Y-%m-%d_%H-%M-%S}")
    output = os.path.abspath(check_folder("folder", folder))
    runs = {name: [Member(f"{name},seed={seed}", algo, {
        "env": env, "n_itr": n_itr, **{key: value for key, value in settings.items() if key in settings_by_name[name]},
        **settings_of.get(name, {}), "seed": seed}, os.path.join(output, f"{name},seed={seed}")) for seed in numbers]
        for name, algo in by_name.items()}
    seed_by_seed = [run for group in zip(*runs.values(), strict=True) for run in group]
    _, was_interrupted = train_all(output, seed_by_seed, processes, resume)
    if was_interrupted:
        print_line(f"Interrupted. To continue, call compare with the same arguments, folder={output!r} and resume=True")
    return Comparison(f"{env_name}, seed{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}", runs)


def _name_of(algorithm: Union[str, type]) -> str:
    """Returns the name of an algorithm in the table; raises `TypeError` if it is neither a name nor a class."""
    if isinstance(algorithm, str):
        return find_algorithm(algorithm).rpartition(":")[2]
    return find_algo_class(algorithm).__name__
