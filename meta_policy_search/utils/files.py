"""Atomic file writes, CSV tables and locks of run folders."""
import contextlib
import csv
import fcntl
import io
import os
import re
import socket
import uuid
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Union

from meta_policy_search.utils.checks import check_type

PathLike = Union[str, "os.PathLike[str]"]

_TEMPORARY = re.compile(r"\.[0-9a-f]{32}\.tmp")  # names of files that are being written

_LOCK_FILE = ".lock"
_LOCK_TIMEOUT = 0.05  # seconds; must exceed the time that `is_locked` in another process holds its shared lock


@contextlib.contextmanager
def atomic_file(path: PathLike) -> Iterator[BinaryIO]:
    """Opens a temporary binary file that replaces `path` when the `with` block ends.

    The file is flushed to disk first. If the block or a write fails, the file at `path` does not change, and the
    temporary file is removed.

    Args:
        path: file to write.
    """
    with atomic_path(path) as temporary, open(temporary, "w+b") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def atomic_path(path: PathLike) -> Iterator[str]:
    """Yields the path of a temporary file that replaces `path` when the `with` block ends; see `atomic_file`."""
    path = os.fspath(path)
    temporary = os.path.join(os.path.dirname(path), f".{uuid.uuid4().hex}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno and error.filename in (None, temporary):
            error.filename = path  # the message names the file that the user knows
        with contextlib.suppress(OSError):
            os.remove(temporary)
        raise
    descriptor = os.open(os.path.dirname(path) or ".", os.O_RDONLY)  # writes the folder's entry to the disk
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def user_path(argument: str, path: Any) -> str:
    """Returns a path of the user as text, with the home folder for `~`.

    Every path that a user passes to this package enters through this function or `output_path`.

    Raises:
        TypeError: it is not a path.
        ValueError: it is empty.
    """
    if not os.fspath(check_type(argument, path, (str, os.PathLike), "a path")):
        raise ValueError(f"{argument}: expected a path, got ''")
    return os.path.expanduser(os.fspath(path))


def output_path(path: Any) -> str:
    """Returns the path of a file that the user wants to write, see `user_path`; creates its folder if missing."""
    path = os.path.abspath(user_path("path", path))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path


def remove_temporary_files(folder: PathLike) -> None:
    """Removes the temporary files that killed processes left in a folder."""
    for name in filter(_TEMPORARY.fullmatch, os.listdir(folder)):
        os.remove(os.path.join(folder, name))


def file_format(path: PathLike, formats: Iterable[str]) -> str:
    """Returns the ending of a file name, which is its format; raises `ValueError` if it is none of `formats`."""
    ending = os.path.splitext(user_path("path", path))[1][1:].lower()
    if ending not in formats:
        raise ValueError(f"path: expected a name that ends with .{', .'.join(formats)}, got {os.fspath(path)!r}")
    return ending


def write_text(path: PathLike, text: str) -> None:
    """Writes a UTF-8 file atomically."""
    with atomic_file(path) as file:
        file.write(text.encode())


def write_csv(path: PathLike, table: Iterable[Iterable[Any]]) -> None:
    """Writes rows of cells (header first) to a CSV file atomically; None becomes an empty cell."""
    write_text(path, csv_text(table))


def csv_text(table: Iterable[Iterable[Any]]) -> str:
    """Formats rows of cells as CSV with a line feed after each row; None becomes an empty cell."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(table)
    return text.getvalue()


def make_folder(argument: str, folder: str) -> str:
    """Creates a folder if it is missing, and returns its path; raises `ValueError` if it is a file."""
    try:
        os.makedirs(folder, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ValueError(f"{argument}: expected a folder, got {folder}, which is a file or below one") from None
    return folder


@contextlib.contextmanager
def lock_folder(folder: PathLike) -> Iterator[None]:
    """Locks a folder against writes by other processes, until the `with` block or this process ends.

    The operating system locks the file `.lock` in the folder. The file remains, but the lock is released when the
    process ends, even after `kill -9`. A process can lock a folder several times; the lock is released when the last
    block ends. Forked child processes do not hold the lock.

    Args:
        folder: an existing folder.

    Raises:
        ValueError: another process holds the lock; the message names this process.
        OSError: the folder does not exist or is not writable.
    """
    import filelock  # imported here because it takes 40 ms, and worker processes do not need it

    path = os.path.join(os.path.realpath(folder), _LOCK_FILE)
    lock = filelock.FileLock(path, is_singleton=True, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire(timeout=_LOCK_TIMEOUT, poll_interval=_LOCK_TIMEOUT / 5)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"process {os.getpid()} on {socket.gethostname()}")
    except filelock.Timeout:
        with open(path, encoding="utf-8") as file:
            holder = file.read() or "another process"
        raise ValueError(f"{os.fspath(folder)}: {holder} writes to this folder. Wait until that process has ended, or "
                         "choose another folder") from None
    except OSError as error:
        if not os.path.exists(path):
            raise
        warnings.warn(f"cannot lock {folder} ({error}). Make sure that no other process writes to it",
                      stacklevel=3)
    try:
        yield
    finally:
        lock.release()


def is_locked(folder: PathLike) -> bool:
    """Returns whether any process, including this one, holds the lock of a folder (`lock_folder`)."""
    try:
        with open(os.path.join(folder, _LOCK_FILE), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # the folder has no lock file, or its file system has no locks
        pass
    return False
