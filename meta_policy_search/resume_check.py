"""Checks that resumed runs equal an uninterrupted run, for an environment, an algorithm and their settings."""
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

State = Dict[str, Any]
"""Values by part and place, such as `environment.wrapped_env.count`."""


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
        TypeError: the algorithm learns a single task, or there is no such setting.
        ValueError: a resumed run differs. The message names the iteration, the first value that differs, and what
            differs after loading: values of environment, baseline, policy, optimizer, sampler or random numbers.
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
            found = _differences({f"{name} of iteration {i}": value for i, row in enumerate(rows[itr + 1:], itr + 1)
                                  for name, value in row.items()},
                                 {f"{name} of iteration {i}": value for i, row in enumerate(now, itr + 1)
                                  for name, value in row.items()})
            found += _differences(states[-1], final, only="policy.")
            if found:
                raise ValueError(f"{algo_class.__name__}, {type(trainer.env).__name__}: expected a resumed run that "
                                 f"equals the uninterrupted run, but after loading iteration {itr}, {found[0]}. "
                                 f"{_causes(_differences(states[itr], loaded))}")


def _train(trainer: Trainer, graph: tf.Graph, n_itr: int) -> Tuple[Sequence[Row], Sequence[State]]:
    """Trains until iteration `n_itr`; returns rows without times, and the state after each iteration."""
    rows, states = [], []
    while trainer.itr < n_itr:
        row = trainer.train_itr()
        rows.append({name: value for name, value in row.items() if "Time" not in name})
        states.append(_state_of(trainer, graph))
    trainer.sampler.close()
    return rows, states


def _causes(parts: Sequence[str]) -> str:
    if parts:
        return f"Differences directly after loading: {'; '.join(parts[:3])}"
    return ("Directly after loading, all parts are equal: paths depend on earlier paths (see check_env), get_state "
            "of a part lacks an attribute, or a global variable or generator is used")


def _differences(expected: State, state: State, only: str = "") -> List[str]:
    """Returns a description of each value that differs."""
    found = []
    for name, value in expected.items():
        now = state.get(name)
        if name.startswith(only) and not _equal(value, now):
            found.append(f"{name} " + ("is missing" if now is None else
                                       f"is {now} instead of {value}" if np.ndim(value) == 0 else "differs"))
    return found


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return bool(a == b or (a != a and b != b))  # or both are NaN


def _state_of(trainer: Trainer, graph: tf.Graph) -> State:
    """Returns the state that the next iteration depends on."""
    trainer.sampler.start_at(trainer.itr)  # as at the start of an iteration
    state = {f"policy.{name}": value for name, value in trainer.policy.get_param_values().items()}
    of_policy, session = tuple(trainer.policy.get_param_values()), get_session(graph)
    for variable in graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES):
        if variable.op.name.endswith(of_policy):
            continue
        try:
            state[f"optimizer.{variable.op.name}"] = session.run(variable)
        except tf.errors.FailedPreconditionError:  # not initialized yet
            continue
    for part, value in (("environment", trainer.sampled_env), ("baseline", trainer.sample_processor.baseline),
                        ("optimizer", trainer.algo.get_state()), ("sampler", trainer.sampler.get_state()),
                        ("random numbers", seeding.get_process_state())):
        state.update(_values(part, value, _DEPTH, set()))
    return state


def _values(where: str, value: Any, depth: int, seen: set) -> Iterator[Tuple[str, Any]]:
    """Yields the numbers and arrays in nested containers and objects, with their places."""
    has_objects = isinstance(value, np.ndarray) and value.dtype == object
    if isinstance(value, (bool, int, float, np.generic, np.ndarray)) and not has_objects:
        yield where, value.copy() if isinstance(value, np.ndarray) else value
        return
    if depth == 0 or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, np.random.Generator):
        entries: Any = value.bit_generator.state
    elif isinstance(value, (list, tuple)) or has_objects:
        entries = dict(enumerate(np.ravel(value) if has_objects else value))
    elif isinstance(value, Mapping):
        entries = value
    else:
        entries = dict(sorted(attributes_of(value).items(), key=lambda entry: entry[0].startswith("_")))
    for name, entry in list(entries.items()):
        yield from _values(f"{where}.{name}", entry, depth - 1, seen)
