"""Interface of the samplers, and the processing of one task's paths: returns, baseline, advantages."""
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from meta_policy_search.baselines.base import as_baseline
from meta_policy_search.samplers.rollouts import Rollouts
from meta_policy_search.samplers.samples import Samples, stack_rollouts
from meta_policy_search.types import Path, TaskSamples
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import check_bool, check_choice, check_fraction, check_positive_int
from meta_policy_search.utils.fast_paths import fast_path
from meta_policy_search.utils.signatures import SharedArguments
from meta_policy_search.utils.utils import discount_cumsum, normalize_advantages, shift_advantages_to_positive

__all__ = ["SampleProcessor", "Sampler"]

LOG_LEVELS = (False, True, "reward", "all")


class Sampler(SharedArguments):
    """Sampler interface.

    Args:
        env: environment with `reset` and `step`.
        policy: the policy that chooses the actions.
        batch_size: number of paths per task, at least one.
        max_path_length: most steps of a path, at least one.
    """

    total_timesteps_sampled: int = 0
    """Environment steps taken so far, for the log; 0 for a sampler that does not count."""

    max_steps: int = 0
    """Most steps of `obtain_samples`; 0 for a sampler that does not tell `on_steps` of them."""

    on_steps: Optional[Callable[[int], None]] = None
    """Where it is set, `obtain_samples` calls it with how many more of `max_steps` are done or will not be taken."""

    def __init__(self, env: Any, policy: Any, batch_size: int, max_path_length: int) -> None:
        if not (callable(getattr(env, "reset", None)) and callable(getattr(env, "step", None))):
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


class SampleProcessor(SharedArguments):
    """Turns the paths of one task into samples with advantages.

    It fits a reward baseline, estimates advantages by Generalized Advantage Estimation, and stacks the paths. With `V`
    the fitted baseline, and `V = 0` after the last step of a path (also where `max_path_length` cut it off, as
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

    _replaced = dict.fromkeys(("_compute_samples_data", "_compute_advantages", "_stack_path_data"), "process_samples")

    def __init__(self, baseline: Any, discount: float = 0.99, gae_lambda: float = 1, normalize_adv: bool = False,
                 positive_adv: bool = False) -> None:
        self.baseline = check_baseline("baseline", baseline)
        self.discount = check_fraction("discount", discount, low_open=False)
        self.gae_lambda = check_fraction("gae_lambda", gae_lambda, low_open=False)
        self.normalize_adv = check_bool("normalize_adv", normalize_adv)
        self.positive_adv = check_bool("positive_adv", positive_adv)
        self.max_path_length: Optional[int] = None  # number of steps that paths are padded to

    def process_samples(self, paths: Sequence[Path], log: Any = False, log_prefix: str = "") -> TaskSamples:
        """Processes the paths of one task.

        The path dicts get the keys `returns` and `advantages` (before normalization and shift); the baseline stays
        fitted to these paths.

        Args:
            paths: list of path dicts; lengths may differ.
            log: what to log of the paths: False nothing, `"reward"` only `AverageReturn`, `"all"` or True also
                `AverageDiscountedReturn`, `NumTrajs`, `AveragePathLength` (in steps), `StdReturn`, `MaxReturn` and
                `MinReturn`, and `SuccessRate` where env_infos hold `success`. Returns are undiscounted sums of a path's
                rewards where nothing else is said; the success rate is the share of the paths with a step of `success`.
            log_prefix: put before each logged key, such as `Step_0-`.

        Returns:
            A `TaskSamples` with `observations`, `actions`, `rewards`, `returns`, `advantages`, `env_infos`,
            `agent_infos` and `path_lengths`; float64 unless the paths hold another floating type.

        Raises:
            ValueError: a path is malformed, or a number is not finite; names path and step.
        """
        return self._process({None: paths}, log, log_prefix)[0]

    def _process(self, paths: Mapping[Any, Sequence[Path]], log: Any, log_prefix: str) -> Samples:
        """Processes the paths of each task by itself; the task `None` is not named in errors."""
        log = check_choice("log", log, LOG_LEVELS)
        rollouts = Rollouts.of(paths)
        samples = self._stack(rollouts, self._compute_entries(rollouts))
        self._log_path_statistics(rollouts, log, log_prefix)
        return samples

    def _compute_entries(self, rollouts: Rollouts) -> Dict[str, np.ndarray]:
        """Computes what the samples hold beside the paths, each `[M, P, T]`."""
        returns, advantages = self._estimate_advantages(rollouts, self.baseline)
        return {"returns": returns, "advantages": self._normalize(rollouts, advantages)}

    def _stack(self, rollouts: Rollouts, entries: Mapping[str, np.ndarray]) -> Samples:
        """Stacks the paths of each task."""
        return stack_rollouts(rollouts, entries)

    def _estimate_advantages(self, rollouts: Rollouts, baseline: Any) -> Tuple[np.ndarray, np.ndarray]:
        """Fits `baseline` to the returns of each task; gives returns and GAE, each `[M, P, T]`, to the paths too."""
        rewards = rollouts.zero_padded(rollouts.arrays.path["rewards"])
        returns = _sums_to_come(rewards, self.discount)
        rollouts.check_finite("returns", returns)
        rollouts.add("returns", returns)
        values = predict_by_task(rollouts, baseline, returns)
        deltas = rewards - values
        deltas[..., :-1] += self.discount * values[..., 1:]
        advantages = _sums_to_come(deltas, self.discount * self.gae_lambda)
        rollouts.check_finite("advantages", advantages)
        rollouts.add("advantages", advantages)
        return returns, advantages

    def _normalize(self, rollouts: Rollouts, advantages: np.ndarray) -> np.ndarray:
        """Normalizes and shifts the advantages `[M, P, T]` of each task as the arguments say."""
        if self.normalize_adv:
            advantages = rollouts.map_tasks(normalize_advantages, advantages)
        if self.positive_adv:
            advantages = rollouts.map_tasks(shift_advantages_to_positive, advantages)
        return advantages

    def _log_path_statistics(self, rollouts: Rollouts, log: Any, log_prefix: str) -> None:
        """Logs statistics over the paths of all tasks; `process_samples` says which."""
        if log is False:
            return
        tasks = range(len(rollouts))
        returns = np.concatenate([rollouts.path_returns(m, None, self.max_path_length) for m in tasks])
        logger.logkv(log_prefix + "AverageReturn", returns.mean())
        if log == "reward":
            return
        discounted_returns = np.concatenate(
            [rollouts.path_returns(m, self.discount, self.max_path_length) for m in tasks])
        logger.logkv(log_prefix + "AverageDiscountedReturn", discounted_returns.mean())
        logger.logkv(log_prefix + "NumTrajs", len(returns))
        logger.logkv(log_prefix + "AveragePathLength", rollouts.num_steps / len(returns))
        logger.logkv(log_prefix + "StdReturn", returns.std())
        logger.logkv(log_prefix + "MaxReturn", returns.max())
        logger.logkv(log_prefix + "MinReturn", returns.min())
        successes = [success for success in map(rollouts.successes, tasks) if success is not None]
        if successes:
            logger.logkv(log_prefix + "SuccessRate", np.concatenate(successes).mean())


def predict_by_task(rollouts: Rollouts, baseline: Any, returns: np.ndarray) -> np.ndarray:
    """Fits a baseline to the returns `[M, P, T]` of each task; returns what it predicts then, zero after ends."""
    baseline = as_baseline(baseline)
    fit_predict = fast_path(baseline, "fit_predict")
    observations, values = rollouts.arrays.path["observations"], np.zeros(returns.shape)
    for m, paths in enumerate(rollouts.values()):
        lengths = rollouts.path_lengths(m)
        if fit_predict is None:
            baseline.fit(paths)
            predictions = [baseline.predict(path) for path in paths]
        else:
            predictions = fit_predict(paths, rollouts.flat(observations, m), rollouts.flat(returns, m), lengths)
        values[m][rollouts.mask[m]] = check_predictions(rollouts.name(m), predictions, lengths)
    return values


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


def check_baseline(name: str, baseline: Any) -> Any:
    """Returns `baseline` if it can be fitted and can predict; else raises `TypeError`."""
    if not (callable(getattr(baseline, "fit", None)) and callable(getattr(baseline, "predict", None))):
        raise TypeError(f"{name}: expected an object with the methods fit and predict (ZeroBaseline() for none), got "
                        f"{baseline!r}")
    return baseline


def _sums_to_come(padded: np.ndarray, discount: float) -> np.ndarray:
    """Returns `y_t = x_t + discount y_{t+1}` along the last axis."""
    return np.moveaxis(discount_cumsum(np.moveaxis(padded, -1, 0), discount), 0, -1)
