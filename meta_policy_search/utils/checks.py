"""Checks of arguments: each returns the value as a Python object or raises an error.

A wrong type raises `TypeError`, a wrong value `ValueError`; both name the argument, the expected value and the value.
NumPy scalars and zero-dimensional arrays count as numbers. Booleans never count as numbers, and floats such as 2.0
never as integers.
"""
import difflib
import math
from typing import Any, Callable, Iterable, NoReturn, TypeVar

import numpy as np

T = TypeVar("T")


def _fail(error: type[Exception], name: str, value: Any, expected: str) -> NoReturn:
    raise error(f"{name}: expected {expected}, got {value!r}")


def _scalar(value: Any) -> Any:
    """Returns the Python scalar that a NumPy scalar or zero-dimensional array holds; anything else unchanged."""
    return value.item() if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0 else value


def _number(name: str, value: Any, expected: str, fits: Callable[[float], bool] = math.isfinite) -> float:
    scalar = _scalar(value)
    if isinstance(scalar, bool) or not isinstance(scalar, (int, float)):
        _fail(TypeError, name, value, expected)
    try:
        number = float(scalar)
    except OverflowError:  # an integer beyond the range of floats
        number = math.inf
    if not (math.isfinite(number) and fits(number)):
        _fail(ValueError, name, value, expected)
    return number


def _equal(a: Any, b: Any) -> bool:
    """Whether two values, arrays among them, are equal; `True` and `1` are not."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return bool(np.array_equal(a, b))
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def check_int_at_least(name: str, value: Any, low: int) -> int:
    """Returns `value` as `int` if it is an integer of at least `low`."""
    expected = f"an integer of at least {low}"
    number = _scalar(value)
    if isinstance(number, bool) or not isinstance(number, int):
        _fail(TypeError, name, value, expected)
    if number < low:
        _fail(ValueError, name, value, expected)
    return int(number)


def check_positive_int(name: str, value: Any) -> int:
    """Returns `value` as `int` if it is an integer of at least one."""
    return check_int_at_least(name, value, 1)


def check_finite(name: str, value: Any) -> float:
    """Returns `value` as `float` if it is a finite number."""
    return _number(name, value, "a finite number")


def check_positive(name: str, value: Any) -> float:
    """Returns `value` as `float` if it is a finite number above zero."""
    return _number(name, value, "a finite number above 0", lambda number: number > 0.0)


def check_non_negative(name: str, value: Any) -> float:
    """Returns `value` as `float` if it is a finite number of at least zero."""
    return _number(name, value, "a finite number of at least 0", lambda number: number >= 0.0)


def check_fraction(name: str, value: Any, low_open: bool = True, high_open: bool = False) -> float:
    """Returns `value` as `float` if it lies between zero and one; `low_open` excludes zero, `high_open` one."""

    def fits(number: float) -> bool:
        return 0.0 <= number <= 1.0 and not (low_open and number == 0.0) and not (high_open and number == 1.0)

    return _number(name, value, f"a number in {'(' if low_open else '['}0, 1{')' if high_open else ']'}", fits)


def check_bool(name: str, value: Any) -> bool:
    """Returns `value` as `bool` if it is a Python or NumPy boolean (0 and 1 are not)."""
    scalar = _scalar(value)
    if not isinstance(scalar, bool):
        _fail(TypeError, name, value, "True or False")
    return scalar


def check_choice(name: str, value: T, choices: Iterable[T]) -> T:
    """Returns the member of `choices` that equals `value` (`True` does not equal `1`)."""
    scalar = _scalar(value)
    choices = list(choices)
    for choice in choices:
        if _equal(scalar, choice):
            return choice
    raise ValueError(f"{name}: expected one of {', '.join(map(repr, choices))}, got {value!r}"
                     + did_you_mean(scalar, choices))


def did_you_mean(name: Any, known: Iterable[Any]) -> str:
    """Returns `; did you mean ...?` with the known name that is most similar to `name`; an empty string if none is."""
    by_lower = {other.lower(): other for other in known if isinstance(other, str)}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1) if isinstance(name, str) else []
    return f"; did you mean {by_lower[near[0]]!r}?" if near else ""


def check_agrees(name: str, value: T, other_name: str, other: T) -> T:
    """Returns `value` (as a Python scalar where it is a NumPy one) if it equals that of another object.

    Used where the documented API passes the same number to several objects.

    Args:
        name: the argument.
        value: what was given for it.
        other_name: name of the same quantity in the other object, such as `policy.meta_batch_size`.
        other: its value there.
    """
    value, other = _scalar(value), _scalar(other)
    if not _equal(value, other):
        raise ValueError(f"{name}: expected {other!r}, the value of {other_name}, got {value!r}; pass {name}={other!r}")
    return value


def check_same(name_a: str, a: T, name_b: str, b: T) -> T:
    """Returns `a` (as a Python scalar where it is a NumPy one) if it equals `b`."""
    a, b = _scalar(a), _scalar(b)
    if not _equal(a, b):
        raise ValueError(f"{name_a} and {name_b}: expected the same value, got {name_a}={a!r} and {name_b}={b!r}")
    return a
