"""Schedules: settings that depend on the index of the meta-update."""
from typing import Callable, Union

from meta_policy_search.utils.checks import check_non_negative, check_positive_int

Schedule = Union[float, Callable[[int], float]]
"""A number, or a function of the index of the meta-update, counted from 0."""


class LinearSchedule:
    """Interpolates linearly from `start`, at the first meta-update, to `end`.

    Args:
        start (float): at least 0.
        end (float): at least 0; the value from meta-update `num_updates` on.
        num_updates (int): at least 1.
    """

    def __init__(self, start: float, end: float, num_updates: int) -> None:
        self.start, self.end = check_non_negative("start", start), check_non_negative("end", end)
        self.num_updates = check_positive_int("num_updates", num_updates)

    def __call__(self, update: int) -> float:
        """Returns the value at a meta-update."""
        return self.start + (self.end - self.start) * min(update / self.num_updates, 1.0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.start}, {self.end}, {self.num_updates})"
