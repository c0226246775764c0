"""Sampler interface, and the sample processor for the paths of one task."""
from functools import partial
from typing import Any, List, Optional, Sequence, Tuple, Union

import numpy as np

from meta_policy_search.baselines import Baseline, make_baseline
from meta_policy_search.envs.compat import check_steppable
from meta_policy_search.envs.spaces import as_numbers
from meta_policy_search.samplers.paths import (
    TaskPaths,
    check_finite_steps,
    concatenate_paths,
    pad_steps,
    path_mask,
    path_returns,
    success_rate,
)
from meta_policy_search.types import Path, TaskSamples
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import check_bool, check_choice, check_fraction, check_positive_int
from meta_policy_search.utils.fast_paths import fast_path
from meta_policy_search.utils.serializable import Configurable
from meta_policy_search.utils.threads import one_blas_thread
from meta_policy_search.utils.utils import discount_cumsum, normalize_advantages, shift_advantages_to_positive

__all__ = ["SampleProcessor", "Sampler"]


class Sampler(Configurable):
    """Interface of samplers.

    Args:
        env: environment with `reset` and `step`.
        policy: policy that selects the actions.
        batch_size: number of paths per task, at least 1.
        max_path_length: maximum number of steps of a path, at least 1.

    Raises:
        TypeError: `env` has no `reset` or `step`, or a number is not an integer.
        ValueError: a number is below 1.
    """

    policy: Any = None
    """Policy that selects the actions; None for samplers without this attribute."""

    batch_size: Any = None
    """Number of paths per task; None for samplers without this attribute."""

    total_timesteps_sampled: int = 0
    """Total number of sampled environment steps, for the log; 0 for samplers that do not count steps."""

    sampled_env: Any = None
    """Copy of `env` that the sampler samples; None for samplers that make no copy."""

    def __init__(self, env: Any, policy: Any, batch_size: int, max_path_length: int) -> None:
        self.policy = policy
        self.env = check_steppable(env)
        self.batch_size = check_positive_int("batch_size", batch_size)
        self.max_path_length = check_positive_int("max_path_length", max_path_length)

    def update_tasks(self) -> None:
        """Starts an iteration: samples new tasks."""
        raise NotImplementedError

    def obtain_samples(self, log: bool = False, log_prefix: str = "") -> Any:
        """Collects `batch_size` paths for each task.

        Args:
            log: whether to log times; default False.
            log_prefix: prefix of the logged keys, such as `Step_0-`.

        Returns:
            A dict from task index to a list of path dicts.
        """
        raise NotImplementedError

    def observe_returns(self, returns: np.ndarray) -> None:
        """Observes the mean return in each task after adaptation, float64 `[M]`; called once per iteration.

        By default does nothing.
        """

    def start_at(self, itr: int) -> None:
        """Sets the index of the next iteration. Default: does nothing."""

    def get_state(self) -> Any:
        """Returns everything that determines future samples, except the policy and the seed, for a snapshot.

        By default, the state is the number of sampled steps.
        """
        return {"num_steps": self.total_timesteps_sampled}

    def set_state(self, state: Any) -> None:
        """Restores a state returned by `get_state`. Not called for None."""
        self.total_timesteps_sampled = state["num_steps"]

    def close(self) -> None:
        """Releases resources such as worker processes. By default does nothing."""


class SampleProcessor(Configurable):
    """Converts the paths of one task to samples with advantages.

    The processor fits a reward baseline, estimates advantages by Generalized Advantage Estimation (GAE), and
    concatenates the paths. With the fitted baseline `V`, the estimates are

    `delta_t = r_t + discount V_{t+1} - V_t`, `A_t = sum_k (discount gae_lambda)^k delta_{t+k}`.

    `V` is zero after the last step of a path, also if the path ended at `max_path_length`, as in the published code.

    Args:
        baseline (str or Baseline): reward baseline: the name of a class (one of `baselines.BASELINES`), a `Baseline`,
            or any object with `fit(paths)` and `predict(path)`.
        discount (float): discount factor per step, in [0, 1]. Default: 0.99.
        gae_lambda (float): parameter lambda of generalized advantage estimation, in [0, 1]; 1 gives the return minus
            the baseline, 0 gives the one-step temporal difference. Default: 1.
        normalize_adv (bool): whether to normalize the advantages of a task to mean 0 and standard deviation 1. Default:
            False.
        positive_adv (bool): whether to shift the (normalized) advantages of a task so that the smallest is 1e-8.
            Default: False.

    Raises:
        TypeError, ValueError: an argument is invalid.

    References:
        Schulman et al. 2015, "High-Dimensional Continuous Control Using Generalized Advantage Estimation",
        arXiv:1506.02438, Eq. 16.
    """

    assignable_arguments = ("discount", "gae_lambda", "normalize_adv", "positive_adv")
    _checks = {**dict.fromkeys(("discount", "gae_lambda"), partial(check_fraction, low_open=False)),
               **dict.fromkeys(("normalize_adv", "positive_adv"), check_bool)}

    baseline: Any = None
    """The baseline: the object that was passed to the constructor, or an object of the named class."""

    return_baseline: Any = None
    """A second baseline, of the returns; None for processors with one baseline."""

    max_path_length: Optional[int] = None
    """Number of steps to which paths are padded; None for no padding."""

    reports_success: bool = False
    """Whether any processed path has reported success or failure; see `process_samples`."""

    def __init__(self, baseline: Union[str, Any], discount: float = 0.99, gae_lambda: float = 1,
                 normalize_adv: bool = False, positive_adv: bool = False) -> None:
        self.baseline = make_baseline(baseline)
        self.discount, self.gae_lambda = discount, gae_lambda
        self.normalize_adv, self.positive_adv = normalize_adv, positive_adv

    def process_samples(self, paths: Sequence[Path], log: Any = False, log_prefix: str = "") -> TaskSamples:
        """Processes the paths of one task.

        Adds the keys `returns` and `advantages` (before normalization and shift) to the path dicts. The baseline
        remains fitted to these paths. Keys of the path dicts that are not in `types.Path` are ignored.

        Args:
            paths: list of path dicts; lengths may differ.
            log: False (default) logs nothing; `"reward"` logs `AverageReturn`; `"all"` or True also logs
                `AverageDiscountedReturn`, `NumTrajs`, `AveragePathLength` (steps), `StdReturn`, `MaxReturn`,
                `MinReturn` and, if this or an earlier call found `success` or `is_success` in env_infos,
                `SuccessRate`. Except for `AverageDiscountedReturn`, returns are undiscounted sums of the rewards of a
                path. The success rate is the fraction of paths with at least one successful step.
            log_prefix: prefix of the logged keys, such as `Step_0-`.

        Returns:
            A `TaskSamples` with `observations`, `actions`, `rewards`, `returns`, `advantages`, `env_infos`,
            `agent_infos` and `path_lengths`. Floating-point arrays keep the type of the paths; other numbers, except
            actions, become float64. All arrays are copies: changing them does not affect the paths.

        Raises:
            ValueError: a path is malformed, or a number is not finite; the message names path and step.
        """
        (samples,) = self._process([concatenate_paths(paths)], log, log_prefix)
        return samples

    @one_blas_thread()
    def train_baseline(self, paths: Sequence[Path]) -> None:
        """Trains baselines that learn over iterations; see `Baseline.train`.

        Args:
            paths: path dicts of all tasks that `process_samples` has processed.
        """
        for baseline in baselines_of(self):
            baseline.train(paths)

    def get_state(self) -> Any:
        """Returns the parameters of the baselines, and whether paths report success, for a snapshot."""
        return {"baselines": [baseline.get_param_values() for baseline in baselines_of(self)],
                "reports_success": self.reports_success}

    def set_state(self, state: Any) -> None:
        """Restores what `get_state` returned."""
        self.reports_success = state["reports_success"]
        for baseline, params in zip(baselines_of(self), state["baselines"], strict=True):
            if params is not None:
                baseline.set_params(params)

    @one_blas_thread()
    def _process(self, tasks: Sequence[TaskPaths], log: Any, log_prefix: str) -> List[TaskSamples]:
        """Processes the paths of each task and logs statistics."""
        log = check_choice("log", log, (False, True, "reward", "all"))
        samples = self._make_samples(tasks)
        successes = success_rate([path for task in tasks for path in task.paths])
        self.reports_success |= not np.isnan(successes)
        if log is not False:
            returns = np.concatenate([path_returns(task, None, self.max_path_length) for task in tasks])
            figures = {"AverageReturn": returns.mean()}
            if log != "reward":
                discounted = [path_returns(task, self.discount, self.max_path_length) for task in tasks]
                figures.update(
                    AverageDiscountedReturn=np.concatenate(discounted).mean(), NumTrajs=len(returns),
                    AveragePathLength=sum(int(task.lengths.sum()) for task in tasks) / len(returns),
                    StdReturn=returns.std(), MaxReturn=returns.max(), MinReturn=returns.min())
                if self.reports_success:
                    figures["SuccessRate"] = float(np.nan_to_num(successes))
            logger.logkvs({log_prefix + key: value for key, value in figures.items()})
        return samples

    def _make_samples(self, tasks: Sequence[TaskPaths]) -> List[TaskSamples]:
        """Computes the samples of each task."""
        returns, advantages = self._estimate_advantages(tasks, self.baseline)
        return [as_samples(task, of_task, self._normalize(task, unscaled))
                for task, of_task, unscaled in zip(tasks, returns, advantages)]

    def _estimate_advantages(self, tasks: Sequence[TaskPaths], baseline: Baseline
                             ) -> Tuple[List[np.ndarray], List[np.ndarray]]:
        """Computes the returns and advantages of each task, `[N]`; the baseline is fitted to each task.

        Also adds returns and advantages to the path dicts.
        """
        mask = path_mask(np.concatenate([task.lengths for task in tasks]))  # one row per path of any task
        rewards = pad_steps(np.concatenate([task.arrays["rewards"] for task in tasks]), mask)
        returns = split_tasks(tasks, discount_cumsum(rewards.T, self.discount).T[mask])
        for task, values in zip(tasks, returns):
            add_to_paths(task, "returns", values)
        predictions = [fit_predict(task, baseline, values) for task, values in zip(tasks, returns)]
        values = pad_steps(np.concatenate(predictions), mask)
        deltas = rewards - values
        deltas[:, :-1] += self.discount * values[:, 1:]
        advantages = split_tasks(tasks, discount_cumsum(deltas.T, self.discount * self.gae_lambda).T[mask])
        for task, values in zip(tasks, advantages):
            add_to_paths(task, "advantages", values)
        return returns, advantages

    def _normalize(self, task: TaskPaths, advantages: np.ndarray) -> np.ndarray:
        """Normalizes the advantages `[N]` of a task if `normalize_adv`, then shifts them if `positive_adv`."""
        if self.normalize_adv:
            advantages = normalize_advantages(advantages, f"{task.name}advantages")
        return shift_advantages_to_positive(advantages) if self.positive_adv else advantages


def as_samples(task: TaskPaths, returns: np.ndarray, advantages: np.ndarray) -> TaskSamples:
    """Returns the samples of a task; `returns` and `advantages` are `[N]`."""
    samples: Any = {**task.arrays, "returns": returns, "advantages": advantages, "env_infos": task.env_infos,
                    "agent_infos": task.agent_infos, "path_lengths": task.lengths}
    return samples


def add_to_paths(task: TaskPaths, key: str, values: np.ndarray) -> None:
    """Adds copies of `values` `[N]` to the path dicts of a task as `key`; raises `ValueError` unless all are finite."""
    check_finite_steps(task.name, key, values, task.lengths)
    copies, start = values.copy(), 0
    for path, length in zip(task.paths, task.lengths.tolist()):
        path[key] = copies[start:start + length]  # type: ignore[literal-required]
        start += length


def fit_predict(task: TaskPaths, baseline: Baseline, returns: np.ndarray) -> np.ndarray:
    """Fits a baseline to the returns `[N]` of a task; returns its predictions, float64 `[N]`."""
    vectorized = fast_path(baseline, "fit_predict")
    if vectorized is None:
        baseline.fit(task.paths)
        predictions = [baseline.predict(path) for path in task.paths]
    else:
        predictions = vectorized(task.paths, task.arrays["observations"], returns, task.lengths)
    return check_predictions(task.name, predictions, task.lengths)


def check_predictions(name: str, predictions: Sequence[Any], lengths: np.ndarray) -> np.ndarray:
    """Returns the predictions of `baseline.predict` for several paths as one array, float64 `[N]`.

    Args:
        name: prefix of error messages.
        predictions: one array per path.
        lengths: int `[P]`, number of steps of each path.

    Raises:
        ValueError: a prediction has the wrong shape or is not finite.
    """
    predictions = [as_numbers(f"{name}path {p}: baseline.predict", values).astype(np.float64, copy=False)
                   for p, values in enumerate(predictions)]
    for p, (values, length) in enumerate(zip(predictions, lengths, strict=True)):
        if values.shape != (length,):
            raise ValueError(f"{name}path {p}: baseline.predict: expected an array of shape ({length},), one value per "
                             f"step, got shape {values.shape}")
    flat = np.concatenate(predictions)
    check_finite_steps(name, "baseline.predict", flat, lengths)
    return flat


def split_tasks(tasks: Sequence[TaskPaths], values: np.ndarray) -> List[np.ndarray]:
    """Splits an array of the steps of all tasks into one array `[N]` per task."""
    return np.split(values, np.cumsum([task.lengths.sum() for task in tasks])[:-1])


def baselines_of(processor: Any) -> List[Baseline]:
    """Returns the baselines of a sample processor that have the methods of `Baseline` besides `fit` and `predict`."""
    return [baseline for baseline in (processor.baseline, processor.return_baseline) if isinstance(baseline, Baseline)]
