"""Tests means and their intervals."""
import numpy as np
import pytest
import scipy.stats

from meta_policy_search.utils.statistics import (
    Interval,
    half_width_of_mean,
    interquartile_mean,
    mean_interval,
    task_returns,
)


def test_interval_of_a_mean_by_hand():
    """t_{2, 0.975} = 4.302653, s = 1, n = 3."""
    mean, half_width = mean_interval([1.0, 2.0, 3.0])
    assert (mean, half_width) == (2.0, pytest.approx(4.302653 / np.sqrt(3.0)))


def test_first_axis_is_the_sample_axis():
    values = np.random.default_rng(1).normal(size=(9, 2, 3)).astype(np.float32)
    mean, half_width = mean_interval(values)
    low, high = scipy.stats.t.interval(0.95, 8, values.mean(axis=0), scipy.stats.sem(values))
    np.testing.assert_allclose(mean - half_width, low, rtol=1e-4)
    np.testing.assert_allclose(mean + half_width, high, rtol=1e-4)


def test_single_value_has_no_interval():
    mean, half_width = mean_interval([[4.0, 5.0]])
    np.testing.assert_array_equal(mean, [4.0, 5.0])
    np.testing.assert_array_equal(half_width, [np.nan, np.nan])


def test_interval_of_a_mean_of_means():
    assert half_width_of_mean(np.array([0.3, 0.4])) == pytest.approx(0.25)


def test_return_of_a_task_is_the_mean_over_its_paths():
    paths = {0: [{"rewards": np.array([1.0, 2.0])}, {"rewards": np.array([5.0])}], 1: [{"rewards": np.array([-1.0])}]}
    np.testing.assert_array_equal(task_returns(paths), [4.0, -1.0])


def test_interval_of_one_mean_is_readable():
    assert repr({"gain": Interval(np.float64(58.819), np.float64(0.115))}) == "{'gain': 58.82 +- 0.12}"


def test_interquartile_mean_is_the_mean_of_the_middle_half():
    assert interquartile_mean(np.array([[0.0, 1.0, 2.0, 300.0]])).mean == pytest.approx(1.5)


def test_policies_are_resampled_as_a_whole():
    """For two policies with constant returns in all tasks, the interval spans both returns.

    Resampling each task separately would mix the policies in every resample.
    """
    low_and_high = interquartile_mean(np.repeat([[0.0], [1.0]], 40, axis=1))
    assert low_and_high == pytest.approx((0.5, 0.0, 1.0))


def test_one_policy_has_an_interval_over_tasks():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(1, 400))
    middle = interquartile_mean(scores)
    assert middle.low < middle.mean < middle.high
    assert middle.high - middle.low == pytest.approx(2 * 1.96 * 1.1 / 20.0, rel=0.15)  # its variance is 1.2 / n
