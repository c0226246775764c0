"""What a space is, by what it has: those of gym, Gymnasium and their forerunners share no base class."""
from typing import Any, Optional, Tuple

import numpy as np

__all__ = ["check_action", "is_box", "is_discrete"]


def is_box(space: Any) -> bool:
    """Whether `space` is a box, of arrays between `space.low` and `space.high`."""
    return hasattr(space, "low") and hasattr(space, "high")


def is_discrete(space: Any) -> bool:
    """Whether `space` is a number of choices, the integers from 0 (or from `space.start`) on, `space.n` of them."""
    return hasattr(space, "n") and tuple(space.shape) == ()


def check_action(action: Any, shape: Optional[Tuple[int, ...]]) -> np.ndarray:
    """Returns one action of a box as float64; raises `ValueError` if it has the wrong shape or is not finite."""
    action = np.asarray(action, dtype=np.float64)
    if action.shape != shape:
        raise ValueError(f"action: expected shape {shape}, got {action.shape}")
    if not np.isfinite(action).all():
        raise ValueError(f"action: expected finite numbers, got {action}")
    return action
