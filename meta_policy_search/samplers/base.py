"""Interface of the samplers, and the processing of one task's paths: returns, baseline, advantages."""
from typing import Any, NamedTuple, Optional, Sequence

import numpy as np

from meta_policy_search.types import Infos, Path, TaskSamples
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import check_bool, check_choice, check_fraction, check_positive_int
from meta_policy_search.utils.utils import discount_cumsum, normalize_advantages, shift_advantages_to_positive

__all__ = ["PathBatch", "ProcessedTask", "SampleProcessor", "Sampler"]

LOG_LEVELS = (False, True, "reward", "all")


class Sampler:
    """Sampler interface.

    Args:
        env: environment with `reset` and `step`.
        policy: the policy that chooses the actions.
        batch_size: number of paths per task, at least one.
        max_path_length: most steps of a path, at least one.

    Raises:
        TypeError: `env` cannot be stepped, or a number is not an integer.
        ValueError: a number is smaller than one.
    """

    def __init__(self, env: Any, policy: Any, batch_size: int, max_path_length: int) -> None:
        if not (callable(getattr(env, "reset", None)) and callable(getattr(env, "step", None))):
            raise TypeError(f"env: expected an environment with the methods reset and step, got {env!r}")
        self.env = env
        self.policy = policy
        self.batch_size = check_positive_int("batch_size", batch_size)
        self.max_path_length = check_positive_int("max_path_length", max_path_length)

    def obtain_samples(self) -> Any:
        """Collects `batch_size` paths.

        Returns:
            A list of path dicts; from samplers of several tasks, a dict of task index to such a list.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Ends what the sampler has started, such as worker processes; by default nothing."""


class PathBatch:
    """The paths of one task, checked, and stacked into arrays of its own (copies).

    Two layouts are used: flat, `[N, ...]`, with all steps one path after the other, and padded, `[P, T, ...]`, with
    zeros after the end of a path. `pad` and `flatten` go from one to the other, for paths of any lengths.

    Args:
        paths: list of path dicts with `observations` `[T, O]`, `actions` `[T, A]` and `rewards` `[T]`, and
            where there are any `env_infos` and `agent_infos`.
        task: name of the task, for error messages; None where there is only one.
        max_path_length: number of steps `T` to pad to; by default the length of the longest path.

    Attributes:
        lengths: int `[P]`.
        mask: bool `[P, T]`, True on the steps that were taken.
        observations: `[N, O]`, float64 unless the paths hold another floating type; finite.
        actions: `[N, A]`, of the paths' type; finite.
        rewards: `[N]`, float64 unless the paths hold another floating type; finite.
        env_infos: each `[N, ...]`: those that every path has, as an environment may report some things at times.
        agent_infos: each `[N, ...]`; all paths have the same.

    Raises:
        TypeError: `paths` is not a list, or observations, actions or rewards are not numbers.
        ValueError: there are no paths, a key is missing, shapes or lengths do not fit, or a value is not finite;
            names task, path and step.
    """

    def __init__(self, paths: Sequence[Path], task: Any = None, max_path_length: Optional[int] = None) -> None:
        self._task = "" if task is None else f"task {task}, "
        if not isinstance(paths, (list, tuple)):
            raise TypeError(f"{self._task}paths: expected a list of path dicts, got {type(paths).__name__}")
        if not paths:
            raise ValueError(f"{self._task}paths: expected at least one path, got an empty list")
        self.paths = paths
        self.lengths = np.array([self._length_of(index) for index in range(len(paths))])
        longest = int(self.lengths.max())
        if max_path_length is not None and longest > max_path_length:
            raise ValueError(f"{self._task}path {self.lengths.argmax()}: expected at most max_path_length="
                             f"{max_path_length} steps, got {longest}")
        self.mask = np.arange(max_path_length or longest) < self.lengths[:, None]
        self._ends = np.cumsum(self.lengths)

        self.observations = self._stack_numbers("observations")
        self.actions = self._stack_numbers("actions")
        self.rewards = self._stack_numbers("rewards")
        self.env_infos = self._stack_infos("env_infos", needed_everywhere=False)
        self.agent_infos = self._stack_infos("agent_infos", needed_everywhere=True)

    def pad(self, flat: np.ndarray) -> np.ndarray:
        """Returns `[N, ...]` as `[P, T, ...]`, of the same type, zero after the end of each path."""
        padded = np.zeros(self.mask.shape + flat.shape[1:], dtype=flat.dtype)
        padded[self.mask] = flat
        return padded

    def flatten(self, padded: np.ndarray) -> np.ndarray:
        """Returns `[P, T, ...]` without its padding as `[N, ...]`."""
        return padded[self.mask]

    def successes(self) -> Optional[np.ndarray]:
        """Returns whether each path succeeded, bool `[P]`; None where the paths do not say.

        A path succeeded if its info `success` says so at any of its steps, by being true, or above zero. (A step that
        lacks the info, which samplers fill up with NaN, says no.)
        """
        values = self.env_infos.get("success")
        if values is None or values.ndim != 1 or values.dtype.kind not in "biuf":
            return None
        return self.pad(values > 0).any(axis=1)

    def store(self, key: str, flat: np.ndarray) -> None:
        """Puts `[N, ...]` under `key` into the path dicts, to each path its steps (views)."""
        for path, start, end in zip(self.paths, self._ends - self.lengths, self._ends, strict=True):
            path[key] = flat[start:end]

    def check_finite(self, name: str, flat: np.ndarray) -> None:
        """Raises `ValueError` naming task, path and step if one of the numbers `[N, ...]` is infinite or NaN."""
        finite = np.isfinite(flat)
        if not finite.all():
            row = int(np.argwhere(~finite)[0, 0])
            path = int(np.searchsorted(self._ends, row, side="right"))
            step = row - int(self._ends[path] - self.lengths[path])
            raise ValueError(f"{self._task}path {path}, step {step}: {name}: expected finite numbers, got {flat[row]}")

    def check_predictions(self, index: int, values: Any, length: int) -> np.ndarray:
        """Returns what a baseline predicted for path `index` if that is a vector of `length` finite numbers.

        Raises:
            ValueError: it is not; names task and path, and the step of a number that is not finite.
        """
        values = np.asarray(values, dtype=np.float64)
        if values.shape != (length,):
            raise ValueError(f"{self._task}path {index}: baseline.predict: expected an array of shape ({length},), "
                             f"one value for each step, got shape {values.shape}")
        if not np.isfinite(values).all():
            step = int(np.argmin(np.isfinite(values)))
            raise ValueError(f"{self._task}path {index}, step {step}: baseline.predict: expected finite numbers, got "
                             f"{values[step]}")
        return values

    def _length_of(self, index: int) -> int:
        path = self.paths[index]
        for key in ("observations", "actions", "rewards"):
            if key not in path:
                raise ValueError(f"{self._task}path {index}: expected a key {key!r}, got only {sorted(path)}")
        shape = np.shape(path["rewards"])
        if len(shape) != 1 or shape[0] == 0:
            raise ValueError(f"{self._task}path {index}: rewards: expected shape [T] with T of at least 1, got {shape}")
        return shape[0]

    def _stack(self, name: str, arrays: Sequence[Any]) -> np.ndarray:
        """Returns the arrays, one of each path, as one `[N, ...]`."""
        arrays = [np.asarray(array) for array in arrays]
        for index, (array, length) in enumerate(zip(arrays, self.lengths, strict=True)):
            if array.shape[:1] != (length,):
                raise ValueError(f"{self._task}path {index}: {name}: expected {length} steps, as many as rewards, got "
                                 f"shape {array.shape}")
            if array.shape[1:] != arrays[0].shape[1:]:
                raise ValueError(f"{self._task}path {index}: {name}: expected {arrays[0].shape[1:]} after the axis of "
                                 f"steps, as in path 0, got shape {array.shape}")
        return np.concatenate(arrays)

    def _stack_numbers(self, key: str) -> np.ndarray:
        stacked = self._stack(key, [path[key] for path in self.paths])
        if stacked.dtype.kind not in "fiub":
            raise TypeError(f"{self._task}{key}: expected real numbers, got an array of dtype {stacked.dtype}")
        if stacked.dtype.kind != "f" and key != "actions":
            stacked = stacked.astype(np.float64)
        self.check_finite(key, stacked)
        return stacked

    def _stack_infos(self, key: str, needed_everywhere: bool) -> Infos:
        infos: list[dict[str, Any]] = [path.get(key, {}) for path in self.paths]
        for index, info in enumerate(infos):
            if needed_everywhere and info.keys() != infos[0].keys():
                raise ValueError(f"{self._task}path {index}: {key}: expected the same keys in all paths, got "
                                 f"{sorted(info)} here and {sorted(infos[0])} in path 0")
        common = [name for name in infos[0] if all(name in info for info in infos)]
        return {name: self._stack(f"{key}[{name!r}]", [info[name] for info in infos]) for name in common}


class ProcessedTask(NamedTuple):
    """What processing the paths of one task gives: the samples, and what the log is made from."""

    samples: TaskSamples
    rewards: np.ndarray  # [N], in the environment's reward unit
    path_returns: np.ndarray  # [P], undiscounted sum of each path's rewards
    discounted_path_returns: np.ndarray  # [P], the same, discounted from the start of the path
    path_successes: Optional[np.ndarray]  # bool [P], whether each path succeeded; None where the paths do not say


class SampleProcessor:
    """Turns the paths of one task into samples with advantages.

    - fits a reward baseline (`ZeroBaseline` skips this step),
    - estimates advantages by Generalized Advantage Estimation,
    - stacks the paths.

    With `V` the fitted baseline, and `V = 0` after the last step of a path (also where `max_path_length` cut it
    off, as published):

    `delta_t = r_t + discount V_{t+1} - V_t`, `A_t = sum_k (discount gae_lambda)^k delta_{t+k}`.

    Args:
        baseline: a `Baseline`, or any object with `fit(paths)` and `predict(path)`.
        discount: discount factor per step, in [0, 1]. Default: 0.99.
        gae_lambda: lambda of the estimation, in [0, 1]: 1 is return minus baseline, 0 the one-step error. Default: 1.
        normalize_adv: whether to give the advantages of the task zero mean and unit standard deviation. Default:
            False.
        positive_adv: whether to shift the (normalized) advantages of the task so that the smallest is just above
            zero (1e-8). Default: False.

    Raises:
        TypeError: `baseline` lacks a method, or another argument is of the wrong type.
        ValueError: `discount` or `gae_lambda` is outside [0, 1].

    References:
        Schulman et al. 2015, "High-Dimensional Continuous Control Using Generalized Advantage Estimation",
        arXiv:1506.02438, Eq. 16.
    """

    def __init__(self, baseline: Any, discount: float = 0.99, gae_lambda: float = 1, normalize_adv: bool = False,
                 positive_adv: bool = False) -> None:
        self.baseline = check_baseline("baseline", baseline)
        self.discount = check_fraction("discount", discount, low_open=False)
        self.gae_lambda = check_fraction("gae_lambda", gae_lambda, low_open=False)
        self.normalize_adv = check_bool("normalize_adv", normalize_adv)
        self.positive_adv = check_bool("positive_adv", positive_adv)

    def process_samples(self, paths: Sequence[Path], log: Any = False, log_prefix: str = "") -> TaskSamples:
        """Processes the paths of one task.

        The path dicts get the keys `returns` and `advantages` (before normalization and shift); the baseline stays
        fitted to these paths.

        Args:
            paths: list of path dicts; lengths may differ.
            log: what to log of the paths: False nothing, `"reward"` only `AverageReturn`, `"all"` or True also
                `AverageDiscountedReturn`, `NumTrajs`, `StdReturn`, `MaxReturn` and `MinReturn`, and `SuccessRate` where
                env_infos hold `success`. Returns are undiscounted sums of a path's rewards where nothing else is said;
                the success rate is the share of the paths with a step of `success`.
            log_prefix: put before each logged key, such as `Step_0-`.

        Returns:
            A `TaskSamples` with `observations`, `actions`, `rewards`, `returns`, `advantages`, `env_infos`,
            `agent_infos` and `path_lengths`; arrays of its own, float64 unless the paths hold another floating type.

        Raises:
            TypeError: `paths` is not a list, or holds something that is not a number.
            ValueError: a path is malformed, or an observation, action, reward or advantage is not finite; names
                path and step.
        """
        log = check_choice("log", log, LOG_LEVELS)
        processed = self._process_task(paths)
        log_path_statistics([processed], log, log_prefix)
        return processed.samples

    def _process_task(self, paths: Sequence[Path], task: Any = None) -> ProcessedTask:
        """Processes the paths of one task, whose name `task` errors mention."""
        batch = PathBatch(paths, task)
        returns, advantages = self._estimate_advantages(batch, self.baseline)
        samples = TaskSamples(
            observations=batch.observations, actions=batch.actions, rewards=batch.rewards, returns=returns,
            advantages=self._normalize(advantages), env_infos=batch.env_infos, agent_infos=batch.agent_infos,
            path_lengths=batch.lengths,
        )
        return self._with_path_returns(samples, batch)

    def _estimate_advantages(self, batch: PathBatch, baseline: Any) -> tuple[np.ndarray, np.ndarray]:
        """Fits `baseline` to the returns; gives returns and GAE advantages, each float64 `[N]`, to the paths too."""
        rewards = batch.pad(batch.rewards)
        returns = batch.flatten(_sums_to_come(rewards, self.discount))
        batch.check_finite("returns", returns)
        batch.store("returns", returns)
        baseline.fit(batch.paths)
        values = batch.pad(np.concatenate([
            batch.check_predictions(index, baseline.predict(path), length)
            for index, (path, length) in enumerate(zip(batch.paths, batch.lengths, strict=True))
        ]))
        deltas = rewards - values
        deltas[:, :-1] += self.discount * values[:, 1:]
        advantages = batch.flatten(_sums_to_come(deltas, self.discount * self.gae_lambda))
        batch.check_finite("advantages", advantages)
        batch.store("advantages", advantages)
        return returns, advantages

    def _normalize(self, advantages: np.ndarray) -> np.ndarray:
        """Normalizes and shifts the advantages `[N]` of one task as the arguments say."""
        if self.normalize_adv:
            advantages = normalize_advantages(advantages)
        if self.positive_adv:
            advantages = shift_advantages_to_positive(advantages)
        return advantages

    def _with_path_returns(self, samples: TaskSamples, batch: PathBatch) -> ProcessedTask:
        rewards = batch.pad(batch.rewards)
        discounts = self.discount ** np.arange(rewards.shape[1])
        return ProcessedTask(samples, batch.rewards, rewards.sum(axis=1), rewards @ discounts, batch.successes())


def check_baseline(name: str, baseline: Any) -> Any:
    """Returns `baseline` if it can be fitted and can predict; else raises `TypeError`."""
    if not (callable(getattr(baseline, "fit", None)) and callable(getattr(baseline, "predict", None))):
        raise TypeError(f"{name}: expected an object with the methods fit and predict (ZeroBaseline() for none), got "
                        f"{baseline!r}")
    return baseline


def log_path_statistics(processed: Sequence[ProcessedTask], log: Any, log_prefix: str) -> None:
    """Logs statistics over the paths of all tasks; `SampleProcessor.process_samples` says which.

    Args:
        processed: one `ProcessedTask` per task.
        log: a member of `LOG_LEVELS`.
        log_prefix: put before each key.
    """
    if log is False:
        return
    returns = np.concatenate([task.path_returns for task in processed])
    logger.logkv(log_prefix + "AverageReturn", returns.mean())
    if log == "reward":
        return
    discounted_returns = np.concatenate([task.discounted_path_returns for task in processed])
    logger.logkv(log_prefix + "AverageDiscountedReturn", discounted_returns.mean())
    logger.logkv(log_prefix + "NumTrajs", len(returns))
    logger.logkv(log_prefix + "StdReturn", returns.std())
    logger.logkv(log_prefix + "MaxReturn", returns.max())
    logger.logkv(log_prefix + "MinReturn", returns.min())
    successes = [task.path_successes for task in processed if task.path_successes is not None]
    if successes:
        logger.logkv(log_prefix + "SuccessRate", np.concatenate(successes).mean())


def _sums_to_come(padded: np.ndarray, discount: float) -> np.ndarray:
    """Returns `y_t = x_t + discount y_{t+1}` along the second axis of `[P, T]`."""
    return discount_cumsum(padded.T, discount).T
