"""Schedules: settings that depend on the index of the meta-update."""
from typing import Callable, Union

from meta_policy_search.utils.checks import check_non_negative, check_positive_int

Schedule = Union[float, Callable[[int], float]]
"""A number, or a function of the index of the meta-update (starting at 0)."""


class LinearSchedule:
    """Linear interpolation from `start` to `end` over the first meta-updates.

    Args:
        start (float): value at meta-update 0; at least 0.
        end (float): value from meta-update `num_updates` on; at least 0.
        num_updates (int): number of meta-updates until `end` is reached; at least 1.

    Raises:
        TypeError, ValueError: an argument has the wrong type or is out of range.
    """

    def __init__(self, start: float, end: float, num_updates: int) -> None:
        self.start, self.end = check_non_negative("start", start), check_non_negative("end", end)
        self.num_updates = check_positive_int("num_updates", num_updates)

    def __call__(self, update: int) -> float:
        """Returns the value at meta-update `update` (starting at 0)."""
        return self.start + (self.end - self.start) * min(update / self.num_updates, 1.0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(start={self.start}, end={self.end}, num_updates={self.num_updates})"
