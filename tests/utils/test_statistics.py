"""Tests means and their intervals."""
import itertools

import numpy as np
import pytest
import scipy.stats

from meta_policy_search.utils.statistics import (
    Interval,
    exact_mean,
    exact_sum,
    half_width_of_mean,
    holm,
    mean_interval,
    running_mean,
    tail_values,
    worst_quarter,
)


@pytest.mark.parametrize("n", [2, 3, 9])
def test_interval_agrees_with_scipy(n):
    """The first axis is the sample axis."""
    values = np.random.default_rng(n).normal(size=(n, 2, 3))
    low, high = scipy.stats.t.interval(0.95, n - 1, values.mean(axis=0), scipy.stats.sem(values))
    np.testing.assert_allclose(mean_interval(values).low, low, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(mean_interval(values).high, high, rtol=1e-12, atol=1e-12)
    low, _ = scipy.stats.t.interval(0.9, n - 1, values.mean(axis=0), scipy.stats.sem(values))
    np.testing.assert_allclose(mean_interval(values, 0.9).low, low, rtol=1e-12, atol=1e-12)


def test_printed_numbers_do_not_depend_on_the_order_of_addition():
    """Given seeds with a mean of 49.25, a tie, then floating-point sums in different orders print different numbers."""
    orders = np.array(list(itertools.permutations([52.739, 45.396, 40.819, 58.046])))
    assert {f"{np.sum(values) / 4:.1f}" for values in orders} == {"49.2", "49.3"}
    assert set(exact_mean(orders, axis=1)) == {49.25} and f"{exact_mean(orders[0]):.1f}" == "49.2"
    assert len({tuple(mean_interval(values)) for values in orders}) == 1
    assert set(running_mean(orders.ravel(), reach=10_000)[0]) == {49.25}
    assert len({half_width_of_mean(values) for values in orders}) == 1
    assert {worst_quarter(np.array([*values, *[99.0] * 12])) for values in orders} == {49.25}


def test_exact_sums_agree_with_numpy_along_every_axis():
    values = np.random.default_rng(0).normal(size=(2, 3, 4))
    for axis in (0, 1, 2, -1):
        np.testing.assert_allclose(exact_sum(values, axis), values.sum(axis=axis), rtol=1e-14, atol=1e-15)
        np.testing.assert_allclose(exact_mean(values, axis), values.mean(axis=axis), rtol=1e-14, atol=1e-15)
    assert exact_sum(np.ones((5, 0))).shape == (0,) and exact_sum([1e100, 1.0, -1e100]) == 1.0
    np.testing.assert_array_equal(exact_sum([[np.inf, 1.0, np.nan], [1.0, -np.inf, 1.0]]), [np.inf, -np.inf, np.nan])


def test_interval_of_a_mean_of_means():
    """Given means of M values each, then their variances are pooled, with n (M - 1) degrees of freedom."""
    values = np.random.default_rng(0).normal(size=(5, 4))  # [M, n]
    pooled = np.sqrt(values.var(axis=0, ddof=1).mean() / values.size)
    expected = scipy.stats.t.ppf(0.975, 4 * (5 - 1)) * pooled
    assert half_width_of_mean(mean_interval(values).half_width, 5) == pytest.approx(expected, rel=1e-12)
    assert half_width_of_mean(np.array([0.3, 0.4])) == pytest.approx(0.25)


def test_worst_quarter_is_the_mean_of_the_lowest_quarter():
    returns = np.random.default_rng(0).permutation(np.arange(40.0))
    assert worst_quarter(returns) == pytest.approx(4.5)  # 0 to 9
    np.testing.assert_allclose(worst_quarter(np.stack([returns, -returns], axis=1)), [4.5, -34.5])


def test_interval_of_one_mean_is_readable():
    assert repr({"gain": Interval(np.float64(58.819), np.float64(0.115))}) == "{'gain': 58.82 +- 0.12}"
    assert f"{Interval(np.float64(3.14), np.float64(0.25)):+.1f}" == "+3.1 +- 0.2"
    assert str(Interval(np.float64(1.0), np.float64("nan"))) == "1.00"


@pytest.mark.parametrize("size, fraction", [(40, 0.25), (10, 0.25), (3, 0.25), (500, 0.05), (7, 1.0)])
def test_mean_of_tail_values_is_that_of_the_tasks_with_the_lowest_returns(size, fraction):
    returns = np.random.default_rng(size).normal(size=size)
    weights = np.clip(size * fraction - np.arange(size), 0.0, 1.0)
    assert tail_values(returns, fraction).mean() == pytest.approx(np.average(np.sort(returns), weights=weights))
    assert fraction != 0.25 or tail_values(returns).mean() == pytest.approx(worst_quarter(returns))


def test_intervals_of_tail_values_cover_the_mean_of_the_worst_tasks():
    """Normal returns: the mean of the worst quarter is -1.271."""
    rng = np.random.default_rng(1)
    found = [mean_interval(tail_values(rng.normal(size=40))) for _ in range(1000)]
    assert 0.88 < np.mean([interval.low < -1.271 < interval.high for interval in found]) < 0.97


def test_holm_by_hand():
    """The smallest of three p-values counts three times, the next one twice; corrected values do not decrease."""
    np.testing.assert_allclose(holm([0.04, 0.01, 0.03]), [0.06, 0.03, 0.06])
    np.testing.assert_allclose(holm([0.9, 0.8]), [1.0, 1.0])
