"""Callbacks for training loops."""
from typing import Any, Callable, Optional

import numpy as np

from meta_policy_search.utils.checks import check_bool, check_finite, check_non_negative, check_positive_int
from meta_policy_search.utils.logger import Row
from meta_policy_search.utils.serializable import Configurable

Callback = Callable[[Any, Row], Optional[bool]]
"""Function `callback(trainer, row)`, called with the logged row after every iteration; True stops training."""


class EarlyStopping(Configurable):
    """Callback that stops training when a column no longer improves.

    Snapshots do not contain the state of the callback. In a resumed run, it starts counting from zero.

    Args:
        key (str): name of the column, such as `Step_1-AverageReturn`.
        patience (int): number of iterations without improvement after which training stops, at least 1.
        min_delta (float): an improvement must exceed this value, in the unit of the column; at least 0. Default 0.
        higher_is_better (bool): whether larger values are better; default True.
        target (float or None): training also stops when the column reaches this value. Default None: no target.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range, or the column was not logged when the callback is called.
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
        """Returns whether training should stop."""
        if self.key not in row:
            raise ValueError(f"key: expected a logged column, one of {sorted(row)}, got {self.key!r}")
        value = self._sign * float(row[self.key])
        if value > self._best + self.min_delta:
            self._best, self._since = value, 0
        else:
            self._since += 1
        reached = self.target is not None and value >= self._sign * self.target
        return bool(reached or self._since >= self.patience)
