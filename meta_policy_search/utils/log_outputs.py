"""Outputs of the logger: terminal, files, TensorBoard and Weights & Biases.

An output keeps what it knows about the written rows in `state`. Setting `state` back to an earlier value rolls back the
rows since then: the next row overwrites them. If a write fails, the file keeps its earlier rows.
"""
import contextlib
import csv
import datetime
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
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Optional

import numpy as np

from meta_policy_search.utils.checks import check_choice
from meta_policy_search.utils.files import atomic_file, csv_text
from meta_policy_search.utils.progress import in_notebook, print_line

Row = dict[str, Any]
"""A row: column to number, string or None."""

Position = dict[str, Any]
"""Where an output stands after a row; JSON can hold it."""

_EVENT_FILES = "events.out.tfevents.*"


class LogFileError(OSError):
    """A log file cannot be written; the message names the file, which keeps its earlier rows."""


class Output:
    """Base class of outputs; each overrides the methods for what it shows."""

    is_terminal = False
    state: Any = None  # replaced, never changed in place

    def write_row(self, row: Row) -> Optional[str]:
        """Writes a row (column to Python number, string or None); returns a warning for the user, if any."""

    def write_settings(self, settings: Mapping[str, Any]) -> None:
        """Writes the settings of the run."""

    def write_message(self, text: str, level: str) -> None:
        """Writes a message; `level` is `debug`, `info`, `warning` or `error`."""

    def position(self) -> Optional[Position]:
        """Returns what a resumed run needs to continue after the last row; None if it needs nothing."""
        return self.state

    def close(self) -> None:
        """Called once, after the last row and message."""


class _Terminal(Output):
    """Prints messages, and rows as formatted by `as_text`."""

    is_terminal = True

    def __init__(self, as_text: Callable[[Row], str]) -> None:
        self._as_text = as_text

    def write_row(self, row: Row) -> None:
        print_line(self._as_text(row))

    def write_message(self, text: str, level: str) -> None:
        print_line(f"{level}: {text}" if level in ("warning", "error") else text)


class _LogFile(Output):
    """Appends messages and tables to `log.txt`."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, "log.txt")
        self._append("")

    def write_row(self, row: Row) -> None:
        self._append(_table(row) + "\n")

    def write_message(self, text: str, level: str) -> None:
        now = datetime.datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
        self._append(f"{now} {level}: {text}\n")

    def _append(self, text: str) -> None:
        with _naming(self._path), open(self._path, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)


class _RowFile(Output):
    """A file that only this process writes, and whose complete contents it knows.

    If another program modifies the file, that version is backed up, and the file is written again.

    Args:
        path: the file.
        position: where a resumed run continues; None starts an empty file.
        with_row: returns the state after a row, given the state before it and the row. A state is a dict of `content`
            (bytes), `rows` (their number) and, for CSV, `keys` (columns).
        content_at: returns the contents at a position, given the contents of the file and the position.
    """

    def __init__(self, path: str, position: Optional[Position], with_row: Callable[[dict, Row], dict],
                 content_at: Callable[[bytes, Position], bytes]) -> None:
        self._path, self._with_row = path, with_row
        self.state = {"content": b"", "rows": 0}
        if position is not None and position["rows"]:
            with open(path, "rb") as file:
                content = content_at(file.read(), position)
            if hashlib.sha256(content).hexdigest() != position["sha256"]:
                raise ValueError(f"positions: expected {path} to begin with the {position['rows']} rows that the run "
                                 "had when its snapshot was taken, but they were changed. To go on, put the file back "
                                 "as it was")
            self.state = {"content": content, **{key: position[key] for key in ("rows", "keys") if key in position}}
        self._attempted = b""  # what the last write was to produce; an interrupted write may have produced a part of it
        self._replace(self.state["content"])

    def position(self) -> Position:
        known = dict(self.state)
        content = known.pop("content")
        return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), **known}

    def write_row(self, row: Row) -> Optional[str]:
        """Appends a row; a row that changes earlier lines has the file replaced. Returns a warning if it was edited."""
        state, found = self._with_row(self.state, row), self._read()
        before, after = self.state["content"], state["content"]
        warning = self._back_up_edited(found)
        if found is not None and found.startswith(before) and after.startswith(before) and warning is None:
            self._attempted = after
            _append(self._path, len(before), after[len(before):])
        else:
            self._replace(after)
        self.state = state
        return warning

    def _replace(self, content: bytes) -> None:
        self._attempted = content
        with _naming(self._path), atomic_file(self._path) as file:
            file.write(content)

    def _read(self) -> Optional[bytes]:
        with _naming(self._path), contextlib.suppress(FileNotFoundError), open(self._path, "rb") as file:
            return file.read()
        return None

    def _back_up_edited(self, found: Optional[bytes]) -> Optional[str]:
        """Backs up the file if another program has modified it; returns a warning if so, or if it was deleted."""
        before, attempted = self.state["content"], self._attempted
        if found is None:
            return f"{self._path} was deleted by another program. It is rewritten with all rows of this run"
        if found in (before, attempted) or found.startswith(before) and attempted.startswith(found):
            return None
        backup = next(path for path in (f"{self._path}.changed-{i}" for i in itertools.count(1))
                      if not os.path.exists(path))
        with _naming(backup), atomic_file(backup) as file:
            file.write(found)
        return (f"{self._path} was changed by another program, whose version is now in {os.path.basename(backup)}. "
                "It is rewritten with all rows of this run")


def _csv_with_row(state: dict, row: Row) -> dict:
    """Returns the state of a CSV file after a row; earlier rows are blank in columns that are new."""
    old_keys, content = state.get("keys", []), state["content"]
    keys = old_keys + [key for key in row if key not in old_keys]
    lines = [[row.get(key) for key in keys]]
    if keys != old_keys:
        blanks = [None] * (len(keys) - len(old_keys))
        earlier = itertools.islice(_csv_lines(content), 1, None)
        lines, content = [keys, *(line + blanks for line in earlier), *lines], b""
    return {"content": content + csv_text(lines).encode(), "rows": state["rows"] + 1, "keys": keys}


def _csv_content_at(data: bytes, position: Position) -> bytes:
    """Returns a CSV file up to a position, without the columns that were added later."""
    lines = itertools.islice(_csv_lines(data), position["rows"] + 1)
    return csv_text(line[: len(position["keys"])] for line in lines).encode()


def _csv_lines(content: bytes) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(content.decode(errors="replace"), newline=""))


def _json_with_row(state: dict, row: Row) -> dict:
    """Returns the state of a file of JSON lines after a row."""
    return {**state, "content": state["content"] + (json.dumps(row) + "\n").encode(), "rows": state["rows"] + 1}


def _json_content_at(data: bytes, position: Position) -> bytes:
    return data.replace(b"\r\n", b"\n")[: position["bytes"]]


class _TensorBoard(Output):
    """Appends the numbers of rows to an event file in `tensorboard/`.

    Each process writes its own file: an open TensorBoard continues to read a file where the file ended before.
    `state` has the next `step`, and `files`: the size of each event file of the run in bytes, by name.
    """

    def __init__(self, folder: str, position: Optional[Position]) -> None:
        from tensorboard.compat.proto.event_pb2 import SessionLog

        self._folder = os.path.join(folder, "tensorboard")
        os.makedirs(self._folder, exist_ok=True)
        self.state = position or {"step": 0, "files": {}}
        if position is not None:
            self._cut_back()
        self._begin_file()
        if position is not None:
            restart = SessionLog(status=SessionLog.START)  # an open TensorBoard discards this and later steps
            self._append(position["step"], _event(position["step"], session_log=restart))

    def write_row(self, row: Row) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        path, step = os.path.join(self._folder, self._name), row.get("Itr", self.state["step"])
        size = self.state["files"].get(self._name)
        if size is None or not os.path.exists(path) or os.path.getsize(path) < size:  # another program cut the file
            self._begin_file()
        numbers = {key: value for key, value in row.items() if _is_number(value)}
        values = [Summary.Value(tag=key, simple_value=number) for key, number in numbers.items()]
        self._append(step + 1, _event(step, summary=Summary(value=values)))

    def _begin_file(self) -> None:
        now = time.time_ns()  # TensorBoard reads files in the order of their names
        self._name = f"events.out.tfevents.{now // 10**9}.{socket.gethostname()}.{now}"
        self._append(self.state["step"], _event(0, file_version="brain.Event:2"))

    def _append(self, next_step: int, event: bytes) -> None:
        files = self.state["files"]
        size = _append(os.path.join(self._folder, self._name), files.get(self._name, 0), event)
        self.state = {"step": next_step, "files": {**files, self._name: size}}

    def _cut_back(self) -> None:
        """Truncates the event files to their sizes in `state`; removes newer files."""
        for path in glob.glob(os.path.join(glob.escape(self._folder), _EVENT_FILES)):
            size = self.state["files"].get(os.path.basename(path))
            if size is None:
                os.remove(path)
            elif os.path.getsize(path) > size:
                os.truncate(path, size)


def _event(step: int, **content: Any) -> bytes:
    """Returns the record of a TensorBoard `Event` in an event file; numbers in it are float32."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.summary.writer.record_writer import RecordWriter

    record = io.BytesIO()
    RecordWriter(record).write(Event(wall_time=time.time(), step=step, **content).SerializeToString())
    return record.getvalue()


class _WandB(Output):
    """Logs the numbers of rows to the active run of Weights & Biases, or else to a new run.

    A resumed run continues its own run there, which skips the rows that it has. `state` has the next `step` and the
    run's `id`.
    """

    def __init__(self, folder: str, position: Optional[Position]) -> None:
        import wandb

        self._is_own = wandb.run is None
        self._run: Any = _begin_wandb_run(folder, position) if wandb.run is None else wandb.run
        self.state = {"step": 0 if position is None else position["step"], "id": self._run.id}

    def write_row(self, row: Row) -> None:
        step = row.get("Itr", self.state["step"])
        self._run.log({key: row[key] for key in row if _is_number(row[key])}, step=step)
        self.state = {**self.state, "step": step + 1}

    def write_settings(self, settings: Mapping[str, Any]) -> None:
        self._run.config.update(dict(settings), allow_val_change=True)

    def close(self) -> None:
        if self._is_own:
            self._run.finish()


def _begin_wandb_run(folder: str, position: Optional[Position]) -> Any:
    import wandb

    try:
        return wandb.init(project=os.environ.get("WANDB_PROJECT", "meta_policy_search"), name=os.path.basename(folder),
                          dir=folder, resume="allow", id=None if position is None else position["id"],
                          reinit="create_new", settings=wandb.Settings(console="off"))
    except wandb.Error as error:
        raise ValueError(f"format_strs: wandb could not begin a run ({error}); the variable WANDB_MODE=offline has it "
                         "written to files, to be sent later by `wandb sync`") from error


FORMATS: dict[str, Callable[[str, Optional[Position]], Output]] = {
    "stdout": lambda folder, position: _Terminal(_table),
    "line": lambda folder, position: _Terminal(_line),
    "log": lambda folder, position: _LogFile(folder),
    "csv": lambda folder, position: _RowFile(os.path.join(folder, "progress.csv"), position, _csv_with_row,
                                             _csv_content_at),
    "json": lambda folder, position: _RowFile(os.path.join(folder, "progress.json"), position, _json_with_row,
                                              _json_content_at),
    "tensorboard": _TensorBoard,
    "wandb": _WandB,
}
"""Name of a format to its output, built from the run folder and the position to continue from."""


def check_formats(format_strs: Optional[Iterable[str]], name: str = "format_strs") -> list[str]:
    """Returns the formats to write, None for the default; errors are those of `logger.configure`."""
    if format_strs is None:
        return ["line" if in_notebook() else "stdout", "log", "csv"]
    if isinstance(format_strs, str):
        raise TypeError(f"{name}: expected a list of formats, got the string {format_strs!r}")
    formats = [check_choice(name, format, FORMATS) for format in format_strs]
    if {"stdout", "line"} <= set(formats):
        raise ValueError(f"{name}: expected one format for the terminal, got both 'stdout' and 'line'")
    for package in {"tensorboard", "wandb"}.intersection(formats):
        try:
            importlib.import_module(package)
        except ImportError as error:
            raise ImportError(f"the format {package} needs the package {package}: run `pip install "
                              f'"meta_policy_search[{package}]"`') from error
    return formats


def written_files(folder: str) -> dict[str, list[str]]:
    """Returns the files that earlier runs have written in a folder, by format."""
    names = {"log": "log.txt", "csv": "progress.csv", "json": "progress.json",
             "tensorboard": os.path.join("tensorboard", _EVENT_FILES)}
    return {format: glob.glob(os.path.join(glob.escape(folder), name)) for format, name in names.items()}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def plain(value: Any) -> Any:
    """Returns a number, boolean, string or None as a Python object; anything else as its `str`."""
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


def _append(path: str, size: int, data: bytes) -> int:
    """Writes `data` after the first `size` bytes of a file and flushes to disk; returns the new size.

    If the write fails, the file is truncated to `size` bytes.
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


@contextlib.contextmanager
def _naming(path: str) -> Iterator[None]:
    """Raises errors of the operating system within a `with` block as `LogFileError`, which names the file."""
    try:
        yield
    except OSError as error:
        raise LogFileError(error.errno, error.strerror, path) from error
