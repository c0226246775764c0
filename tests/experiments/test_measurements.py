"""Reference policies for bandits and tabular MDPs."""
import itertools

import numpy as np
import pytest

from experiments.reproduction import measurements
from experiments.reproduction.entries import ENTRIES, read_tests


@pytest.mark.thorough
def test_measured_returns_agree_with_the_stored_ones():
    """The policies return about as much in a small sample as stored."""
    for name, measure, rel in (("bandit_references", measurements.of_bandits, 0.1),
                               ("mdp_references", measurements.of_mdps, 0.015)):
        for method, stored in read_tests(name).items():
            for column, value in measure(method, 17, 300 if rel == 0.1 else 1000).items():
                assert value == pytest.approx(np.mean([run[column] for run in stored.values()]), rel=rel)


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


def test_a_plan_by_hand():
    """Action 0 stays and pays the number of the state; action 1 costs 1 and leads to the other state, which pays 1."""
    transitions, means = np.zeros((1, 2, 2, 2)), np.array([[[0.0, -1.0], [1.0, -1.0]]])
    transitions[0, [0, 1, 0, 1], [0, 0, 1, 1], [0, 1, 1, 0]] = 1.0
    values, policy = measurements.plan(transitions, means)
    assert values == pytest.approx(measurements.HORIZON - 2)
    np.testing.assert_array_equal(policy[[0, -1], 0], [[1, 0], [0, 0]])


@pytest.mark.thorough
def test_rl2_is_compared_on_its_own_test_tasks():
    found = measurements.rl2_minus("ucb1", 1, 50)
    assert set(found) == {"n10_k5", "n100_k5"} and len(found["n10_k5"]) == 50
    assert abs(found["n10_k5"].mean()) < 1.0 and abs(found["n100_k5"].mean()) < 10.0
    assert found["n100_k5"].std() < 7.0  # with returns of other bandits, about 14
