"""Arrays of the steps of path dicts: concatenated, `[N, ...]`, or padded, `[P, T, ...]`, with a mask."""
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence

import numpy as np

from meta_policy_search.types import Infos, Path

NUMBERS = ("observations", "actions", "rewards")


class TaskPaths(NamedTuple):
    """The paths of one task: the caller's path dicts, and copies of their arrays, concatenated over paths."""

    name: str  # prefix of error messages, such as "task 3, "; may be empty
    paths: Sequence[Path]
    lengths: np.ndarray  # int [P], each at least 1
    arrays: Infos  # observations [N, O], actions [N, A], rewards [N]; finite
    env_infos: Infos  # each [N, ...]; only infos that all paths have
    agent_infos: Infos  # each [N, ...]


def concatenate_paths(paths: Any, name: str = "") -> TaskPaths:
    """Checks the path dicts of one task and concatenates their arrays.

    Args:
        paths: list of path dicts with `observations` `[T, O]`, `actions` `[T, A]`, `rewards` `[T]` and, optionally,
            `env_infos` and `agent_infos`. Env infos that some paths do not have are omitted.
        name: prefix of error messages.

    Raises:
        TypeError: `paths` is not a list, or observations, actions or rewards are not real numbers.
        ValueError: there are no paths, a key is missing, shapes are inconsistent, or a number is not finite; the
            message names path and step.
    """
    if not isinstance(paths, (list, tuple)):
        raise TypeError(f"{name}paths: expected a list of path dicts, got {type(paths).__name__}")
    if not paths:
        raise ValueError(f"{name}paths: expected at least one path, got an empty list")
    lengths = np.array([_length_of(path, f"{name}path {p}") for p, path in enumerate(paths)])
    arrays = {key: _concatenate_numbers(name, key, paths, lengths) for key in NUMBERS}
    env_infos, agent_infos = ([path.get(kind, {}) for path in paths] for kind in ("env_infos", "agent_infos"))
    for p, infos in enumerate(agent_infos):
        if infos.keys() != agent_infos[0].keys():
            raise ValueError(f"{name}path {p}: agent_infos: expected the same keys in all paths, got {sorted(infos)}, "
                             f"but {sorted(agent_infos[0])} in path 0")
    return TaskPaths(name, paths, lengths, arrays, _concatenate_infos(name, "env_infos", env_infos, lengths),
                     _concatenate_infos(name, "agent_infos", agent_infos, lengths))


def concatenate_tasks(paths_meta_batch: Any) -> List[TaskPaths]:
    """Checks the path dicts of several tasks, a dict from task index to list, and concatenates the arrays of each task.

    Raises:
        TypeError: `paths_meta_batch` is not a dict; otherwise as `concatenate_paths`.
        ValueError: there are no tasks; otherwise as `concatenate_paths`.
    """
    if not isinstance(paths_meta_batch, Mapping):
        raise TypeError("paths_meta_batch: expected a dict from task index to a list of paths, got "
                        f"{type(paths_meta_batch).__name__}")
    if not paths_meta_batch:
        raise ValueError("paths_meta_batch: expected the paths of at least one task, got an empty dict")
    return [concatenate_paths(paths, f"task {task}, ") for task, paths in paths_meta_batch.items()]


def _length_of(path: Path, name: str) -> int:
    for key in NUMBERS:
        if key not in path:
            raise ValueError(f"{name}: expected a key {key!r}, got only {sorted(path)}")
    shape = np.shape(path["rewards"])
    if len(shape) != 1 or shape[0] == 0:
        raise ValueError(f"{name}: rewards: expected shape [T] with T of at least 1, got {shape}")
    return shape[0]


def _concatenate_numbers(name: str, key: str, paths: Sequence[Any], lengths: np.ndarray) -> np.ndarray:
    values = _concatenate(name, key, [path[key] for path in paths], lengths)
    if values.dtype.kind not in "fiub":
        raise TypeError(f"{name}{key}: expected real numbers, got an array of dtype {values.dtype}")
    if values.dtype.kind != "f" and key != "actions":
        values = values.astype(np.float64)
    check_finite_steps(name, key, values, lengths)
    return values


def _concatenate_infos(name: str, kind: str, infos: Sequence[Infos], lengths: np.ndarray) -> Infos:
    common = [key for key in infos[0] if all(key in info for info in infos)]
    return {key: _concatenate(name, f"{kind}[{key!r}]", [info[key] for info in infos], lengths) for key in common}


def _concatenate(name: str, key: str, arrays: Sequence[Any], lengths: np.ndarray) -> np.ndarray:
    arrays = [np.asarray(array) for array in arrays]
    step_shape = arrays[0].shape[1:]
    for p, (array, length) in enumerate(zip(arrays, lengths.tolist(), strict=True)):
        if array.shape[:1] != (length,):
            raise ValueError(f"{name}path {p}: {key}: expected {length} steps, the number of rewards, got shape "
                             f"{array.shape}")
        if array.shape[1:] != step_shape:
            raise ValueError(f"{name}path {p}: {key}: expected shape {step_shape} after the step axis, as in path 0, "
                             f"got shape {array.shape}")
    return np.concatenate(arrays)


def check_finite_steps(name: str, key: str, values: np.ndarray, lengths: np.ndarray) -> None:
    """Raises `ValueError` with path and step if an entry of `values` `[N, ...]` is not finite.

    `lengths` are the numbers of steps of the concatenated paths.
    """
    finite = np.isfinite(values)
    if not finite.all():
        row, ends = int(np.argwhere(~finite)[0, 0]), np.cumsum(lengths)
        p = int(np.searchsorted(ends, row, side="right"))
        step = row - int(ends[p] - lengths[p])
        raise ValueError(f"{name}path {p}, step {step}: {key}: expected finite numbers, got {values[row]}")


def split_paths(lengths: np.ndarray, arrays: Infos, env_infos: Infos, agent_infos: Infos,
                last_observations: np.ndarray, terminated: np.ndarray) -> List[Path]:
    """Splits concatenated paths into path dicts. Their arrays are views of the arguments.

    Args:
        lengths: int `[P]`, numbers of steps.
        arrays: `observations`, `actions` and `rewards`, each `[N, ...]`.
        env_infos: each `[N, ...]`.
        agent_infos: each `[N, ...]`.
        last_observations: `[P, O]`.
        terminated: bool `[P]`.
    """
    ends = np.cumsum(lengths).tolist()
    paths: List[Any] = []
    for start, end, last_observation, is_terminated in zip([0, *ends], ends, last_observations, terminated.tolist()):
        paths.append({**{key: values[start:end] for key, values in arrays.items()},
                      "env_infos": {key: values[start:end] for key, values in env_infos.items()},
                      "agent_infos": {key: values[start:end] for key, values in agent_infos.items()},
                      "last_observation": last_observation, "terminated": is_terminated})
    return paths


def path_mask(lengths: np.ndarray, num_steps: Optional[int] = None) -> np.ndarray:
    """Returns bool `[P, T]`: True for the steps of paths with the given lengths, False for padding.

    `T` is `num_steps`, by default the length of the longest path.
    """
    return np.arange(lengths.max() if num_steps is None else num_steps) < lengths[:, None]


def pad_steps(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Pads the steps `[N, ...]` of concatenated paths to `[P, T, ...]`, with zeros after the end of each path.

    `mask` `[P, T]` is a result of `path_mask`. The result may be a view of `values`; `result[mask]` equals `values`.
    """
    if len(values) == mask.size:
        return values.reshape(*mask.shape, *values.shape[1:])
    padded = np.zeros((*mask.shape, *values.shape[1:]), values.dtype)
    padded[mask] = values
    return padded


def path_returns(task: TaskPaths, discount: Optional[float] = None, num_steps: Optional[int] = None) -> np.ndarray:
    """Returns the sum of the (discounted) rewards of each path, `[P]`.

    Each sum has `num_steps` terms, by default the length of the longest path. The number of terms is fixed because it
    affects rounding.
    """
    rewards = pad_steps(task.arrays["rewards"], path_mask(task.lengths, num_steps))
    return rewards.sum(axis=1) if discount is None else rewards @ discount ** np.arange(rewards.shape[1])


def has_success(path: Mapping[str, Any]) -> Optional[bool]:
    """Returns whether a path succeeded, or None if its infos contain neither `success` nor `is_success` as numbers.

    A path succeeds if the info is true or above zero in at least one step. A missing info (None or NaN) is no success.
    """
    found, infos = None, path.get("env_infos", {})
    for key in [key for key in ("success", "is_success") if key in infos]:
        try:
            found = bool(found) or bool((np.asarray(infos[key]).astype(float) > 0).any())
        except (TypeError, ValueError):  # an unrelated info with this name
            continue
    return found


def success_rate(paths: Sequence[Mapping[str, Any]]) -> float:
    """Returns the share of paths that succeeded (`has_success`); NaN if no path reports successes."""
    successes = [has_success(path) for path in paths]
    is_reported = any(success is not None for success in successes)
    return float(np.mean([bool(success) for success in successes])) if is_reported else float("nan")
