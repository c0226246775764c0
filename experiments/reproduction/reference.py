"""The reference table: worlds, methods, search spaces and stored data; `protocol.md` states the rules.

`reference.json` contains the worlds, and the methods with their search spaces.

`data/reference_WORLD.csv` has one row per trained policy and test task:

- `method`: name in `METHODS` for final trainings, and `METHOD,CONFIGURATION,SHARE` for tuning;
- `seed`: seed of the training;
- `task`, `goal`: index of the test task, and the task if it is a number;
- `after_0` to `after_3`: mean return after 0 to 3 gradient steps, for RL2 in the first to fourth episode;
- `configuration`: index in `configurations`; `share`: of the environment steps of the world;
- `n_timesteps`, `seconds`: of the training; none for the random initialization;
- `steps_to_return`, `seconds_to_return`: until the stated return; `nan` if it was not reached;
- `LossBefore`, `LossAfter`, `KLOuter` (TRPO: `MeanKL`): means over the iterations of the training. Trainings that are
  older than these columns have none.
"""
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

import numpy as np

from experiments.reproduction import entries
from experiments.reproduction.entries import ByMethod, Entry, Method
from meta_policy_search.plotting import Progress, return_columns
from meta_policy_search.settings import read_json
from meta_policy_search.utils.statistics import exact_mean, running_mean

CONFIGURATIONS, TUNING_SEEDS = 8, (101, 102)
SEEDS = tuple(range(201, 211))  # not used by any other entry
SHARES = ((0.25, 8), (0.5, 4), (1.0, 2))  # share of the steps, number of configurations that are trained so far
REFERENCES = ("all_tasks", "random", "oracle")  # not among the pretrained policies
NUM_STEPS, TASKS, ROLLOUTS = 3, 40, 20
TUNING_TASKS, TEST_TASKS = 2, 1  # seeds of the test tasks


class World(NamedTuple):
    """A family of tasks, with what all methods share."""

    label: str
    settings: Mapping[str, Any]
    million_steps: float  # environment steps of a training, as if all paths had the maximum length
    inner_lr: Sequence[float]  # searched step sizes of methods that adapt all parameters
    stated_return: float
    failed_below: float
    notes: str = ""  # findings, below the table


class Searched(NamedTuple):
    """A method, its fixed settings and its search space."""

    label: str
    algo: str
    settings: Mapping[str, Any]
    space: Mapping[str, Sequence[Any]]
    inner_scale: Optional[float] = 1.0  # factor of `World.inner_lr` in the search space; None: no inner step


_CONTENT = read_json(str(entries.HERE / "reference.json"))
WORLDS = {name: World(**fields) for name, fields in _CONTENT["worlds"].items()}
METHODS = {name: Searched(**fields) for name, fields in _CONTENT["methods"].items()}


def configurations(world: str, method: str) -> list[dict[str, Any]]:
    """Returns the settings of the `CONFIGURATIONS` configurations of a method.

    The values of each parameter occur equally often (as far as possible), in a random order that depends only on the
    world and the method.
    """
    searched, rng = METHODS[method], np.random.default_rng([list(WORLDS).index(world), list(METHODS).index(method)])
    space = dict(searched.space)
    if searched.inner_scale is not None:
        space["inner_lr"] = [round(searched.inner_scale * value, 6) for value in WORLDS[world].inner_lr]
    orders = {name: [values[i] for i in rng.permutation(np.arange(CONFIGURATIONS) % len(values))]
              for name, values in space.items()}
    return [{**searched.settings, **{name: values[i] for name, values in orders.items()}}
            for i in range(CONFIGURATIONS)]


def train_settings(world: str, method: str, configuration: int, share: float) -> dict[str, Any]:
    """Returns the settings of a configuration; `n_itr` follows from the steps.

    The random initialization has one iteration, whose policy is not tested.
    """
    settings = {"meta_batch_size": 20, "rollouts_per_meta_task": 20, **WORLDS[world].settings,
                **configurations(world, method)[configuration]}
    collections = settings.get("episodes_per_trial", settings.get("num_inner_grad_steps", 1) + 1)
    steps = collections * np.prod([settings[key] for key in ("meta_batch_size", "rollouts_per_meta_task",
                                                             "max_path_length")])
    n_itr = 1 if method == "random" else max(1, round(share * 1e6 * WORLDS[world].million_steps / float(steps)))
    return {**settings, "n_itr": n_itr}


def of_training(world: str, progress: Progress) -> dict[str, float]:
    """Returns the columns of a training: steps and seconds, in total and until the stated return, and means of updates.

    The stated return is reached when the mean over five iterations of the return after adaptation reaches it (without
    inner steps: of the return). NaN: it was not reached.
    """
    returns = running_mean(progress[list(return_columns(progress).values())[-1]], 2)[0]
    found = np.flatnonzero(returns >= WORLDS[world].stated_return)
    reached = min(found[0] + 2, len(returns) - 1) if len(found) else None
    steps, seconds = progress["n_timesteps"], progress["Time"]
    return {"n_timesteps": steps[-1], "seconds": seconds[-1],
            "steps_to_return": np.nan if reached is None else steps[reached],
            "seconds_to_return": np.nan if reached is None else seconds[reached],
            **{name: exact_mean(progress[name]) for name in entries.UPDATE_COLUMNS if name in progress}}


def entry_of(world: str) -> Entry:
    """Returns the world as an entry of the results, with the fixed settings of each method."""
    methods = [Method(name, searched.label, searched.algo, searched.settings, SEEDS, reference="none",
                      snapshot=None if name == "random" else "last",
                      pretrained="" if name in REFERENCES else f"{world}/{name}")
               for name, searched in METHODS.items()]
    return Entry(WORLDS[world].label, "", "", "", methods, WORLDS[world].settings, NUM_STEPS, halve_steps=True,
                 rollouts=ROLLOUTS, test_tasks=TASKS, failed_below=WORLDS[world].failed_below)


def entry_of_configurations(world: str, name: str, chosen: Sequence[int], share: float, seeds: Sequence[int]) -> Entry:
    """Returns an entry whose methods are configurations of a method."""
    entry = entry_of(world)
    (method,) = (method for method in entry.methods if method.name == name)
    return dataclasses.replace(entry, methods=[
        dataclasses.replace(method, name=f"{name},{i}", settings=train_settings(world, name, i, share), seeds=seeds)
        for i in chosen])


# Stored data -------------------------------------------------------------------------------------------------------


def data_path(world: str) -> Path:
    """Returns the path of the stored data of a world."""
    return entries.DATA / f"reference_{world}.csv"


def final_runs(world: str) -> ByMethod:
    """Returns the columns of the final trainings of a world, by method and seed."""
    runs = entries.by_method(entries.read_runs(data_path(world)))
    return {method: runs[method] for method in METHODS if method in runs}


def chosen_configuration(runs: Mapping[int, Progress]) -> int:
    """Returns the index of the configuration of final trainings."""
    return int(next(iter(runs.values()))["configuration"][0])


def chosen_entry(world: str) -> tuple[Entry, ByMethod]:
    """Returns an entry with the chosen configuration of each method that has final trainings, and their tests."""
    runs, methods, tests = final_runs(world), [], {}
    for name, of_seeds in runs.items():
        methods += entry_of_configurations(world, name, [chosen_configuration(of_seeds)], 1.0, SEEDS).methods
        tests[methods[-1].name] = of_seeds
    return dataclasses.replace(entry_of(world), methods=methods), tests


def stored_worlds() -> list[str]:
    """Returns the worlds that have data."""
    return [world for world in WORLDS if data_path(world).exists()]
