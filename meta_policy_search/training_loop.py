"""Base class of `Trainer` and `LocalRunner`: atomic iterations, callbacks, and saving and resuming of a run."""
import abc
import contextlib
import copy
import inspect
import os
import time
import traceback
import warnings
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

import numpy as np

from meta_policy_search import __version__, run_folder
from meta_policy_search.envs.normalized_env import get_averages, set_averages
from meta_policy_search.run_spec import RunSpec
from meta_policy_search.utils import logger, seeding
from meta_policy_search.utils.callbacks import Callback, StatefulCallback
from meta_policy_search.utils.checks import accepts, check_bool
from meta_policy_search.utils.log_outputs import LOG_FILE, append_text
from meta_policy_search.utils.logger import Row
from meta_policy_search.utils.progress import progress_bar
from meta_policy_search.utils.serializable import Configurable
from meta_policy_search.utils.threads import interrupts_delayed


class TrainingLoop(Configurable, abc.ABC):
    """Base class of training loops with atomic iterations.

    A subclass runs its iterations as follows::

        with self._running(), self._bar(end) as bar:
            while self.itr < end and not self.stopped:
                ...  # samples, updates, logs
                self._finish_iteration()
                bar.update()

    `_finish_iteration` calls the callbacks, writes the row and saves the snapshot. If an iteration is interrupted or
    fails, in a callback too, it is rolled back: parameters, counters, callbacks and random generators are restored to
    their state at the start of the iteration, and the logger's row becomes empty. Training can then continue.

    The loop draws its random numbers from the seed that was set when the object was built, or from the seed of the run
    that it resumes. If no seed had been set, it uses the seed that is set when training runs. After each call that
    trains, the global random generators of Python and NumPy are in their state before the call; the loop continues with
    its own generators in the next call.

    Args:
        callbacks (sequence of callables): each is called as `callback(loop, row)` at the end of every iteration; if one
            returns True, training stops; see `utils.callbacks`.
        progress_bar (bool): whether to show a progress bar with the remaining time.
        itr (int): number of the first iteration; default 0.

    Attributes:
        itr (int): number of the current iteration, in callbacks too; between iterations, number of the next one.
        stopped (bool): whether a callback stopped the run.
        spec (RunSpec): record of the run when the object was built.
    """

    spec: RunSpec
    assignable_arguments: Sequence[str] = ("callbacks", "progress_bar", "itr")
    sampler: Any = None
    _env: Any = None
    _unit, _short_unit = "iteration", "itr"  # in messages and in the progress bar
    _foreign_columns: Sequence[str] = ("Epoch", "AverageReturn")  # columns of a `LocalRunner`

    def __init__(self, callbacks: Sequence[Callback], progress_bar: bool, itr: int = 0) -> None:
        self.callbacks = check_callbacks(callbacks)
        self.progress_bar = check_bool("progress_bar", progress_bar)
        self.itr = itr
        self.stopped = False
        self._started: Optional[float] = None  # start of the run, by `time.perf_counter`
        self._root = seeding.chosen_root()
        self._generators: Optional[Dict[str, Any]] = None  # their state after the last call that trained
        self._is_running = False
        self._recorded_in: Optional[str] = None  # folder with the `params.json` of this run
        self._before: Any = None  # state at the start of the current iteration; None if no training is running
        self._missing: List[str] = []  # callbacks of the resumed run that its snapshot names only

    @property
    def env(self) -> Any:
        """The environment of the training, of which the sampler samples a copy.

        To change it during training, for example in a callback, assign the changed or another environment. It takes
        effect in the next iteration, also in worker processes, on Ray, in evaluations and in snapshots.
        """
        return self._env

    @env.setter
    def env(self, env: Any) -> None:
        if self.sampler is not None:
            self.sampler.env = env
        self._env = env

    @property
    def sampled_env(self) -> Any:
        """The copy of `env` that is sampled; `env` itself if the sampler makes no copy."""
        sampled = getattr(self.sampler, "sampled_env", None)
        return self._env if sampled is None else sampled

    @abc.abstractmethod
    def _current_settings(self) -> Dict[str, Any]:
        """Returns the current settings of the loop, such as the number of iterations."""

    def get_spec(self) -> RunSpec:
        """Returns the record of the run with the current seed, number of iterations and snapshot mode."""
        seed = {} if self._root is None else {"seed": self._root}
        mode, gap = logger.get_snapshot_mode()
        return self.spec._replace(settings={**self.spec.settings, **seed, **self._current_settings()},
                                  options={"snapshot_mode": mode, "snapshot_gap": gap, **self.spec.options})

    @contextlib.contextmanager
    def _recording(self, itr: int) -> Iterator[None]:
        """Records the start and the end of training in the run folder.

        Each call of `train` or `resume` is recorded; of the calls of `train_itr`, only the first one in a folder.

        Args:
            itr: number of completed iterations; above 0 if the run is resumed.
        """
        folder, failure = logger.get_dir(), None
        if folder in (None, self._recorded_in):
            yield
            return
        run_folder.record_start(folder, self.get_spec().describe(), itr)
        self._recorded_in = folder
        try:
            yield
        except Exception as error:
            failure = type(error).__name__
            with contextlib.suppress(OSError):
                if os.path.exists(log := os.path.join(folder, LOG_FILE)):
                    append_text(log, traceback.format_exc())
            raise
        finally:
            with contextlib.suppress(OSError):  # the folder was deleted or the disk is full
                run_folder.record_end(folder, self._current_settings()["n_itr"], self.stopped, failure)

    @abc.abstractmethod
    def _get_state(self) -> Any:
        """Returns the state that an iteration changes, or None if the iteration cannot be rolled back."""

    @abc.abstractmethod
    def _set_state(self, state: Any) -> None:
        """Restores the state that `_get_state` returned."""

    @abc.abstractmethod
    def _save(self) -> Any:
        """Saves a snapshot of iteration `itr - 1` if the logger's snapshot mode saves it; returns `_get_state()`."""

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        """Rolls back an iteration of the `with` block that fails or is interrupted; after Ctrl-C, logs the progress."""
        if self._is_running:
            raise RuntimeError(f"this {type(self).__name__} is training: a callback cannot train its own run")
        self._roll_back()  # needed if a second Ctrl-C interrupted the previous rollback
        chosen = seeding.chosen_root()
        if None not in (self._root, chosen) and chosen != self._root:
            logger.log(f"set_seed({chosen}) was ignored: the {type(self).__name__} keeps seed {self._root}")
        missing = [name for name in self._missing if name not in map(_name_of, self.callbacks)]
        if missing:
            warnings.warn(f"training continues without the callbacks {', '.join(missing)}, because a snapshot contains "
                          "only their names: pass them again", stacklevel=4)
        self._missing = []
        if self._started is None:
            self._started = time.perf_counter()
        with interrupts_delayed() as interruptible, seeding.generators_kept(), logger.in_training():
            if self._generators is not None:
                seeding.set_process_state(self._generators)
            with seeding.rooted(self._root):
                try:
                    self._is_running = True
                    self._before = self._get_state()
                    with interruptible:
                        yield
                    self._before = None
                except BaseException as error:
                    logger.clearkvs()
                    can_continue = self._before is not None
                    self._roll_back()
                    if isinstance(error, KeyboardInterrupt):
                        logger.log(f"Interrupted in {self._unit} {self.itr}, which " + (
                            f"was rolled back; earlier {self._unit}s are complete" if can_continue else
                            "cannot be rolled back: resume from a snapshot"))
                    raise
                finally:
                    self._is_running = False
                    self._generators = seeding.get_process_state()

    def _bar(self, end: int) -> Any:
        """Returns a progress bar for training until iteration `end` (exclusive), for a `with` block."""
        shown = check_bool("progress_bar", self.progress_bar)
        return progress_bar(shown, end, "training", self._short_unit, initial=self.itr, smoothing=0.1)

    def _finish_iteration(self) -> Row:
        """Calls the callbacks, then writes the row and saves the snapshot with Ctrl-C deferred; returns the row."""
        before = logger.getkvs()
        with seeding.seed_kept():
            results = [(callback, callback(self, logger.getkvs())) for callback in check_callbacks(self.callbacks)]
        self._check_columns(before, logger.getkvs())
        with interrupts_delayed():
            stopping = [_name_of(callback) for callback, result in results
                        if isinstance(result, (bool, np.bool_)) and result]
            self.stopped = bool(stopping)
            row = logger.dumpkvs()
            self.itr += 1
            self._before = None  # the iteration is complete, even if its snapshot cannot be saved
            self._before = self._save()
        if self.stopped:
            logger.log(f"Stopped by the callback {stopping[0]}, which returned True, after {self._unit} {self.itr - 1}")
        return row

    def _check_columns(self, before: Row, row: Row) -> None:
        """Raises `ValueError` if a callback changed a column of the row `before`, or logged a column of other loops."""
        foreign = [name for name in self._foreign_columns if name in row]
        changed = [name for name, value in before.items() if row.get(name, value) is not value and row[name] != value]
        for names, reason in ((foreign, "this name is reserved"), (changed, "the row already contains it")):
            if names:
                raise ValueError(f"callbacks: expected no column {names[0]}, because {reason}; log the value under "
                                 "another name")

    def _roll_back(self) -> None:
        """Rolls back the current iteration, if there is one."""
        with interrupts_delayed():
            if self._before is not None:
                self._set_state(self._before)
            self._before = None

    def _elapsed(self) -> float:
        """Returns the seconds since the run began, without the time between stopping and resuming."""
        return 0.0 if self._started is None else time.perf_counter() - self._started

    def _loop_state(self) -> Dict[str, Any]:
        """Returns the part of the snapshot's `state` that is common to all loops.

        These are the package version, the random generators, the elapsed time, the environment, the running averages of
        a `NormalizedEnv`, whether a callback stopped the run, and the callbacks: for each its name, and for a
        `StatefulCallback`, the object and its state.
        """
        with seeding.rooted(self._root):
            generators = self._generators if self._generators and not self._is_running else seeding.get_process_state()
            return {"version": __version__, **generators, "time": self._elapsed(),
                    "env": self.sampled_env, "averages": get_averages(self.sampled_env), "stopped": self.stopped,
                    "callbacks": [
                        (_name_of(callback), callback, copy.deepcopy(callback.get_state()))
                        if isinstance(callback, StatefulCallback) else (_name_of(callback), None, None)
                        for callback in self.callbacks if getattr(callback, "is_saved", True)]}

    def _restore_env(self, snapshot: Mapping[str, Any]) -> None:
        """Restores the environment from a snapshot. Call it before `sampler.set_state`, which sets its tasks."""
        env = snapshot["state"]["env"]
        if self.sampled_env is not self._env and env is not self.sampled_env and env is not self.sampler.env:
            self.env = env

    def _restore_loop(self, snapshot: Mapping[str, Any]) -> None:
        """Restores `_loop_state` from a snapshot. Call it last: it restores the random generators."""
        state = snapshot["state"]
        self._generators = {name: state[name] for name in ("seeding", "random", "numpy_random")}
        self._root, self._before = state["seeding"]["root"], None
        if self._is_running:
            seeding.set_process_state(self._generators)
        set_averages(self.sampled_env, state["averages"])
        self.itr, self.stopped = snapshot["itr"] + 1, state["stopped"]
        self._started = time.perf_counter() - state["time"]
        self._restore_callbacks(state["callbacks"])

    def _restore_callbacks(self, saved: Sequence[Any]) -> None:
        """Restores the callbacks of a snapshot in their order, followed by new callbacks of this loop.

        A callback of this loop replaces the saved one of the same class or name, and takes over its state.
        """
        new: List[Any] = list(self.callbacks)
        self.callbacks[:], self._missing = [], []
        for name, callback, state in saved:
            matches = [i for i, candidate in enumerate(new) if _name_of(candidate) == name]
            callback = new.pop(matches[0]) if matches else callback
            if callback is None:
                self._missing.append(name)
                continue
            self.callbacks.append(callback)
            if state is not None:
                callback.set_state(state)
        self.callbacks += new


def _name_of(callback: Callback) -> str:
    """Returns the name of a function, or the class of another callback."""
    return getattr(callback, "__qualname__", type(callback).__qualname__)


def check_replaced(saved: Sequence[Any], new: Sequence[Callback]) -> None:
    """Raises `ValueError` if new callbacks replace some, but not all, saved callbacks of the same class or name."""
    before = [name for name, *_ in saved]
    names = [_name_of(callback) for callback in check_callbacks(new)]
    for name in names:
        if names.count(name) < before.count(name):
            raise ValueError(f"callbacks: expected {before.count(name)} callbacks {name} in their order, as in the run,"
                             f" or none, got {names.count(name)}")


def check_callbacks(callbacks: Sequence[Callback]) -> List[Callback]:
    """Returns a list of callbacks; raises `TypeError` if one cannot be called with a trainer and a row."""
    if not isinstance(callbacks, (list, tuple)) or not all(
            callable(callback) and not isinstance(callback, type) for callback in callbacks):
        raise TypeError(f"callbacks: expected a list of functions or callable objects, got {callbacks!r}")
    for callback in callbacks:
        if inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(type(callback).__call__):
            raise TypeError(f"callbacks: expected functions without async, got {_name_of(callback)}")
        if not accepts(callback, None, None):
            raise TypeError("callbacks: expected functions (trainer, row), got "
                            f"{_name_of(callback)}{inspect.signature(callback)}")
    return list(callbacks)
