"""Means of returns, and how far they can be trusted."""
from typing import NamedTuple, Optional

import numpy as np
from scipy.special import stdtrit

from meta_policy_search.types import PathsMetaBatch


class Interval(NamedTuple):
    """Means of independent values, and their 95% intervals."""

    mean: np.ndarray  # [...]
    half_width: np.ndarray  # [...], the interval is mean - half_width to mean + half_width; NaN for a single value


def task_returns(paths: PathsMetaBatch) -> np.ndarray:
    """Returns each task's mean undiscounted return of a path, float64 `[M]`."""
    return np.array([np.mean([np.sum(path["rewards"]) for path in task_paths]) for task_paths in paths.values()])


def task_timesteps(paths: PathsMetaBatch) -> np.ndarray:
    """Returns the number of steps of each task's paths together, int `[M]`."""
    return np.array([sum(len(path["rewards"]) for path in task_paths) for task_paths in paths.values()])


def mean_interval(values: np.ndarray) -> Interval:
    """Returns the mean over the first axis with its 95% interval by Student's t.

    For `n` independent values `[n, ...]` of standard deviation `s`, the half width is `t_{n-1, 0.975} s / sqrt(n)`.
    """
    values = np.asarray(values, np.float64)
    mean = values.mean(axis=0)
    if len(values) == 1:
        return Interval(mean, np.full(mean.shape, np.nan))
    return Interval(mean, stdtrit(len(values) - 1, 0.975) * values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def half_width_of_mean(half_widths: np.ndarray) -> float:
    """Returns the half width for a mean of independent means with half widths `h` `[n]`: `sqrt(sum_i h_i^2) / n`."""
    return float(np.sqrt(np.sum(np.square(half_widths))) / len(half_widths))


def running_mean(values: np.ndarray, reach: Optional[int] = None) -> tuple[np.ndarray, np.ndarray]:
    """Returns means over the values around each and of how many (fewer at the ends): each `[n]`.

    Args:
        values: `[n]`.
        reach: how many of them to either side; by default so many that means are over about 2%.
    """
    n = len(values)
    reach = n // 100 if reach is None else reach
    start, end = np.maximum(np.arange(n) - reach, 0), np.minimum(np.arange(n) + reach + 1, n)
    return np.array([np.mean(values[i:j]) for i, j in zip(start, end, strict=True)]), end - start
