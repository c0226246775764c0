"""Statistics of returns: means, 95% intervals and running means."""
from typing import NamedTuple, Optional

import numpy as np
from scipy.special import stdtrit

from meta_policy_search.types import PathsMetaBatch

RESAMPLINGS = 10_000


class Interval(NamedTuple):
    """Means of independent values and their 95% intervals."""

    mean: np.ndarray  # [...]
    half_width: np.ndarray  # [...], the interval is mean - half_width to mean + half_width; NaN for a single value

    def __repr__(self) -> str:
        if np.ndim(self.mean) == 0:
            return f"{self.mean:.2f} +- {self.half_width:.2f}"
        return f"Interval(mean={self.mean!r}, half_width={self.half_width!r})"


class Score(NamedTuple):
    """A score and the bounds of its 95% interval."""

    mean: float
    low: float
    high: float


def task_returns(paths: PathsMetaBatch) -> np.ndarray:
    """Returns the mean undiscounted return over the paths of each task, float64 `[M]`."""
    return np.array([np.mean([np.sum(path["rewards"]) for path in task_paths]) for task_paths in paths.values()])


def task_timesteps(paths: PathsMetaBatch) -> np.ndarray:
    """Returns the total number of environment steps in the paths of each task, int `[M]`."""
    return np.array([sum(len(path["rewards"]) for path in task_paths) for task_paths in paths.values()])


def mean_interval(values: np.ndarray) -> Interval:
    """Returns the mean over the first axis and its 95% interval (Student's t).

    For `n` independent values with standard deviation `s`, the half width is `t_{n-1, 0.975} s / sqrt(n)`.

    Args:
        values: `[n, ...]`, independent along the first axis.

    Returns:
        An `Interval` of float64 arrays `[...]`; the half width is NaN for `n = 1`.
    """
    values = np.asarray(values, np.float64)
    mean = values.mean(axis=0)
    if len(values) == 1:
        return Interval(mean, np.full(mean.shape, np.nan))
    return Interval(mean, stdtrit(len(values) - 1, 0.975) * values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def half_width_of_mean(half_widths: np.ndarray) -> float:
    """Returns the half width of the mean of `n` independent means with half widths `h_i`: `sqrt(sum_i h_i^2) / n`."""
    return float(np.sqrt(np.sum(np.square(half_widths))) / len(half_widths))


def interquartile_mean(scores: np.ndarray) -> Score:
    """Returns the mean of the middle half of all scores, with its 95% interval (percentile bootstrap).

    Policies and tasks are resampled with replacement, with a fixed seed. Agarwal et al. 2021 (arXiv:2108.13264)
    resample the runs of each task separately. Here, a run is one policy that is tested in all tasks, so it is resampled
    as a whole. With one seed, the interval is over tasks only.

    Args:
        scores: `[seeds, tasks]`.
    """
    from scipy.stats import trim_mean  # imported here because it takes longer than the rest of this module

    seeds, tasks = scores.shape
    rng = np.random.default_rng(1)
    rows = rng.integers(seeds, size=(RESAMPLINGS, seeds, 1))
    columns = rng.integers(tasks, size=(RESAMPLINGS, 1, tasks))
    means = trim_mean(scores[rows, columns].reshape(RESAMPLINGS, -1), 0.25, axis=1)
    return Score(trim_mean(scores, 0.25, axis=None), *np.quantile(means, (0.025, 0.975)))


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
    return np.array([np.mean(values[i:j]) for i, j in zip(start, end, strict=True)]), end - start
