"""Checks that resumed runs equal an uninterrupted run, for an environment, an algorithm and their settings."""
import contextlib
import os
import tempfile
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple, Union

import numpy as np

from meta_policy_search.envs.compat import attributes_of
from meta_policy_search.meta_algos import MetaAlgo
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.policies import MetaPolicy
from meta_policy_search.run import build_trainer, find_algo_class, find_policy, settings_of_algorithm
from meta_policy_search.sessions import get_session
from meta_policy_search.settings import SMOKE, check_names
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger, seeding
from meta_policy_search.utils.checks import check_int_at_least
from meta_policy_search.utils.logger import Row
from meta_policy_search.utils.snapshotter import load_snapshot

_DEPTH = 8  # of nested objects and containers

TrainingState = Dict[str, List[Any]]
"""The numbers and arrays of each part of a training; arrays as bytes."""


def check_resume(env: Union[str, Any], algo: Union[str, type] = "promp", n_itr: int = 3, seed: int = 1,
                 **settings: Any) -> None:
    """Checks that a run that is resumed after any iteration equals an uninterrupted run, bit for bit.

    The check trains a few iterations, by default with two tasks, two paths per task and ten steps per path. It then
    loads the snapshot of each iteration in this process, trains the remaining iterations, and compares the rows
    (without times) and the final parameters. All files are temporary.

    Args:
        env: environment, or its name; see `train`.
        algo: an algorithm that adapts to tasks; see `train`. Default `"promp"`.
        n_itr: number of iterations, at least 2; default 3.
        seed: root seed; default 1.
        **settings: further arguments of `train`, except for those of logs and snapshots.

    Raises:
        TypeError: the algorithm learns a single task, or a setting is unknown.
        ValueError: a resumed run differs. The message names the iteration, the first column that differs, and the parts
            that differ after loading: environment, baseline, policy, optimizer, sampler or random numbers.
    """
    check_int_at_least("n_itr", n_itr, 2)
    algo_class = find_algo_class(algo)
    if not issubclass(algo_class, MetaAlgo):
        raise TypeError(f"algo: expected an algorithm that adapts to tasks, got {algo!r}, which learns a single task")
    policy = find_policy(settings.get("policy"))
    known = settings_of_algorithm(algo_class, policy)
    check_names(settings, {*known, "callbacks"} - {"log_formats", "snapshot_mode", "snapshot_gap", "plot_gap"},
                f"for check_resume with {algo_class.__name__}")
    sizes = {name: value for name, value in SMOKE.items() if name in known}
    if isinstance(policy, MetaPolicy):
        sizes["meta_batch_size"] = policy.meta_batch_size
    settings = {**sizes, **settings, "n_itr": n_itr}
    with seeding.generators_kept(), tempfile.TemporaryDirectory() as folder:
        with tf.Graph().as_default() as graph, logger.scoped_configure(folder, ("csv",), "all"):
            trainer = build_trainer(env, algo, seed=seed, **settings)
            rows, states = _train(trainer, graph, n_itr)
        for itr in range(n_itr - 1):
            with tf.Graph().as_default() as graph, logger.scoped_configure(
                    os.path.join(folder, f"after_{itr}"), ("csv",), "none"):
                resumed = Trainer.from_snapshot(load_snapshot(folder, itr), callbacks=list(trainer.callbacks))
                loaded = _state_of(resumed, graph)
                now, (*_, final) = _train(resumed, graph, n_itr)
            found: List[str] = []
            for i, (row, other) in enumerate(zip(rows[itr + 1:], now, strict=True), itr + 1):
                found += [f"{name} of iteration {i} is {other.get(name)} instead of {value}"
                          for name, value in row.items() if repr(value) != repr(other.get(name))]
            if states[-1]["policy"] != final["policy"]:
                found.append("the final policy differs")
            if found:
                parts = [part for part in loaded if loaded[part] != states[itr][part]]
                raise ValueError(
                    f"{algo_class.__name__}, {type(trainer.env).__name__}: expected a resumed run that equals the "
                    f"uninterrupted run, but after loading iteration {itr}, {found[0]}. Directly after loading, "
                    + (f"these parts differ: {', '.join(parts)}" if parts else
                       "all parts are equal: paths depend on earlier paths (see check_env), get_state of a part lacks "
                       "an attribute, or a global variable or generator is used"))


def _train(trainer: Trainer, graph: tf.Graph, n_itr: int) -> Tuple[Sequence[Row], Sequence[TrainingState]]:
    """Trains until iteration `n_itr`; returns rows without times, and the state after each iteration."""
    rows, states = [], []
    while trainer.itr < n_itr:
        row = trainer.train_itr()
        rows.append({name: value for name, value in row.items() if "Time" not in name})
        states.append(_state_of(trainer, graph))
    trainer.sampler.close()
    return rows, states


def _state_of(trainer: Trainer, graph: tf.Graph) -> TrainingState:
    """Returns the state that the next iteration depends on."""
    trainer.sampler.start_at(trainer.itr)  # as at the start of an iteration
    generators = trainer.get_itr_snapshot(trainer.itr - 1)["state"]
    session, params, optimizer = get_session(graph), trainer.policy.get_param_values(), [trainer.algo.get_state()]
    for variable in graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES):
        if not variable.op.name.endswith(tuple(params)):
            with contextlib.suppress(tf.errors.FailedPreconditionError):  # not initialized yet
                optimizer.append(session.run(variable))
    return {part: list(_numbers(value, _DEPTH, {})) for part, value in {
        "environment": trainer.sampled_env, "baseline": trainer.sample_processor.baseline,
        "policy": params, "optimizer": optimizer, "sampler": trainer.sampler.get_state(),
        "random numbers": [generators[name] for name in ("seeding", "random", "numpy_random")]}.items()}


def _numbers(value: Any, depth: int, seen: Dict[int, Any]) -> Iterator[Any]:
    """Yields the numbers in nested containers and objects, and their arrays as bytes."""
    if isinstance(value, (bool, int, float, np.generic)):
        yield repr(value)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield value.dtype, value.shape, value.tobytes()
    elif depth and id(value) not in seen:
        seen[id(value)] = value
        if isinstance(value, np.random.Generator):
            value = value.bit_generator.state
        if not isinstance(value, (Mapping, list, tuple, np.ndarray)):
            value = dict(sorted(attributes_of(value).items()))
        for entry in list(value.values() if isinstance(value, Mapping) else value):
            yield from _numbers(entry, depth - 1, seen)
