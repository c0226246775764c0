"""Processing of paths for DiCE objectives (Foerster et al. 2018, arXiv:1802.05098).

DiCE weighs the reward of step t with the magic box of all actions up to t, so samples keep their place in the
path: everything is `[P, T, ...]` with `T = max_path_length`, zero after the end of a path, and a mask.

Two things bias a DiCE gradient. One is taken care of here, the other is the user's choice of baseline:

- Subtracting `b_t` from the reward of step t leaves the expected gradient as it is if `b_t` depends on time alone.
  A state depends on earlier actions, so a state-dependent `b_t` biases the gradient. Give a `LinearTimeBaseline`
  (or `ZeroBaseline`) as `baseline`, and a state-dependent one as `return_baseline`.
- If a path ends early and the subtraction ends with it, how often `b_t` is subtracted depends on the actions,
  which biases the gradient too. After the end the reward is zero, but `b_t` is still to be subtracted. All boxes
  after the end equal that of the whole path, so the sum of what is missing suffices: it is returned as
  `adjusted_rewards_after_end` `[P]`. The mean and the shift of `normalize_adv` and `positive_adv` are baselines in
  this sense as well. With `box_pt` of the actions up to t and `box_p` of all actions, the unbiased objective is

  `1/P sum_p (sum_t box_pt adjusted_rewards_pt + box_p adjusted_rewards_after_end_p)`.

  Published code leaves the second term out. It is zero for paths as long as the task's longest: steps that no path
  reached are left alone, where a baseline would extrapolate and only add noise. (What bias that leaves vanishes with
  the probability that no path gets as far as it might.)
"""
from typing import Any, Sequence

import numpy as np

from meta_policy_search.samplers.base import PathBatch, ProcessedTask, SampleProcessor, check_baseline
from meta_policy_search.samplers.meta_sample_processor import MetaSampleProcessor
from meta_policy_search.types import Path, TaskSamples
from meta_policy_search.utils.checks import check_positive_int

__all__ = ["DiceMetaSampleProcessor", "DiceSampleProcessor"]

_EPSILON = 1e-8


class DiceSampleProcessor(SampleProcessor):
    """Turns the paths of one task into padded samples with adjusted rewards, for DiCE.

    - fits a baseline to the discounted rewards, `discount^t r_t`,
    - subtracts it: adjusted rewards, normalized over the steps that were taken if desired,
    - pads the paths with zeros to `max_path_length` and stacks them,
    - estimates advantages as `SampleProcessor` does, if there is a `return_baseline`.

    Args:
        baseline: a `Baseline` of time alone (see the module's notes on bias), or any object with
            `fit(paths, target_key)` and `predict(path)`.
        max_path_length: number of steps to pad to, at least one.
        discount: discount factor per step, in [0, 1]. Default: 0.99.
        gae_lambda: lambda of the advantages, in [0, 1]; nothing else depends on it. Default: 1.
        normalize_adv: whether to give the adjusted rewards of the task (and the advantages) zero mean and unit
            standard deviation. Default: True.
        positive_adv: whether to shift the (normalized) adjusted rewards of the task (and the advantages) so that
            the smallest is just above zero (1e-8). Default: False.
        return_baseline: a `Baseline` of the returns, of state and time, for the advantages. Default: None, no
            advantages.

    Raises:
        TypeError: a baseline lacks a method, or another argument is of the wrong type.
        ValueError: a number is out of range.

    References:
        Foerster et al. 2018, "DiCE: The Infinitely Differentiable Monte Carlo Estimator", arXiv:1802.05098.
    """

    def __init__(self, baseline: Any, max_path_length: int, discount: float = 0.99, gae_lambda: float = 1,
                 normalize_adv: bool = True, positive_adv: bool = False, return_baseline: Any = None) -> None:
        super().__init__(baseline, discount, gae_lambda, normalize_adv, positive_adv)
        self.max_path_length = check_positive_int("max_path_length", max_path_length)
        self.return_baseline = return_baseline if return_baseline is None else check_baseline(
            "return_baseline", return_baseline)

    def process_samples(self, paths: Sequence[Path], log: Any = False, log_prefix: str = "") -> TaskSamples:
        """Processes the paths of one task.

        The path dicts get the key `discounted_rewards` and, with a `return_baseline`, `returns` and `advantages`
        (before normalization and shift).

        Args:
            paths: list of path dicts; lengths may differ.
            log: what to log of the paths; see `SampleProcessor.process_samples`.
            log_prefix: put before each logged key, such as `Step_0-`.

        Returns:
            A dict of arrays of its own, zero after the end of a path: `mask` `[P, T]` (one on steps that were taken,
            zero on padding), `observations` `[P, T, O]`, `actions` `[P, T, A]`, `rewards` `[P, T]`,
            `adjusted_rewards` `[P, T]`, with a `return_baseline` `advantages` `[P, T]`, `env_infos` and
            `agent_infos` (dicts of `[P, T, ...]`); furthermore `path_lengths` int `[P]` and
            `adjusted_rewards_after_end` `[P]` (see the module's notes on bias).

        Raises:
            TypeError: `paths` is not a list, or holds something that is not a number.
            ValueError: a path is malformed or longer than `max_path_length`, or an observation, action, reward or
                advantage is not finite; names path and step.
        """
        return super().process_samples(paths, log, log_prefix)

    def _process_task(self, paths: Sequence[Path], task: Any = None) -> ProcessedTask:
        batch = PathBatch(paths, task, self.max_path_length)
        samples: dict[str, Any] = dict(
            mask=batch.mask.astype(np.float64), observations=batch.pad(batch.observations),
            actions=batch.pad(batch.actions), rewards=batch.pad(batch.rewards),
            env_infos={name: batch.pad(values) for name, values in batch.env_infos.items()},
            agent_infos={name: batch.pad(values) for name, values in batch.agent_infos.items()},
            path_lengths=batch.lengths,
        )
        adjusted = self._adjust_rewards(batch, samples)
        reached = np.arange(self.max_path_length) < batch.lengths.max()
        samples["adjusted_rewards"] = np.where(batch.mask, adjusted, 0.0)
        samples["adjusted_rewards_after_end"] = np.where(reached & ~batch.mask, adjusted, 0.0).sum(axis=1)
        if self.return_baseline is not None:
            _, advantages = self._estimate_advantages(batch, self.return_baseline)
            samples["advantages"] = batch.pad(self._normalize(advantages))
        return self._with_path_returns(samples, batch)

    def _adjust_rewards(self, batch: PathBatch, samples: dict[str, Any]) -> np.ndarray:
        """Returns discounted rewards minus baseline, normalized if desired, float64 `[P, T]`.

        After the end of a path this is what a step with reward zero gets.
        """
        discounted = samples["rewards"] * self.discount ** np.arange(self.max_path_length)
        batch.store("discounted_rewards", batch.flatten(discounted))
        self.baseline.fit(batch.paths, target_key="discounted_rewards")
        adjusted = discounted - self._predict(batch, samples)
        batch.check_finite("adjusted_rewards", batch.flatten(adjusted))
        if self.normalize_adv:
            taken = batch.flatten(adjusted)
            adjusted = (adjusted - taken.mean()) / (taken.std() + _EPSILON)
        if self.positive_adv:
            adjusted = adjusted - batch.flatten(adjusted).min() + _EPSILON
        return adjusted

    def _predict(self, batch: PathBatch, samples: dict[str, Any]) -> np.ndarray:
        """Returns the baseline up to the task's longest path, also after the end of a path; float64 `[P, T]`."""
        values = np.zeros(batch.mask.shape)
        longest = int(batch.lengths.max())
        for index, path in enumerate(batch.paths):
            if batch.lengths[index] < longest:
                path = {key: samples[key][index, :longest] for key in ("observations", "actions", "rewards")}
            values[index, :longest] = batch.check_predictions(index, self.baseline.predict(path), longest)
        return values


class DiceMetaSampleProcessor(MetaSampleProcessor, DiceSampleProcessor):
    """Turns the paths of a meta-batch into padded samples for DiCE, one dict per task.

    Takes the arguments of `DiceSampleProcessor`; `adj_avg_rewards` `[P, T]` is zero on padding.
    """
