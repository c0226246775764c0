"""The reference table: worlds, methods, search spaces and stored data; `protocol.md` states the rules.

`data/reference_WORLD.csv` has one row per trained policy and test task:

- `method`: name in `METHODS`; `phase`: `tune` or `final`; `configuration`: index in `configurations`;
- `seed`: seed of the training;
- `share`: of the environment steps of the world; `n_timesteps`, `seconds`: of the training;
- `steps_to_return`, `seconds_to_return`: until the stated return; empty if it was not reached;
- `task`, `goal`: index of the test task, and the task if it is a number;
- `after_0` to `after_3`: mean return after 0 to 3 gradient steps, for RL2 in the first to fourth episode.
"""
import csv
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

import numpy as np

from experiments.reproduction import entries
from experiments.reproduction.entries import ByMethod, Entry, Method, Runs
from meta_policy_search.plotting import Progress, return_columns
from meta_policy_search.utils.statistics import running_mean

CONFIGURATIONS, TUNING_SEEDS = 8, (101, 102)
SEEDS = tuple(range(201, 211))  # not used by any other entry
SHARES = ((0.25, 8), (0.5, 4), (1.0, 2))  # share of the steps, number of configurations that are trained so far
NUM_STEPS, TASKS, ROLLOUTS = 3, 40, 20
TUNING_TASKS, TEST_TASKS = 2, 1  # seeds of the test tasks
COLUMNS = ("method", "phase", "configuration", "seed", "share", "n_timesteps", "seconds", "steps_to_return",
           "seconds_to_return", "task", "goal", *(f"after_{step}" for step in range(NUM_STEPS + 1)))


class World(NamedTuple):
    """A family of tasks, with what all methods share."""

    label: str
    settings: Mapping[str, Any]
    million_steps: float  # environment steps of a training, as if all paths had the maximum length
    inner_lr: Sequence[float]  # searched step sizes of methods that adapt all parameters
    stated_return: float
    failed_below: float


class Searched(NamedTuple):
    """A method, its fixed settings and its search space."""

    label: str
    algo: str
    settings: Mapping[str, Any]
    space: Mapping[str, Sequence[Any]]
    inner_scale: Optional[float] = 1.0  # factor of `World.inner_lr` in the search space; None: no inner step


WORLDS = {
    "navigation": World("2D navigation", {"env": "MetaPointEnvNavigation", "normalization_scale": 1.0,
                                          "max_path_length": 100}, 4.0, (0.1, 0.25, 0.5, 1.0), -15.0, -26.0),
    "corner": World("Corner goals with a sparse reward", {"env": "MetaPointEnvCorner", "max_path_length": 100}, 4.0,
                    (0.03, 0.1, 0.3, 1.0), 1.25, 0.5),
    "half_cheetah_direction": World("Half cheetah, forward or backward", {
        "env": "HalfCheetahRandDirecEnv", "max_path_length": 200}, 4.0, (0.05, 0.1, 0.2, 0.4), 293.19, 133.0),
    "half_cheetah_velocity": World("Half cheetah, goal velocity", {
        "env": "HalfCheetahRandVelEnv", "env_kwargs": {"max_velocity": 2.0}, "max_path_length": 200}, 4.0,
        (0.05, 0.1, 0.2, 0.4), -78.6, -137.0),
}
PATHS: Mapping[str, Sequence[Any]] = {"rollouts_per_meta_task": (5, 10, 20)}
COMMON: Mapping[str, Sequence[Any]] = {**PATHS, "gae_lambda": (0.95, 1.0)}
TRPO: Mapping[str, Sequence[Any]] = {**COMMON, "step_size": (0.005, 0.01, 0.02, 0.04)}
INNER_TYPE = {"inner_type": ("log_likelihood", "likelihood_ratio")}
ADAM = {"learning_rate": (0.001, 0.003, 0.01, 0.03)}
NO_STEPS = {"num_inner_grad_steps": 0}
METHODS = {
    "promp": Searched("ProMP", "promp", {"init_inner_kl_penalty": 5e-4, "adaptive_inner_kl_penalty": False}, {
        **COMMON, "learning_rate": (0.0005, 0.001, 0.002, 0.004), "clip_eps": (0.2, 0.3)}),
    "trpo_maml": Searched("TRPO-MAML", "trpo_maml", {}, {**TRPO, **INNER_TYPE}),
    "e_maml": Searched("E-MAML", "e_maml", {}, {**TRPO, **INNER_TYPE}),
    "vpg_maml": Searched("VPG-MAML", "vpg_maml", {}, {**COMMON, **ADAM, **INNER_TYPE}),
    "dice_maml": Searched("DiCE-MAML", "dice_maml", {}, {**PATHS, **ADAM}, 0.1),
    "anil": Searched("ANIL (TRPO)", "trpo_maml", {"adapt_params": ["head"]}, {**TRPO, **INNER_TYPE}, 10.0),
    "boil": Searched("BOIL (TRPO)", "trpo_maml", {"adapt_params": ["body"]}, {**TRPO, **INNER_TYPE}),
    "cavia": Searched("CAVIA (TRPO)", "trpo_maml", {"adapt_params": ["context"]}, {
        **TRPO, "inner_type": INNER_TYPE["inner_type"], "context_dim": (2, 10, 50)}, 20.0),
    "rl2": Searched("RL2, trials of two episodes", "rl2", {"episodes_per_trial": 2}, {
        **COMMON, "learning_rate": (0.001, 0.002, 0.003, 0.005), "clip_eps": (0.1, 0.2), "num_minibatches": (4, 16)},
        None),
    "all_tasks": Searched("one policy for all tasks (TRPO)", "trpo_maml", NO_STEPS, TRPO),
    "random": Searched("random initialization", "trpo_maml", {}, {}, 1.0),
    "oracle": Searched("policy that observes the task (TRPO)", "trpo_maml", {**NO_STEPS, "observe_task": True}, TRPO,
                       None),
}


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
    """Returns the arguments of `meta_policy_search.train` without the seed; `n_itr` follows from the steps.

    The random initialization has one iteration, whose policy is not tested.
    """
    settings = {"meta_batch_size": 20, "rollouts_per_meta_task": 20, **WORLDS[world].settings,
                **configurations(world, method)[configuration], "algo": METHODS[method].algo}
    collections = settings.get("episodes_per_trial", settings.get("num_inner_grad_steps", 1) + 1)
    steps = collections * np.prod([settings[key] for key in ("meta_batch_size", "rollouts_per_meta_task",
                                                             "max_path_length")])
    n_itr = 1 if method == "random" else max(1, round(share * 1e6 * WORLDS[world].million_steps / float(steps)))
    return {**settings, "n_itr": n_itr}


def reaches(world: str, progress: Progress) -> tuple[float, float]:
    """Returns the environment steps and seconds until the mean return of five iterations reaches the stated return.

    It is the return in training after adaptation, or that of a policy without inner steps; NaN if it does not reach the
    stated return.
    """
    returns = running_mean(progress[list(return_columns(progress).values())[-1]], 2)[0]
    found = np.flatnonzero(returns >= WORLDS[world].stated_return)
    last = min(found[0] + 2, len(returns) - 1) if len(found) else 0
    return (progress["n_timesteps"][last], progress["Time"][last]) if len(found) else (np.nan, np.nan)


# Stored data -------------------------------------------------------------------------------------------------------


def data_path(world: str) -> Path:
    """Returns the path of the stored data of a world."""
    return entries.DATA / f"reference_{world}.csv"


def read_rows(path: Path) -> list[dict[str, str]]:
    """Reads the rows of a CSV file of the reference table; an empty list if it does not exist."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def final_runs(world: str) -> ByMethod:
    """Returns the columns of the final trainings of a world, by method and seed."""
    runs: Runs = {}
    rows = [row for row in read_rows(data_path(world)) if row["phase"] == "final"]
    for (method, seed), group in itertools.groupby(rows, key=lambda row: (row["method"], int(row["seed"]))):
        of_run = list(group)
        runs[method, seed] = {name: np.array([float(row[name] or "nan") for row in of_run]) for name in COLUMNS[2:]
                              if of_run[0][name] or name.endswith("_to_return")}
    return entries.by_method(runs)


def entry_of(world: str) -> Entry:
    """Returns the world as an entry of the results."""
    settings, methods = WORLDS[world].settings, [
        Method(name, searched.label, searched.algo, searched.settings, SEEDS) for name, searched in METHODS.items()]
    return Entry(WORLDS[world].label, "", "", "", methods, settings, NUM_STEPS,
                 failed_below=WORLDS[world].failed_below)


def stored_worlds() -> list[str]:
    """Returns the worlds that have data."""
    return [world for world in WORLDS if data_path(world).exists()]
