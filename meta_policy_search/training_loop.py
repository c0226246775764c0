"""What `Trainer` and `LocalRunner` share: iterations that are whole or have not happened, callbacks, and going on."""
import abc
import contextlib
import time
from typing import Any, Dict, Generator, Iterator, List, Mapping, NamedTuple, Optional, Sequence

import numpy as np

from meta_policy_search import __version__
from meta_policy_search.utils import logger, seeding
from meta_policy_search.utils.callbacks import Callback
from meta_policy_search.utils.checks import check_bool
from meta_policy_search.utils.logger import Row
from meta_policy_search.utils.progress import progress_bar
from meta_policy_search.utils.signatures import SharedArguments
from meta_policy_search.utils.snapshotter import list_snapshots
from meta_policy_search.utils.threads import interrupts_delayed


class _Before(NamedTuple):
    """How it was when an iteration began."""

    state: Any  # of the loop; None where it cannot be restored
    random_state: Dict[str, Any]
    row_state: Any  # of the logger


class TrainingLoop(SharedArguments, abc.ABC):
    """Iterations of a run, each of which ends by `_commit`.

    Before that an iteration has not happened: it has no row and no snapshot, and is not counted. One that is
    interrupted, or fails, is taken back: everything is as it was when it began, so that training can go on.

    Random numbers are those of the seed that was set when the loop was built, or of the run that it goes on with. Where
    none had been set, they are those of the seed that is set when it runs.

    Args:
        callbacks (sequence of callables): each is called as `callback(loop, row)` after every iteration.
        progress_bar (bool): whether to show a bar with the remaining time.
        itr (int): number of the first iteration; default 0.

    Attributes:
        itr (int): number of the next iteration.
        stopped (bool): whether a callback has ended training, the last time.
    """

    _unit, _short_unit = "iteration", "itr"  # for messages, and for the bar

    def __init__(self, callbacks: Sequence[Callback], progress_bar: bool, itr: int = 0) -> None:
        self.callbacks = _check_callbacks(callbacks)
        self.progress_bar = check_bool("progress_bar", progress_bar)
        self.itr = itr
        self.stopped = False
        self._started: Optional[float] = None  # when the run began, by `time.perf_counter`
        self._root = seeding.chosen_root()
        self._before: Optional[_Before] = None  # how it was when the iteration that is under way began

    @abc.abstractmethod
    def _get_state(self) -> Any:
        """Returns what an iteration changes beside random numbers and the row; None where it cannot be taken back."""

    @abc.abstractmethod
    def _set_state(self, state: Any) -> None:
        """Restores what `_get_state` returned."""

    @abc.abstractmethod
    def _save(self, itr: int) -> Any:
        """Saves the snapshot of an iteration, where the logger's mode wants one; holds what `_loop_state` returns."""

    def _iterations(self, end: int) -> Generator[int, None, None]:
        """Yields the number of each iteration before `end`, to be performed and logged, and commits it.

        It ends earlier where a callback returns True, Python's or NumPy's.
        """
        self.stopped = False
        with progress_bar(self.progress_bar, end, "training", self._short_unit, initial=self.itr, smoothing=0.1) as bar:
            while self.itr < end:
                self._begin()
                yield self.itr
                row = self._commit()
                bar.update()
                answers = [callback(self, row) for callback in self.callbacks]
                self.stopped = any(isinstance(answer, (bool, np.bool_)) and bool(answer) for answer in answers)
                if self.stopped:
                    logger.log(f"Stopped by a callback after {self._unit} {self.itr - 1}")
                    break

    def _begin(self) -> None:
        """Begins an iteration: keeps what it takes to take it back."""
        self._before = _Before(self._get_state(), seeding.get_process_state(), logger.row_state())

    def _commit(self) -> Row:
        """Ends an iteration: writes its row, counts it and saves its snapshot, whatever is pressed meanwhile."""
        with interrupts_delayed():
            row = logger.dumpkvs()
            self._before = None  # from here on it has happened
            self.itr += 1
            self._save(self.itr - 1)
        return row

    def _take_back(self) -> None:
        """Makes everything as it was when the iteration began that is under way; if none is, nothing happens."""
        with interrupts_delayed():
            if self._before is None:
                return
            state, random_state, row_state = self._before
            if state is not None:
                self._set_state(state)
                seeding.set_process_state(random_state)
            logger.set_row_state(row_state)
            self._before = None

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        """Surrounds iterations: whatever ends them within one, it is taken back; Ctrl-C says what is there then."""
        self._take_back()  # where Ctrl-C was pressed twice
        if self._root not in (None, seeding.get_root()):
            logger.log(f"Random numbers are those of seed {self._root}, which was set when this {type(self).__name__} "
                       f"was built, not of {seeding.get_root()}, which was set since")
        with seeding.rooted(self._root):
            try:
                yield
            except BaseException as error:
                before = self._before
                self._take_back()
                if isinstance(error, KeyboardInterrupt):
                    logger.log(self._describe_interruption(before))
                raise

    def _describe_interruption(self, before: "Optional[_Before]") -> str:
        """Says what is there after Ctrl-C, in an iteration that began with `before`, or between two."""
        if before is None:
            said = f"Interrupted before {self._unit} {self.itr}; {self._unit}s before it are complete"
        elif before.state is None:
            said = (f"Interrupted in {self._unit} {self.itr}, part of which cannot be taken back: go on from a "
                    f"snapshot; {self._unit}s before it are complete")
        else:
            said = f"Interrupted in {self._unit} {self.itr}, which is taken back; {self._unit}s before it are complete"
        folder = logger.get_dir()
        snapshots = list_snapshots(folder) if folder is not None else []
        if not snapshots:
            return said
        last = max(snapshot.itr for snapshot in snapshots)
        return f"{said}, and the last snapshot, of {self._unit} {last}, is in {folder}"

    def _start_clock(self) -> None:
        """Begins to count the time of the run."""
        self._started = time.perf_counter()

    def _elapsed(self) -> float:
        """Returns the seconds since the run began, the times of resumed runs together."""
        return 0.0 if self._started is None else time.perf_counter() - self._started

    def _loop_state(self) -> Dict[str, Any]:
        """Returns what the `state` of every snapshot holds: version, random numbers, files of the logger and time."""
        with seeding.rooted(self._root):
            return {"version": __version__, **seeding.get_process_state(), "outputs": logger.output_positions(),
                    "time": self._elapsed()}

    def _restore_loop(self, snapshot: Mapping[str, Any]) -> None:
        """Goes on after the iteration of a snapshot; call it last, as random numbers are as they were then."""
        seeding.set_process_state(snapshot["state"])
        self._root, self._before = seeding.get_root(), None
        self.itr = snapshot["itr"] + 1
        self._started = time.perf_counter() - snapshot["state"]["time"]


def _check_callbacks(callbacks: Sequence[Callback]) -> List[Callback]:
    if not isinstance(callbacks, (list, tuple)) or not all(map(callable, callbacks)):
        raise TypeError(f"callbacks: expected a list of callables, got {callbacks!r}")
    return list(callbacks)
