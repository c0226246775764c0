"""One process at a time writes to a run folder.

The operating system locks the folder itself, so that nothing is left of the lock when its process ends, also by
`kill -9`. Where only files can be locked (NFS), it is on a file `.lock` in the folder.
"""
import os
import re
import socket
import time
import warnings
from typing import Any

from meta_policy_search.utils.files import PathLike

try:
    import fcntl
except ImportError:  # Windows: there is no lock
    fcntl = None  # type: ignore[assignment]

_FILE = ".lock"
_GLANCE = 0.05  # seconds, in which an `is_locked` elsewhere is over
_descriptors: dict[str, int] = {}  # of the folders that this process has locked
_counts: dict[str, int] = {}  # of the locks that each of them is held by


class FolderLock:
    """Keeps other processes from writing to a folder until `release`, or until this process ends.

    A process can hold several locks on a folder; others have to wait for the last one to be released. A process that
    this one forks holds none of them.

    Args:
        folder: a folder that exists.

    Raises:
        ValueError: another process holds the folder; names it.
        OSError: there is no such folder, or it may not be read.
    """

    def __init__(self, folder: PathLike) -> None:
        self._folder = os.path.realpath(folder)
        if fcntl is not None and self._folder not in _counts:
            _descriptors[self._folder] = _lock(self._folder)
        _counts[self._folder] = _counts.get(self._folder, 0) + 1
        self._pid = os.getpid()

    def release(self) -> None:
        """Gives the folder back, once."""
        if self._pid != os.getpid():
            return
        self._pid = -1
        _counts[self._folder] -= 1
        if not _counts[self._folder]:
            del _counts[self._folder]
            if fcntl is not None:
                os.close(_descriptors.pop(self._folder))

    def __enter__(self) -> "FolderLock":
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.release()


def is_locked(folder: PathLike) -> bool:
    """Returns whether a process, this one included, has locked a folder; it gets no lock by this."""
    for path in (folder, os.path.join(folder, _FILE)) if fcntl is not None else ():
        try:
            os.close(_flock(os.open(path, os.O_RDONLY), fcntl.LOCK_SH))
        except BlockingIOError:
            return True
        except OSError:  # no such folder or file, or it cannot be locked
            pass
    return False


def _lock(folder: str) -> int:
    """Locks a folder; returns the descriptor that holds the lock until it is closed."""
    try:
        return _flock(os.open(folder, os.O_RDONLY))
    except BlockingIOError:
        raise ValueError(_in_use(folder, _describe_holder(folder))) from None
    except OSError:
        if not os.path.isdir(folder):
            raise
    path = os.path.join(folder, _FILE)
    try:
        descriptor = _flock(os.open(path, os.O_RDWR | os.O_CREAT, 0o666))
    except BlockingIOError:
        with open(path, encoding="utf-8") as file:
            raise ValueError(_in_use(folder, file.read() or "another process")) from None
    except OSError as error:
        warnings.warn(f"{folder} cannot be locked ({error}): see to it that nothing else writes there", stacklevel=2)
        return os.open(folder, os.O_RDONLY)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
    return descriptor


def _flock(descriptor: int, shared: int = 0) -> int:
    """Locks a file or folder, exclusively or with `LOCK_SH`; returns its descriptor, closed if that fails."""
    try:
        try:
            fcntl.flock(descriptor, (shared or fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            if shared:
                raise
            time.sleep(_GLANCE)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _describe_holder(folder: str) -> str:
    """Names the process that holds a folder, as far as the system says which it is (Linux does)."""
    try:
        with open("/proc/locks", encoding="ascii") as file:
            found = re.search(rf"FLOCK .* ([1-9]\d*) \w+:\w+:{os.stat(folder).st_ino} ", file.read())
    except OSError:
        found = None
    return f"process {found[1]} on {socket.gethostname()}" if found else "another process"


def _in_use(folder: str, holder: str) -> str:
    return (f"dir: expected a folder that no other process writes to, got {folder}, which {holder} writes to. Wait "
            "until it has ended, or choose another folder")


def _forget_in_fork() -> None:
    """Leaves the locks to the process that this one was forked from, so that they end with that one."""
    for descriptor in _descriptors.values():
        os.close(descriptor)
    _descriptors.clear()
    _counts.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_fork)
