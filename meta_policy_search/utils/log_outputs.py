"""Where messages and rows go: terminal, files, TensorBoard and Weights & Biases; `logger` says which is which.

Files of rows know where they stand after each row (`position`), and can be cut back to it. An output that fails leaves
its file as it was.
"""
import contextlib
import copy
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
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Optional

import numpy as np

from meta_policy_search.utils import event_file
from meta_policy_search.utils.checks import check_choice
from meta_policy_search.utils.files import atomic_file, csv_text

Row = dict[str, Any]
"""A row: column to number, string or None."""

Position = dict[str, Any]
"""Where a file stands after a row."""

_EVENT_FILES = "events.out.tfevents.*"


class LogFileError(OSError):
    """A file of rows or messages cannot be written to; names the file, which keeps what it held."""


class Output:
    """Where rows and messages go; each kind of output takes what concerns it."""

    is_terminal = False
    _memory: tuple[str, ...] = ()  # names of what it knows of the rows that it has written

    def memory(self) -> dict[str, Any]:
        """Returns what `forget` goes back to."""
        return {name: copy.copy(getattr(self, name)) for name in self._memory}

    def forget(self, memory: dict[str, Any]) -> None:
        """Takes rows that were written since `memory` for parts of one: the next one is written over them."""
        vars(self).update(memory)

    def write_row(self, row: Row) -> Optional[str]:
        """Writes a row: names to Python numbers, strings or None; returns what the user has to know, if anything."""

    def write_settings(self, settings: Mapping[str, Any]) -> None:
        """Writes the settings of the run, where there is a place for them."""

    def write_message(self, text: str, level: str) -> None:
        """Writes a message; `level` is `debug`, `info`, `warning` or `error`."""

    def position(self) -> Optional[Position]:
        """Returns what a later run needs in order to go on after the last row; None where it needs nothing."""

    def close(self) -> None:
        """Is called at the end, when nothing more is written."""


class _Terminal(Output):
    """Prints, above a progress bar where there is one; `as_text` makes a string of a row."""

    is_terminal = True

    def __init__(self, as_text: Callable[[Row], str]) -> None:
        self._as_text = as_text

    def write_row(self, row: Row) -> None:
        _print(self._as_text(row))

    def write_message(self, text: str, level: str) -> None:
        _print(f"{level}: {text}" if level in ("warning", "error") else text)


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
    """A file of rows that this process alone writes to, and all of whose contents it knows.

    What somebody else has made of it meanwhile, an editor say, is put aside, and the file is written anew.
    """

    _memory = ("_content", "_rows", "_keys", "_status")
    _rows: int

    def __init__(self, path: str, content: bytes = b"", rows: int = 0, keys: Iterable[str] = ()) -> None:
        self._path = path
        self._content = b""
        self._replace(content, rows, list(keys))

    def position(self) -> Position:
        return {"bytes": len(self._content), "rows": self._rows, "sha256": hashlib.sha256(self._content).hexdigest()}

    def _append(self, data: bytes) -> Optional[str]:
        """Writes a row; returns a message if the file was not as it was left."""
        notice = self._put_aside_if_changed()
        self._next = self._content + data  # of this there may be a part in the file, if writing is interrupted
        _append(self._path, len(self._content), data)
        self._content, self._rows = self._next, self._rows + 1
        self._status = _status(self._path)
        return notice

    def _replace(self, content: bytes, rows: int, keys: list[str]) -> None:
        self._next = content
        with _naming(self._path), atomic_file(self._path) as file:
            file.write(content)
        self._content, self._rows, self._keys = content, rows, keys
        self._status = _status(self._path)

    def _put_aside_if_changed(self) -> Optional[str]:
        if _status(self._path) == self._status:
            return None
        found = None
        with _naming(self._path), contextlib.suppress(FileNotFoundError), open(self._path, "rb") as file:
            found = file.read()
        if found is not None and found.startswith(self._content) and self._next.startswith(found):
            return None
        notice = f"{self._path} was {'deleted' if found is None else 'changed'} by something else"
        if found == self._next:
            notice = ""
        elif found is not None:
            aside = next(path for path in (f"{self._path}.changed-{i}" for i in itertools.count(1))
                         if not os.path.exists(path))
            with _naming(aside), atomic_file(aside) as file:
                file.write(found)
            notice += f"; what that made of it is in {os.path.basename(aside)} now"
        self._replace(self._content, self._rows, self._keys)
        return f"{notice}. It is written anew, with all rows of this run" if notice else None


class _CSVFile(_RowFile):
    """Appends rows to `progress.csv`; a row with new columns has it written anew, with blanks in the earlier rows."""

    def __init__(self, folder: str, position: Optional[Position]) -> None:
        path = os.path.join(folder, "progress.csv")
        if position is None or not position["rows"]:
            super().__init__(path)
            return
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            table = _table_of(file, position["rows"])
        keys = list(position["keys"])
        content = csv_text(row[: len(keys)] for row in table).encode()  # without columns that came later
        super().__init__(path, _checked(path, content, position), position["rows"], keys)

    def write_row(self, row: Row) -> Optional[str]:
        keys = self._keys + [key for key in row if key not in self._keys]
        cells = [row.get(key) for key in keys]
        if keys == self._keys:
            return self._append(csv_text([cells]).encode())
        notice = self._put_aside_if_changed()
        blanks = [None] * (len(keys) - len(self._keys))
        earlier = [old + blanks for old in _table_of(io.StringIO(self._content.decode(), newline=""), self._rows)[1:]]
        self._replace(csv_text([keys, *earlier, cells]).encode(), self._rows + 1, keys)
        return notice

    def position(self) -> Position:
        return {**super().position(), "keys": list(self._keys)}


class _JSONLines(_RowFile):
    """Appends rows to `progress.json`, one object per line."""

    def __init__(self, folder: str, position: Optional[Position]) -> None:
        path = os.path.join(folder, "progress.json")
        if position is None or not position["rows"]:
            super().__init__(path)
            return
        with open(path, "rb") as file:
            content = file.read().replace(b"\r\n", b"\n")[: position["bytes"]]
        super().__init__(path, _checked(path, content, position), position["rows"])

    def write_row(self, row: Row) -> Optional[str]:
        return self._append((json.dumps(row) + "\n").encode())


def _table_of(file: Iterable[str], rows: int) -> list[list[str]]:
    """Returns header and rows; what a killed process may have left after them is not looked at."""
    return list(itertools.islice(csv.reader(file), rows + 1))


def _checked(path: str, content: bytes, position: Position) -> bytes:
    """Returns what a file is to begin with, if that is what it held at a position."""
    if hashlib.sha256(content).hexdigest() != position["sha256"]:
        raise ValueError(f"positions: expected {path} to begin with the {position['rows']} rows that the run had when "
                         "its snapshot was taken, but they were changed. To go on, put the file back as it was")
    return content


def _status(path: str) -> Optional[tuple[int, ...]]:
    """Returns what changes whenever a file is written to; None where there is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


class _TensorBoard(Output):
    """Appends the numbers of rows to an event file in `tensorboard/`.

    Each process writes a file of its own: a TensorBoard that is open reads on where a file ended before.
    """

    _memory = ("_step", "_sizes")

    def __init__(self, folder: str, position: Optional[Position]) -> None:
        self._folder = os.path.join(folder, "tensorboard")
        os.makedirs(self._folder, exist_ok=True)
        self._step = 0
        self._sizes: dict[str, int] = {}  # name of each file of the run to its bytes
        if position is not None:
            self._step, self._sizes = position["step"], dict(position["files"])
            self._cut_back()
        self._begin_file(b"" if position is None else event_file.start_record(self._step))  # for an open TensorBoard

    def write_row(self, row: Row) -> None:
        path, step = os.path.join(self._folder, self._name), row.get("Itr", self._step)
        if not os.path.exists(path) or os.path.getsize(path) < self._sizes[self._name]:  # something else was at it
            self._begin_file(b"")
        self._append(event_file.scalars_record(step, {key: row[key] for key in row if _is_number(row[key])}))
        self._step = step + 1

    def position(self) -> Position:
        return {"step": self._step, "files": dict(self._sizes)}

    def _begin_file(self, start: bytes) -> None:
        now = time.time_ns()  # TensorBoard reads files in the order of their names
        self._name = f"events.out.tfevents.{now // 10**9}.{socket.gethostname()}.{now}"
        self._append(event_file.first_record() + start)

    def _append(self, data: bytes) -> None:
        self._sizes[self._name] = _append(os.path.join(self._folder, self._name), self._sizes.get(self._name, 0), data)

    def _cut_back(self) -> None:
        """Cuts every file back to what it was; removes those that came later."""
        for path in glob.glob(os.path.join(glob.escape(self._folder), _EVENT_FILES)):
            size = self._sizes.get(os.path.basename(path))
            if size is None:
                os.remove(path)
            elif os.path.getsize(path) > size:
                os.truncate(path, size)


class _WandB(Output):
    """Logs the numbers of rows to Weights & Biases: to the run that the user has begun there, else to one of its own.

    That one goes on when the run is resumed; rows that it has already are left out.
    """

    _memory = ("_step",)

    def __init__(self, folder: str, position: Optional[Position]) -> None:
        import wandb

        self._step: int = 0 if position is None else position["step"]
        self._is_ours = wandb.run is None
        self._run = wandb.run
        if self._run is None:
            project = os.environ.get("WANDB_PROJECT", "meta_policy_search")
            try:
                self._run = wandb.init(project=project, name=os.path.basename(folder), dir=folder, resume="allow",
                                       id=None if position is None else position["id"],
                                       reinit="create_new", settings=wandb.Settings(console="off"))
            except wandb.Error as error:
                raise ValueError(f"format_strs: wandb could not begin a run ({error}); the variable WANDB_MODE=offline "
                                 "has it written to files, to be sent later by `wandb sync`") from error

    def write_row(self, row: Row) -> None:
        step = row.get("Itr", self._step)
        self._run.log({key: row[key] for key in row if _is_number(row[key])}, step=step)
        self._step = step + 1

    def write_settings(self, settings: Mapping[str, Any]) -> None:
        self._run.config.update(dict(settings), allow_val_change=True)

    def position(self) -> Position:
        return {"step": self._step, "id": self._run.id}

    def close(self) -> None:
        if self._is_ours:
            self._run.finish()


FORMATS: dict[str, Callable[[str, Optional[Position]], Output]] = {
    "stdout": lambda folder, position: _Terminal(_table),
    "line": lambda folder, position: _Terminal(_line),
    "log": lambda folder, position: _LogFile(folder),
    "csv": _CSVFile,
    "json": _JSONLines,
    "tensorboard": _TensorBoard,
    "wandb": _WandB,
}
"""Name to output, built from the folder and the position to go on from."""

_PACKAGES = ("tensorboard", "wandb")  # which the formats of these names need


def check_formats(format_strs: Optional[Iterable[str]], name: str = "format_strs") -> list[str]:
    """Returns the formats to write in, None for the default; `logger.configure` says which mistakes it finds."""
    if format_strs is None:
        return ["line" if in_notebook() else "stdout", "log", "csv"]
    if isinstance(format_strs, str):
        raise TypeError(f"{name}: expected a list of formats, got the string {format_strs!r}")
    formats = [check_choice(name, format, FORMATS) for format in format_strs]
    if {"stdout", "line"} <= set(formats):
        raise ValueError(f"{name}: expected one format for the terminal, got both 'stdout' and 'line'")
    for package in filter(_PACKAGES.__contains__, formats):
        try:
            importlib.import_module(package)
        except ImportError as error:
            raise ImportError(f"the format {package} needs the package {package}: run `pip install "
                              f'"meta_policy_search[{package}]"`') from error
    return formats


def written_files(folder: str) -> dict[str, list[str]]:
    """Returns the paths of what the outputs of earlier runs have written in a folder, by format."""
    names = {"log": "log.txt", "csv": "progress.csv", "json": "progress.json",
             "tensorboard": os.path.join("tensorboard", _EVENT_FILES)}
    return {format: glob.glob(os.path.join(glob.escape(folder), name)) for format, name in names.items()}


def in_notebook() -> bool:
    """Returns whether the process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


def _print(text: str) -> None:
    """Prints, above the progress bars where tqdm shows some; characters that the terminal lacks as their codes."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    text = text.encode(encoding, "backslashreplace").decode(encoding)
    tqdm = getattr(sys.modules.get("tqdm"), "tqdm", None)  # what has not been imported shows no bar
    if tqdm is not None and getattr(tqdm, "_instances", None):
        tqdm.write(text)
    else:
        print(text, flush=True)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def plain(value: Any) -> Any:
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


@contextlib.contextmanager
def _naming(path: str) -> Iterator[None]:
    """Has an error of the operating system within a `with` block name the file."""
    try:
        yield
    except OSError as error:
        raise LogFileError(error.errno, error.strerror, path) from error
