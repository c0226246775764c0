"""Generators belong to a root seed, a stream and a key."""
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


def test_a_generator_depends_on_its_key_alone():
    # given numbers of one rollout
    seeding.set_root(1)
    first = numbers(seeding.rng_for(Stream.ROLLOUT, 3, 0, 2, 5))
    # when others are drawn before, after and from other counted streams
    numbers(seeding.rng_for(Stream.ROLLOUT, 3, 0, 2, 6))
    numbers(seeding.next_rng(Stream.WEIGHTS))
    # then that rollout has the same numbers again
    assert numbers(seeding.rng_for(Stream.ROLLOUT, 3, 0, 2, 5)) == first


def test_the_generator_is_the_documented_seed_sequence():
    expected = np.random.default_rng(np.random.SeedSequence(9, spawn_key=(int(Stream.TASKS), 4)))
    assert numbers(seeding.rng_for(Stream.TASKS, 4, root=9)) == numbers(expected)


def test_keys_streams_and_roots_give_different_numbers():
    seeding.set_root(1)
    drawn = [
        numbers(seeding.rng_for(Stream.ROLLOUT, 0, 0, 0, 1)),
        numbers(seeding.rng_for(Stream.ROLLOUT, 0, 0, 1, 0)),
        numbers(seeding.rng_for(Stream.ROLLOUT, 0)),
        numbers(seeding.rng_for(Stream.TASKS, 0)),
        numbers(seeding.rng_for(Stream.TASKS, 0, root=2)),
    ]
    assert len(set(map(tuple, drawn))) == len(drawn)


def test_a_worker_that_is_told_the_root_draws_the_same():
    seeding.set_root(5)
    here = numbers(seeding.rng_for(Stream.ROLLOUT, 1, 2))
    seeding.set_root(6)
    assert numbers(seeding.rng_for(Stream.ROLLOUT, 1, 2, root=5)) == here


def test_counted_streams_go_on_and_restart_with_the_root():
    seeding.set_root(1)
    first, second = numbers(seeding.next_rng(Stream.WEIGHTS)), numbers(seeding.next_rng(Stream.WEIGHTS))
    assert first != second
    assert numbers(seeding.next_rng(Stream.OPTIMIZER)) not in (first, second)  # its own count, its own numbers
    seeding.set_root(1)
    assert [numbers(seeding.next_rng(Stream.WEIGHTS)), numbers(seeding.next_rng(Stream.WEIGHTS))] == [first, second]


def test_the_state_goes_into_a_snapshot_and_back():
    seeding.set_root(1)
    seeding.next_rng(Stream.WEIGHTS)
    state = seeding.get_process_state()
    second = numbers(seeding.next_rng(Stream.WEIGHTS))
    seeding.set_root(2)
    seeding.set_process_state(state)
    assert seeding.get_root() == 1
    assert numbers(seeding.next_rng(Stream.WEIGHTS)) == second
    assert state["seeding"]["counters"] == {Stream.WEIGHTS: 1}  # the state itself does not count on


def test_without_a_seed_the_root_is_drawn_once(monkeypatch):
    monkeypatch.setattr(seeding, "_root", None)
    root = seeding.get_root()
    assert seeding.get_root() == root
    monkeypatch.setattr(seeding, "_root", None)
    assert seeding.get_root() != root


def everything():
    """Numbers from all generators, drawn one after the other."""
    return [numbers(seeding.rng_for(Stream.ROLLOUT, 0, 0, 0, 0)), numbers(seeding.next_rng(Stream.POLICY)),
            random.random(), np.random.random()]


def test_an_evaluation_draws_from_its_seed_alone_and_leaves_no_trace():
    # given a process that has drawn some numbers
    set_seed(1)
    everything()
    expected = everything()
    # when it is repeated with an evaluation in between
    set_seed(1)
    everything()
    with seeding.evaluation_seed(4):
        first = everything()
    # then it goes on with the same numbers, and so does the evaluation, after any others
    assert everything() == expected
    with seeding.evaluation_seed(4):
        assert everything() == first
    with seeding.evaluation_seed(5):
        assert all(ours != theirs for ours, theirs in zip(everything(), first))


def test_an_evaluation_does_not_draw_what_a_run_of_the_same_seed_draws():
    set_seed(4)
    run = everything()
    with seeding.evaluation_seed(4):
        assert all(ours != theirs for ours, theirs in zip(everything(), run))


def test_random_numbers_go_on_after_an_evaluation_that_fails():
    set_seed(1)
    expected = everything()
    set_seed(1)
    with pytest.raises(ZeroDivisionError), seeding.evaluation_seed(4):
        1 / 0  # noqa: B018
    assert everything() == expected
