"""Schedules: settings that depend on the index of the meta-update."""
from typing import Callable, Mapping, Union

from meta_policy_search.utils.checks import check_non_negative, check_positive, check_positive_int
from meta_policy_search.utils.serializable import Configurable

Schedule = Union[float, Mapping[str, float], Callable[[int], float]]
"""A number, the arguments of a `LinearSchedule` by name, or a function of the index of the meta-update (starting at 0).
"""


class LinearSchedule(Configurable):
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


def check_schedule(argument: str, value: Schedule) -> Union[float, Callable[[int], float]]:
    """Returns a number above 0 as `float`, the `LinearSchedule` with the arguments of a mapping, or a function.

    Raises:
        TypeError, ValueError: `value` is none of these; the message calls it `argument`.
    """
    if isinstance(value, Mapping):
        names = ["start", "end", "num_updates"]
        if sorted(value) != sorted(names):
            raise ValueError(f"{argument}: expected the entries {', '.join(names)} of a linear schedule, got "
                             f"{', '.join(map(str, value)) or 'none'}")
        try:
            return LinearSchedule(**value)  # type: ignore[arg-type]  # checked by the constructor
        except (TypeError, ValueError) as error:
            raise type(error)(f"{argument}: {error}") from None
    return value if callable(value) else check_positive(argument, value)
