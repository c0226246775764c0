"""What a space is, by what it has: those of gym, Gymnasium and their forerunners share no base class."""
from typing import Any

__all__ = ["is_box", "is_discrete"]


def is_box(space: Any) -> bool:
    """Whether `space` is a box, of arrays between `space.low` and `space.high`."""
    return hasattr(space, "low") and hasattr(space, "high")


def is_discrete(space: Any) -> bool:
    """Whether `space` is a number of choices, the integers from 0 (or from `space.start`) on, `space.n` of them."""
    return hasattr(space, "n") and tuple(space.shape) == ()
