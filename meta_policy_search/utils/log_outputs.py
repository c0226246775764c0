"""Output files and terminal formats of the logger.

The attribute `state` of an output file describes the written rows. To roll back rows, set `state` to an earlier value:
the next row then overwrites all later rows. If a write fails, the file keeps its earlier rows.
"""
import contextlib
import csv
import glob
import hashlib
import importlib
import io
import itertools
import json
import os
import re
import socket
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Optional, Union

import numpy as np

from meta_policy_search.utils.checks import check_choice
from meta_policy_search.utils.files import atomic_file, csv_text
from meta_policy_search.utils.progress import in_notebook

Row = dict[str, Any]
"""A logged row: column name to number, string or None."""

Position = dict[str, Any]
"""Position of an output after a row, in JSON types."""


class LogFileError(OSError):
    """A log file cannot be written; the message names the file, which keeps its earlier rows."""


class RowFile:
    """Output file with one row per line, written by one process only.

    If another program changes the size of the file, the next `write_row` moves the changed file to `<path>.changed` and
    writes a new file with all rows of the run.

    Args:
        path: path of the file.
        position: position where a resumed run continues; None starts an empty file.
        with_row: function `(state, row) -> state` that adds a row. A state is a dict with the keys `content` (bytes),
            `rows` (number of rows) and, for CSV, `keys` (columns). States are never modified in place.
        content_at: function `(content, position) -> content` that truncates the content to a position.

    Raises:
        ValueError: the content of the file up to `position` has changed.
        LogFileError: the file cannot be written.
    """

    def __init__(self, path: str, position: Optional[Position], with_row: Callable[[dict, Row], dict],
                 content_at: Callable[[bytes, Position], bytes]) -> None:
        self._path, self._with_row = path, with_row
        self._attempted = b""  # content that the last call tried to write; the file may contain a part of it
        self.state: dict[str, Any] = {"content": b"", "rows": 0}
        if position is not None and position["rows"]:
            content = content_at(_read(path), position)
            if hashlib.sha256(content).hexdigest() != position["sha256"]:
                raise ValueError(f"{path}: expected the {position['rows']} rows that the run had when its snapshot was "
                                 "taken, but they were changed or deleted, or a column was added. Restore the file to "
                                 "resume the run")
            self.state = {"content": content, **{key: position[key] for key in ("rows", "keys") if key in position}}
        self._replace(self.state["content"])

    def position(self) -> Position:
        """Returns the position after the last row, from which a resumed run can continue."""
        known = dict(self.state)
        content = known.pop("content")
        return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), **known}

    def write_row(self, row: Row) -> None:
        """Appends a row. Rewrites the file if the row changes earlier lines or the file has an unexpected size."""
        state = self._with_row(self.state, row)
        before, after = self.state["content"], state["content"]
        is_known = os.path.exists(self._path) and os.path.getsize(self._path) == len(before)
        if not is_known:
            self._keep_changed()
        self._attempted = after
        if is_known and after.startswith(before):
            _append(self._path, len(before), after[len(before):])
        else:
            self._replace(after)
        self.state = state

    def _keep_changed(self) -> None:
        """Moves the file to `<path>.changed` if another program has written to it."""
        with _naming(self._path), contextlib.suppress(FileNotFoundError), open(self._path, "rb") as file:
            if not self._attempted.startswith(file.read()):
                os.replace(self._path, f"{self._path}.changed")
                warnings.warn(f"{self._path} was changed by another program. The changed file was moved to "
                              f"{self._path}.changed, and a new file with all rows was written", stacklevel=2)

    def _replace(self, content: bytes) -> None:
        with _naming(self._path), atomic_file(self._path) as file:
            file.write(content)


def _csv_with_row(state: dict, row: Row) -> dict:
    """Adds a row to a CSV file; earlier rows get empty cells in new columns. Returns the new `RowFile.state`."""
    old_keys, content = state.get("keys", []), state["content"]
    keys = old_keys + [key for key in row if key not in old_keys]
    lines = [[row.get(key) for key in keys]]
    if keys != old_keys:
        blanks = [None] * (len(keys) - len(old_keys))
        earlier = itertools.islice(_csv_lines(content), 1, None)
        lines, content = [keys, *(line + blanks for line in earlier), *lines], b""
    return {"content": content + csv_text(lines).encode(), "rows": state["rows"] + 1, "keys": keys}


def _csv_content_at(data: bytes, position: Position) -> bytes:
    """Returns a CSV file up to a position, without the columns that the run added later, where rows are blank."""
    lines, width = itertools.islice(_csv_lines(data), position["rows"] + 1), len(position["keys"])
    return csv_text(line if row and any(line[width:]) else line[:width] for row, line in enumerate(lines)).encode()


def _csv_lines(content: bytes) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(content.decode(errors="replace"), newline=""))


def _json_with_row(state: dict, row: Row) -> dict:
    """Adds a row to a JSON Lines file; returns the new `RowFile.state`."""
    return {**state, "content": state["content"] + (json.dumps(row) + "\n").encode(), "rows": state["rows"] + 1}


def _read(path: str) -> bytes:
    """Returns the content of a file; nothing if it does not exist."""
    if not os.path.exists(path):
        return b""
    with open(path, "rb") as file:
        return file.read()


def _json_content_at(data: bytes, position: Position) -> bytes:
    return data.replace(b"\r\n", b"\n")[: position["bytes"]]


class EventFile:
    """Writes the numbers of each row to a TensorBoard event file.

    Each process writes a new file, because a running TensorBoard reads only data that is appended to a file. A resumed
    run truncates the existing files to the position and writes a start event. At this event, a running TensorBoard
    discards the points of this step and of later steps. `state` contains the next `step` and `files`, the size of each
    file in bytes.

    Args:
        folder: folder of the event files; created if missing.
        position: position where a resumed run continues; None starts at step 0.
    """

    def __init__(self, folder: str, position: Optional[Position]) -> None:
        from tensorboard.compat.proto.event_pb2 import SessionLog

        os.makedirs(folder, exist_ok=True)
        now = time.time_ns()  # TensorBoard reads files in alphabetical order
        self._folder, self._name = folder, f"events.out.tfevents.{now // 10**9}.{socket.gethostname()}.{now}"
        files = {} if position is None else position["files"]
        for name in os.listdir(folder) if position is not None else ():
            path = os.path.join(folder, name)
            if name not in files:
                os.remove(path)
            elif os.path.getsize(path) > files[name]:
                os.truncate(path, files[name])
        self.state: dict[str, Any] = {"step": 0 if position is None else position["step"], "files": files}
        self._append(0, file_version="brain.Event:2")
        if position is not None:
            self._append(position["step"], session_log=SessionLog(status=SessionLog.START))

    def position(self) -> Position:
        """Returns the position after the last row, from which a resumed run can continue."""
        return self.state

    def write_row(self, row: Row) -> None:
        """Appends the numbers of a row as float32."""
        from tensorboard.compat.proto.summary_pb2 import Summary

        step = row.get("Itr", self.state["step"])
        values = [Summary.Value(tag=key, simple_value=value) for key, value in row.items() if _is_number(value)]
        self._append(step, summary=Summary(value=values))
        self.state = {**self.state, "step": step + 1}

    def _append(self, step: int, **content: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.summary.writer.record_writer import RecordWriter

        record = io.BytesIO()
        RecordWriter(record).write(Event(wall_time=time.time(), step=step, **content).SerializeToString())
        files = self.state["files"]
        size = _append(os.path.join(self._folder, self._name), files.get(self._name, 0), record.getvalue())
        self.state = {**self.state, "files": {**files, self._name: size}}


OutputFile = Union[RowFile, EventFile]

LOG_FILE = "log.txt"
EVALUATIONS_FILE = "evaluations.csv"  # see `EvalCallback`
TERMINAL_FORMATS = ("stdout", "line")
FORMATS = (*TERMINAL_FORMATS, "log", "csv", "json", "tensorboard")


def open_output(format: str, folder: str, position: Optional[Position]) -> OutputFile:
    """Opens the output file of a log format in a run folder.

    Args:
        format: `"csv"`, `"json"` or `"tensorboard"`.
        folder: run folder.
        position: position in the file from which a resumed run continues; None starts a new file.
    """
    if format == "csv":
        return RowFile(os.path.join(folder, "progress.csv"), position, _csv_with_row, _csv_content_at)
    if format == "json":
        return RowFile(os.path.join(folder, "progress.json"), position, _json_with_row, _json_content_at)
    return EventFile(os.path.join(folder, "tensorboard"), position)


def check_formats(format_strs: Optional[Iterable[str]], name: str = "format_strs") -> list[str]:
    """Checks log formats; returns them as a list, or the default formats for None.

    Args:
        format_strs: the formats, or None.
        name: name of the argument in error messages.

    Raises:
        TypeError: `format_strs` is a string.
        ValueError: a format is unknown, or two terminal formats were given.
        ImportError: the format is `tensorboard` and the package tensorboard is not installed.
    """
    if format_strs is None:
        return ["line" if in_notebook() else "stdout", "log", "csv"]
    if isinstance(format_strs, str):
        raise TypeError(f"{name}: expected a list of formats, got the string {format_strs!r}")
    formats = [check_choice(name, format, FORMATS) for format in format_strs]
    if set(TERMINAL_FORMATS) <= set(formats):
        raise ValueError(f"{name}: expected one format for the terminal, got both 'stdout' and 'line'")
    if "tensorboard" in formats:
        try:
            importlib.import_module("tensorboard")
        except ImportError as error:
            raise ImportError("the format tensorboard requires the package tensorboard: run `pip install "
                              '"meta_policy_search[tensorboard]"`') from error
    return formats


def written_files(folder: str) -> dict[str, list[str]]:
    """Returns the log files of earlier runs in a folder, by format."""
    names = {"log": LOG_FILE, "csv": "progress.csv", "json": "progress.json",
             "tensorboard": os.path.join("tensorboard", "events.out.tfevents.*")}
    return {format: glob.glob(os.path.join(glob.escape(folder), name)) for format, name in names.items()}


def append_text(path: str, text: str) -> None:
    """Appends text to a file; creates the file if missing."""
    with _naming(path), open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def plain(value: Any) -> Any:
    """Converts a value to a Python number, boolean, string or None; other objects become their `str`."""
    if isinstance(value, (np.generic, np.ndarray)) and value.size == 1:
        value = value.item()
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _readable(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def table(row: Row) -> str:
    """Formats a row as a text table of columns and values."""
    cells = [(key, _readable(value)) for key, value in row.items()]
    key_width, value_width = (max(len(cell[column]) for cell in cells) for column in (0, 1))
    rule = "-" * (key_width + value_width + 7)
    lines = [f"| {key:<{key_width}} | {value:<{value_width}} |" for key, value in cells]
    return "\n".join([rule, *lines, rule])


_RETURN_COLUMN = re.compile(r"(?:Step_(\d+)-)?AverageReturn")


def line(row: Row) -> str:
    """Formats the most important columns of a row as one line.

    These are the iteration, the environment steps, the return (before and after adaptation, and gain) and the time. A
    row without a return is formatted as its first six numbers.
    """
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


def _append(path: str, size: int, data: bytes) -> int:
    """Writes `data` after the first `size` bytes of a file and flushes it to disk; returns the new size in bytes.

    If the write fails, the file is truncated to `size` bytes. If another program has deleted or truncated the file,
    `data` is appended at its end.
    """
    size = min(size, os.path.getsize(path)) if os.path.exists(path) else 0
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


@contextlib.contextmanager
def _naming(path: str) -> Iterator[None]:
    """Converts an `OSError` in a `with` block to a `LogFileError` that names the file."""
    try:
        yield
    except OSError as error:
        raise LogFileError(error.errno, error.strerror, path) from error
