"""Tests reading the log files of runs."""
import numpy as np
import pytest

from meta_policy_search.plotting import final_returns, mean_gain, read_progress, return_columns
from meta_policy_search.plotting.progress import number_of_last
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import Columns

COLUMNS = ["n_timesteps", "Step_0-AverageReturn", "Step_1-AverageReturn", "AdaptationGain", "AdaptationGainCI95"]


def test_columns_are_read_by_name_and_non_numbers_become_nan(folder):
    progress = read_progress(folder)
    assert list(progress) == [*COLUMNS, "Note"]
    np.testing.assert_array_equal(progress["AdaptationGain"], [1.0, 3.0, 5.0])
    assert np.isnan(progress["Note"]).all()


def test_incomplete_last_line_is_ignored(folder):
    with open(folder / "progress.csv", "a") as file:
        file.write("400,2.0,8.")
    np.testing.assert_array_equal(read_progress(folder)["n_timesteps"], [100, 200, 300])


def test_mean_gain_by_hand(folder):
    """The half width of a mean of independent means: sqrt(0.4^2 + 1.2^2) / 2."""
    gain = mean_gain(read_progress(folder), last=2)
    np.testing.assert_allclose(gain, (4.0, np.sqrt(1.6) / 2))
    assert mean_gain(read_progress(folder), last=10).mean == pytest.approx(3.0)


@pytest.mark.parametrize("rows, expected", [(1, 1), (4, 1), (5, 2), (12, 3), (40, 10), (1001, 10)])
def test_results_are_means_over_the_last_quarter_at_most_ten(rows, expected):
    progress = {"AverageReturn": np.arange(rows)}
    assert final_returns(progress) == final_returns(progress, expected)
    assert number_of_last(progress) == expected
    with pytest.raises(ValueError, match="last: expected an integer of at least 1, got 0"):
        final_returns(progress, 0)


def test_return_columns():
    steps = {f"Step_{step}-AverageReturn": np.zeros(1) for step in (0, 2, 10)}
    assert return_columns(steps) == {"return before adaptation": "Step_0-AverageReturn",
                                     "return after adaptation": "Step_10-AverageReturn"}
    assert return_columns({"AverageReturn": np.zeros(1)}) == {"return": "AverageReturn"}
    trials = [f"Step_0-{name}Return" for name in ("Average", "FirstEpisode", "LastEpisode")]
    assert list(return_columns(dict.fromkeys(trials, np.zeros(1))).values()) == trials[1:]
    with pytest.raises(ValueError, match="expected a column 'Step_0-AverageReturn', got only Itr"):
        return_columns({"Itr": np.zeros(1)})


def test_missing_column_is_named_with_similar_columns(folder):
    """The rows of callbacks are the same type."""
    for columns in (read_progress(folder), logger.getkvs()):
        with pytest.raises(KeyError, match="expected the name of a column, got 'Gain'"):
            columns["Gain"]
    with pytest.raises(KeyError, match="did you mean 'Step_0-AverageReturn' or 'Step_1-AverageReturn'"):
        Columns({"Step_1-AverageReturn": 1.0, "Itr": 0, "Step_0-AverageReturn": 0.0})["AverageReturn"]
    with pytest.raises(KeyError, match=r"got 'Gain'; keys\(\) returns the names"):
        Columns({"Itr": 0})["Gain"]
