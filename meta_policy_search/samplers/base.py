"""Interface of the samplers, and the processing of one task's paths: returns, baseline, advantages."""
from typing import Any, List, Optional, Sequence, Tuple, Union

import numpy as np

from meta_policy_search.baselines.base import Baseline, as_baseline
from meta_policy_search.envs.gym_compat import method_of
from meta_policy_search.samplers.paths import (
    TaskPaths,
    check_finite_steps,
    concatenate_paths,
    pad_steps,
    path_mask,
    path_returns,
    path_successes,
)
from meta_policy_search.types import Path, TaskSamples
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import check_bool, check_choice, check_fraction, check_positive_int
from meta_policy_search.utils.fast_paths import fast_path
from meta_policy_search.utils.published_hooks import refuse_uncalled
from meta_policy_search.utils.serializable import Configurable
from meta_policy_search.utils.utils import discount_cumsum, normalize_advantages, shift_advantages_to_positive

__all__ = ["SampleProcessor", "Sampler"]

LOG_LEVELS = (False, True, "reward", "all")


class Sampler(Configurable):
    """Sampler interface.

    Args:
        env: environment with `reset` and `step`.
        policy: the policy that chooses the actions.
        batch_size: number of paths per task, at least one.
        max_path_length: most steps of a path, at least one.
    """

    total_timesteps_sampled: int = 0
    """Environment steps taken so far, for the log; 0 for a sampler that does not count."""

    def __init__(self, env: Any, policy: Any, batch_size: int, max_path_length: int) -> None:
        if method_of(env, "reset") is None or method_of(env, "step") is None:
            raise TypeError(f"env: expected an environment with the methods reset and step, got {env!r}")
        self.env = env
        self.policy = policy
        self.batch_size = check_positive_int("batch_size", batch_size)
        self.max_path_length = check_positive_int("max_path_length", max_path_length)

    def update_tasks(self) -> None:
        """Begins an iteration: samples new tasks."""
        raise NotImplementedError

    def obtain_samples(self, log: bool = False, log_prefix: str = "") -> Any:
        """Collects `batch_size` paths of each task.

        Args:
            log: whether to log times; keys begin with `log_prefix`.
            log_prefix: such as `Step_0-`.

        Returns:
            A dict of task index to a list of path dicts.
        """
        raise NotImplementedError

    def start_at(self, itr: int) -> None:
        """Makes `itr` the number of the iteration that begins next; by default samplers count for themselves."""

    def get_state(self) -> Any:
        """Returns what the next samples depend on beside policy and seed, for a snapshot; by default the steps."""
        return {"num_steps": self.total_timesteps_sampled}

    def set_state(self, state: Any) -> None:
        """Restores what `get_state` returned, where that is not None."""
        self.total_timesteps_sampled = state["num_steps"]

    def close(self) -> None:
        """Ends what the sampler has started, such as worker processes; by default nothing."""


class SampleProcessor(Configurable):
    """Turns the paths of one task into samples with advantages.

    It fits a reward baseline, estimates advantages by Generalized Advantage Estimation, and concatenates the paths.
    With `V` the fitted baseline, and `V = 0` after the last step of a path (also where `max_path_length` cut it off, as
    published):

    `delta_t = r_t + discount V_{t+1} - V_t`, `A_t = sum_k (discount gae_lambda)^k delta_{t+k}`.

    Args:
        baseline: a `Baseline`, or any object with `fit(paths)` and `predict(path)`.
        discount: discount factor per step, in [0, 1]. Default: 0.99.
        gae_lambda: lambda of the estimation, in [0, 1]: 1 is return minus baseline, 0 the one-step error. Default: 1.
        normalize_adv: whether to give a task's advantages zero mean and unit standard deviation. Default: False.
        positive_adv: whether to shift a task's (normalized) advantages so that the smallest is just above zero (1e-8).
            Default: False.

    References:
        Schulman et al. 2015, "High-Dimensional Continuous Control Using Generalized Advantage Estimation",
        arXiv:1506.02438, Eq. 16.
    """

    max_path_length: Optional[int] = None
    """Number of steps that paths are padded to; None for no padding."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_uncalled(cls, SampleProcessor)

    def __init__(self, baseline: Any, discount: float = 0.99, gae_lambda: float = 1, normalize_adv: bool = False,
                 positive_adv: bool = False) -> None:
        self._baseline, self._given_baseline = as_baseline(baseline), baseline
        self.discount = check_fraction("discount", discount, low_open=False)
        self.gae_lambda = check_fraction("gae_lambda", gae_lambda, low_open=False)
        self.normalize_adv = check_bool("normalize_adv", normalize_adv)
        self.positive_adv = check_bool("positive_adv", positive_adv)

    @property
    def baseline(self) -> Any:
        """The baseline that the constructor was given."""
        return self._given_baseline

    def process_samples(self, paths: Sequence[Path], log: Any = False, log_prefix: str = "") -> TaskSamples:
        """Processes the paths of one task.

        The path dicts get the keys `returns` and `advantages` (before normalization and shift); the baseline stays
        fitted to these paths. Other keys of the path dicts than those of `types.Path` are ignored.

        Args:
            paths: list of path dicts; lengths may differ.
            log: what to log of the paths: False nothing, `"reward"` only `AverageReturn`, `"all"` or True also
                `AverageDiscountedReturn`, `NumTrajs`, `AveragePathLength` (in steps), `StdReturn`, `MaxReturn` and
                `MinReturn`, and `SuccessRate` where env_infos hold `success`. Returns are undiscounted sums of a path's
                rewards where nothing else is said; the success rate is the share of the paths with a step of `success`.
            log_prefix: put before each logged key, such as `Step_0-`.

        Returns:
            A `TaskSamples` with `observations`, `actions`, `rewards`, `returns`, `advantages`, `env_infos`,
            `agent_infos` and `path_lengths`; float64 unless the paths hold another floating type. It is a plain dict
            of copies: editing it has no effect on the paths.

        Raises:
            ValueError: a path is malformed, or a number is not finite; names path and step.
        """
        (samples,) = self._process([concatenate_paths(paths)], log, log_prefix)
        return samples

    def _process(self, tasks: Sequence[TaskPaths], log: Any, log_prefix: str) -> List[TaskSamples]:
        """Processes the paths of each task and logs statistics."""
        log = check_choice("log", log, LOG_LEVELS)
        samples = self._make_samples(tasks)
        log_path_statistics(tasks, log, log_prefix, self.discount, self.max_path_length)
        return samples

    def _make_samples(self, tasks: Sequence[TaskPaths]) -> List[TaskSamples]:
        """Computes the samples of each task."""
        returns, advantages = self._estimate_advantages(tasks, self._baseline)
        samples: List[Any] = []
        for task, of_task, unscaled in zip(tasks, returns, advantages):
            samples.append({**task.arrays, "returns": of_task, "advantages": self._normalize(task, unscaled),
                            "env_infos": task.env_infos, "agent_infos": task.agent_infos,
                            "path_lengths": task.lengths})
        return samples

    def _estimate_advantages(self, tasks: Sequence[TaskPaths], baseline: Baseline
                             ) -> Tuple[List[np.ndarray], List[np.ndarray]]:
        """Fits the baseline to the returns of each task; returns the returns and the GAE of each task, `[N]`.

        Both are added to the path dicts.
        """
        mask = path_mask(np.concatenate([task.lengths for task in tasks]))  # of the paths of all tasks
        rewards = pad_steps(np.concatenate([task.arrays["rewards"] for task in tasks]), mask)
        returns = _split_tasks(tasks, _sums_to_come(rewards, self.discount)[mask])
        for task, values in zip(tasks, returns):
            add_to_paths(task, "returns", values)
        predictions = [fit_predict(task, baseline, values) for task, values in zip(tasks, returns)]
        values = pad_steps(np.concatenate(predictions), mask)
        deltas = rewards - values
        deltas[:, :-1] += self.discount * values[:, 1:]
        advantages = _split_tasks(tasks, _sums_to_come(deltas, self.discount * self.gae_lambda)[mask])
        for task, values in zip(tasks, advantages):
            add_to_paths(task, "advantages", values)
        return returns, advantages

    def _normalize(self, task: TaskPaths, advantages: np.ndarray) -> np.ndarray:
        """Normalizes and shifts the advantages `[N]` of a task as the arguments say."""
        try:
            if self.normalize_adv:
                advantages = normalize_advantages(advantages)
            return shift_advantages_to_positive(advantages) if self.positive_adv else advantages
        except ValueError as error:
            raise ValueError(f"{task.name}{error}") from error


def log_path_statistics(tasks: Sequence[TaskPaths], log: Any, log_prefix: str, discount: float,
                        max_path_length: Optional[int]) -> None:
    """Logs statistics over the paths of all tasks; `SampleProcessor.process_samples` describes them."""
    if log is False:
        return
    returns = np.concatenate([path_returns(task, None, max_path_length) for task in tasks])
    figures = {"AverageReturn": returns.mean()}
    if log != "reward":
        discounted_returns = np.concatenate([path_returns(task, discount, max_path_length) for task in tasks])
        figures.update(
            AverageDiscountedReturn=discounted_returns.mean(), NumTrajs=len(returns),
            AveragePathLength=sum(int(task.lengths.sum()) for task in tasks) / len(returns), StdReturn=returns.std(),
            MaxReturn=returns.max(), MinReturn=returns.min())
        successes = [of_task for of_task in map(path_successes, tasks) if of_task is not None]
        if successes:
            figures["SuccessRate"] = np.concatenate(successes).mean()
    logger.logkvs({log_prefix + key: value for key, value in figures.items()})


def add_to_paths(task: TaskPaths, key: str, values: np.ndarray) -> None:
    """Adds the steps `[N]` to the caller's path dicts under `key`, as copies; raises if they are not finite."""
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


def check_predictions(name: str, predictions: Sequence[Any], lengths: Union[np.ndarray, Sequence[int]]) -> np.ndarray:
    """Returns what `baseline.predict` gave for paths of these lengths as float64 `[N]`; errors begin with `name`."""
    predictions = [np.asarray(values, dtype=np.float64) for values in predictions]
    for p, (values, length) in enumerate(zip(predictions, lengths, strict=True)):
        if values.shape != (length,):
            raise ValueError(f"{name}path {p}: baseline.predict: expected an array of shape ({length},), one value for "
                             f"each step, got shape {values.shape}")
    flat = np.concatenate(predictions)
    if not np.isfinite(flat).all():
        p, values = next((p, values) for p, values in enumerate(predictions) if not np.isfinite(values).all())
        step = int(np.argmin(np.isfinite(values)))
        raise ValueError(f"{name}path {p}, step {step}: baseline.predict: expected finite numbers, got {values[step]}")
    return flat


def _split_tasks(tasks: Sequence[TaskPaths], values: np.ndarray) -> List[np.ndarray]:
    """Returns the steps of all tasks `[sum of N]` as an array `[N]` for each task."""
    return np.split(values, np.cumsum([task.lengths.sum() for task in tasks])[:-1])


def _sums_to_come(padded: np.ndarray, discount: float) -> np.ndarray:
    """Returns `y_t = x_t + discount y_{t+1}` along the last axis."""
    return np.moveaxis(discount_cumsum(np.moveaxis(padded, -1, 0), discount), 0, -1)
