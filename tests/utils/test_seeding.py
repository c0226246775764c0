"""Generators depend on a root seed, a stream and a key."""
import random

import numpy as np
import pytest

from meta_policy_search.utils import seeding
from meta_policy_search.utils.seeding import Stream
from meta_policy_search.utils.utils import set_seed


@pytest.fixture(autouse=True)
def untouched_root():
    state = seeding.get_process_state()
    yield
    seeding.set_process_state(state)


def numbers(rng):
    return rng.uniform(size=3).tolist()


def test_generator_uses_the_documented_seed_sequence():
    expected = numbers(np.random.default_rng(np.random.SeedSequence(9, spawn_key=(int(Stream.TASKS), 4, 0))))
    assert numbers(seeding.rng_for(Stream.TASKS, 4, 0, root=9)) == expected
    seeding.set_root(9)
    numbers(seeding.rng_for(Stream.TASKS, 4, 1)), numbers(seeding.next_rng(Stream.WEIGHTS))  # no effect
    assert numbers(seeding.rng_for(Stream.TASKS, 4, 0)) == expected


def test_without_a_seed_the_root_is_drawn_once(monkeypatch):
    monkeypatch.setattr(seeding, "_root", None)
    root = seeding.get_root()
    assert seeding.get_root() == root
    monkeypatch.setattr(seeding, "_root", None)
    assert seeding.get_root() != root


def everything():
    """Returns numbers from all generators in sequence."""
    return [numbers(seeding.rng_for(Stream.ROLLOUT, 0, 0, 0, 0)), numbers(seeding.next_rng(Stream.POLICY)),
            random.random(), np.random.random()]


def test_evaluation_draws_depend_only_on_its_seed_and_leave_no_trace():
    # given a process that has drawn numbers
    set_seed(1)
    everything()
    expected = everything()
    # when the draws are repeated with an evaluation in between
    set_seed(1)
    everything()
    with pytest.raises(ZeroDivisionError), seeding.evaluation_seed(1):
        first = everything()
        1 / 0  # noqa: B018
    # then later numbers are equal and others than those of the evaluation, although both have seed 1
    assert everything() == expected
    assert all(ours != theirs for ours, theirs in zip(expected, first))
    with seeding.evaluation_seed(1):
        assert everything() == first
    with seeding.evaluation_seed(5):
        assert all(ours != theirs for ours, theirs in zip(everything(), first))
