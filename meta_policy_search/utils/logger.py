"""What a run reports: messages, one row of numbers per iteration, and snapshots.

Usage::

    logger.configure(dir="data/run", format_strs=["stdout", "log", "csv"], snapshot_mode="last_gap", snapshot_gap=10)
    logger.logkv("Itr", 0)
    logger.dumpkvs()
    logger.save_itr_params(0, params)

Outputs (`format_strs`):

===============  ==================  =================================================================================
format           where               what
===============  ==================  =================================================================================
`stdout`         terminal            messages, and a table per row
`line`           terminal            messages, and one line per row with the most important columns
`log`            `log.txt`           messages with their time, and a table per row
`csv`            `progress.csv`      the rows; columns in order of appearance, blank where a row has no value; floats
                                     with all their digits
`json`           `progress.json`     the rows, one JSON object per line (NaN and infinities as Python writes them)
`tensorboard`    `tensorboard/`      the numbers of the rows as scalars over `Itr`, under the names of the columns;
                                     needs the package tensorboard
===============  ==================  =================================================================================

A tqdm progress bar on the terminal stays whole. Before `configure` is called, messages and rows go to the terminal
alone, and `save_itr_params` saves nothing.

Resuming a run: rows are on the disk when `dumpkvs` returns, and a snapshot taken then holds `output_positions()`. With
these, `configure(..., positions=...)` cuts the files back to what they were: rows written after the snapshot vanish,
and the resumed run writes them again. `log.txt` is not cut: it says what happened.
"""
import contextlib
import csv
import datetime
import glob
import io
import itertools
import json
import os
import re
import socket
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Optional

import numpy as np

from meta_policy_search.utils import event_file
from meta_policy_search.utils.checks import check_choice
from meta_policy_search.utils.snapshotter import PathLike, Snapshotter, atomic_file, list_snapshots

DEBUG = 10
INFO = 20
WARN = 30
ERROR = 40
DISABLED = 50  # no message, and no row on the terminal

_LEVEL_NAMES = {DEBUG: "debug", INFO: "info", WARN: "warning", ERROR: "error"}

Row = dict[str, Any]
Position = dict[str, Any]


class LogFileError(OSError):
    """A file of rows or messages cannot be written to; names the file, which keeps what it held."""


class _Output:
    """Where rows and messages go; each kind of output takes what concerns it."""

    def write_row(self, row: Row) -> None:
        """Writes a row: names to Python numbers, strings or None."""

    def write_message(self, text: str, level: int) -> None:
        """Writes a message."""

    def position(self) -> Optional[Position]:
        """Returns what a later run needs in order to go on after the last row; None where it needs nothing."""

    def close(self) -> None:
        """Lets go of what is held open."""


class _Terminal(_Output):
    def __init__(self, as_text: Any) -> None:
        self._as_text = as_text  # row -> str

    def write_row(self, row: Row) -> None:
        _print(self._as_text(row))

    def write_message(self, text: str, level: int) -> None:
        _print(text if level in (DEBUG, INFO) else f"{_LEVEL_NAMES[level]}: {text}")


class _LogFile(_Output):
    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, "log.txt")
        self._append("")

    def write_row(self, row: Row) -> None:
        self._append(_table(row) + "\n")

    def write_message(self, text: str, level: int) -> None:
        now = datetime.datetime.now().isoformat(sep=" ", timespec="seconds")
        self._append(f"{now} {_LEVEL_NAMES[level]}: {text}\n")

    def _append(self, text: str) -> None:
        with _naming(self._path), open(self._path, "a", encoding="utf-8") as file:
            file.write(text)


class _CSV(_Output):
    def __init__(self, folder: str, position: Optional[Position]) -> None:
        self._path = os.path.join(folder, "progress.csv")
        self._size = 0  # bytes
        self._rows = 0  # without the header
        self._keys: list[str] = []
        if position is None:
            _append(self._path, 0, b"")
        else:
            self._cut_back(position["bytes"], position["rows"], list(position["keys"]))

    def write_row(self, row: Row) -> None:
        keys = self._keys + [key for key in row if key not in self._keys]
        cells = [row.get(key) for key in keys]
        if keys == self._keys:
            self._size = _append(self._path, self._size, _csv_text([cells]).encode())
        else:
            blanks = [None] * (len(keys) - len(self._keys))
            earlier = [old + blanks for old in self._read()[1:]]
            self._size = _replace(self._path, _csv_text([keys, *earlier, cells]))
        self._keys = keys
        self._rows += 1

    def position(self) -> Position:
        return {"bytes": self._size, "rows": self._rows, "keys": list(self._keys)}

    def _read(self) -> list[list[str]]:
        """Returns header and rows; what a killed process may have left after them is not looked at."""
        with open(self._path, encoding="utf-8", errors="replace", newline="") as file:
            return list(itertools.islice(csv.reader(file), self._rows + 1))

    def _cut_back(self, size: int, rows: int, keys: list[str]) -> None:
        """Keeps the first rows, and of them the columns that existed then."""
        self._rows, self._keys = rows, keys
        table = [row[: len(keys)] for row in self._read()] if rows else []
        text = _csv_text(table)
        if len(text.encode()) != size or (table and table[0] != keys):
            raise _other_file(self._path, rows, size)
        self._size = _replace(self._path, text)


class _JSONLines(_Output):
    def __init__(self, folder: str, position: Optional[Position]) -> None:
        self._path = os.path.join(folder, "progress.json")
        self._size = 0 if position is None else position["bytes"]
        self._rows = 0 if position is None else position["rows"]
        if self._rows:
            with open(self._path, "rb") as file:
                kept = file.read(self._size)
            if len(kept) < self._size or not kept.endswith(b"\n") or kept.count(b"\n") != self._rows:
                raise _other_file(self._path, self._rows, self._size)
        _append(self._path, self._size, b"")

    def write_row(self, row: Row) -> None:
        self._size = _append(self._path, self._size, (json.dumps(row) + "\n").encode())
        self._rows += 1

    def position(self) -> Position:
        return {"bytes": self._size, "rows": self._rows}


def _other_file(path: str, rows: int, size: int) -> ValueError:
    return ValueError(
        f"positions: expected {path} to begin with the {rows} rows ({size} bytes) that the snapshot was taken after, "
        "but it does not"
    )


class _TensorBoard(_Output):
    """Each process writes a file of its own: a TensorBoard that is open reads on where a file ended before."""

    def __init__(self, folder: str, position: Optional[Position]) -> None:
        self._folder = os.path.join(folder, "tensorboard")
        os.makedirs(self._folder, exist_ok=True)
        self._step = 0
        self._sizes: dict[str, int] = {}  # name of each file of the run to its bytes
        if position is not None:
            self._step, self._sizes = position["step"], dict(position["files"])
            self._cut_back()
        now = time.time_ns()  # TensorBoard reads files in the order of their names
        self._name = f"events.out.tfevents.{now // 10**9}.{socket.gethostname()}.{now}"
        start = b"" if position is None else event_file.start_record(self._step)  # for a TensorBoard that is open
        self._append(event_file.first_record() + start)

    def write_row(self, row: Row) -> None:
        step = row.get("Itr", self._step)
        self._append(event_file.scalars_record(step, {key: row[key] for key in row if _is_number(row[key])}))
        self._step = step + 1

    def position(self) -> Position:
        return {"step": self._step, "files": dict(self._sizes)}

    def _append(self, data: bytes) -> None:
        self._sizes[self._name] = _append(os.path.join(self._folder, self._name), self._sizes.get(self._name, 0), data)

    def _cut_back(self) -> None:
        """Cuts every file back to what it was; removes those that came later."""
        for path in _event_files(self._folder):
            size = self._sizes.get(os.path.basename(path))
            if size is None:
                os.remove(path)
            elif os.path.getsize(path) > size:
                os.truncate(path, size)


def _event_files(folder: str) -> list[str]:
    return glob.glob(os.path.join(glob.escape(folder), "events.out.tfevents.*"))


_FORMATS = {  # name to output, built from the folder and the position to go on from
    "stdout": lambda folder, position: _Terminal(_table),
    "line": lambda folder, position: _Terminal(_line),
    "log": lambda folder, position: _LogFile(folder),
    "csv": _CSV,
    "json": _JSONLines,
    "tensorboard": _TensorBoard,
}


class _Logger:
    """The outputs of a run, and the row that is being gathered."""

    def __init__(
        self,
        folder: Optional[str],
        outputs: Mapping[str, _Output],
        snapshotter: Optional[Snapshotter],
        level: int = INFO,
    ) -> None:
        self.folder = folder
        self.outputs = outputs
        self.snapshotter = snapshotter
        self.level = level
        self.row: Row = {}
        self.mean_counts: dict[str, int] = {}

    def close(self) -> None:
        for output in self.outputs.values():
            output.close()


def _unconfigured(level: int = INFO) -> _Logger:
    return _Logger(folder=None, outputs={"stdout": _Terminal(_table)}, snapshotter=None, level=level)


def configure(
    dir: Optional[PathLike] = None,
    format_strs: Optional[Iterable[str]] = ("stdout", "log", "csv"),
    snapshot_mode: str = "last",
    snapshot_gap: int = 1,
    positions: Optional[Mapping[str, Position]] = None,
    overwrite: bool = False,
) -> None:
    """Sets where this process logs from now on.

    Args:
        dir: run folder, made if missing. By default a new folder among the system's temporary files, which is named.
        format_strs: outputs, see the table above; None for the default.
        snapshot_mode: which iterations `save_itr_params` saves: all, last, gap, last_gap or none
            (`utils.snapshotter.Snapshotter`).
        snapshot_gap: iterations, at least 1; used by the modes gap and last_gap.
        positions: what `output_positions` returned when the snapshot was taken that this run goes on from. By default
            the run starts its files.
        overwrite: whether to delete the files of an earlier run in the folder (rows, messages, snapshots) rather than
            to refuse it.

    Raises:
        ValueError: the folder cannot be used, holds an earlier run, or its files do not fit `positions`; an unknown
            format or snapshot mode. What was configured before stays.
        TypeError: an argument of the wrong type.
        ImportError: the package that a format needs is not installed; says what to run.
    """
    global _current
    formats = _check_formats(_FORMATS_BY_DEFAULT if format_strs is None else format_strs)
    folder = _usable_folder(dir)
    snapshotter = Snapshotter(folder, snapshot_mode, snapshot_gap)
    _make_room(folder, positions, overwrite)
    outputs = {name: _FORMATS[name](folder, (positions or {}).get(name)) for name in formats}
    _current.close()
    _current = _Logger(folder, outputs, snapshotter, _current.level)
    if dir is None:
        info(f"Logging to {folder}")


_FORMATS_BY_DEFAULT = ("stdout", "log", "csv")


def _check_formats(format_strs: Iterable[str]) -> list[str]:
    if isinstance(format_strs, str):
        raise TypeError(f"format_strs: expected a list of formats, got the string {format_strs!r}")
    formats = [check_choice("format_strs", name, _FORMATS) for name in format_strs]
    if {"stdout", "line"} <= set(formats):
        raise ValueError("format_strs: expected one format for the terminal, got both 'stdout' and 'line'")
    if "tensorboard" in formats:
        event_file.check_tensorboard()
    return formats


def _usable_folder(dir: Optional[PathLike]) -> str:
    """Returns the absolute path of the run folder, made and tried out."""
    if dir is None:
        return tempfile.mkdtemp(prefix="meta_policy_search-")
    if not isinstance(dir, (str, os.PathLike)):
        raise TypeError(f"dir: expected a path, got {dir!r}")
    folder = os.path.abspath(os.fspath(dir))
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"tried out")
    except OSError as error:
        raise ValueError(f"dir: expected a folder that can be written to, got {folder}: {error}") from error
    return folder


def _make_room(folder: str, positions: Optional[Mapping[str, Position]], overwrite: bool) -> None:
    """Refuses, or deletes, what an earlier run left in the folder and this one does not go on from."""
    names = {"csv": "progress.csv", "json": "progress.json"}
    paths = [os.path.join(folder, name) for output, name in names.items() if output not in (positions or {})]
    earlier = [path for path in paths if os.path.exists(path) and os.path.getsize(path) > 0]
    if positions is None:
        earlier += [snapshot.path for snapshot in list_snapshots(folder)]
    if not earlier:
        return
    if not overwrite:
        found = ", ".join(os.path.basename(path) for path in earlier)
        raise ValueError(
            f"dir: expected a folder without an earlier run, got {folder}, which holds {found}. Choose another folder, "
            "resume that run (positions=...), or have it deleted (overwrite=True)"
        )
    if positions is None:
        earlier += glob.glob(os.path.join(glob.escape(folder), "log.txt"))
        earlier += _event_files(os.path.join(folder, "tensorboard"))
    for path in earlier:
        os.remove(path)


def reset() -> None:
    """Closes all outputs and goes back to how it was before `configure`."""
    global _current
    _current.close()
    _current = _unconfigured()


@contextlib.contextmanager
def scoped_configure(*args: Any, **kwargs: Any) -> Iterator[None]:
    """Configures for the length of a `with` block, with the arguments of `configure`; then what was before goes on."""
    global _current
    outside = _current
    _current = _unconfigured(outside.level)
    try:
        configure(*args, **kwargs)
        yield
    finally:
        _current.close()
        _current = outside


def logkv(key: str, val: Any) -> None:
    """Sets a column of the current row; a number, or anything else by its `str`."""
    _current.row[key] = val


def logkv_mean(key: str, val: float) -> None:
    """Sets a column of the current row to the mean of all values given to it here since the last dump."""
    count = _current.mean_counts.get(key, 0)
    mean = _current.row[key] if count else 0.0
    _current.row[key] = mean + (val - mean) / (count + 1)
    _current.mean_counts[key] = count + 1


def logkvs(d: Mapping[str, Any]) -> None:
    """Sets a column of the current row for every entry of a mapping."""
    for key, val in d.items():
        logkv(key, val)


def getkvs() -> Row:
    """Returns the current row, as far as it is known."""
    return dict(_current.row)


def dumpkvs() -> Row:
    """Writes the current row to all outputs and begins a new one.

    Rows are on the disk when this returns. A row without columns is not written.

    Returns:
        The row, numbers as Python numbers, what is no number as a string.

    Raises:
        LogFileError: a file cannot be written to; it keeps its earlier rows, and the current row stays.
    """
    row = {str(key): _plain(value) for key, value in _current.row.items()}
    for output in _current.outputs.values() if row else ():
        if _current.level <= INFO or not isinstance(output, _Terminal):
            output.write_row(row)
    _current.row.clear()
    _current.mean_counts.clear()
    return row


def output_positions() -> dict[str, Position]:
    """Returns where the files stand after the last row, for a snapshot; see `configure(positions=...)`.

    Keys are the formats that have a position: `csv` (`bytes`, `rows`, and `keys`, its columns), `json` (`bytes`,
    `rows`) and `tensorboard` (`step`, and `files`, the bytes of each).
    """
    positions = {name: output.position() for name, output in _current.outputs.items()}
    return {name: position for name, position in positions.items() if position is not None}


def log(*args: Any, level: int = INFO) -> None:
    """Writes a message, its parts separated by spaces, to terminal and `log.txt`, unless `level` is below the set one.

    Args:
        *args: parts of the message, written by their `str`.
        level: `DEBUG`, `INFO`, `WARN` or `ERROR`.
    """
    check_choice("level", level, _LEVEL_NAMES)
    if level >= _current.level:
        for output in _current.outputs.values():
            output.write_message(" ".join(map(str, args)), level)


def debug(*args: Any) -> None:
    """Writes a message of level `DEBUG`, which is not shown by default."""
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
    """Sets the lowest level of messages that are written, `INFO` by default; above it rows leave the terminal too.

    Files get every row at any level.
    """
    _current.level = check_choice("level", level, [*_LEVEL_NAMES, DISABLED])


def get_dir() -> Optional[str]:
    """Returns the absolute path of the run folder; None before `configure`."""
    return _current.folder


def save_itr_params(itr: int, params: Any) -> Optional[str]:
    """Saves the snapshot of an iteration where the snapshot mode wants one.

    Call it after `dumpkvs`, with `output_positions()` among what is saved, or the run cannot be resumed.

    Returns:
        The file written, or None.

    Raises:
        SnapshotError: it could not be written; the earlier ones are whole.
    """
    return None if _current.snapshotter is None else _current.snapshotter.save(itr, params)


def _print(text: str) -> None:
    """Prints, above the progress bars where tqdm shows some."""
    tqdm = getattr(sys.modules.get("tqdm"), "tqdm", None)  # what has not been imported shows no bar
    if tqdm is not None and getattr(tqdm, "_instances", None):
        tqdm.write(text)
    else:
        print(text, flush=True)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _plain(value: Any) -> Any:
    """Returns a number, boolean, string or None as Python has it; anything else as its `str`."""
    if isinstance(value, (np.generic, np.ndarray)) and value.size == 1:
        value = value.item()
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _readable(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _table(row: Row) -> str:
    cells = [(key, _readable(value)) for key, value in row.items()]
    key_width, value_width = (max(len(cell[column]) for cell in cells) for column in (0, 1))
    rule = "-" * (key_width + value_width + 7)
    lines = [f"| {key:<{key_width}} | {value:<{value_width}} |" for key, value in cells]
    return "\n".join([rule, *lines, rule])


_RETURN_COLUMN = re.compile(r"(?:Step_(\d+)-)?AverageReturn")


def _line(row: Row) -> str:
    """Returns iteration, steps, return (before and after adaptation, gain) and time; else the first six numbers."""
    numbers = {key: value for key, value in row.items() if _is_number(value)}
    returns = {int(match[1] or 0): numbers[match[0]] for match in map(_RETURN_COLUMN.fullmatch, numbers) if match}
    parts = []
    unit = "Epoch" if "Epoch" in numbers else "Itr"
    if unit in numbers:
        parts.append(f"{unit.lower()} {numbers[unit]:4}")
    if "n_timesteps" in numbers:
        parts.append(f"{numbers['n_timesteps']:>11,} steps")
    if returns:
        before, after = returns[min(returns)], returns[max(returns)]
        gain = f" -> {after:9.2f}, gain {after - before:+9.2f}" if len(returns) > 1 else ""
        parts.append(f"return {before:9.2f}{gain}")
    if f"{unit}Time" in numbers:
        parts.append(f"{numbers[f'{unit}Time']:6.2f} s")
    return " | ".join(parts if returns else [f"{key} {_readable(numbers[key])}" for key in list(numbers)[:6]])


def _csv_text(table: list[list[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(table)
    return text.getvalue()


def _append(path: str, size: int, data: bytes) -> int:
    """Writes `data` to the disk after the first `size` bytes of a file; returns the new size.

    If that fails, the file has its `size` bytes again.
    """
    with _naming(path):
        try:
            with open(path, "r+b" if size else "wb") as file:
                file.seek(size)
                file.truncate()
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                return file.tell()
        except OSError:
            with contextlib.suppress(OSError):
                os.truncate(path, size)
            raise


def _replace(path: str, text: str) -> int:
    """Replaces a file's contents at once; returns the new size."""
    data = text.encode()
    with _naming(path), atomic_file(path) as file:
        file.write(data)
    return len(data)


@contextlib.contextmanager
def _naming(path: str) -> Iterator[None]:
    """Has an error of the operating system within a `with` block name the file."""
    try:
        yield
    except OSError as error:
        raise LogFileError(error.errno, error.strerror, path) from error


_current = _unconfigured()
