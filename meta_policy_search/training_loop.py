"""What `Trainer` and `LocalRunner` share: atomic iterations, callbacks and the state of a run that is resumed."""
import abc
import contextlib
import functools
import time
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar, cast

import numpy as np

from meta_policy_search import __version__
from meta_policy_search.utils import logger, seeding
from meta_policy_search.utils.callbacks import Callback
from meta_policy_search.utils.checks import check_bool
from meta_policy_search.utils.logger import Row
from meta_policy_search.utils.progress import progress_bar
from meta_policy_search.utils.serializable import Configurable
from meta_policy_search.utils.snapshotter import list_snapshots
from meta_policy_search.utils.threads import interrupts_delayed

T = TypeVar("T")


_Before = Tuple[Any, Dict[str, Any], Any]
"""The state at the start of an iteration: of the loop (None if it cannot be restored), random numbers, the row."""


class TrainingLoop(Configurable, abc.ABC):
    """Base of objects that train in atomic iterations.

    A subclass runs its iterations in this form::

        with self._running(), self._bar(end) as bar:
            while self.itr < end and not self.stopped:
                self._begin()
                ...  # samples, updates, logs
                row = self._commit()
                bar.update()
                self._call_callbacks(row)

    An iteration that is interrupted or fails is rolled back: parameters, counters, random numbers and the logger's row
    are those of its start, so that training can continue.

    Random numbers are those of the seed that was set when the object was built, or of the run that it resumes. If no
    seed was set by then, they are those of the seed that is set when it runs.

    Args:
        callbacks (sequence of callables): each is called as `callback(loop, row)` after every iteration.
        progress_bar (bool): whether to show a bar with the remaining time.
        itr (int): number of the first iteration; default 0.

    Attributes:
        itr (int): number of the next iteration.
        stopped (bool): whether a callback stopped the last training.
        settings (dict or None): settings of the script that trains, for its snapshots; default None.
    """

    settings: Optional[Dict[str, Any]] = None
    _unit, _short_unit = "iteration", "itr"  # for messages and for the progress bar

    def __init__(self, callbacks: Sequence[Callback], progress_bar: bool, itr: int = 0) -> None:
        self.callbacks = _check_callbacks(callbacks)
        self.progress_bar = check_bool("progress_bar", progress_bar)
        self.itr = itr
        self.stopped = False
        self._started: Optional[float] = None  # start of the run, by `time.perf_counter`
        self._root = seeding.chosen_root()
        self._before: Optional[_Before] = None  # the state at the start of the current iteration

    @abc.abstractmethod
    def _get_state(self) -> Any:
        """Returns what an iteration changes besides random numbers and the row; None if it cannot be rolled back."""

    @abc.abstractmethod
    def _set_state(self, state: Any) -> None:
        """Restores what `_get_state` returned."""

    @abc.abstractmethod
    def _save(self, itr: int) -> Any:
        """Saves the snapshot of an iteration, if the logger's mode asks for one; it contains `_loop_state()`."""

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        """Surrounds iterations: if one is interrupted or fails, rolls it back; after Ctrl-C, logs what is complete."""
        self._roll_back()  # an iteration that a second Ctrl-C left as it was
        if self._root not in (None, seeding.get_root()):
            logger.log(f"Random numbers are those of seed {self._root}, which was set when this {type(self).__name__} "
                       f"was built, not of {seeding.get_root()}, which was set since")
        with seeding.rooted(self._root):
            try:
                yield
            except BaseException as error:
                before = self._before
                self._roll_back()
                if isinstance(error, KeyboardInterrupt):
                    logger.log(self._describe_interruption(before))
                raise

    def _bar(self, end: int) -> Any:
        """Returns the progress bar of training until iteration `end`, for a `with` block."""
        return progress_bar(self.progress_bar, end, "training", self._short_unit, initial=self.itr, smoothing=0.1)

    def _begin(self) -> None:
        """Begins an iteration: records what is needed to roll it back."""
        if self._started is None:
            self._started = time.perf_counter()
        self._before = self._get_state(), seeding.get_process_state(), logger.row_state()

    def _commit(self) -> Row:
        """Ends an iteration, with Ctrl-C deferred: writes its row, counts it and saves its snapshot."""
        with interrupts_delayed():
            row = logger.dumpkvs()
            self._before = None  # from here on, the iteration is complete
            self.itr += 1
            self._save(self.itr - 1)
        return row

    def _roll_back(self) -> None:
        """Rolls back the current iteration, if there is one."""
        with interrupts_delayed():
            if self._before is None:
                return
            state, random_state, row_state = self._before
            if state is not None:
                self._set_state(state)
                seeding.set_process_state(random_state)
            logger.set_row_state(row_state)
            self._before = None

    def _call_callbacks(self, row: Row) -> None:
        """Calls all callbacks with the row of an iteration; sets `stopped` if one returns True, Python's or NumPy's."""
        answers = [callback(self, row) for callback in self.callbacks]
        self.stopped = any(isinstance(answer, (bool, np.bool_)) and bool(answer) for answer in answers)
        if self.stopped:
            logger.log(f"Stopped by a callback after {self._unit} {self.itr - 1}")

    def _describe_interruption(self, before: Optional[_Before]) -> str:
        """Returns the message after Ctrl-C in an iteration that began with `before`, or (None) between two."""
        if before is None:
            said = f"Interrupted before {self._unit} {self.itr}"
        elif before[0] is None:
            said = (f"Interrupted in {self._unit} {self.itr}, part of which cannot be rolled back: resume from a "
                    "snapshot")
        else:
            said = f"Interrupted in {self._unit} {self.itr}, which was rolled back"
        said += f"; {self._unit}s before it are complete"
        folder = logger.get_dir()
        snapshots = list_snapshots(folder) if folder is not None else []
        if not snapshots:
            return said
        last = max(snapshot.itr for snapshot in snapshots)
        return f"{said}, and the last snapshot, of {self._unit} {last}, is in {folder}"

    def _elapsed(self) -> float:
        """Returns the seconds since the run began; after resuming, those of all its parts together."""
        return 0.0 if self._started is None else time.perf_counter() - self._started

    def _loop_state(self) -> Dict[str, Any]:
        """Returns what the `state` of every snapshot contains: version, settings, random numbers, files, time."""
        with seeding.rooted(self._root):
            return {"version": __version__, "settings": self.settings, **seeding.get_process_state(),
                    "outputs": logger.output_positions(), "time": self._elapsed()}

    def _restore_loop(self, snapshot: Mapping[str, Any]) -> None:
        """Continues after the iteration of a snapshot; to be called last, as it restores random numbers."""
        seeding.set_process_state(snapshot["state"])
        self._root, self._before = seeding.get_root(), None
        self.itr = snapshot["itr"] + 1
        self._started = time.perf_counter() - snapshot["state"]["time"]


class _WithDefaults:
    """A user's object together with the defaults of an interface that it need not derive from."""

    def __init__(self, wrapped: Any, interface: type) -> None:
        self.wrapped, self._interface = wrapped, interface

    def __getattr__(self, name: str) -> Any:
        if hasattr(self.wrapped, name):
            return getattr(self.wrapped, name)
        default = getattr(self._interface, name)
        return functools.partial(default, self) if callable(default) else default


def with_defaults(given: Any, interface: Type[T]) -> T:
    """Returns `given` if it is an instance of `interface`, else an adapter: what `given` lacks is the default.

    The adapter's attribute `wrapped` is the object.
    """
    return given if isinstance(given, interface) else cast(T, _WithDefaults(given, interface))


def _check_callbacks(callbacks: Sequence[Callback]) -> List[Callback]:
    if not isinstance(callbacks, (list, tuple)) or not all(map(callable, callbacks)):
        raise TypeError(f"callbacks: expected a list of callables, got {callbacks!r}")
    return list(callbacks)
