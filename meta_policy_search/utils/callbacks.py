"""Callbacks for training loops.

A callback is a function `callback(trainer, row)`. It is part of the iteration: a training loop samples, adapts, updates
the policy, calls the callbacks, writes the row and saves the snapshot, in this order. During the call

* `trainer.itr` is the number of the current iteration (for a `LocalRunner`, `runner.epoch` that of the epoch), the same
  number as in the row;
* `row` contains the columns of the iteration so far, with Python numbers as values;
* `logger.logkv` adds a column to the row.

If a callback returns True, training stops after this iteration. If the process is interrupted or killed in a callback,
the iteration is repeated.

Snapshots contain each `StatefulCallback`, so a resumed run has it. They contain only the names of other callbacks,
which must be passed again.
"""
import abc
from typing import Any, Callable, Optional

import numpy as np

from meta_policy_search.utils.checks import check_bool, check_finite, check_non_negative, check_positive_int
from meta_policy_search.utils.logger import Row
from meta_policy_search.utils.serializable import Configurable

Callback = Callable[[Any, Row], Optional[bool]]
"""Function `callback(trainer, row)`, called at the end of every iteration; True stops training."""


class StatefulCallback(Configurable, abc.ABC):
    """Base class of callbacks that snapshots contain. A resumed run continues with them and with their state."""

    @abc.abstractmethod
    def __call__(self, trainer: Any, row: Row) -> Optional[bool]:
        """Returns whether training should stop."""

    @abc.abstractmethod
    def get_state(self) -> Any:
        """Returns what calls change, for rollback and snapshots."""

    @abc.abstractmethod
    def set_state(self, state: Any) -> None:
        """Restores the state that `get_state` returned."""


class EarlyStopping(StatefulCallback):
    """Callback that stops training when a column no longer improves.

    Args:
        key (str): name of the column, such as `Step_1-AverageReturn`.
        patience (int or None): number of iterations without improvement after which training stops, at least 1. None:
            no limit.
        min_delta (float): an improvement must exceed this value, in the unit of the column; at least 0. Default 0.
        higher_is_better (bool): whether larger values are better; default True.
        target (float or None): training also stops when the column reaches this value. Default None: no target.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range.
        KeyError: the row lacks the column when the callback is called.
    """

    def __init__(self, key: str, patience: Optional[int], min_delta: float = 0.0, higher_is_better: bool = True,
                 target: Optional[float] = None) -> None:
        self.key = key
        self.patience = None if patience is None else check_positive_int("patience", patience)
        self.min_delta = check_non_negative("min_delta", min_delta)
        self.higher_is_better = check_bool("higher_is_better", higher_is_better)
        self._sign = 1.0 if self.higher_is_better else -1.0
        self.target = None if target is None else check_finite("target", target)
        self._best, self._since = -np.inf, 0

    @property
    def best(self) -> float:
        """Best value of the column so far; infinite before the first call."""
        return self._sign * self._best

    def __call__(self, trainer: Any, row: Row) -> bool:
        """Returns whether training should stop."""
        if self.key not in row and self.key.startswith("Eval-"):
            raise KeyError(f"key: expected a column of each row, got {self.key!r}, which only rows with an evaluation "
                           "have; use the arguments patience and target of EvalCallback")
        value = self._sign * float(row[self.key])
        if value > self._best + self.min_delta:
            self._best, self._since = value, 0
        else:
            self._since += 1
        reached = self.target is not None and value >= self._sign * self.target
        return bool(reached or self.patience is not None and self._since >= self.patience)

    def get_state(self) -> Any:
        """Returns the best value and the number of iterations since."""
        return self._best, self._since

    def set_state(self, state: Any) -> None:
        """Restores the state that `get_state` returned."""
        self._best, self._since = state
