"""Compares algorithms on an environment, with several seeds of each, in parallel processes."""
import dataclasses
import os
from typing import Any, List, Mapping, Optional, Sequence, Type, Union

import numpy as np

from meta_policy_search.cli import sweep
from meta_policy_search.cli.algorithms import CONFIGS, find_config
from meta_policy_search.cli.flags import text_table
from meta_policy_search.envs import MetaEnv, available_envs, get_env_class
from meta_policy_search.envs.compat import innermost
from meta_policy_search.envs.registry import BUILT_IN, find_env
from meta_policy_search.meta_algos import RL2, MAMLAlgo, MetaAlgo
from meta_policy_search.plotting import Curve, plot_comparison, read_progress, return_columns
from meta_policy_search.plotting.style import Figure
from meta_policy_search.registry import find_algorithm, get_algorithm
from meta_policy_search.run_folder import now
from meta_policy_search.utils.checks import check_positive_int, did_you_mean
from meta_policy_search.utils.files import PathLike
from meta_policy_search.utils.progress import print_line
from meta_policy_search.utils.statistics import interquartile_mean
from meta_policy_search.utils.threads import available_cores
from meta_policy_search.utils.user_modules import write_objects

OBJECTS = "objects.pkl"  # file with the user's environment and classes
LAST = 10  # iterations to average


class Comparison:
    """Complete runs of several algorithms on an environment. Returned by `compare`; `print` shows a table.

    Each row of the table is an algorithm:

    * `return`: interquartile mean of the return after adaptation (`utils.statistics.interquartile_mean`) over seeds and
      the last ten iterations, each with new tasks. Its 95% interval is a bootstrap over both with a fixed seed;
    * `gain`: mean return after adaptation minus mean return before;
    * `steps`: mean number of environment steps of a run;
    * `runs`: number of complete runs and of all runs.

    For RL2, the return before and after adaptation is that of the first and last episode of a trial.

    Args:
        title (str): title of plots.
        runs (dict): for each algorithm, the list of its runs (`cli.sweep.Run`).

    Attributes:
        runs (dict): for each algorithm, the list of the folders of its complete runs.
    """

    def __init__(self, title: str, runs: Mapping[str, Sequence[sweep.Run]]) -> None:
        self.title = title
        self.runs = {name: [run.folder for run in group if run.is_done] for name, group in runs.items()}
        self._numbers = {name: len(group) for name, group in runs.items()}
        self._progress = {name: [read_progress(folder) for folder in group] for name, group in self.runs.items()}

    def plot(self, path: Optional[PathLike] = None, ax: Any = None) -> Figure:
        """Plots the mean returns of each algorithm over environment steps, with 95% intervals over seeds.

        For runs with many iterations, lines are running means over about 2% of the iterations.

        Args:
            path: file to write: SVG if the name ends with `.svg`, otherwise PNG. Default None: no file.
            ax: Matplotlib axes to draw into, see `plotting.plot_comparison`. Default None: a new figure.

        Raises:
            ValueError: no run is complete, or the number of axes is wrong.
        """
        panels: dict[str, list[Curve]] = {}
        for name, group in self._progress.items():
            for quantity, column in return_columns(group[0]).items() if group else ():
                curve = Curve(name, [(progress["n_timesteps"], progress[column]) for progress in group])
                panels.setdefault(quantity, []).append(curve)
        if not panels:
            raise ValueError("plot: expected at least one complete run, got none")
        names = [name for name, group in self._progress.items() if group]
        title = self.title if len(names) > 1 else f"{names[0]} on {self.title}"
        smooth = max(len(x) for curves in panels.values() for curve in curves for x, _ in curve.runs) // 50
        return plot_comparison(panels, path, title, "environment steps, all tasks", smooth=max(1, smooth), ax=ax)

    def __repr__(self) -> str:
        table = [["algorithm", "return", "95% interval", "gain", "steps", "runs"]]
        for name, group in self._progress.items():
            table.append([name, *(_scores(group) if group else [""] * 4), f"{len(group)} of {self._numbers[name]}"])
        return f"{self.title}, return after adaptation\n{text_table(table, right=range(1, 6))}"


def _scores(group: Sequence[Mapping[str, np.ndarray]]) -> List[str]:
    """Returns the cells return, interval, gain and steps for the complete runs of an algorithm."""
    columns = list(return_columns(dict(group[0])).values())
    rows = min(LAST, *(len(progress["n_timesteps"]) for progress in group))
    before, after = (np.array([progress[column][-rows:] for progress in group]) for column in (columns[0], columns[-1]))
    score = interquartile_mean(after)
    gain = f"{np.mean(after - before):+.2f}" if len(columns) > 1 else ""
    steps = np.mean([progress["n_timesteps"][-1] for progress in group])
    return [f"{score.mean:.2f}", f"[{score.low:.2f}, {score.high:.2f}]", gain, f"{steps:,.0f}"]


def compare(env: Union[str, MetaEnv], algorithms: Sequence[Union[str, Type[MetaAlgo]]],
            seeds: Union[int, Sequence[int]] = 3, n_itr: int = 100, folder: Optional[PathLike] = None,
            processes: Optional[int] = None, settings_of: Optional[Mapping[str, Mapping[str, Any]]] = None,
            **settings: Any) -> Comparison:
    """Trains several algorithms with several seeds in parallel processes, and compares their returns.

    Call the function again with the same arguments and `folder` to continue a comparison: it skips complete runs,
    resumes interrupted runs and repeats failed runs. A larger `n_itr` or more seeds or algorithms extend it. Ctrl-C
    stops all runs and returns the comparison of the complete runs. The functions and classes of a notebook reach the
    processes through the file `objects.pkl` in the folder, which contains code: only continue comparisons that you
    trust. After a change of their code, use another folder.

    Args:
        env: environment, or the name of one, as for `train`.
        algorithms: names or classes, as for `train`. The table and `runs` name a class by its class name.
        seeds: number of seeds, which are then 1, 2, ..., or a list of seeds. Default 3.
        n_itr: number of iterations of each run; default 100.
        folder: folder of the runs. Default None: `data/comparison/<environment>/<time>`.
        processes: number of runs at a time, which share the cores. Default None: the number of cores.
        settings_of: further settings of single algorithms, by their names in the table, such as
            `{"trpo_maml": {"step_size": 0.02}}`. Default None.
        **settings: settings of the command line (`meta-policy-search train ALGORITHM --help`) such as
            `meta_batch_size`, which have the defaults of `train`. Each setting is passed to every algorithm that has
            it.

    Returns:
        The comparison of the complete runs. The end of the log of each failed run is printed.

    Raises:
        TypeError, ValueError: an argument is invalid, no algorithm has a setting, or the folder contains a run with
            different settings.
    """
    numbers = range(1, check_positive_int("seeds", seeds) + 1) if isinstance(seeds, int) else list(seeds)
    given = {_name_of(algorithm): algorithm for algorithm in algorithms}
    settings_of = settings_of or {}
    if len(given) < len(algorithms) or len(set(numbers)) < len(numbers) or not given or not numbers:
        raise ValueError(f"compare: expected different algorithms and different seeds, got {algorithms} and {seeds}")
    for name in settings_of.keys() - given.keys():
        raise ValueError(f"settings_of: expected names among {', '.join(given)}, got {name!r}")
    if any("seed" in own for own in settings_of.values()):
        raise ValueError(f"settings_of: expected no 'seed', which the argument seeds sets, got {settings_of}")
    cores = available_cores() if processes is None else check_positive_int("processes", processes)
    env = find_env(env) if isinstance(env, str) else env
    env_name = env.rpartition(":")[2] if isinstance(env, str) else type(innermost(env)).__name__
    output = os.path.abspath(folder or os.path.join("data", "comparison", env_name, f"{now():%Y-%m-%d_%H-%M-%S}"))
    objects, path = _objects_of_user(env_name, env, given), os.path.join(output, OBJECTS)
    if objects:
        os.makedirs(output, exist_ok=True)
        write_objects(path, objects)
    settings = {**settings, "env": f"{path}:{env_name}" if env_name in objects else env, "n_itr": n_itr}
    configs = {name: find_config(f"{path}:{name}" if name in objects else str(value)) for name, value in given.items()}
    known = {name: {field.name for field in dataclasses.fields(config)} - {"seed"} for name, config in configs.items()}
    for name in settings.keys() - set().union(*known.values()):
        raise TypeError(f"compare: unknown argument {name!r}{did_you_mean(name, {'seeds'}.union(*known.values()))}")
    runs = {name: [sweep.make_run(
        f"{name},seed={seed}", config, {key: value for key, value in settings.items() if key in known[name]},
        {**settings_of.get(name, {}), "seed": seed}, output) for seed in numbers] for name, config in configs.items()}
    in_turn = [run for group in zip(*runs.values(), strict=True) for run in group]  # all algorithms with the first seed
    _, was_interrupted = sweep.run_all(output, in_turn, min(cores, len(in_turn)))
    if was_interrupted:
        print_line(f"Interrupted. To continue, call compare with the same arguments and folder={output!r}")
    return Comparison(f"{env_name}, seed{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}", runs)


def _name_of(algorithm: Union[str, Type[MetaAlgo]]) -> str:
    """Returns the name of an algorithm in the table; raises `TypeError` if it is neither a name nor a class."""
    if isinstance(algorithm, str):
        return find_algorithm(algorithm, CONFIGS).rpartition(":")[2]
    if not (isinstance(algorithm, type) and issubclass(algorithm, (MAMLAlgo, RL2))):
        raise TypeError(f"algorithms: expected names or subclasses of MAMLAlgo or RL2, got {algorithm!r}")
    return algorithm.__name__


def _objects_of_user(env_name: str, env: Union[str, MetaEnv],
                     algorithms: Mapping[str, Union[str, Type[MetaAlgo]]]) -> dict[str, Any]:
    """Returns, by name, the classes and environments of the user that other processes cannot find by name."""
    objects: dict[str, Any] = {name: get_algorithm(value) if isinstance(value, str) else value
                               for name, value in algorithms.items()
                               if not isinstance(value, str) or name not in CONFIGS and ":" not in value}
    if not isinstance(env, str):
        objects[env_name] = lambda: env
    elif env in available_envs() and env not in BUILT_IN:
        objects[env_name] = get_env_class(env)
    return objects
