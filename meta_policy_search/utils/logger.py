"""Logger of a run: messages, one row of numbers per iteration, and snapshots.

Usage::

    logger.configure(dir="data/run", format_strs=["line", "log", "csv"], snapshot_mode="last_gap", snapshot_gap=10)
    logger.logkv("Itr", 0)
    logger.dumpkvs()
    logger.save_itr_params(0, params)

Outputs (`format_strs`):

===============  ==================  =================================================================================
format           destination         content
===============  ==================  =================================================================================
`stdout`         terminal            messages, and one table per row
`line`           terminal            messages, and one line per row with the most important columns; in a notebook with
                                     a progress bar, only the line of the last row, in the bar
`log`            `log.txt`           messages with time stamps, and one table per row
`csv`            `progress.csv`      rows; columns in order of first appearance, empty cells for missing values, floats
                                     with all digits
`json`           `progress.json`     rows, one JSON object per line (`NaN` and `Infinity` are written as Python does)
`tensorboard`    `tensorboard/`      the numbers of each row as scalars over `Epoch` or, without this column, `Itr`,
                                     with the tags `Step_0/AverageReturn` for column `Step_0-AverageReturn`; requires
                                     the package tensorboard
===============  ==================  =================================================================================

Messages are printed above tqdm progress bars. Before `configure` is called, messages and rows are printed to the
terminal only (format `line` in a notebook, otherwise `stdout`), and `save_itr_params` saves nothing.

Resuming: `dumpkvs` flushes each row to disk before it returns. `configure(..., resume_at=itr)` removes the rows and the
snapshots of iteration `itr` and of later iterations, which the resumed run writes again. The number of a row is its
column `Epoch` or, without this column, `Itr`. `log.txt` keeps all messages.
"""
import contextlib
import dataclasses
import datetime
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Optional

import numpy as np

from meta_policy_search.utils import log_outputs
from meta_policy_search.utils.checks import Columns, check_choice, check_int_at_least
from meta_policy_search.utils.files import PathLike, lock_folder, remove_temporary_files, user_path
from meta_policy_search.utils.log_outputs import Row
from meta_policy_search.utils.progress import print_line, print_row
from meta_policy_search.utils.snapshotter import BEST_FILE, check_mode, remove_snapshots, save_snapshot, snapshot_paths
from meta_policy_search.utils.threads import training_lock

DEBUG = 10
INFO = 20
WARN = 30
ERROR = 40
DISABLED = 50  # no messages, and no rows on the terminal

_LEVEL_NAMES = {DEBUG: "debug", INFO: "info", WARN: "warning", ERROR: "error"}


@dataclasses.dataclass
class _Logger:
    """The outputs of a run and the current row."""

    formats: Sequence[str]
    folder: Optional[str] = None
    files: Mapping[str, list[str]] = dataclasses.field(default_factory=dict)  # path of a file of rows to its columns
    curves: Optional[Callable[[Row], None]] = None  # appends a row to an event file
    snapshots: tuple[str, int] = ("none", 1)  # mode and gap, see `save_snapshot`
    lock: contextlib.ExitStack = dataclasses.field(default_factory=contextlib.ExitStack)
    level: int = INFO
    row: Row = dataclasses.field(default_factory=dict)
    mean_counts: dict[str, int] = dataclasses.field(default_factory=dict)


def _unconfigured(level: int = INFO) -> _Logger:
    return _Logger(log_outputs.check_formats(None)[:1], level=level)


@training_lock()
def configure(dir: Optional[PathLike] = None, format_strs: Optional[Iterable[str]] = None,
              snapshot_mode: str = "last", snapshot_gap: int = 1, resume_at: Optional[int] = None,
              overwrite: bool = False) -> None:
    """Sets the run folder and the outputs of this process.

    The folder is locked: other processes cannot log to it until this process ends, configures another folder or calls
    `reset`. If an error is raised, the previous configuration remains active.

    Args:
        dir: run folder; created if missing. Default None: a new temporary folder, whose path is logged.
        format_strs: outputs, see the table in the module docstring. Default None: `stdout` (in a notebook `line`),
            `log` and `csv`.
        snapshot_mode: which iterations `save_itr_params` saves: `all`, `last`, `gap`, `last_gap` or `none`; see
            `utils.snapshotter.save_snapshot`. Default `last`.
        snapshot_gap: number of iterations between snapshots, at least 1; used by the modes `gap` and `last_gap`.
            Default 1.
        resume_at: number of the iteration that a resumed run performs next, `snapshot["itr"] + 1`. Rows and snapshots
            of earlier iterations are kept, later ones are removed. Existing files are continued even if `format_strs`
            lacks their format. Default None: start new files.
        overwrite: whether to delete the files of an earlier run in the folder (rows, messages, snapshots) instead of
            raising an error. Default False.

    Raises:
        RuntimeError: a training loop of this process uses the current outputs, for example because a callback calls
            this function. Use `scoped_configure` in callbacks.
        ValueError: the folder is not writable, is locked by another process or contains an earlier run; the row of
            an iteration before `resume_at` is missing; `resume_at` is negative; or a format or snapshot mode is
            unknown.
        ImportError: the package for a format is not installed; the message contains the command that installs it.
    """
    global _current
    _check_no_training()
    formats = log_outputs.check_formats(format_strs)
    if resume_at is not None:
        check_int_at_least("resume_at", resume_at, 0)
    with contextlib.ExitStack() as lock:
        folder = tempfile.mkdtemp(prefix="meta_policy_search-") if dir is None else os.path.abspath(
            user_path("dir", dir))
        try:
            os.makedirs(folder, exist_ok=True)
            lock.enter_context(lock_folder(folder))
        except OSError as error:
            raise ValueError(f"run folder: expected a writable folder, got {folder}: {error}") from error
        _check_no_training(folder)
        written = log_outputs.written_files(folder)
        if resume_at is not None:
            formats += [name for name, paths in written.items() if paths and name not in formats]
        paths = [os.path.join(folder, f"progress.{name}") for name in ("csv", "json") if name in formats]
        rows = {path: [] if resume_at is None else log_outputs.rows_before(resume_at, path) for path in paths}
        snapshots = check_mode(snapshot_mode, snapshot_gap)
        remove_temporary_files(folder)
        if resume_at is not None:
            remove_snapshots(folder, resume_at)  # first, so that the rows of the last snapshot always exist
        elif earlier := earlier_files(folder):
            if not overwrite:
                found = ", ".join(os.path.basename(path) for path in earlier)
                raise ValueError(f"dir: {folder} already contains a run ({found}). Choose another folder, resume that "
                                 "run or delete it")
            for path in [*earlier, *written["log"], *written["tensorboard"]]:
                os.remove(path)
        files = {path: log_outputs.used_columns(rows[path]) for path in paths}
        for path, columns in files.items():
            log_outputs.write_rows(path, rows[path], columns)
        curves = (lock.enter_context(log_outputs.event_file(os.path.join(folder, "tensorboard"), resume_at))
                  if "tensorboard" in formats else None)
        if "log" in formats:
            log_outputs.append_text(os.path.join(folder, log_outputs.LOG_FILE), "")
        before, _current = _current, _Logger(formats, folder, files, curves, snapshots, lock.pop_all(), _current.level)
    before.lock.close()
    if dir is None:
        info(f"Logging to {folder}")


def _check_no_training(folder: Optional[str] = None) -> None:
    if any(outputs is _current for outputs in _in_training):
        raise RuntimeError("a training loop uses the current outputs: in a callback, use logger.scoped_configure")
    if folder is not None and any(outputs.folder == folder for outputs in _in_training):
        raise RuntimeError(f"a training loop of this process writes to {folder}: a callback cannot train its own run")


def earlier_files(folder: str) -> list[str]:
    """Returns the rows and snapshots of an earlier run in a folder, which need not exist."""
    written, best = log_outputs.written_files(folder), os.path.join(folder, BEST_FILE)
    rows = [path for path in written["csv"] + written["json"] if os.path.getsize(path) > 0]
    return rows + snapshot_paths(folder) + [best] * os.path.exists(best)


@training_lock()
def reset() -> None:
    """Reverts `configure` and unlocks the run folder; raises `RuntimeError` during training."""
    global _current
    _check_no_training()
    before, _current = _current, _unconfigured()
    before.lock.close()


@contextlib.contextmanager
def scoped_configure(*args: Any, **kwargs: Any) -> Iterator[None]:
    """Configures the logger for a `with` block (arguments of `configure`), then restores the previous configuration."""
    global _current
    with training_lock():
        outside = _current
        _current = _unconfigured(outside.level)
        try:
            configure(*args, **kwargs)
            yield
        finally:
            inside, _current = _current, outside
            inside.lock.close()


@contextlib.contextmanager
def in_training() -> Iterator[None]:
    """Keeps the outputs of this process in a `with` block: `configure` raises an error."""
    _in_training.append(_current)
    try:
        yield
    finally:
        _in_training.pop()


def logkv(key: str, val: Any) -> None:
    """Sets a column of the current row, which `dumpkvs` writes; during training, the trainer calls `dumpkvs`.

    Args:
        key: name of the column.
        val: a number; truth values count as 0 and 1.

    Raises:
        TypeError: the value is not a number.
    """
    if isinstance(val, (np.generic, np.ndarray)) and val.size == 1:
        val = val.item()
    if not isinstance(val, (bool, int, float)):
        raise TypeError(f"{key}: expected a number, as in every column, got {val!r}")
    _current.row[str(key)] = int(val) if isinstance(val, bool) else val


def logkv_mean(key: str, val: float) -> None:
    """Adds a value to a column that contains the mean of its values since the last `dumpkvs`."""
    count = _current.mean_counts.get(key, 0)
    mean = _current.row[key] if count else 0.0
    logkv(key, mean + (val - mean) / (count + 1))
    _current.mean_counts[key] = count + 1


def logkvs(d: Mapping[str, Any]) -> None:
    """Sets one column of the current row per entry of a mapping."""
    for key, val in d.items():
        logkv(key, val)


def getkvs() -> Row:
    """Returns the current row as `dumpkvs` would write it, with Python numbers as values."""
    return Columns(_current.row)


def clearkvs() -> None:
    """Starts a new row without writing the current one."""
    _current.row.clear()
    _current.mean_counts.clear()


def dumpkvs() -> Row:
    """Writes the current row to all outputs and starts a new one.

    The row is flushed to disk before the function returns. A row without columns is not written.

    Returns:
        The written row, with Python numbers as values.

    Raises:
        OSError: a file cannot be written. All files keep their earlier rows, and the current row is kept.
    """
    row = getkvs()
    if row:
        _write_row(row)
    clearkvs()
    return row


def _write_row(row: Row) -> None:
    """Writes a row to all outputs. If one fails, the row is removed from all."""
    for path, columns in _current.files.items():
        log_outputs.add_columns(path, row, columns)
    sizes = {path: log_outputs.file_size(path) for path in _current.files}
    try:
        for path, columns in _current.files.items():
            log_outputs.append_row(path, row, columns)
        if _current.curves is not None:
            _current.curves(row)
        if "log" in _current.formats:
            _append_to_log(log_outputs.table(row))
        if _current.level <= INFO and _has_terminal():
            print_row(log_outputs.line(row)) if "line" in _current.formats else print_line(log_outputs.table(row))
    except BaseException:
        for path, size in sizes.items():
            with contextlib.suppress(OSError):
                os.truncate(path, size)
        raise


def log(*args: Any, level: int = INFO) -> None:
    """Writes a message to the terminal and to `log.txt`, unless `level` is below the level set by `set_level`.

    Args:
        *args: parts of the message, converted to `str` and joined by spaces.
        level: `DEBUG`, `INFO`, `WARN` or `ERROR`; default `INFO`.
    """
    check_choice("level", level, _LEVEL_NAMES)
    if level < _current.level:
        return
    text, name = " ".join(map(str, args)), _LEVEL_NAMES[level]
    if _has_terminal():
        print_line(f"{name}: {text}" if level >= WARN else text)
    if "log" in _current.formats:
        now = datetime.datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
        _append_to_log(f"{now} {name}: {text}")


def _has_terminal() -> bool:
    return not set(log_outputs.TERMINAL_FORMATS).isdisjoint(_current.formats)


def _append_to_log(text: str) -> None:
    log_outputs.append_text(os.path.join(str(_current.folder), log_outputs.LOG_FILE), text + "\n")


def debug(*args: Any) -> None:
    """Writes a message of level `DEBUG`, which is hidden by default."""
    log(*args, level=DEBUG)


def info(*args: Any) -> None:
    """Writes a message of level `INFO`."""
    log(*args, level=INFO)


def warn(*args: Any) -> None:
    """Writes a message of level `WARN`."""
    log(*args, level=WARN)


def error(*args: Any) -> None:
    """Writes a message of level `ERROR`."""
    log(*args, level=ERROR)


def set_level(level: int) -> None:
    """Sets the minimum level of written messages; the initial level is `INFO`.

    If the level is above `INFO`, rows are not printed to the terminal. Files receive all rows at any level.

    Args:
        level: `DEBUG`, `INFO`, `WARN`, `ERROR` or `DISABLED`.
    """
    _current.level = check_choice("level", level, [*_LEVEL_NAMES, DISABLED])


def get_dir() -> Optional[str]:
    """Returns the absolute path of the run folder; None before `configure`."""
    return _current.folder


def get_snapshot_mode() -> tuple[str, int]:
    """Returns the snapshot mode and gap of `save_itr_params`; `none` and 1 before `configure`."""
    return _current.snapshots


def save_itr_params(itr: int, params: Any) -> Optional[str]:
    """Saves a snapshot of an iteration if the snapshot mode saves this iteration.

    For a resumable run, call this function after `dumpkvs`.

    Args:
        itr: number of the iteration, at least 0.
        params: content of the snapshot; any object that cloudpickle can pickle.

    Returns:
        The path of the written file, or None if no file was written.

    Raises:
        SnapshotError: the snapshot cannot be written; the earlier snapshots do not change.
    """
    return None if _current.folder is None else save_snapshot(_current.folder, itr, params, *_current.snapshots)


_current = _unconfigured()
_in_training: list[_Logger] = []  # outputs of the training loops that run
