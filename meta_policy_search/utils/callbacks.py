"""What the training loops share: callbacks, and what to say when they are interrupted."""
from typing import Any, Callable, List, Optional, Sequence

import numpy as np

from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import check_bool, check_finite, check_non_negative, check_positive_int
from meta_policy_search.utils.logger import Row
from meta_policy_search.utils.snapshotter import list_snapshots

__all__ = ["Callback", "EarlyStopping", "ask_to_stop", "check_callbacks", "log_interruption"]

Callback = Callable[[Any, Row], Optional[bool]]
"""Is called with the trainer and the row that it has logged; True stops training."""


class EarlyStopping:
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
        TypeError: an argument of the wrong type.
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


def check_callbacks(name: str, callbacks: Sequence[Callback]) -> List[Callback]:
    """Returns the callbacks as a new list, or raises `TypeError` if they are not callables."""
    if not isinstance(callbacks, (list, tuple)) or not all(map(callable, callbacks)):
        raise TypeError(f"{name}: expected a list of callables, got {callbacks!r}")
    return list(callbacks)


def ask_to_stop(callbacks: Sequence[Callback], trainer: Any, row: Row) -> bool:
    """Calls every callback; returns whether one of them returned True, Python's or NumPy's."""
    answers = [callback(trainer, row) for callback in callbacks]
    return any(isinstance(answer, (bool, np.bool_)) and bool(answer) for answer in answers)


def log_interruption(unit: str, number: int) -> None:
    """Says what an interruption during iteration (or epoch) `number` has lost, and where the last snapshot is."""
    folder = logger.get_dir()
    is_saved = folder is not None and list_snapshots(folder)
    where = f", and the last snapshot is in {folder}" if is_saved else ""
    logger.log(f"Interrupted in {unit} {number}, which is not saved; {unit}s before it are complete{where}")
