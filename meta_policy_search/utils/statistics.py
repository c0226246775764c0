"""Statistics of returns: means, intervals, tails, corrections for several comparisons, and running means.

Sums are exact and rounded once (`math.fsum`), so that printed numbers do not depend on the order in which a processor
adds.
"""
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import numpy as np
from scipy.special import stdtrit

from meta_policy_search.types import PathsMetaBatch


class Interval(NamedTuple):
    """Means of independent values and their 95% intervals."""

    mean: np.ndarray  # [...]
    half_width: np.ndarray  # [...], the interval is mean - half_width to mean + half_width; NaN for a single value

    @property
    def low(self) -> np.ndarray:
        """Lower ends of the intervals."""
        return self.mean - self.half_width

    @property
    def high(self) -> np.ndarray:
        """Upper ends of the intervals."""
        return self.mean + self.half_width

    def __repr__(self) -> str:
        if np.ndim(self.mean) == 0:
            return f"{self:.2f}"
        return f"Interval(mean={self.mean!r}, half_width={self.half_width!r})"

    def __format__(self, spec: str) -> str:
        """Formats a single mean and its half width, such as `58.82 +- 0.12`; without the width if it is NaN."""
        width = "" if np.isnan(self.half_width) else f" +- {self.half_width:{spec.lstrip('+')}}"
        return f"{self.mean:{spec}}{width}"


def exact_sum(values: Any, axis: int = 0) -> np.ndarray:
    """Returns the sum along an axis, rounded once from the exact sum: the same on every processor."""
    values = np.moveaxis(np.asarray(values, np.float64), axis, -1)
    if (np.abs(values) > 1e300).any():
        return values.sum(axis=-1)  # may be infinite: `math.fsum` raises an error
    rows = values.reshape(math.prod(values.shape[:-1]), values.shape[-1]).tolist()
    return np.array(list(map(math.fsum, rows))).reshape(values.shape[:-1])[()]


def exact_mean(values: Any, axis: int = 0) -> np.ndarray:
    """Returns the mean along an axis: `exact_sum`, divided by the number of values."""
    return exact_sum(values, axis) / np.shape(values)[axis]


def task_returns(paths: PathsMetaBatch) -> np.ndarray:
    """Returns the mean undiscounted return over the paths of each task, float64 `[M]`."""
    return np.array([np.mean([np.sum(path["rewards"]) for path in task_paths]) for task_paths in paths.values()])


def task_timesteps(paths: PathsMetaBatch) -> np.ndarray:
    """Returns the total number of environment steps in the paths of each task, int `[M]`."""
    return np.array([sum(len(path["rewards"]) for path in task_paths) for task_paths in paths.values()])


def mean_interval(values: np.ndarray, level: float = 0.95) -> Interval:
    """Returns the mean over the first axis and its interval (Student's t).

    For `n` independent values with standard deviation `s`, the half width is `t_{n-1, (1 + level) / 2} s / sqrt(n)`.

    Args:
        values: `[n, ...]`, independent along the first axis.
        level: confidence level, in (0, 1). Default: 0.95.

    Returns:
        An `Interval` of float64 arrays `[...]`; the half width is NaN for `n = 1`.
    """
    values = np.asarray(values, np.float64)
    n, mean = len(values), exact_mean(values)
    if n == 1:
        return Interval(mean, np.full(mean.shape, np.nan))
    std = np.sqrt(exact_sum(np.square(values - mean)) / (n - 1))
    return Interval(mean, _quantile(n - 1, level) * std / np.sqrt(n))


def half_width_of_mean(half_widths: np.ndarray, count: Optional[int] = None) -> float:
    """Returns the half width of the 95% interval of the mean of `n` independent means of `count` values each.

    The variances of the means are pooled, with `n (count - 1)` degrees of freedom.

    Args:
        half_widths: `[n]`, the half widths of the 95% intervals of the means (Student's t).
        count: number of values `M` of each mean. Default None: unknown; the quantile of `half_widths` is kept, so the
            interval is slightly too wide.
    """
    n = len(half_widths)
    ratio = 1.0 if count is None else _quantile(n * (count - 1)) / _quantile(count - 1)
    return float(ratio * np.sqrt(exact_sum(np.square(half_widths))) / n)


def _quantile(degrees: int, level: float = 0.95) -> float:
    """Returns the half width of an interval of Student's t, rounded: further digits depend on the library."""
    return round(float(stdtrit(degrees, 0.5 + level / 2.0)), 12)


def worst_quarter(returns: np.ndarray) -> np.ndarray:
    """Returns the mean over the 25% of tasks with the lowest return (conditional value at risk, CVaR).

    If 25% is not a whole number of tasks, the last of these tasks counts in part. With less than four tasks, the value
    is the lowest return.

    Args:
        returns: `[M, ...]`, by task.

    Returns:
        float64 `[...]`.
    """
    ordered = np.sort(np.asarray(returns, np.float64), axis=0)
    weights = np.clip(len(ordered) / 4 - np.arange(len(ordered)), 0.0, 1.0)
    return exact_sum(weights * ordered.T, axis=-1).T / exact_sum(weights)


def tail_values(returns: np.ndarray, fraction: float = 0.25) -> np.ndarray:
    """Returns one value per task; their mean is the mean return in the tasks with the lowest returns (CVaR).

    With the return `q` of rank `ceil(fraction M)` from below, the values are `q - max(q - return, 0) / fraction`. Their
    interval over tasks is one of the CVaR in new tasks, because each value is the influence of its task, up to a
    constant.

    Args:
        returns: `[M]`, by task.
        fraction: fraction of the tasks that counts, in (0, 1]. Default: 0.25, as in `worst_quarter`.
    """
    returns = np.asarray(returns, np.float64)
    threshold = np.sort(returns)[math.ceil(fraction * len(returns)) - 1]
    return threshold - np.maximum(threshold - returns, 0.0) / fraction


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Returns p-values that are corrected for the number of comparisons (Holm, 1979)."""
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p)
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return corrected


def running_mean(values: np.ndarray, reach: Optional[int] = None) -> tuple[np.ndarray, np.ndarray]:
    """Returns the centered running mean of a sequence, and the number of values in each mean.

    The window is truncated at both ends of the sequence.

    Args:
        values: `[n]`.
        reach: number of values on each side of the center. Default None: `n // 100`, a window of about 2% of the
            values.

    Returns:
        The means, float64 `[n]`, and the window sizes, int `[n]`.
    """
    n = len(values)
    reach = n // 100 if reach is None else reach
    start, end = np.maximum(np.arange(n) - reach, 0), np.minimum(np.arange(n) + reach + 1, n)
    return np.array([exact_mean(values[i:j]) for i, j in zip(start, end, strict=True)]), end - start
