"""Small helpers: seeds, draws, the statistics that sample processors share, dicts of arrays, and settings as JSON."""
import contextlib
import dataclasses
import enum
import json
import os
import random
import sys
import time
from typing import Any, Callable, Dict, Iterator, Mapping, Sequence, Tuple

import numpy as np

from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_int_at_least, check_non_negative

_EPSILON = 1e-8  # keeps divisors, and advantages that are to be positive, away from zero


def set_seed(seed: int) -> None:
    """Seeds every source of random numbers of this process.

    These are the root of the library's own generators (`utils.seeding`), Python's `random`, NumPy's global
    generator and, where TensorFlow is loaded, the seed of its current default graph. Call it first: networks draw
    their weights when they are built.

    Args:
        seed: non-negative integer of any size; NumPy's global generator gets it modulo `2**32`.
    """
    seed = check_int_at_least("seed", seed, 0)
    seeding.set_root(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None:
        tensorflow.compat.v1.set_random_seed(seed)


@contextlib.contextmanager
def timed(times: Dict[str, float], key: str) -> Iterator[None]:
    """Adds the duration of a `with` block, in seconds, to `times[key]`, which starts at zero."""
    started = time.perf_counter()
    try:
        yield
    finally:
        times[key] = times.get(key, 0.0) + time.perf_counter() - started


def draw_index(probabilities: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Draws indices with given probabilities, by the inverse of the cumulative distribution function.

    Args:
        probabilities: `[..., n]`, at least zero; the last axis sums to one, up to rounding.
        uniform: `[...]`, uniform in `[0, 1)`; the draws are made from it.

    Returns:
        int64 `[...]`, each from 0 to `n - 1`, never one of probability zero.
    """
    sums = np.cumsum(probabilities, axis=-1)
    return np.sum(sums[..., :-1] <= uniform[..., None] * sums[..., -1:], axis=-1)


def discount_cumsum(x: np.ndarray, discount: float) -> np.ndarray:
    """Returns the discounted sums of what is still to come, `y_t = x_t + discount * y_{t+1}`.

    Args:
        x: `[T, ...]`, such as the rewards of a path.
        discount: factor per step, at least 0; dimensionless.

    Returns:
        float64 `[T, ...]`, summed along the first axis.

    Example:
        >>> discount_cumsum([1.0, 0.0, 4.0], 0.5)
        array([2., 2., 4.])
    """
    discount = check_non_negative("discount", discount)
    sums = np.array(x, dtype=np.float64)
    if sums.ndim == 0:
        raise ValueError(f"x: expected an array with a leading time axis, got {sums.item()!r}")
    for t in range(len(sums) - 2, -1, -1):  # each step works on all other axes at once
        sums[t] += discount * sums[t + 1]
    return sums


def explained_variance_1d(prediction: np.ndarray, target: np.ndarray) -> float:
    """Returns the share of a target's variance that a prediction explains.

    It is `1 - Var[target - prediction] / Var[target]` of two arrays `[N]`: 1 is a perfect prediction (up to a
    constant), 0 is as good as a constant, below 0 is worse than one. A target that does not vary counts as explained
    (1) by a prediction that does not vary, and as unexplained (0) by any other.
    """
    prediction = np.asarray(prediction, dtype=np.float64)
    target = np.asarray(target, dtype=np.float64)
    if prediction.ndim != 1 or prediction.shape != target.shape or prediction.size == 0:
        raise ValueError("prediction and target: expected two non-empty arrays of the same shape [N], "
                         f"got shapes {prediction.shape} and {target.shape}")
    if np.ptp(target) == 0.0:  # the variance of equal numbers may round to a little above zero
        return float(np.ptp(prediction) == 0.0)
    return float(1.0 - np.var(target - prediction) / np.var(target))


def normalize_advantages(advantages: np.ndarray) -> np.ndarray:
    """Returns the advantages `[N]` with mean zero and (population) standard deviation one.

    Advantages that are all equal become zeros.
    """
    advantages = np.asarray(advantages)
    return (advantages - np.mean(advantages)) / (finite_std(advantages) + _EPSILON)


def finite_std(values: np.ndarray, name: str = "advantages") -> float:
    """Returns the (population) standard deviation; raises `ValueError` where it overflows, with the values' name."""
    with np.errstate(over="ignore", invalid="ignore"):
        std = np.std(values)
    if not np.isfinite(std):
        raise ValueError(f"{name}: expected numbers whose standard deviation can be computed, got some as large as "
                         f"{np.abs(values).max()}")
    return std


def extract(x: Any, *keys: str) -> Tuple[Any, ...]:
    """Returns the entries of a dict under `keys`, or of a list of dicts a list for each key."""
    return tuple(x[key] if isinstance(x, Mapping) else [item[key] for item in x] for key in keys)


def stack_tensor_dict_list(tensor_dict_list: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    """Returns a dict of arrays (or of such dicts) of a list of dicts, stacked along a new first axis."""
    return _join(np.asarray, tensor_dict_list)


def concat_tensor_dict_list(tensor_dict_list: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    """Returns a dict of arrays (or of such dicts) of a list of dicts, joined along their first axis."""
    return _join(np.concatenate, tensor_dict_list)


def _join(join: Callable[[list], np.ndarray], dicts: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    columns = {key: [item[key] for item in dicts] for key in dicts[0]}
    return {key: _join(join, column) if isinstance(column[0], Mapping) else join(column)
            for key, column in columns.items()}


def create_feed_dict(placeholder_dict: Mapping[str, Any], value_dict: Mapping[str, Any]) -> Dict[Any, Any]:
    """Returns placeholder to value for all names of `placeholder_dict`; raises `ValueError` if a value is missing."""
    if not set(placeholder_dict) <= set(value_dict):
        raise ValueError(f"value_dict: expected the names {sorted(placeholder_dict)}, got {sorted(value_dict)}")
    return {placeholder: value_dict[name] for name, placeholder in placeholder_dict.items()}


def shift_advantages_to_positive(advantages: np.ndarray) -> np.ndarray:
    """Returns the advantages `[N]` shifted by a constant so that the smallest is just above zero (1e-8)."""
    advantages = np.asarray(advantages)
    return (advantages - np.min(advantages)) + _EPSILON


class ClassEncoder(json.JSONEncoder):
    """Writes settings as JSON, naming the classes and functions among them.

    ==========================  =======================================================
    value                       in the file
    ==========================  =======================================================
    class                       `{"$class": "module.Name"}`
    function, other callable    `{"function": "module.name"}`, a callable object by its class
    NumPy scalar or array       number, or nested lists of numbers
    path (`os.PathLike`)        string
    dataclass                   object of its fields
    enumeration member          its value
    ==========================  =======================================================

    Everything else raises `TypeError`, as in `json.JSONEncoder`. Use: `json.dumps(settings, cls=ClassEncoder)`.
    """

    def default(self, o: Any) -> Any:
        """Returns something that JSON can hold in place of `o`."""
        if isinstance(o, type):
            return {"$class": _full_name(o)}
        if isinstance(o, (np.ndarray, np.generic)):
            return o.tolist()
        if isinstance(o, os.PathLike):
            return os.fspath(o)
        if isinstance(o, enum.Enum):
            return o.value
        if dataclasses.is_dataclass(o):
            return {field.name: getattr(o, field.name) for field in dataclasses.fields(o)}
        if callable(o):
            return {"function": _full_name(o if hasattr(o, "__name__") else type(o))}
        return super().default(o)


def _full_name(named: Any) -> str:
    name = getattr(named, "__qualname__", named.__name__)
    return f"{named.__module__}.{name}" if getattr(named, "__module__", None) else name
