"""Files that appear whole or not at all, and tables as CSV."""
import contextlib
import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Optional, Union

PathLike = Union[str, "os.PathLike[str]"]

TEMPORARY = ".tmp"  # end of the name of a file that is being written


@contextlib.contextmanager
def atomic_file(path: PathLike, before_replace: Optional[Callable[[], None]] = None) -> Iterator[BinaryIO]:
    """Opens a binary file that replaces `path` when the block ends, all of it on the disk, and not before.

    If the block or the writing fails, what was at `path` stays, and the new file is removed.

    Args:
        path: file to write.
        before_replace: called when the new file is on the disk, and has not replaced the old one yet.
    """
    with atomic_path(path, before_replace) as temporary, open(temporary, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def atomic_path(path: PathLike, before_replace: Optional[Callable[[], None]] = None) -> Iterator[str]:
    """Gives the path of a file to write, which replaces `path` when the block ends; otherwise as `atomic_file`."""
    path = os.fspath(path)
    temporary = path + TEMPORARY
    try:
        yield temporary
        if before_replace is not None:
            before_replace()
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(temporary)
        raise
    _sync_folder(os.path.dirname(path) or ".")


def write_text(path: PathLike, text: str) -> None:
    """Writes a UTF-8 file at once, as `atomic_file` does."""
    with atomic_file(path) as file:
        file.write(text.encode())


def write_csv(path: PathLike, table: Iterable[Iterable[Any]]) -> None:
    """Writes rows of cells, the header first, at once; None becomes an empty cell."""
    write_text(path, csv_text(table))


def csv_text(table: Iterable[Iterable[Any]]) -> str:
    """Returns rows of cells as CSV, with a line feed after each row; None becomes an empty cell."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(table)
    return text.getvalue()


def _sync_folder(folder: str) -> None:
    """Puts the names in a folder on the disk, where the system has that (Windows does not)."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
