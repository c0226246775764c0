"""The paths of a meta-batch as arrays, which show themselves as the documented dict of lists of path dicts."""
import functools
from collections import OrderedDict
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.types import Infos, Path
from meta_policy_search.utils.lazy_dict import LazyDict

_NUMBERS = ("observations", "actions", "rewards")
_INFOS = ("env_infos", "agent_infos")


class RolloutArrays(NamedTuple):
    """What the paths of `M` tasks hold. `T` is at least the length of the longest path; later steps mean nothing."""

    path: Infos  # `observations` [M, P, T, O], `actions` [M, P, T, A], `rewards` [M, P, T]
    env_infos: Infos  # each [M, P, T, ...]
    agent_infos: Infos  # each [M, P, T, ...]
    lengths: np.ndarray  # int [M, P], zero where a task has fewer paths than another
    terminated: Optional[np.ndarray] = None  # bool [M, P]
    last_observations: Optional[np.ndarray] = None  # float64 [M, P, O]

    def map(self, function: Any) -> "RolloutArrays":
        """Returns the same with `function` applied to each array `[M, P, T, ...]`."""
        path, env_infos, agent_infos = ({key: function(array) for key, array in infos.items()} for infos in self[:3])
        return self._replace(path=path, env_infos=env_infos, agent_infos=agent_infos)


class Rollouts(OrderedDict):
    """The paths of some tasks: a dict of task to its list of path dicts, over arrays `[M, P, T, ...]`.

    The path dicts (see `types.Path`) are filled when somebody looks into them, with views of the arrays. Whoever
    changes an entry of one of them, or the lists, is heard: `of` then takes the dicts for what they are.

    Args:
        tasks: `M` names of the tasks, such as their numbers.
        arrays: what the paths hold; finite.
        paths: for each task, the path dicts that `arrays` were made from; by default views of `arrays`.
        absent: infos that the paths of a task do not have: its index, `env_infos` or `agent_infos`, and the name.

    Attributes:
        arrays (RolloutArrays): the arrays.
        mask (np.ndarray): bool `[M, P, T]`, which steps were taken.
        is_full (bool): whether all paths have `T` steps.
        policy_time (float): seconds that the policy took to act.
        env_time (float): seconds that the environments took.
    """

    def __init__(self, tasks: Sequence[Any], arrays: RolloutArrays, paths: Optional[Sequence[List[Path]]] = None,
                 absent: FrozenSet[Tuple[int, str, str]] = frozenset()) -> None:
        longest = max(int(arrays.lengths.max()), 1)
        self.arrays = arrays.map(lambda array: array[:, :, :longest])
        self.mask = np.arange(longest) < arrays.lengths[..., None]
        self.is_full = bool(self.mask.all())
        self.policy_time = self.env_time = 0.0
        self._absent = absent
        self._rows: Optional[np.ndarray] = None  # int [M, N], see `stacked`
        self._added: Infos = {}  # what processing adds to paths, each [M, P, T]
        if paths is None:
            num_paths = arrays.lengths.shape[1]
            paths = [[LazyDict(functools.partial(self._path, m, p)) for p in range(num_paths)]  # type: ignore[misc]
                     for m in range(len(arrays.lengths))]
        super().__init__(zip(tasks, paths, strict=True))
        self._made = [(task, task_paths, list(task_paths)) for task, task_paths in self.items()]

    @classmethod
    def of(cls, paths: Mapping[Any, Sequence[Path]]) -> "Rollouts":
        """Returns paths in this form: `paths` itself where it is unchanged, else arrays made from its path dicts.

        Args:
            paths: dict of task to a list of path dicts with `observations` `[T, O]`, `actions` `[T, A]` and `rewards`
                `[T]`, and where there are any `env_infos` and `agent_infos`. The task `None` is not named in errors.
                Env infos that not all paths of a task have are left out there.

        Raises:
            TypeError: the paths of a task are not a list, or observations, actions or rewards are not numbers.
            ValueError: a task has no paths, a key is missing, shapes or lengths do not fit, or a value is not finite;
                names task, path and step.
        """
        if isinstance(paths, cls) and not paths._is_changed():
            return paths
        tasks = [_StackedTask("" if task is None else f"task {task}, ", task_paths)
                 for task, task_paths in paths.items()]
        lengths = np.zeros((len(tasks), max(len(task.lengths) for task in tasks)), int)
        for row, task in zip(lengths, tasks):
            row[:len(task.lengths)] = task.lengths
        mask = np.arange(lengths.max()) < lengths[..., None]
        parts: Dict[str, Any] = {
            kind: {key: _padded(key, [getattr(task, kind).get(key) for task in tasks], mask)
                   for key in dict.fromkeys(key for task in tasks for key in getattr(task, kind))}
            for kind in ("path", *_INFOS)}
        absent = frozenset((m, kind, key) for m, task in enumerate(tasks) for kind in _INFOS for key in parts[kind]
                           if key not in getattr(task, kind))
        return cls(list(paths), RolloutArrays(**parts, lengths=lengths),
                   [list(task_paths) for task_paths in paths.values()], absent)

    @classmethod
    def of_steps(cls, path: Infos, env_infos: Infos, agent_infos: Infos, lengths: np.ndarray) -> "Rollouts":
        """Returns the paths of one task, given as finite arrays `[N, ...]`, one path after the other."""
        mask = np.arange(lengths.max()) < lengths[None, :, None]
        return cls([0], RolloutArrays(path, env_infos, agent_infos, lengths[None]).map(
            lambda steps: _scattered(steps, mask)))

    @classmethod
    def join(cls, parts: Sequence["Rollouts"]) -> "Rollouts":
        """Returns the paths of several parts, each of some tasks, as one.

        An info that only some of the parts have is missing in the others, and all have the same type, as if all paths
        had been collected together.
        """
        if len(parts) == 1:
            return parts[0]
        width = max(part.mask.shape[2] for part in parts)
        shapes = [part.mask.shape for part in parts]
        kinds: List[Any] = [_in_agreement([getattr(part.arrays, kind) for part in parts], shapes, width)
                            for kind in RolloutArrays._fields[:3]]
        rest: List[Any] = [np.concatenate([getattr(part.arrays, name) for part in parts])
                           for name in RolloutArrays._fields[3:]]
        joined = cls([task for part in parts for task in part], RolloutArrays(*kinds, *rest))
        joined.policy_time = sum(part.policy_time for part in parts) / len(parts)  # the parts took the same time
        joined.env_time = sum(part.env_time for part in parts) / len(parts)
        return joined

    def copy(self) -> "OrderedDict[Any, List[Path]]":  # type: ignore[override]
        """Returns a plain dict of the same lists."""
        return OrderedDict(self)

    @property
    def lengths(self) -> np.ndarray:
        """Steps of each path, int `[M, P]`."""
        return self.arrays.lengths

    @property
    def num_steps(self) -> int:
        """Environment steps of all paths."""
        return int(self.lengths.sum())

    def path_lengths(self, m: int) -> np.ndarray:
        """Returns the steps of each path of task `m`, int `[P]`."""
        return self.lengths[m][self.lengths[m] > 0]

    def path_returns(self, m: int, discount: Optional[float] = None, num_steps: Optional[int] = None) -> np.ndarray:
        """Returns the sum of the (discounted) rewards of each path of task `m`, `[P]`.

        They are summed over `num_steps` steps, by default those of the longest path: zeros round otherwise, too.
        """
        rewards = self.padded(self.arrays.path["rewards"], m, num_steps or int(self.lengths[m].max()))
        return rewards.sum(axis=1) if discount is None else rewards @ discount ** np.arange(rewards.shape[1])

    def stacked(self, array: np.ndarray) -> np.ndarray:
        """Returns the steps of `[M, P, T, ...]`, of each task one path after the other, `[M, N, ...]`.

        Tasks with fewer steps than others are padded by their first one.
        """
        if self.is_full:
            return array.reshape(len(array), -1, *array.shape[3:])
        if self._rows is None:
            steps = [np.flatnonzero(mask) for mask in self.mask]
            self._rows = np.stack([np.pad(rows, (0, max(map(len, steps)) - len(rows)), constant_values=rows[0])
                                   for rows in steps])
        num_tasks, num_paths, num_steps = self.mask.shape
        by_row = array.reshape(num_tasks, num_paths * num_steps, *array.shape[3:])
        return by_row[np.arange(num_tasks)[:, None], self._rows]

    def padded(self, array: np.ndarray, m: int, num_steps: int) -> np.ndarray:
        """Returns the paths of task `m` of `[M, P, T, ...]` as `[P, num_steps, ...]`, zero after their ends."""
        lengths = self.path_lengths(m)
        steps = min(num_steps, self.mask.shape[2])
        padded = np.zeros((len(lengths), num_steps, *array.shape[3:]), array.dtype)
        mask = self.mask[m, :len(lengths), :steps]
        padded[:, :steps][mask] = array[m, :len(lengths), :steps][mask]
        return padded

    def map_tasks(self, function: Callable[[np.ndarray], np.ndarray], array: np.ndarray) -> np.ndarray:
        """Returns `[M, P, T]` with `function` applied to the steps `[N]` of each task; zero after ends."""
        mapped = np.zeros_like(array)
        for m, mask in enumerate(self.mask):
            try:
                mapped[m][mask] = function(self.flat(array, m))
            except ValueError as error:
                raise ValueError(f"{self.name(m)}{error}") from error
        return mapped

    def flat(self, array: np.ndarray, m: int) -> np.ndarray:
        """Returns the steps of task `m` of `[M, P, T, ...]`, one path after the other, `[N, ...]`."""
        if self.is_full:
            return array[m].reshape(-1, *array.shape[3:])
        return array[m][self.mask[m]]

    def zero_padded(self, array: np.ndarray) -> np.ndarray:
        """Returns `[M, P, T]` with zeros after the end of each path."""
        return array if self.is_full else np.where(self.mask, array, np.zeros((), array.dtype))

    def add(self, key: str, array: np.ndarray) -> None:
        """Puts `[M, P, T]` into the path dicts under `key`, to each path its steps (views)."""
        self._added[key] = array
        for (_, _, task_paths), lengths, rows in zip(self._made, self.lengths, array):
            for path, length, row in zip(task_paths, lengths.tolist(), rows):
                if isinstance(path, LazyDict):
                    path.add(key, row[:length])
                else:
                    path[key] = row[:length]

    def infos_of(self, kind: str, m: int) -> Dict[str, np.ndarray]:
        """Returns the infos (`env_infos` or `agent_infos`) that task `m` has, each `[M, P, T, ...]`."""
        infos = getattr(self.arrays, kind)
        return {key: array for key, array in infos.items() if (m, kind, key) not in self._absent}

    def successes(self, m: int) -> Optional[np.ndarray]:
        """Returns whether each path of task `m` succeeded, bool `[P]`; None where the paths do not say.

        A path succeeded if its info `success` says so at any of its steps, by being true, or above zero. (A step that
        lacks the info, which samplers fill up with NaN, says no.)
        """
        values = self.infos_of("env_infos", m).get("success")
        if values is None or values.ndim != 3 or values.dtype.kind not in "biuf":
            return None
        return ((values[m] > 0) & self.mask[m]).any(axis=1)[self.lengths[m] > 0]

    def check_finite(self, name: str, array: np.ndarray) -> None:
        """Raises `ValueError` naming task, path and step if a number of `[M, P, T]` is infinite or NaN in a path."""
        wrong = ~np.isfinite(array)
        if wrong.any() and (wrong & self.mask).any():
            m, p, t = np.argwhere(wrong & self.mask)[0].tolist()
            raise ValueError(f"{self.name(m)}path {p}, step {t}: {name}: expected finite numbers, got {array[m, p, t]}")

    def name(self, m: int) -> str:
        """Returns what errors begin with that are about task `m`."""
        task = self._made[m][0]
        return "" if task is None else f"task {task}, "

    def _path(self, m: int, p: int) -> Dict[str, Any]:
        """Makes a path dict: views."""
        arrays, length = self.arrays, int(self.lengths[m, p])
        path: Dict[str, Any] = {key: array[m, p, :length] for key, array in arrays.path.items()}
        for kind in _INFOS:
            path[kind] = {key: array[m, p, :length] for key, array in getattr(arrays, kind).items()}
        if arrays.last_observations is not None and arrays.terminated is not None:
            path["last_observation"] = arrays.last_observations[m, p]
            path["terminated"] = bool(arrays.terminated[m, p])
        path.update((key, array[m, p, :length]) for key, array in self._added.items())
        return path

    def _is_changed(self) -> bool:
        """Whether somebody has changed the dict, its lists or the path dicts."""
        return [task for task, _, _ in self._made] != list(self) or not all(
            self[task] is made and len(made) == len(paths) and all(
                path is as_made and not path.is_changed for path, as_made in zip(made, paths, strict=True))
            for task, made, paths in self._made)

    def __reduce__(self) -> Tuple[Any, ...]:
        """Is pickled without the steps after the end of paths; as plain dicts, where it is changed."""
        if any(not isinstance(path, LazyDict) for _, _, paths in self._made for path in paths) or self._is_changed():
            return OrderedDict, (list(self.items()),)
        packed = self.arrays.map(np.ascontiguousarray if self.is_full else lambda array: array[self.mask])
        return _unpacked, (list(self), packed, self._added, self.is_full, (self.policy_time, self.env_time))


def _unpacked(tasks: List[Any], packed: RolloutArrays, added: Infos, is_full: bool, times: Tuple[float, float]
              ) -> Rollouts:
    if not is_full:
        mask = np.arange(packed.lengths.max()) < packed.lengths[..., None]
        packed = packed.map(lambda flat: _scattered(flat, mask))
    rollouts = Rollouts(tasks, packed)
    rollouts._added = added
    rollouts.policy_time, rollouts.env_time = times
    return rollouts


class _StackedTask:
    """The path dicts of one task, checked, and stacked one after the other, `[N, ...]` (copies)."""

    def __init__(self, name: str, paths: Sequence[Any]) -> None:
        self._name, self._paths = name, paths
        if not isinstance(paths, (list, tuple)):
            raise TypeError(f"{name}paths: expected a list of path dicts, got {type(paths).__name__}")
        if not paths:
            raise ValueError(f"{name}paths: expected at least one path, got an empty list")
        self.lengths = [self._length_of(index) for index in range(len(paths))]
        self.path = {key: self._stack_numbers(key) for key in _NUMBERS}
        self.env_infos = self._stack_infos("env_infos", needed_everywhere=False)
        self.agent_infos = self._stack_infos("agent_infos", needed_everywhere=True)

    def _length_of(self, index: int) -> int:
        path = self._paths[index]
        for key in _NUMBERS:
            if key not in path:
                raise ValueError(f"{self._name}path {index}: expected a key {key!r}, got only {sorted(path)}")
        shape = np.shape(path["rewards"])
        if len(shape) != 1 or shape[0] == 0:
            raise ValueError(f"{self._name}path {index}: rewards: expected shape [T] with T of at least 1, got {shape}")
        return shape[0]

    def _stack(self, name: str, arrays: Sequence[Any]) -> np.ndarray:
        arrays = [np.asarray(array) for array in arrays]
        for index, (array, length) in enumerate(zip(arrays, self.lengths, strict=True)):
            if array.shape[:1] != (length,):
                raise ValueError(f"{self._name}path {index}: {name}: expected {length} steps, as many as rewards, got "
                                 f"shape {array.shape}")
            if array.shape[1:] != arrays[0].shape[1:]:
                raise ValueError(f"{self._name}path {index}: {name}: expected {arrays[0].shape[1:]} after the axis of "
                                 f"steps, as in path 0, got shape {array.shape}")
        return np.concatenate(arrays)

    def _stack_numbers(self, key: str) -> np.ndarray:
        stacked = self._stack(key, [path[key] for path in self._paths])
        if stacked.dtype.kind not in "fiub":
            raise TypeError(f"{self._name}{key}: expected real numbers, got an array of dtype {stacked.dtype}")
        if stacked.dtype.kind != "f" and key != "actions":
            stacked = stacked.astype(np.float64)
        finite = np.isfinite(stacked)
        if not finite.all():
            row = int(np.argwhere(~finite)[0, 0])
            ends = np.cumsum(self.lengths)
            path = int(np.searchsorted(ends, row, side="right"))
            step = row - int(ends[path] - self.lengths[path])
            raise ValueError(f"{self._name}path {path}, step {step}: {key}: expected finite numbers, got "
                             f"{stacked[row]}")
        return stacked

    def _stack_infos(self, kind: str, needed_everywhere: bool) -> Infos:
        infos: List[Dict[str, Any]] = [path.get(kind, {}) for path in self._paths]
        for index, info in enumerate(infos):
            if needed_everywhere and info.keys() != infos[0].keys():
                raise ValueError(f"{self._name}path {index}: {kind}: expected the same keys in all paths, got "
                                 f"{sorted(info)} here and {sorted(infos[0])} in path 0")
        common = [name for name in infos[0] if all(name in info for info in infos)]
        return {name: self._stack(f"{kind}[{name!r}]", [info[name] for info in infos]) for name in common}


def _padded(name: str, stacked: Sequence[Optional[np.ndarray]], mask: np.ndarray) -> np.ndarray:
    """Returns `[N_m, ...]` of each task (None where a task has nothing) as `[M, P, T, ...]`, zero elsewhere."""
    given = [flat for flat in stacked if flat is not None]
    shapes = sorted({flat.shape[1:] for flat in given})
    if len(shapes) > 1:
        raise ValueError(f"{name}: expected the same shape after the axis of steps in all tasks, got {shapes}")
    padded = np.zeros((*mask.shape, *given[0].shape[1:]), functools.reduce(np.promote_types, [a.dtype for a in given]))
    for rows, flat, is_step in zip(padded, stacked, mask):
        if flat is not None:
            rows[is_step] = flat
    return padded


def _scattered(flat: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Returns the steps `[N, ...]` of all tasks as `[M, P, T, ...]`, zero elsewhere."""
    padded = np.zeros((*mask.shape, *flat.shape[1:]), flat.dtype)
    padded[mask] = flat
    return padded


def _in_agreement(parts: Sequence[Infos], shapes: Sequence[Tuple[int, ...]], width: int) -> Infos:
    """Returns the arrays of all parts as one, with the keys of any of them; `T` becomes `width`."""
    joined: Infos = {}
    for key in dict.fromkeys(key for part in parts for key in part):
        given = [part[key] for part in parts if key in part]
        tails = {array.shape[3:] for array in given}
        if len(tails) > 1:
            raise ValueError(f"{key}: expected an info of the same shape in all tasks, got {sorted(tails)}")
        dtypes = [array.dtype for array in given] + [np.dtype(np.float64)] * (len(given) < len(parts))
        dtype = functools.reduce(np.promote_types, dtypes)
        filler = missing_value(dtype) if len(given) < len(parts) else 0
        shape = (sum(shape[0] for shape in shapes), shapes[0][1], width, *given[0].shape[3:])
        joined[key], start = np.full(shape, filler, dtype), 0
        for part, shape in zip(parts, shapes):
            if key in part:
                joined[key][start:start + shape[0], :, :shape[2]] = part[key]
            start += shape[0]
    return joined


def missing_value(dtype: np.dtype) -> Optional[float]:
    """Returns what stands for a value of an info that was not given."""
    return None if dtype.kind == "O" else np.nan
