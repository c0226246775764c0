"""Base class of `Trainer` and `LocalRunner`: atomic iterations, callbacks, and saving and resuming of a run."""
import abc
import contextlib
import functools
import time
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar, cast

import numpy as np

from meta_policy_search import __version__, run_folder
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
"""State at the start of an iteration: loop (None if it cannot be restored), random generators and current row."""


class TrainingLoop(Configurable, abc.ABC):
    """Base class of training loops with atomic iterations.

    A subclass runs its iterations as follows::

        with self._running(), self._bar(end) as bar:
            while self.itr < end and not self.stopped:
                self._begin()
                ...  # samples, updates, logs
                row = self._commit()
                bar.update()
                self._call_callbacks(row)

    If an iteration is interrupted or fails, it is rolled back: parameters, counters, random generators and the
    logger's row are restored to their state at the start of the iteration. Training can then continue.

    The loop draws its random numbers from the seed that was set when the object was built, or from the seed of the run
    that it resumes. If no seed had been set, it uses the seed that is set when training runs.

    Args:
        callbacks (sequence of callables): each is called as `callback(loop, row)` after every iteration; if one returns
            True, training stops.
        progress_bar (bool): whether to show a progress bar with the remaining time.
        itr (int): number of the first iteration; default 0.

    Attributes:
        itr (int): number of the next iteration.
        stopped (bool): whether a callback stopped the last call of training.
        description (Description or None): settings that `train` was called with, for snapshots and `params.json`, see
            `run_folder`; default None.
    """

    description: Optional[run_folder.Description] = None
    _unit, _short_unit = "iteration", "itr"  # in messages and in the progress bar

    def __init__(self, callbacks: Sequence[Callback], progress_bar: bool, itr: int = 0) -> None:
        self.callbacks = _check_callbacks(callbacks)
        self.progress_bar = check_bool("progress_bar", progress_bar)
        self.itr = itr
        self.stopped = False
        self._started: Optional[float] = None  # start of the run, by `time.perf_counter`
        self._root = seeding.chosen_root()
        self._recorded_in: Optional[str] = None  # folder with the `params.json` of this run
        self._before: Optional[_Before] = None  # the state at the start of the current iteration

    @abc.abstractmethod
    def describe(self) -> run_folder.Description:
        """Returns what is trained, for `params.json`."""

    def _complete(self, algorithm: str, settings: Dict[str, Any], options: Dict[str, Any]) -> run_folder.Description:
        """Returns the description of a run; settings that `train` was called with replace those of the parts."""
        given = self.description or run_folder.Description(algorithm, {}, {}, [])
        options["snapshot_mode"] = logger.get_snapshot_mode()
        return given._replace(settings={**settings, **given.settings}, options={**options, **given.options})

    def _recording(self, itr: int) -> Any:
        """Returns a context that writes `params.json`, once for each run folder.

        Args:
            itr: number of completed iterations.
        """
        if self._recorded_in == logger.get_dir():
            return contextlib.nullcontext()
        self._recorded_in = logger.get_dir()
        return run_folder.recording(self.describe, itr, lambda: self.stopped)

    @abc.abstractmethod
    def _get_state(self) -> Any:
        """Returns the state that an iteration changes, or None if the iteration cannot be rolled back.

        Random generators and the logger's row are saved separately.
        """

    @abc.abstractmethod
    def _set_state(self, state: Any) -> None:
        """Restores the state that `_get_state` returned."""

    @abc.abstractmethod
    def _save(self, itr: int) -> Any:
        """Saves a snapshot that contains `_loop_state()`, if the logger's snapshot mode saves this iteration."""

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        """Rolls back an iteration of the `with` block that fails or is interrupted; after Ctrl-C, logs the progress."""
        self._roll_back()  # needed if a second Ctrl-C interrupted the previous rollback
        if self._root not in (None, seeding.get_root()):
            logger.log(f"Using seed {self._root}, which was set when this {type(self).__name__} was built; seed "
                       f"{seeding.get_root()}, which was set later, has no effect")
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
        """Returns a progress bar for training until iteration `end` (exclusive), for a `with` block."""
        return progress_bar(self.progress_bar, end, "training", self._short_unit, initial=self.itr, smoothing=0.1)

    def _begin(self) -> None:
        """Begins an iteration: saves the state that is needed to roll it back."""
        if self._started is None:
            self._started = time.perf_counter()
        self._before = self._get_state(), seeding.get_process_state(), logger.row_state()

    def _commit(self) -> Row:
        """Completes an iteration with Ctrl-C deferred: writes its row, increments `itr` and saves its snapshot."""
        with interrupts_delayed():
            row = logger.dumpkvs()
            self._before = None  # the iteration is now complete: do not roll it back
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
        """Calls all callbacks with the row of an iteration; sets `stopped` if one returns True or `np.True_`."""
        answers = [callback(self, row) for callback in self.callbacks]
        self.stopped = any(isinstance(answer, (bool, np.bool_)) and bool(answer) for answer in answers)
        if self.stopped:
            logger.log(f"Stopped by a callback after {self._unit} {self.itr - 1}")

    def _describe_interruption(self, before: Optional[_Before]) -> str:
        """Returns the log message after Ctrl-C.

        Args:
            before: state at the start of the interrupted iteration; None if no iteration was running.
        """
        if before is None:
            message = f"Interrupted before {self._unit} {self.itr}"
        elif before[0] is None:
            message = (f"Interrupted in {self._unit} {self.itr}, which cannot be rolled back completely: resume from a "
                       "snapshot")
        else:
            message = f"Interrupted in {self._unit} {self.itr}, which was rolled back"
        message += f"; earlier {self._unit}s are complete"
        folder = logger.get_dir()
        snapshots = list_snapshots(folder) if folder is not None else []
        if not snapshots:
            return message
        last = max(snapshot.itr for snapshot in snapshots)
        return f"{message}. The last snapshot in {folder} is from {self._unit} {last}"

    def _elapsed(self) -> float:
        """Returns the seconds since the run began, without the time between stopping and resuming."""
        return 0.0 if self._started is None else time.perf_counter() - self._started

    def _loop_state(self) -> Dict[str, Any]:
        """Returns the part of the snapshot's `state` that is common to all loops.

        These are the package version, the random generators, the positions of the log files and the
        elapsed time.
        """
        with seeding.rooted(self._root):
            return {"version": __version__, **seeding.get_process_state(),
                    "outputs": logger.output_positions(), "time": self._elapsed()}

    def _restore_loop(self, snapshot: Mapping[str, Any]) -> None:
        """Restores `_loop_state` from a snapshot. Call it last: it restores the random generators."""
        seeding.set_process_state(snapshot["state"])
        self._root, self._before = seeding.get_root(), None
        self.itr = snapshot["itr"] + 1
        self._started = time.perf_counter() - snapshot["state"]["time"]


class _WithDefaults:
    """Adapts a user's object to an interface: missing attributes come from the interface class."""

    def __init__(self, wrapped: Any, interface: type) -> None:
        vars(self).update(wrapped=wrapped, _interface=interface)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.wrapped, name, value)

    def __getattr__(self, name: str) -> Any:
        if hasattr(self.wrapped, name):
            return getattr(self.wrapped, name)
        default = getattr(self._interface, name)
        return functools.partial(default, self) if callable(default) else default


def with_defaults(given: Any, interface: Type[T]) -> T:
    """Returns `given` if it is an instance of `interface`, else an adapter that adds the defaults of `interface`.

    The attribute `wrapped` of the adapter is the original object.
    """
    return given if isinstance(given, interface) else cast(T, _WithDefaults(given, interface))


def _check_callbacks(callbacks: Sequence[Callback]) -> List[Callback]:
    if not isinstance(callbacks, (list, tuple)) or not all(map(callable, callbacks)):
        raise TypeError(f"callbacks: expected a list of callables, got {callbacks!r}")
    return list(callbacks)
