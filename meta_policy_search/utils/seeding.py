"""Random generators, derived from a root seed and a key.

Example: the generator of rollout `r` in task `m` is derived from the root seed and the key
`(iteration, adaptation step, m, r)`. Therefore samples do not depend on the executor, on retries, or on the number of
processes, threads or cluster workers. `utils.utils.set_seed` sets the root seed. By default, the root seed comes from
the operating system.
"""
import contextlib
import random
from enum import IntEnum
from typing import Any, Dict, Iterator, Mapping, Optional

import numpy as np

from meta_policy_search.utils.threads import training_lock


class Stream(IntEnum):
    """Independent families of generators with the same root seed; comments show the keys."""

    ROLLOUT = 0  # (itr, step, task, rollout)
    TASKS = 1  # (itr,)
    WEIGHTS = 2  # (count of policies and networks built,)
    OPTIMIZER = 3  # (count of optimizers built,)
    EXECUTOR = 4  # (count of resets and of sampled task lists, environment): executors that the user steps directly
    POLICY = 5  # (count of policies built,): `get_action(s)` called by the user
    EVALUATION = 6  # (): the root seed within `evaluation_seed`
    SEARCH = 7  # (count of algorithms built,): candidates of CEM and CMA-ES
    REPLAY = 8  # (count of buffers built,): transitions sampled from a replay buffer
    BASELINE = 9  # (count of trainings,): initial weights and minibatches of learned baselines


_root: Optional[int] = None
_is_chosen = False  # whether the user set the root seed
_counters: Dict[int, int] = {}
_num_changes = 0  # how often the state of all generators was replaced, except by `evaluation_seed`


@training_lock()
def set_root(seed: int) -> None:
    """Sets the root seed (a non-negative integer) and restarts every counted stream."""
    global _root, _is_chosen, _num_changes
    _root, _is_chosen, _num_changes = int(seed), True, _num_changes + 1
    _counters.clear()


def get_root() -> int:
    """Returns the root seed; if it is not set, draws it from the operating system."""
    global _root
    if _root is None:
        _root = int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]  # it is an integer
    return _root


def chosen_root() -> Optional[int]:
    """Returns the root seed if the user has set it, otherwise None."""
    return _root if _is_chosen else None


@contextlib.contextmanager
def rooted(root: Optional[int]) -> Iterator[None]:
    """Sets the root seed for a `with` block, unless `root` is None; counted streams continue."""
    global _root
    if root is None:
        yield
        return
    before, _root = _root, root
    try:
        yield
    finally:
        _root = before


def rng_for(stream: Stream, *key: int, root: Optional[int] = None) -> np.random.Generator:
    """Returns the generator of a key.

    Args:
        stream: family of generators.
        *key: non-negative integers.
        root: root seed; default None, the current root seed.
    """
    sequence = np.random.SeedSequence(get_root() if root is None else root, spawn_key=(int(stream), *key))
    return np.random.Generator(np.random.PCG64(sequence))


def next_rng(stream: Stream) -> np.random.Generator:
    """Returns the generator for the next object of a counted stream, and increments the count of the stream."""
    count = _counters.get(stream, 0)
    _counters[stream] = count + 1
    return rng_for(stream, count)


def get_process_state() -> Dict[str, Any]:
    """Returns the state of all random generators: of the library, and the global ones of Python and NumPy."""
    return {"seeding": {"root": get_root(), "counters": dict(_counters)},
            "random": random.getstate(), "numpy_random": np.random.get_state()}


@training_lock()
def set_process_state(state: Mapping[str, Any]) -> None:
    """Restores the return value of `get_process_state`; `state` may contain additional entries."""
    global _root, _num_changes
    _root, _num_changes = int(state["seeding"]["root"]), _num_changes + 1
    _counters.clear()
    _counters.update(state["seeding"]["counters"])
    random.setstate(state["random"])
    np.random.set_state(state["numpy_random"])


@contextlib.contextmanager
def generators_kept() -> Iterator[None]:
    """Restores all generators and the root seed after a `with` block, which may seed them and draw from them."""
    global _is_chosen, _num_changes
    with training_lock():
        before, was_chosen, num_changes = get_process_state(), _is_chosen, _num_changes
        try:
            yield
        finally:
            set_process_state(before)
            _is_chosen, _num_changes = was_chosen, num_changes


@contextlib.contextmanager
def evaluation_seed(seed: int) -> Iterator[None]:
    """Derives all random numbers in a `with` block from `seed`; restores all generators afterwards.

    This includes the global generators of Python and NumPy. A training run with the same seed uses different numbers.
    """
    with generators_kept():
        root = int(rng_for(Stream.EVALUATION, root=seed).integers(2**63))
        set_root(root)
        random.seed(root)
        np.random.seed(root % 2**32)
        yield


@contextlib.contextmanager
def seed_kept() -> Iterator[None]:
    """Restores all generators after a `with` block that sets a seed; other blocks may draw from the generators."""
    before, num_changes = get_process_state(), _num_changes
    try:
        yield
    finally:
        if _num_changes != num_changes:
            set_process_state(before)
