"""Callbacks of training loops."""
from typing import Any, Callable, Optional

import numpy as np

from meta_policy_search.utils.checks import check_bool, check_finite, check_non_negative, check_positive_int
from meta_policy_search.utils.logger import Row
from meta_policy_search.utils.signatures import SharedArguments

Callback = Callable[[Any, Row], Optional[bool]]
"""Is called with the trainer and the row that it has logged; True stops training."""


class EarlyStopping(SharedArguments):
    """A callback that stops training when a column no longer improves.

    It counts from its construction: snapshots do not hold what it has seen.

    Args:
        key (str): the column, such as `Step_1-AverageReturn`.
        patience (int): iterations without improvement after which training stops, at least 1.
        min_delta (float): a change counts as an improvement if it is larger than this, in the column's unit; at least
            0, the default.
        higher_is_better (bool): whether an improvement is a rise; default True.
        target (float or None): training also stops as soon as the column is at least (if higher is better, else at
            most) this.

    Raises:
        ValueError: a number out of range; when called, a column that was not logged.
    """

    def __init__(self, key: str, patience: int, min_delta: float = 0.0, higher_is_better: bool = True,
                 target: Optional[float] = None) -> None:
        self.key = key
        self.patience = check_positive_int("patience", patience)
        self.min_delta = check_non_negative("min_delta", min_delta)
        self._sign = 1.0 if check_bool("higher_is_better", higher_is_better) else -1.0
        self.target = None if target is None else check_finite("target", target)
        self._best, self._since = -np.inf, 0

    def __call__(self, trainer: Any, row: Row) -> bool:
        """Returns whether to stop."""
        if self.key not in row:
            raise ValueError(f"key: expected a logged column, one of {sorted(row)}, got {self.key!r}")
        value = self._sign * float(row[self.key])
        if value > self._best + self.min_delta:
            self._best, self._since = value, 0
        else:
            self._since += 1
        reached = self.target is not None and value >= self._sign * self.target
        return bool(reached or self._since >= self.patience)
