"""Argument checks. Each function returns the value as a Python object or raises an error.

A wrong type raises `TypeError`, a wrong value `ValueError`. The message names the argument, the expected value and the
actual value.
NumPy scalars and zero-dimensional arrays count as numbers. Booleans never count as numbers, and floats such as 2.0
never as integers.
"""
import difflib
import inspect
import re
import sys
import types
from typing import Any, Callable, Dict, Iterable, NoReturn, Set, TypeVar

import numpy as np

T = TypeVar("T")


def _scalar(value: Any) -> Any:
    """Converts a NumPy scalar or zero-dimensional array to a Python scalar; returns other values unchanged."""
    return value.item() if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0 else value


def _number(name: str, value: Any, kinds: Any, expected: str, fits: Callable[[Any], bool]) -> Any:
    """Returns `value` as a Python number if its type is one of `kinds` and `fits` returns True for it."""
    number = _scalar(value)
    if isinstance(number, bool) or not isinstance(number, kinds):
        raise TypeError(f"{name}: expected {expected}, got {value!r}")
    if not fits(number):
        raise ValueError(f"{name}: expected {expected}, got {value!r}")
    return number


def _float(name: str, value: Any, expected: str, fits: Callable[[float], bool]) -> float:
    """Returns `value` as `float` if it is a finite number and `fits` returns True for it."""
    return float(_number(name, value, (int, float), expected, lambda x: abs(x) <= sys.float_info.max and fits(x)))


def _equal(a: Any, b: Any) -> bool:
    """Returns whether two values or arrays are equal. `True` does not equal `1`."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return bool(np.array_equal(a, b))
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def check_int_at_least(name: str, value: Any, low: int) -> int:
    """Returns `value` as `int` if it is an integer of at least `low`."""
    return int(_number(name, value, int, f"an integer of at least {low}", lambda number: number >= low))


def check_positive_int(name: str, value: Any) -> int:
    """Returns `value` as `int` if it is an integer of at least 1."""
    return check_int_at_least(name, value, 1)


def check_finite(name: str, value: Any) -> float:
    """Returns `value` as `float` if it is a finite number."""
    return _float(name, value, "a finite number", lambda x: True)


def check_positive(name: str, value: Any) -> float:
    """Returns `value` as `float` if it is a finite number above 0."""
    return _float(name, value, "a finite number above 0", lambda x: x > 0)


def check_non_negative(name: str, value: Any) -> float:
    """Returns `value` as `float` if it is a finite number of at least 0."""
    return _float(name, value, "a finite number of at least 0", lambda x: x >= 0)


def check_fraction(name: str, value: Any, low_open: bool = True, high_open: bool = False) -> float:
    """Returns `value` as `float` if it lies between 0 and 1; `low_open` excludes 0, `high_open` excludes 1."""
    expected = f"a number in {'(' if low_open else '['}0, 1{')' if high_open else ']'}"
    return _float(name, value, expected, lambda x: 0 <= x <= 1 and not (low_open and x == 0 or high_open and x == 1))


def check_type(name: str, value: Any, cls: Any, expected: str) -> Any:
    """Returns an object of a class, or of one of several classes; `expected` names them, such as `a Box`."""
    if isinstance(value, cls):
        return value
    text = f"the class {value.__name__}" if isinstance(value, type) else repr(value)
    text = text if len(text) <= 60 else type(value).__name__
    raise TypeError(f"{name}: expected {expected}, got {text}")


def check_not_replaced(name: str, obj: T, interface: type) -> T:
    """Returns `obj`; raises `TypeError` if one of its attributes replaces a documented method of its class.

    The documented methods are those of `interface` and of the classes of this package from which `obj` derives. A
    method that is bound to `obj` itself is accepted.
    """
    package = __name__.partition(".")[0]
    documented = [interface, *(cls for cls in type(obj).__mro__ if cls.__module__.partition(".")[0] == package)]
    for method, value in attributes_of(obj).items():
        is_own = isinstance(value, types.MethodType) and value.__self__ is obj
        if hasattr(type(obj), method) and not is_own and not method.startswith("_") and any(
                inspect.isfunction(getattr(cls, method, None)) for cls in documented):
            raise TypeError(f"{name}: {method} was replaced on the object: use a subclass or a wrapper")
    return obj


def attributes_of(obj: Any) -> Dict[str, Any]:
    """Returns the instance attributes of an object; an empty dict if it has no `__dict__`."""
    return getattr(obj, "__dict__", {})


def check_bool(name: str, value: Any) -> bool:
    """Returns `value` as `bool` if it is a Python or NumPy boolean (0 and 1 are not)."""
    scalar = _scalar(value)
    if not isinstance(scalar, bool):
        raise TypeError(f"{name}: expected True or False, got {value!r}")
    return scalar


def check_choice(name: str, value: T, choices: Iterable[T]) -> T:
    """Returns the member of `choices` that equals `value` (`True` does not equal `1`)."""
    scalar = _scalar(value)
    choices = list(choices)
    for choice in choices:
        if _equal(scalar, choice):
            return choice
    expected, hint = "one of " + ", ".join(map(repr, choices)), did_you_mean(scalar, choices)
    if len(choices) > 12:
        latest = {re.sub(r"-v\d+$", "", str(choice)): str(choice) for choice in choices}
        similar = [latest[each] for each in difflib.get_close_matches(str(value), latest, n=5, cutoff=0.0)]
        expected = f"one of {len(choices)} names" + f", such as {', '.join(map(repr, similar))}" * (not hint)
    raise ValueError(f"{name}: expected {expected}, got {value!r}{hint}")


def find_name(argument: str, name: Any, known: Iterable[str]) -> str:
    """Returns the known name that equals `name` except for case, hyphens and underscores.

    Raises:
        ValueError: `name` is unknown.
    """
    by_comparable = {comparable_name(each): each for each in known}
    found = by_comparable.get(comparable_name(name)) if isinstance(name, str) else None
    return check_choice(argument, name, by_comparable.values()) if found is None else found


def comparable_name(name: str) -> str:
    """Returns a name in lower case, without hyphens and underscores."""
    return name.lower().replace("-", "").replace("_", "")


def did_you_mean(name: Any, known: Iterable[Any]) -> str:
    """Returns `; did you mean ...?` with up to three known names, or `""` if no name is similar.

    These are the names with the same words, such as `inner_lr` for "inner_learning_rate", or `env` for "envs". If there
    are none, they are the names that contain all words (`inner_lr` for "lr") or begin or end with `name`, those with
    fewest further words first, or else the name with nearly the same letters and as many words. Another name probably
    has another meaning.
    """
    by_lower = {other.lower(): other for other in known if isinstance(other, str)}
    words = _words_of(name) if isinstance(name, str) else set()
    of_others = {other: _words_of(by_lower[other]) for other in by_lower}
    name = name.lower().strip("-") if isinstance(name, str) else ""
    near = [other for other in by_lower if _singular(other) == _singular(name)
            or len(words) > 1 and of_others[other] == words] or sorted(
        (other for other in by_lower if len(name) > 1 and (set() < words <= of_others[other] or other.startswith(name)
                                                  or other.endswith(name))),
        key=lambda other: (len(of_others[other] - words), other))[:3]
    near = near or [other for other in difflib.get_close_matches(name, by_lower, cutoff=0.7)
                    if len(other.strip("-").split("_")) == len(name.split("_"))][:1]
    return f"; did you mean {' or '.join(repr(by_lower[other]) for other in near)}?" if near else ""


def _singular(name: str) -> str:
    return comparable_name(name.strip("-")).rstrip("s")


def _words_of(name: str) -> Set[str]:
    words = re.findall("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name.replace("learning_rate", "lr"))
    return {word.lower() for word in words}


def accepts(function: Callable[..., Any], *args: Any, **kwargs: Any) -> bool:
    """Returns whether a function can be called with these arguments; True if its signature is unknown."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    except ValueError:  # some built-in functions have no signature
        pass
    return True


def check_arguments(name: str, function: Any, expected: str, *args: Any, **kwargs: Any) -> None:
    """Raises `TypeError` unless a function can be called with these arguments; `expected` names them, as in `(rng)`."""
    if not accepts(function, *args, **kwargs):
        got = inspect.signature(function) if callable(function) else repr(function)
        raise TypeError(f"{name}: expected the arguments {expected}, got {got}")


class Columns(Dict[str, Any]):
    """Columns by name; the error of a missing column suggests other names."""

    def __missing__(self, name: Any) -> NoReturn:
        raise KeyError(f"expected the name of a column, got {name!r}"
                       + (did_you_mean(name, self) or "; keys() returns the names"))


def check_agrees(name: str, value: T, other_name: str, other: T) -> T:
    """Returns `value` if it equals the same quantity of another object; converts NumPy scalars to Python scalars.

    Used if the API passes the same number to several objects.

    Args:
        name: name of the argument.
        value: value of the argument.
        other_name: name of the quantity in the other object, such as `policy.meta_batch_size`.
        other: value of the quantity in the other object.

    Raises:
        ValueError: the values differ.
    """
    value, other = _scalar(value), _scalar(other)
    if not _equal(value, other):
        raise ValueError(f"{name}: expected {other!r}, the value of {other_name}, got {value!r}; pass {name}={other!r}")
    return value
