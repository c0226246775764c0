"""Reference policies for bandits."""
import itertools

import numpy as np
import pytest

from experiments.reproduction import measurements
from experiments.reproduction.entries import ENTRIES, read_tests


def test_measured_returns_agree_with_the_stored_ones():
    """The policies return about as much in a small sample as stored."""
    for method in ("gittins", "ucb1", "thompson", "random"):
        found = measurements.of_bandits(method, 7, 300)
        for column, value in found.items():
            mean = np.mean([run[column] for run in read_tests("bandit_references")[method].values()])
            assert value == pytest.approx(mean, rel=0.1)


def test_published_returns_are_those_of_the_environment():
    """Published means over 1,000 trials, rounded to 0.1, agree within 2% (Thompson sampling with 10 pulls: 4%)."""
    for name in ("bandit_references", "mdp_references"):
        for method in ENTRIES[name].methods:
            for column, published in zip(ENTRIES[name].columns, method.published, strict=False):
                mean = np.mean([run[column] for run in read_tests(name)[method.name].values()])
                assert mean == pytest.approx(published, rel=0.04), (method.name, column)


def test_the_bayes_optimum_by_enumeration():
    """Given two pulls and two arms, every policy is an arm, and an arm after each reward of the first pull."""
    best = 0.0
    for after_loss, after_win in itertools.product((0, 1), repeat=2):  # 0: the same arm again, 1: the new arm
        win = 2 / 3 if after_win == 0 else 1 / 2
        loss = 1 / 3 if after_loss == 0 else 1 / 2
        best = max(best, 1 / 2 + 1 / 2 * win + 1 / 2 * loss)
    assert measurements.bayes_optimum(2, 2) == pytest.approx(best)
    assert measurements.bayes_optimum(10, 5) == pytest.approx(6.660, abs=5e-4)


def test_no_policy_exceeds_the_bayes_optimum():
    stored = read_tests("bandit_references")
    for column in ("n10_k5", "n10_k10", "n10_k50"):
        optimum = stored["optimum"][1][column].item()
        for method in ("gittins", "ucb1", "thompson", "random"):
            assert np.mean([run[column] for run in stored[method].values()]) <= optimum + 0.02


def test_a_gittins_index_by_hand():
    """Given one pull, then the index is the mean. Given two, it is the charge c with p - c + p (p' - c) = 0."""
    scores = measurements.gittins(2)
    none, one = np.zeros((1, 1), int), np.ones((1, 1), int)
    assert scores(none, none, 1, None).item() == pytest.approx(1 / 2, abs=0.006)
    assert scores(one, none, 1, None).item() == pytest.approx(2 / 3, abs=0.006)
    assert scores(none, none, 2, None).item() == pytest.approx((1 / 2 + 1 / 2 * 2 / 3) / (1 + 1 / 2), abs=0.006)


@pytest.mark.thorough
def test_rl2_is_compared_on_its_own_test_tasks():
    found = measurements.rl2_minus("ucb1", 1, 50)
    assert set(found) == {"n10_k5", "n100_k5"} and abs(found["n10_k5"]) < 1.0 and abs(found["n100_k5"]) < 10.0
