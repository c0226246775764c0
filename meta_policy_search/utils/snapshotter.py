"""Snapshots of a run: atomic writes, and integrity checks on loading.

A snapshot file is a pickle followed by a trailer: a magic number, the iteration, the size of the pickle and a SHA-256
digest. cloudpickle writes the pickle, so it can contain classes and functions of the running
script or notebook. `joblib.load` and `pickle.load` can also read the file, but do not check its integrity.

Loading a snapshot executes code that it contains. Only load snapshots that you trust.
"""
import functools
import hashlib
import os
import pickle
import re
import reprlib
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, Optional, Union

import cloudpickle

from meta_policy_search import __version__
from meta_policy_search.utils.checks import check_choice, check_int_at_least, check_positive_int
from meta_policy_search.utils.files import PathLike, atomic_file, user_path

MODES = ("all", "last", "gap", "last_gap", "none")

LATEST = "params.pkl"
LAST = "last"  # snapshot of the last saved iteration
BEST, BEST_FILE = "best", "best.pkl"  # snapshot of the best policy so far, see `EvalCallback`
_SNAPSHOT_NAME = re.compile(r"params\.pkl|itr_(\d+)\.pkl")

_MAGIC = b"\nMPSNAP2"
_TRAILER = struct.Struct("<8sqQ32s")  # magic, iteration, bytes of pickle, SHA-256 of the rest
_DIGEST_SIZE = 32
_BLOCK = 1 << 20  # bytes per read


class SnapshotError(RuntimeError):
    """A snapshot cannot be written, is damaged or is missing; the message names it and the last intact snapshot."""


def check_mode(mode: str, gap: int) -> tuple[str, int]:
    """Returns a snapshot mode and gap, see `save_snapshot`; raises ValueError if they are invalid."""
    return check_choice("snapshot_mode", mode, MODES), check_positive_int("snapshot_gap", gap)


def save_snapshot(dir: PathLike, itr: int, params: Any, mode: str = "last", gap: int = 1) -> Optional[str]:
    """Writes a snapshot of an iteration to a run folder if the mode saves this iteration.

    ==========  ==========================================================================================
    mode        files
    ==========  ==========================================================================================
    `all`       `itr_N.pkl` of every iteration `N`
    `last`      `params.pkl`, the last snapshot
    `gap`       `itr_N.pkl` of every iteration that is a multiple of `gap`
    `last_gap`  the files of `last` and of `gap`
    `none`      no files
    ==========  ==========================================================================================

    Each snapshot is written to a temporary file, flushed to disk and then renamed. If the process is killed, the disk
    is full or an object cannot be pickled, earlier snapshots do not change. Other processes can load snapshots at any
    time, but only one run at a time may write to a folder.

    Args:
        dir: run folder.
        itr: number of the iteration, at least 0.
        params: content of the snapshot; any object that cloudpickle can pickle.
        mode: one of the modes above; default `last`.
        gap: number of iterations between snapshots, at least 1; used by `gap` and `last_gap`. Default 1.

    Returns:
        The path of the written file (`params.pkl` if two files were written), or None if no file was written.

    Raises:
        ValueError: the mode is unknown, or a number is out of range.
        SnapshotError: the file cannot be written, for example because the disk is full, the folder was deleted or
            `params` cannot be pickled.
    """
    mode, gap = check_mode(mode, gap)
    itr, folder, written = check_int_at_least("itr", itr, 0), os.path.abspath(user_path("dir", dir)), None
    if mode == "all" or (mode in ("gap", "last_gap") and itr % gap == 0):
        written = os.path.join(folder, f"itr_{itr}.pkl")
        write_snapshot(written, itr, params)
    if mode in ("last", "last_gap"):
        written = os.path.join(folder, LATEST)
        write_snapshot(written, itr, params)
    return written


def write_snapshot(path: str, itr: int, params: Any) -> None:
    """Writes a snapshot file atomically.

    Args:
        path: file to write.
        itr: number of the iteration.
        params: content of the snapshot.

    Raises:
        SnapshotError: the file cannot be written; an old file does not change.
    """
    try:
        with atomic_file(path) as file:
            cloudpickle.dump(params, file)
            file.write(_TRAILER.pack(_MAGIC, itr, file.tell(), b"")[:-_DIGEST_SIZE])
            file.write(_digest(file, file.tell()))
    except Exception as error:
        raise SnapshotError(f"could not write the snapshot {path}: {type(error).__name__}: {error}. "
                            f"{_last_intact(os.path.dirname(path) or '.')}") from error


def list_snapshots(folder: PathLike) -> dict[str, int]:
    """Returns the complete snapshots in a run folder: the iteration of each file, in the order of the iterations.

    Digests are not checked; `load_snapshot` checks them.
    """
    found = {path: itr for path in snapshot_paths(folder) if (itr := _iteration_of(path)) is not None}
    return dict(sorted(found.items(), key=lambda item: item[::-1]))


def snapshot_paths(folder: PathLike) -> list[str]:
    """Returns the files with the name of a snapshot: intact, damaged, or of another program; none without a folder."""
    folder = user_path("folder", folder)
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names if _SNAPSHOT_NAME.fullmatch(name)]


def remove_snapshots(folder: PathLike, itr: int) -> None:
    """Removes the snapshots of an iteration and of later ones, with the best policy if it is one of them.

    Args:
        folder: run folder.
        itr: the iteration.
    """
    for path in [*snapshot_paths(folder), os.path.join(folder, BEST_FILE)]:
        saved = _iteration_of(path)
        if saved is not None and saved >= itr:
            os.remove(path)


def state_of(snapshot: Any) -> dict[str, Any]:
    """Returns the entry `state` of a snapshot that a `Trainer` or `LocalRunner` of this package version saved.

    Other versions may store different contents in a snapshot and compute different numbers.

    Raises:
        ValueError: the snapshot was saved by other code or by another version of this package.
    """
    state = snapshot.get("state") if isinstance(snapshot, dict) else None
    if not isinstance(state, dict):
        raise ValueError(f"snapshot: expected a snapshot of a Trainer or LocalRunner, got {reprlib.repr(snapshot)}")
    version = state.get("version")
    if version != __version__:
        raise ValueError(f"snapshot: the run is from meta_policy_search {version}, and this is version "
                         f"{__version__}. Only the version that started a run can resume it: install "
                         f"meta_policy_search=={version}. Or start a new run with the policy's weights "
                         "(policy.save_npz there, policy.load_npz here)")
    return state


def load_snapshot(path: PathLike, itr: Union[int, str, None] = None, without: Sequence[str] = ()) -> Any:
    """Loads a snapshot after checking its digest. Loading executes code from the file.

    Args:
        path: a snapshot file or a run folder.
        itr: iteration of the snapshot, or `"best"` (see `EvalCallback`), if `path` is a folder. Default None: the last
            snapshot.
        without: modules that are not imported, see `Unpickler`; default none.

    Returns:
        The saved object; for the snapshot of a run, a dict.

    Raises:
        SnapshotError: the snapshot is missing or damaged; the message names the file and the last intact snapshot of
            the folder.
        ValueError: `itr` was given although `path` is a file.
    """
    path = user_path("path", path)
    if isinstance(itr, str) and itr != BEST:
        raise ValueError(f"itr: expected the number of an iteration, {BEST!r} or None (the last snapshot), got {itr!r}")
    if os.path.isdir(path):
        path = _find(path, itr if itr is None or itr == BEST else check_int_at_least("itr", itr, 0))
    elif itr is not None and os.path.exists(path):
        raise ValueError(f"itr: expected None for a snapshot file ({path}), got {itr!r}")
    try:
        file = open(path, "rb")
    except OSError as error:
        raise SnapshotError(f"expected a run folder, got {path}: {error.strerror}") from error
    with file:
        if damage := _damage(file):
            raise SnapshotError(f"the snapshot {path} is damaged: {damage}. "
                                f"{_last_intact(os.path.dirname(path) or '.')}")
        file.seek(0)
        try:
            return Unpickler(file, without).load()
        except ModuleNotFoundError as error:
            raise SnapshotError(f"the snapshot {path} needs the module {error.name}, which was not found: add its "
                                "folder to PYTHONPATH or install its package") from error
        except Exception as error:
            raise SnapshotError(f"the snapshot {path} is intact, but its objects could not be rebuilt: {error!r}. A "
                                "snapshot from another version can only be loaded by that version: save the weights "
                                "there with policy.save_npz and load them here with policy.load_npz") from error


class Unpickler(pickle.Unpickler):
    """Unpickler that does not change the classes of this process.

    cloudpickle stores classes of scripts and notebooks by value. If such a class exists in this process, it is used as
    it is now, like a class that is imported from a module; `pickle.load` would reset its attributes and methods.
    Otherwise each load creates a separate class.

    Args:
        file: file to read.
        without: beginnings of the names of modules that are not imported. An object of their classes becomes a
            placeholder: an object of an empty class of the same name, with the pickled state as attributes.
    """

    def __init__(self, file: Any, without: Sequence[str] = ()) -> None:
        super().__init__(file)
        self._without = tuple(without)

    def find_class(self, module: str, name: str) -> Any:
        """Returns a class or function by module and name."""
        if module.startswith(self._without):
            return type(name, (), {"__module__": module, "__init__": lambda self, *args, **kwargs: None})
        found = super().find_class(module, name)
        if module == cloudpickle.cloudpickle.__name__:
            if name in ("_make_skeleton_class", "_make_skeleton_enum"):
                return functools.partial(self._find_or_make, found)
            if name == "_class_setstate":
                return self._set_state
        return found

    def _find_or_make(self, make: Callable[..., type], *arguments: Any) -> type:
        *definition, tracker_id, extra = arguments
        existing = cloudpickle.cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID.get(tracker_id)
        return make(*definition, None, extra) if existing is None else existing

    def _set_state(self, cls: type, state: Any) -> type:
        is_new = cls not in cloudpickle.cloudpickle._DYNAMIC_CLASS_TRACKER_BY_CLASS
        return cloudpickle.cloudpickle._class_setstate(cls, state) if is_new else cls


def _digest(file: BinaryIO, size: int) -> bytes:
    """Returns the SHA-256 digest of the first `size` bytes; the file position is then `size`."""
    file.seek(0)
    sha256 = hashlib.sha256()
    for start in range(0, size, _BLOCK):
        sha256.update(file.read(min(_BLOCK, size - start)))
    return sha256.digest()


def _iteration_of(path: str) -> Optional[int]:
    """Returns the iteration of a snapshot; None if the file cannot be read or has no valid trailer."""
    try:
        with open(path, "rb") as file:
            return _read_trailer(file)
    except OSError:  # missing, or not a file
        return None


def _read_trailer(file: BinaryIO) -> Optional[int]:
    """Returns the iteration of a snapshot; None if the file has no valid trailer."""
    size = file.seek(0, os.SEEK_END) - _TRAILER.size
    if size < 0:
        return None
    file.seek(size)
    magic, itr, pickle_size, _ = _TRAILER.unpack(file.read(_TRAILER.size))
    return itr if (magic, pickle_size) == (_MAGIC, size) else None


def _damage(file: BinaryIO) -> Optional[str]:
    """Returns a description of the damage of a snapshot file; None if it is intact."""
    size = file.seek(0, os.SEEK_END)
    if _read_trailer(file) is None:
        return f"it has no valid trailer ({size} bytes; the file is truncated or not a snapshot)"
    return None if _digest(file, size - _DIGEST_SIZE) == file.read() else "its contents do not match its SHA-256 digest"


def _find(folder: str, itr: Union[int, str, None]) -> str:
    """Returns the snapshot file of an iteration, the best or the last one, which may be damaged."""
    if itr == BEST:
        if not os.path.exists(os.path.join(folder, BEST_FILE)):
            raise SnapshotError(f"the folder {folder} contains no {BEST_FILE}: train with an EvalCallback (in scripts "
                                "--eval_every) until the first evaluation")
        return os.path.join(folder, BEST_FILE)
    whole = list_snapshots(folder)
    named = {path: int(match[1] or sys.maxsize) for path in snapshot_paths(folder)  # damaged; `params.pkl` is the last
             if path not in whole and (match := _SNAPSHOT_NAME.fullmatch(os.path.basename(path)))}
    found = {path: number for path, number in {**whole, **named}.items() if itr in (None, number)}
    if not found:
        which = "" if itr is None else f" of iteration {itr}"
        numbers = ", ".join(map(str, sorted(set(whole.values())))) or "none"
        raise SnapshotError(f"the folder {folder} contains no snapshot{which}; snapshots exist for iterations: "
                            f"{numbers}")
    return max(found, key=found.__getitem__)


def _last_intact(folder: str) -> str:
    """Returns a sentence that names the last intact snapshot of a folder."""
    for path, itr in reversed(list_snapshots(folder).items()):
        with open(path, "rb") as file:
            if _damage(file) is None:
                return f"The last intact snapshot in the folder is {path} (iteration {itr})"
    return "The folder contains no intact snapshot"
