"""Output files and terminal formats of the logger."""
import contextlib
import csv
import glob
import importlib
import io
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Optional

from meta_policy_search.utils.checks import check_choice
from meta_policy_search.utils.files import csv_text, write_text
from meta_policy_search.utils.progress import in_notebook

Row = dict[str, Any]
"""A logged row: column name to number, string or None."""


def read_rows(path: str) -> list[Row]:
    """Returns the complete lines of `progress.csv` or `progress.json` as rows; cells of CSV files are strings."""
    if not os.path.exists(path):
        return []
    with _naming(path), open(path, "rb") as file:
        text = file.read().decode(errors="replace")
    text = text[:text.rfind("\n") + 1]  # a killed process can leave an incomplete line
    if path.endswith(".csv"):
        return list(csv.DictReader(io.StringIO(text, newline=""), restkey=""))
    return [json.loads(line) for line in text.splitlines()]


def write_rows(path: str, rows: Sequence[Row], columns: Sequence[str]) -> None:
    """Replaces `progress.csv` or `progress.json`; `columns` is the header of the CSV file."""
    if path.endswith(".csv"):
        table: list[Iterable[Any]] = [columns, *([row.get(key) for key in columns] for row in rows)]
        text = csv_text(table if columns else [])
    else:
        text = "".join(json.dumps(row) + "\n" for row in rows)
    write_text(path, text)


def add_columns(path: str, row: Row, columns: list[str]) -> None:
    """Extends the header of a CSV file, and the list `columns`, by the new columns of a row.

    Earlier rows get empty cells.
    """
    new = [key for key in row if key not in columns]
    if new and path.endswith(".csv"):
        write_rows(path, read_rows(path), columns + new)
        columns += new


def append_row(path: str, row: Row, columns: Sequence[str]) -> None:
    """Appends a row to `progress.csv` or `progress.json` and flushes it to disk."""
    if path.endswith(".csv"):
        header: list[Iterable[Any]] = [] if file_size(path) else [columns]
        text = csv_text([*header, [row.get(key) for key in columns]])
    else:
        text = json.dumps(row) + "\n"
    append_text(path, text, is_flushed=True)


def rows_before(itr: int, path: str) -> list[Row]:
    """Returns the rows of a file up to the last row of iteration `itr - 1`.

    Raises:
        ValueError: the row of an earlier iteration is missing or not in the order of the iterations.
        OSError: the file cannot be read.
    """
    rows = read_rows(path)
    numbers = [_iteration(row) for row in rows]
    earlier = [number for number in numbers if number is not None and number < itr]
    if rows and itr > 0 and set(numbers) <= {None}:
        earlier = [-1]  # without iteration numbers, the first row is missing
    if not earlier:
        return []
    missing = set(range(min(earlier), itr)) - set(earlier)
    if missing:
        raise ValueError(f"{path}: the row of iteration {min(missing)} is missing. Restore the file to resume the run")
    if earlier != sorted(earlier):
        raise ValueError(f"{path}: the rows are not in the order of their iterations. Restore the file to resume the "
                         "run")
    return rows[:len(numbers) - numbers[::-1].index(itr - 1)]


def _iteration(row: Row) -> Optional[int]:
    """Returns the number of a row: its `Epoch`, else its `Itr`; None if the row has neither."""
    for column in ("Epoch", "Itr"):
        with contextlib.suppress(KeyError, TypeError, ValueError):
            return int(float(row[column]))
    return None


def used_columns(rows: Sequence[Row]) -> list[str]:
    """Returns the columns of rows from a CSV file, without the last ones if they are empty: they are of later rows."""
    columns = [column for column in rows[0] if column] if rows else []
    while columns and not any(row.get(columns[-1]) for row in rows):
        columns.pop()
    return columns


@contextlib.contextmanager
def event_file(folder: str, resume_at: Optional[int] = None) -> Iterator[Callable[[Row], None]]:
    """Opens a TensorBoard event file for a `with` block, a new file for each process.

    TensorBoard groups curves by the part of a tag before the slash: column `Step_0-AverageReturn` has the tag
    `Step_0/AverageReturn`, and column `Itr` the tag `Iteration/Itr`. A column name with a slash is the tag.

    The file of a resumed run begins with a start event. At this event, TensorBoard discards the points of this step
    and of later ones, which earlier files contain.

    Args:
        folder: folder of the event files; created if missing.
        resume_at: iteration that a resumed run logs next. Default None: a new run.

    Yields:
        A function that appends the numbers of a row as float32.
    """
    from tensorboard.compat.proto.event_pb2 import Event, SessionLog
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    next_step = resume_at or 0
    earlier = os.path.join(glob.escape(folder), "events.out.tfevents.")
    while glob.glob(f"{earlier}{int(time.time()):010d}.*"):  # TensorBoard reads files in the order of their names
        time.sleep(0.05)
    with _naming(folder):
        writer = EventFileWriter(folder)

    def add(step: int, **content: Any) -> None:
        with _naming(folder):
            writer.add_event(Event(wall_time=time.time(), step=step, **content))
            writer.flush()

    def append(row: Row) -> None:
        nonlocal next_step
        number = _iteration(row)
        step = next_step if number is None else number
        values = [Summary.Value(tag=_tag(key), simple_value=value) for key, value in row.items()]
        add(step, summary=Summary(value=values))
        next_step = step + 1

    with contextlib.closing(writer):
        if resume_at is not None:
            add(resume_at, session_log=SessionLog(status=SessionLog.START))
        yield append


def _tag(column: str) -> str:
    group, hyphen, name = column.partition("-")
    return column if "/" in column else f"{group}/{name}" if hyphen else f"Iteration/{column}"


LOG_FILE = "log.txt"
TERMINAL_FORMATS = ("stdout", "line")
FORMATS = (*TERMINAL_FORMATS, "log", "csv", "json", "tensorboard")


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
            raise ImportError("the format tensorboard requires the package tensorboard: run `pip install tensorboard`"
                              ) from error
    return formats


def written_files(folder: str) -> dict[str, list[str]]:
    """Returns the log files of earlier runs in a folder, by format."""
    names = {"log": LOG_FILE, "csv": "progress.csv", "json": "progress.json",
             "tensorboard": os.path.join("tensorboard", "events.out.tfevents.*")}
    return {format: glob.glob(os.path.join(glob.escape(folder), name)) for format, name in names.items()}


def append_text(path: str, text: str, is_flushed: bool = False) -> None:
    """Appends text to a file, which is created if missing.

    Args:
        path: the file.
        text: the text.
        is_flushed: whether to flush the file to disk. Default False.
    """
    with _naming(path), open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
        file.flush()
        if is_flushed:
            os.fsync(file.fileno())


def file_size(path: str) -> int:
    """Returns the size of a file in bytes; 0 if the file is missing."""
    return os.path.getsize(path) if os.path.exists(path) else 0


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
    returns = {int(match[1] or 0): row[match[0]] for match in map(_RETURN_COLUMN.fullmatch, row) if match}
    parts = []
    unit = "Epoch" if "Epoch" in row else "Itr"
    if unit in row:
        parts.append(f"{unit.lower()} {row[unit]:4}")
    if "n_timesteps" in row:
        parts.append(f"{row['n_timesteps']:>11,} steps")
    if returns:
        before, after = returns[min(returns)], returns[max(returns)]
        gain = f" -> {after:9.2f}, gain {after - before:+9.2f}" if len(returns) > 1 else ""
        parts.append(f"return {before:9.2f}{gain}")
    if f"{unit}Time" in row:
        parts.append(f"{row[f'{unit}Time']:6.2f} s")
    return " | ".join(parts if returns else [f"{key} {_readable(row[key])}" for key in list(row)[:6]])


@contextlib.contextmanager
def _naming(path: str) -> Iterator[None]:
    """Lets an `OSError` in a `with` block name the file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
