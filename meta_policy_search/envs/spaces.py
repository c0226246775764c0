"""Checks of spaces by their attributes, because the spaces of gym and Gymnasium have no common base class."""
from typing import Any, Optional, Tuple

import numpy as np


def check_has_spaces(env: Any) -> None:
    """Raises `TypeError` unless `env` has an observation and an action space, each with a shape."""
    for name in ("observation_space", "action_space"):
        check_has_shape(f"env.{name}", getattr(env, name, None))


def check_has_shape(name: str, space: Any) -> Any:
    """Returns `space` unchanged; raises `TypeError` with the name `name` if it has no shape."""
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
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = None
    if array is None or array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name}: expected {expected or f'finite numbers of shape {shape}'}, got {value!r}")
    return array
