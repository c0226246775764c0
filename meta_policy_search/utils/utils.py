"""Helpers: seeds, timing, discounted sums, advantages, dicts of arrays, and JSON encoding of settings."""
import contextlib
import enum
import json
import random
import sys
import time
from typing import Any, Callable, Dict, Iterator, Mapping, Sequence, Tuple

import numpy as np

from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_int_at_least, check_non_negative
from meta_policy_search.utils.serializable import name_of_callable

_EPSILON = 1e-8  # keeps divisors and shifted advantages positive


def set_seed(seed: int) -> None:
    """Seeds all random generators of this process.

    Sets the root seed of the library (`utils.seeding`) and seeds Python's `random`, NumPy's global generator and, if
    TensorFlow is loaded, the current default graph. Call this function before building any objects: networks draw
    their weights in the constructor.

    Args:
        seed: non-negative integer of any size. NumPy's global generator is seeded with `seed % 2**32`.

    Raises:
        TypeError: `seed` is not an integer.
        ValueError: `seed` is negative.
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
    """Adds the duration of a `with` block in seconds to `times[key]` (0 if missing)."""
    started = time.perf_counter()
    try:
        yield
    finally:
        times[key] = times.get(key, 0.0) + time.perf_counter() - started


def draw_index(probabilities: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Samples indices with given probabilities by inverse transform sampling.

    Args:
        probabilities: `[..., n]`, non-negative; the last axis sums to one, up to rounding.
        uniform: `[...]`, random numbers, uniform in `[0, 1)`.

    Returns:
        int64 `[...]`, indices from 0 to `n - 1`. Indices with probability zero never occur.
    """
    sums = np.cumsum(probabilities, axis=-1)
    return np.sum(sums[..., :-1] <= uniform[..., None] * sums[..., -1:], axis=-1)


def discount_cumsum(x: np.ndarray, discount: float) -> np.ndarray:
    """Computes discounted cumulative sums along the first axis: `y_t = x_t + discount * y_{t+1}`.

    Args:
        x: `[T, ...]`, such as the rewards of a path.
        discount: discount factor per step, at least 0.

    Returns:
        float64 `[T, ...]`.

    Raises:
        ValueError: `discount` is negative or not finite.

    Example:
        >>> discount_cumsum([1.0, 0.0, 4.0], 0.5)
        array([2., 2., 4.])
    """
    discount = check_non_negative("discount", discount)
    sums = np.array(x, dtype=np.float64)
    for t in range(len(sums) - 2, -1, -1):  # vectorized over the other axes
        sums[t] += discount * sums[t + 1]
    return sums


def explained_variance_1d(prediction: np.ndarray, target: np.ndarray) -> float:
    """Computes the explained variance `1 - Var[target - prediction] / Var[target]`.

    The value is 1 for a prediction that is perfect up to a constant, 0 for a constant prediction, and negative for
    worse predictions. For a constant target, it is 1 if the prediction is constant and 0 otherwise.

    Args:
        prediction: `[N]`.
        target: `[N]`.

    Raises:
        ValueError: the arrays are empty, not one-dimensional or of different shapes.
    """
    prediction = np.asarray(prediction, dtype=np.float64)
    target = np.asarray(target, dtype=np.float64)
    if prediction.ndim != 1 or prediction.shape != target.shape or prediction.size == 0:
        raise ValueError("prediction and target: expected two non-empty arrays of the same shape [N], "
                         f"got shapes {prediction.shape} and {target.shape}")
    if np.ptp(target) == 0.0:  # rounding can make the variance of equal numbers positive
        return float(np.ptp(prediction) == 0.0)
    return float(1.0 - np.var(target - prediction) / np.var(target))


def normalize_advantages(advantages: np.ndarray, name: str = "advantages") -> np.ndarray:
    """Normalizes advantages to mean 0 and (population) standard deviation 1; equal advantages become 0.

    Args:
        advantages: array of any shape, such as `[N]`.
        name: name of the advantages in error messages.

    Raises:
        ValueError: the standard deviation is not finite.
    """
    advantages = np.asarray(advantages)
    with np.errstate(over="ignore", invalid="ignore"):
        std = np.std(advantages)
    if not np.isfinite(std):
        raise ValueError(f"{name}: expected numbers with a finite standard deviation, got absolute values up to "
                         f"{np.abs(advantages).max()}")
    if np.ptp(advantages) == 0.0:  # rounding can make the mean differ from equal numbers
        return np.zeros_like(advantages, dtype=np.float64)
    return (advantages - np.mean(advantages)) / (std + _EPSILON)


def extract(x: Any, *keys: str) -> Tuple[Any, ...]:
    """Returns the entries of a dict for `keys`; for a list of dicts, a list of entries per key."""
    return tuple(x[key] if isinstance(x, Mapping) else [item[key] for item in x] for key in keys)


def stack_tensor_dict_list(tensor_dict_list: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    """Stacks the arrays of a list of (nested) dicts along a new first axis; returns one (nested) dict."""
    return _join(np.asarray, tensor_dict_list)


def concat_tensor_dict_list(tensor_dict_list: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    """Concatenates the arrays of a list of (nested) dicts along the first axis; returns one (nested) dict."""
    return _join(np.concatenate, tensor_dict_list)


def _join(join: Callable[[list], np.ndarray], dicts: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    columns = {key: [item[key] for item in dicts] for key in dicts[0]}
    return {key: _join(join, column) if isinstance(column[0], Mapping) else join(column)
            for key, column in columns.items()}


def create_feed_dict(placeholder_dict: Mapping[str, Any], value_dict: Mapping[str, Any]) -> Dict[Any, Any]:
    """Builds a TensorFlow feed dict from placeholders and values with the same names.

    Args:
        placeholder_dict: name to placeholder.
        value_dict: name to value; may contain additional names.

    Raises:
        ValueError: a value is missing.
    """
    if not set(placeholder_dict) <= set(value_dict):
        raise ValueError(f"value_dict: expected the names {sorted(placeholder_dict)}, got {sorted(value_dict)}")
    return {placeholder: value_dict[name] for name, placeholder in placeholder_dict.items()}


def shift_advantages_to_positive(advantages: np.ndarray) -> np.ndarray:
    """Shifts advantages `[N]` by a constant so that the smallest is 1e-8."""
    advantages = np.asarray(advantages)
    return (advantages - np.min(advantages)) + _EPSILON


class ClassEncoder(json.JSONEncoder):
    """JSON encoder for settings; encodes classes and functions by their names.

    ==========================  =======================================================
    value                       JSON
    ==========================  =======================================================
    class                       `{"$class": "module.Name"}`
    function, other callable    `{"function": "module.name"}`, a callable object by its class
    NumPy scalar or array       number, or nested lists of numbers
    enumeration member          its value
    ==========================  =======================================================

    Other unsupported objects raise `TypeError`, as in `json.JSONEncoder`.

    Usage: `json.dumps(settings, cls=ClassEncoder)`.
    """

    def default(self, o: Any) -> Any:
        """Returns a JSON-compatible replacement for `o`."""
        if isinstance(o, type):
            return {"$class": f"{o.__module__}.{o.__qualname__}"}
        if isinstance(o, (np.ndarray, np.generic)):
            return o.tolist()
        if isinstance(o, enum.Enum):
            return o.value
        if callable(o):
            named: Any = o if name_of_callable(o) else type(o)
            return {"function": f"{named.__module__}.{named.__name__}"}
        return super().default(o)
