"""What `Trainer` and `LocalRunner` share: iterations that end at once, callbacks, and going on with a run."""
import abc
import contextlib
import time
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

import numpy as np

from meta_policy_search import __version__
from meta_policy_search.utils import logger, seeding
from meta_policy_search.utils.callbacks import Callback
from meta_policy_search.utils.checks import check_bool
from meta_policy_search.utils.logger import Row
from meta_policy_search.utils.progress import progress_bar
from meta_policy_search.utils.snapshotter import list_snapshots

__all__ = ["TrainingLoop"]


class TrainingLoop(abc.ABC):
    """Iterations of a run, each of which ends by `_commit`.

    Before that an iteration has not happened: it has no row and no snapshot, and is not counted.

    Args:
        callbacks (sequence of callables): each is called as `callback(loop, row)` after every iteration.
        progress_bar (bool): whether to show a bar with the remaining time.
        itr (int): number of the first iteration; default 0.

    Attributes:
        itr (int): number of the next iteration.
    """

    _unit, _short_unit = "iteration", "itr"  # for messages, and for the bar

    def __init__(self, callbacks: Sequence[Callback], progress_bar: bool, itr: int = 0) -> None:
        self.callbacks = _check_callbacks(callbacks)
        self.progress_bar = check_bool("progress_bar", progress_bar)
        self.itr = itr
        self._started: Optional[float] = None  # when the run began, by `time.perf_counter`

    @abc.abstractmethod
    def _save(self, itr: int) -> Any:
        """Saves the snapshot of an iteration, where the logger's mode wants one; holds what `_loop_state` returns."""

    def _iterations(self, end: int) -> Iterator[int]:
        """Yields the number of each iteration before `end`, to be performed and logged, and commits it.

        It ends earlier where a callback returns True, Python's or NumPy's.
        """
        with progress_bar(self.progress_bar, end, "training", self._short_unit, initial=self.itr, smoothing=0.1) as bar:
            while self.itr < end:
                yield self.itr
                row = self._commit()
                bar.update()
                answers = [callback(self, row) for callback in self.callbacks]
                if any(isinstance(answer, (bool, np.bool_)) and bool(answer) for answer in answers):
                    logger.log(f"Stopped by a callback after {self._unit} {self.itr - 1}")
                    break

    def _commit(self) -> Row:
        """Ends an iteration: writes its row, saves its snapshot and counts it."""
        row = logger.dumpkvs()
        self._save(self.itr)
        self.itr += 1
        return row

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Has Ctrl-C in a `with` block say what is lost, and where the last snapshot is."""
        try:
            yield
        except KeyboardInterrupt:
            folder = logger.get_dir()
            is_saved = folder is not None and list_snapshots(folder)
            where = f", and the last snapshot is in {folder}" if is_saved else ""
            logger.log(f"Interrupted in {self._unit} {self.itr}, which is not saved; {self._unit}s before it are "
                       f"complete{where}")
            raise

    def _start_clock(self) -> None:
        """Begins to count the time of the run."""
        self._started = time.perf_counter()

    def _elapsed(self) -> float:
        """Returns the seconds since the run began, the times of resumed runs together."""
        return 0.0 if self._started is None else time.perf_counter() - self._started

    def _loop_state(self) -> Dict[str, Any]:
        """Returns what the `state` of every snapshot holds: version, random numbers, files of the logger and time."""
        return {"version": __version__, **seeding.get_process_state(), "outputs": logger.output_positions(),
                "time": self._elapsed()}

    def _restore_loop(self, snapshot: Mapping[str, Any]) -> None:
        """Goes on after the iteration of a snapshot; call it last, as random numbers are as they were then."""
        seeding.set_process_state(snapshot["state"])
        self.itr = snapshot["itr"] + 1
        self._started = time.perf_counter() - snapshot["state"]["time"]


def _check_callbacks(callbacks: Sequence[Callback]) -> List[Callback]:
    if not isinstance(callbacks, (list, tuple)) or not all(map(callable, callbacks)):
        raise TypeError(f"callbacks: expected a list of callables, got {callbacks!r}")
    return list(callbacks)
