"""Argument checks return valid arguments as Python values; errors name argument, value and expectation."""
import re

import numpy as np
import pytest

from meta_policy_search.utils.checks import (
    check_bool,
    check_choice,
    check_finite,
    check_fraction,
    check_int_at_least,
    check_non_negative,
    check_positive,
    check_positive_int,
    did_you_mean,
)


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), np.array(3)])
def test_integers_of_any_type_become_python_integers(value):
    checked = check_positive_int("num_steps", value)
    assert checked == 3 and type(checked) is int


@pytest.mark.parametrize("value", [3.0, np.float32(3.0), "3", None, True, np.bool_(True), [3], np.array([3])])
def test_non_integer_raises_a_type_error(value):
    with pytest.raises(TypeError, match=r"num_steps: expected an integer of at least 1, got "):
        check_positive_int("num_steps", value)


@pytest.mark.parametrize("value", [0, -1, np.int32(-5)])
def test_too_small_integer_raises_a_value_error(value):
    with pytest.raises(ValueError, match=r"num_steps: expected an integer of at least 1"):
        check_positive_int("num_steps", value)


def test_lowest_integer_is_allowed():
    assert check_int_at_least("itr", 0, 0) == 0
    with pytest.raises(ValueError, match=r"itr: expected an integer of at least 0, got -1"):
        check_int_at_least("itr", -1, 0)


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2.0), np.int64(2), np.array(2.0)])
@pytest.mark.parametrize("check", [check_finite, check_positive, check_non_negative])
def test_numbers_of_any_type_become_python_floats(check, value):
    checked = check("step_size", value)
    assert checked == 2.0 and type(checked) is float


@pytest.mark.parametrize("check", [check_finite, check_positive, check_non_negative, check_fraction])
@pytest.mark.parametrize("value", ["0.5", None, True, 1j, [0.5]])
def test_non_number_raises_a_type_error(check, value):
    with pytest.raises(TypeError, match=r"discount: expected a .*number.*, got "):
        check("discount", value)


@pytest.mark.parametrize("value", [-1.5, 0, np.float32(-2.0)])
def test_finite_numbers_can_have_any_sign(value):
    assert check_finite("target", value) == value
    for wrong in (float("nan"), -float("inf"), 10**400):
        with pytest.raises(ValueError, match="target: expected a finite number, got"):
            check_finite("target", wrong)


@pytest.mark.parametrize("check", [check_positive, check_non_negative, check_fraction])
@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), 10**400])
def test_numbers_out_of_range_raise_a_value_error(check, value):
    with pytest.raises(ValueError, match=r"discount: expected a .*number"):
        check("discount", value)


def test_zero_is_non_negative_but_not_positive():
    assert check_non_negative("coeff", 0) == 0.0
    with pytest.raises(ValueError, match=r"coeff: expected a finite number above 0, got 0"):
        check_positive("coeff", 0)


@pytest.mark.parametrize(
    "low_open, high_open, interval, zero, one",
    [
        (True, False, r"\(0, 1\]", False, True),
        (False, False, r"\[0, 1\]", True, True),
        (True, True, r"\(0, 1\)", False, False),
        (False, True, r"\[0, 1\)", True, False),
    ],
)
def test_interval_of_a_fraction_is_open_or_closed_at_each_end(low_open, high_open, interval, zero, one):
    for value, inside in ((0.0, zero), (1.0, one), (0.5, True), (1.01, False)):
        if inside:
            assert check_fraction("discount", value, low_open, high_open) == value
        else:
            with pytest.raises(ValueError, match=rf"discount: expected a number in {interval}, got {value}"):
                check_fraction("discount", value, low_open, high_open)


@pytest.mark.parametrize("value", [True, np.bool_(True)])
def test_booleans_of_any_type_become_python_booleans(value):
    assert check_bool("parallel", value) is True


@pytest.mark.parametrize("value", [0, 1, None, "yes"])
def test_non_boolean_raises_a_type_error(value):
    with pytest.raises(TypeError, match=r"parallel: expected True or False, got "):
        check_bool("parallel", value)


def test_choice_is_returned_and_errors_list_the_choices():
    assert check_choice("inner_type", np.str_("dice"), ["likelihood_ratio", "dice"]) == "dice"
    assert check_choice("log", True, [False, True]) is True
    for value in ("Dice", None, np.array(["dice"])):
        with pytest.raises(ValueError, match=r"inner_type: expected one of 'likelihood_ratio', 'dice', got "):
            check_choice("inner_type", value, ["likelihood_ratio", "dice"])


def test_one_is_not_the_choice_true():
    with pytest.raises(ValueError, match=r"log: expected one of False, True, got 1"):
        check_choice("log", 1, [False, True])


@pytest.mark.parametrize("name, expected", [
    ("HalfCheetah", "; did you mean 'HalfCheetahRandDirecEnv'?"), ("pro_mpp", "; did you mean 'pro_mp'?"),
    ("PRO_MP", "; did you mean 'pro_mp'?"), ("xyz", ""), (3, ""), (None, ""),
])
def test_closest_match_is_suggested(name, expected):
    known = [True, "HalfCheetahRandDirecEnv", "pro_mp"]
    assert did_you_mean(name, known) == expected
    with pytest.raises(ValueError, match=re.escape(f"got {name!r}{expected}") + "$"):
        check_choice("x", name, known)
