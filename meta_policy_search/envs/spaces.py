"""Checks of spaces by their attributes, because the spaces of gym and Gymnasium have no common base class."""
from typing import Any, Optional, Tuple

import numpy as np


def check_has_spaces(env: Any) -> None:
    """Checks the spaces of an environment.

    Raises:
        TypeError: the observation or action space is missing or has no shape.
        ValueError: a lower bound of a box exceeds the upper bound, the difference of two finite action bounds
            overflows, or actions are neither discrete nor real numbers.
    """
    for name in ("observation_space", "action_space"):
        space = check_has_shape(f"env.{name}", getattr(env, name, None))
        if is_box(space):
            low, high = (np.asarray(bound, np.float64) for bound in (space.low, space.high))
            with np.errstate(over="ignore"):
                overflows = np.isinf(high - low) & np.isfinite(low) & np.isfinite(high)
            if not (low <= high).all() or name == "action_space" and overflows.any():
                raise ValueError(f"env.{name}: expected a box with low <= high and a finite width, or infinite bounds, "
                                 f"got bounds from {space.low} to {space.high}")
    if not is_discrete(env.action_space) and np.dtype(getattr(env.action_space, "dtype", float)).kind != "f":
        raise ValueError(f"env.action_space: expected a Box of real numbers or a Discrete, got {env.action_space}")


def check_has_shape(name: str, space: Any) -> Any:
    """Returns `space` unchanged; raises `TypeError` if it has no shape. `name` is its name in the error message."""
    if getattr(space, "shape", None) is None:
        raise TypeError(f"{name}: expected a space with a shape, such as a gym.spaces.Box, got {space!r}")
    return space


def is_box(space: Any) -> bool:
    """Whether `space` is a box: arrays between `space.low` and `space.high`."""
    return hasattr(space, "low") and hasattr(space, "high")


def is_discrete(space: Any) -> bool:
    """Whether `space` is discrete: `space.n` integers, starting at `space.start` or 0."""
    return hasattr(space, "n") and tuple(space.shape) == ()


def as_array(name: str, value: Any, shape: Tuple[int, ...], expected: Optional[str] = None) -> np.ndarray:
    """Converts `value` to a new float64 array.

    Args:
        name: name of the value in the error message.
        value: an array or nested sequence of numbers.
        shape: the required shape.
        expected: description of a valid value for the error message; default "finite numbers of shape `shape`".

    Raises:
        ValueError: `value` has another shape, is not numeric or is not finite.
    """
    expected = expected or f"finite numbers of shape {shape}"
    array = as_numbers(name, value, expected).astype(np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name}: expected {expected}, got {value!r}")
    return array


def as_numbers(name: str, value: Any, expected: str = "an array of real numbers") -> np.ndarray:
    """Converts `value` to an array; raises `ValueError` unless it consists of real numbers or booleans."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of unequal length
        array = np.empty(0, object)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name}: expected {expected}, got {value!r}")
    return array
