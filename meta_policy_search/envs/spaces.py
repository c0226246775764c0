"""Kinds of spaces, told by their attributes, as those of gym and Gymnasium share no base class."""
from typing import Any, Optional, Tuple

import numpy as np

__all__ = ["check_action", "is_box", "is_discrete"]


def is_box(space: Any) -> bool:
    """Whether `space` is a box, of arrays between `space.low` and `space.high`."""
    return hasattr(space, "low") and hasattr(space, "high")


def is_discrete(space: Any) -> bool:
    """Whether `space` is `space.n` choices, integers from 0 (or `space.start`) on."""
    return hasattr(space, "n") and tuple(space.shape) == ()


def check_action(action: Any, shape: Optional[Tuple[int, ...]]) -> np.ndarray:
    """Returns one action of a box as float64; raises `ValueError` if it has the wrong shape or is not finite."""
    action = np.asarray(action, dtype=np.float64)
    if action.shape != shape:
        raise ValueError(f"action: expected shape {shape}, got {action.shape}")
    if not np.isfinite(action).all():
        raise ValueError(f"action: expected finite numbers, got {action}")
    return action
