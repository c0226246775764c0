"""Argument checks return valid arguments as Python values; errors name argument, value and expectation."""
import re

import numpy as np
import pytest

from meta_policy_search.utils.checks import (
    check_bool,
    check_choice,
    check_finite,
    check_fraction,
    check_non_negative,
    check_positive,
    check_positive_int,
    did_you_mean,
)


@pytest.mark.parametrize("check, values, error, message", [
    (check_positive_int, [3.0, np.float32(3.0), "3", None, True, np.bool_(True), [3], np.array([3])], TypeError,
     "an integer of at least 1"),
    (check_positive_int, [0, -1, np.int32(-5)], ValueError, "an integer of at least 1"),
    (check_bool, [0, 1, None, "yes"], TypeError, "True or False"),
    *((check, ["0.5", None, True, 1j, [0.5]], TypeError, "a .*number.*")
      for check in (check_finite, check_positive, check_non_negative, check_fraction)),
    (check_finite, [float("nan"), -float("inf"), 10**400], ValueError, "a finite number"),
    (check_positive, [0, -0.1, float("nan"), float("inf"), 10**400], ValueError, "a finite number above 0"),
    (check_non_negative, [-0.1, float("nan"), float("inf"), 10**400], ValueError, "a finite number of at least 0"),
    (check_fraction, [-0.1, float("nan"), 10**400], ValueError, r"a number in \(0, 1\]"),
])
def test_wrong_types_and_values_raise_errors(check, values, error, message):
    for value in values:
        with pytest.raises(error, match=f"^x: expected {message}, got "):
            check("x", value)


@pytest.mark.parametrize("name, expected", [
    ("HalfCheetah", "; did you mean 'HalfCheetahRandDirecEnv'?"), ("pro_mpp", "; did you mean 'pro_mp'?"),
    ("PRO_MP", "; did you mean 'pro_mp'?"), ("xyz", ""), ("日本", ""), (3, ""), (None, ""), ("", ""),
    ("inner_learning_rate", "; did you mean 'inner_lr'?"), ("outer_lr", ""),
    ("lerning_rate", "; did you mean 'learning_rate'?"),
    ("initstd", "; did you mean '--init_std'?"),
    ("Step_1-Return", "; did you mean 'Step_1-AverageReturn' or 'Step_1-StdReturn'?"),
    ("HalfCheetahDirecEnv", "; did you mean 'HalfCheetahRandDirecEnv'?"),
    ("lr", "; did you mean 'learning_rate' or 'inner_lr'?"),
    ("--STD", "; did you mean '--init_std' or 'Step_1-StdReturn'?"),
])
def test_closest_match_is_suggested(name, expected):
    known = [True, "HalfCheetahRandDirecEnv", "pro_mp", "learning_rate", "inner_lr", "--init_std", "--help", "Itr",
             "Step_0-AverageReturn", "Step_1-StdReturn", "Step_1-AverageReturn"]
    assert did_you_mean(name, known) == expected
    with pytest.raises(ValueError, match=re.escape(f"got {name!r}{expected}") + "$"):
        check_choice("x", name, known)
