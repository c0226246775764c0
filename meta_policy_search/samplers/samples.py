"""The processed samples of a meta-batch as arrays, which show themselves as the documented list of dicts."""
import functools
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Union

import numpy as np

from meta_policy_search.samplers.rollouts import Rollouts
from meta_policy_search.types import TaskSamples
from meta_policy_search.utils.lazy_dict import LazyDict


class Samples(list):
    """The samples of `M` tasks: a list with a dict for each task, over arrays `[M, N, ...]`.

    In the arrays the paths of a task stand one after the other, and tasks with fewer samples than others are padded by
    their first one. The dicts (see `types.TaskSamples`) are filled when somebody looks into them. Whoever changes an
    entry of one of them, or the list, is heard: `of` then takes the dicts for what they are.

    Args:
        num_samples: samples of each task, `M` integers of at least 1.
        path_lengths: for each task the steps of its paths, int `[P]`; None where that is not known.
        stack: returns an entry of all tasks by its name (an agent info as `agent_infos/<name>`), `[M, N, ...]`; raises
            `ValueError`.
        show: returns the entries of a task's dict.
        max_path_length: number of steps that the dicts pad paths to, `[P, T, ...]`; None where they are `[N, ...]`.
    """

    def __init__(self, num_samples: Sequence[int], path_lengths: Sequence[Optional[np.ndarray]],
                 stack: Callable[[str], np.ndarray], show: Callable[[int], Mapping[str, Any]],
                 max_path_length: Optional[int] = None) -> None:
        self.num_samples, self.path_lengths, self.max_path_length = num_samples, path_lengths, max_path_length
        self._stack = stack
        self._stacked: Dict[str, np.ndarray] = {}
        self._made = [LazyDict(functools.partial(show, m)) for m in range(len(num_samples))]
        super().__init__(self._made)

    @classmethod
    def of(cls, samples: Sequence[TaskSamples]) -> "Samples":
        """Returns samples in this form: `samples` itself where it is unchanged, else made from its dicts.

        A dict with an entry `mask` is padded, as by a `DiceSampleProcessor`.
        """
        if isinstance(samples, cls) and not samples._is_changed():
            return samples
        tasks = [_flattened(task) if "mask" in task else task for task in samples]
        return cls([len(_entry(task, m, "observations")) for m, task in enumerate(tasks)],
                   [task.get("path_lengths") for task in tasks],
                   lambda key: stack_tasks([_checked_entry(task, m, key) for m, task in enumerate(tasks)]),
                   lambda m: samples[m],
                   next((np.shape(task["mask"])[1] for task in samples if "mask" in task), None))

    def stacked(self, key: str) -> np.ndarray:
        """Returns an entry, such as `advantages` or `agent_infos/mean`, for the graph: float32 `[M, N, ...]`."""
        if key not in self._stacked:
            self._stacked[key] = np.asarray(self._stack(key), np.float32)
        return self._stacked[key]

    def mask(self) -> np.ndarray:
        """Returns float32 `[M, N]`: one for samples, zero on padding."""
        return task_mask(self.num_samples)

    def path_starts(self) -> np.ndarray:
        """Returns the index of the first sample of the same path, int32 `[M, N]`.

        Raises:
            ValueError: the samples of a task do not say where paths start, or not of all of them.
        """
        starts = []
        for m, (lengths, count) in enumerate(zip(self.path_lengths, self.num_samples, strict=True)):
            if lengths is None:
                raise _lacking(m, "path_lengths")
            _check_equally_many(m, count, "path_lengths", int(np.sum(lengths)))
            starts.append(path_starts(lengths))
        return stack_tasks(starts, np.int32)

    def longest_path(self) -> int:
        """Returns the number of steps of the longest path of all tasks, where `path_starts` knows them."""
        return max(int(np.max(lengths)) for lengths in self.path_lengths if lengths is not None)

    def _is_changed(self) -> bool:
        return len(self) != len(self._made) or any(
            task is not made or made.is_changed for task, made in zip(self, self._made, strict=True))

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Is copied and pickled as a list of dicts."""
        return list, (list(self),)


def stack_rollouts(rollouts: Rollouts, entries: Mapping[str, np.ndarray],
                   max_path_length: Optional[int] = None) -> Samples:
    """Returns the samples that processed paths make.

    Args:
        rollouts: the paths.
        entries: what processing computed, each `[M, P, T]` (and zero after the end of paths, where they are shown
            padded); `adjusted_rewards_after_end` `[M, P]`.
        max_path_length: number of steps that the dicts show paths padded to, for DiCE; by default they show them
            stacked.
    """
    tasks = range(len(rollouts))
    after_end = entries.get("adjusted_rewards_after_end")
    arrays = {**rollouts.arrays.path, **entries}

    def stack(key: str) -> np.ndarray:
        kind, _, info = key.partition("/")
        if info:
            for m in tasks:
                if info not in rollouts.infos_of(kind, m):
                    raise _lacking(m, key)
            return rollouts.stacked(getattr(rollouts.arrays, kind)[info])
        if key not in arrays:
            raise _lacking(0, key)
        if key == "adjusted_rewards":
            return rollouts.stacked(_with_rest(arrays[key], entries["adjusted_rewards_after_end"], rollouts.lengths))
        return rollouts.stacked(arrays[key])

    def show(m: int) -> Dict[str, Any]:
        def form(array: np.ndarray) -> np.ndarray:
            return rollouts.flat(array, m) if max_path_length is None else rollouts.padded(array, m, max_path_length)

        task: Dict[str, Any] = {} if max_path_length is None else {
            "mask": form(rollouts.mask.astype(np.float64)),
            "adjusted_rewards_after_end": entries["adjusted_rewards_after_end"][m, :len(rollouts.path_lengths(m))],
        }
        task.update((key, form(array)) for key, array in arrays.items() if array is not after_end)
        for kind in ("env_infos", "agent_infos"):
            task[kind] = {key: form(array) for key, array in rollouts.infos_of(kind, m).items()}
        task["path_lengths"] = rollouts.path_lengths(m)
        return task

    path_lengths = [rollouts.path_lengths(m) for m in tasks]
    return Samples([int(lengths.sum()) for lengths in path_lengths], path_lengths, stack, show, max_path_length)


def _with_rest(adjusted: np.ndarray, after_end: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Adds to the last step of a path what a baseline subtracts after its end `[M, P]`: the magic box is the same."""
    rows, columns = np.nonzero(lengths)
    result = adjusted.copy()
    result[rows, columns, lengths[rows, columns] - 1] += after_end[rows, columns]
    return result


def _flattened(task: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the padded samples of a task `[P, T, ...]` as `[N, ...]`, with `adjusted_rewards` as `_with_rest`."""
    mask = np.asarray(task["mask"]) > 0
    flat: Dict[str, Any] = {key: np.asarray(value)[mask] for key, value in task.items()
                            if np.shape(value)[:2] == mask.shape}
    flat["path_lengths"] = task["path_lengths"]
    flat["agent_infos"] = {key: values[mask] for key, values in task.get("agent_infos", {}).items()}
    if "adjusted_rewards" in flat:
        flat["adjusted_rewards"][np.cumsum(task["path_lengths"]) - 1] += task["adjusted_rewards_after_end"]
    return flat


def _entry(task: Mapping[str, Any], m: int, key: str) -> Any:
    kind, _, info = key.partition("/")
    if kind not in task:
        raise _lacking(m, kind)
    if info and info not in task[kind]:
        raise _lacking(m, key)
    return task[kind][info] if info else task[kind]


def _checked_entry(task: Mapping[str, Any], m: int, key: str) -> Any:
    value = _entry(task, m, key)
    _check_equally_many(m, len(task["observations"]), key, len(value))
    return value


def _lacking(m: int, key: str) -> ValueError:
    return ValueError(f"the samples of task {m} lack the entry {key!r}")


def _check_equally_many(m: int, count: int, key: str, given: int) -> None:
    if given != count or count == 0:
        raise ValueError(f"expected equally many samples, at least one, of task {m}, got {count} observations and "
                         f"{given} of {key}")


def stack_tasks(arrays: Sequence[np.ndarray], dtype: type = np.float32) -> np.ndarray:
    """Stacks `M` arrays `[N_m, ...]` of at least one sample to `[M, max N_m, ...]`.

    The shorter ones are padded by repeating their first sample. A real sample keeps likelihood ratios finite there;
    zero weight makes it count for nothing.
    """
    longest = max(len(array) for array in arrays)
    stacked: np.ndarray = np.empty((len(arrays), longest) + np.shape(arrays[0])[1:], dtype)
    for row, array in zip(stacked, arrays):
        row[: len(array)] = array
        row[len(array):] = array[0]
    return stacked


def task_mask(lengths: Sequence[int]) -> np.ndarray:
    """Returns float32 `[M, max length]`: one for samples, zero on padding.

    Example:
        >>> task_mask([3, 1])
        array([[1., 1., 1.],
               [1., 0., 0.]], dtype=float32)
    """
    return (np.arange(max(lengths)) < np.asarray(lengths)[:, None]).astype(np.float32)


def path_starts(path_lengths: Union[np.ndarray, Sequence[int]]) -> np.ndarray:
    """Returns the index of the first sample of each sample's path, int `[N]`, for paths of these lengths, int `[P]`."""
    lengths = np.asarray(path_lengths)
    return np.repeat(np.cumsum(lengths) - lengths, lengths)
