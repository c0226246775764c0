"""Kinds of spaces, told by their attributes, as those of gym and Gymnasium share no base class."""
from typing import Any, Optional, Tuple

import numpy as np


def check_has_spaces(env: Any) -> None:
    """Raises `TypeError` unless an environment has an observation and an action space, each with a shape."""
    for name in ("observation_space", "action_space"):
        check_has_shape(f"env.{name}", getattr(env, name, None))


def check_has_shape(name: str, space: Any) -> Any:
    """Returns a space if it has a shape; else raises `TypeError`, which calls it `name`."""
    if getattr(space, "shape", None) is None:
        raise TypeError(f"{name}: expected a space with a shape, such as a gym.spaces.Box, got {space!r}")
    return space


def is_box(space: Any) -> bool:
    """Whether `space` is a box, of arrays between `space.low` and `space.high`."""
    return hasattr(space, "low") and hasattr(space, "high")


def is_discrete(space: Any) -> bool:
    """Whether `space` is `space.n` choices, integers from 0 (or `space.start`) on."""
    return hasattr(space, "n") and tuple(space.shape) == ()


def as_array(name: str, value: Any, shape: Tuple[int, ...], expected: Optional[str] = None) -> np.ndarray:
    """Returns `value` as a new float64 array; raises `ValueError` unless it is finite numbers of that shape."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = None
    if array is None or array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name}: expected {expected or f'finite numbers of shape {shape}'}, got {value!r}")
    return array
