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
from typing import Any, Dict, Mapping, Sequence

import numpy as np

from meta_policy_search.samplers.base import SampleProcessor, check_baseline, check_predictions
from meta_policy_search.samplers.meta_sample_processor import MetaSampleProcessor
from meta_policy_search.samplers.rollouts import Rollouts
from meta_policy_search.samplers.samples import Samples, stack_rollouts
from meta_policy_search.types import Path, TaskSamples
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.utils import finite_std

_EPSILON = 1e-8


class DiceSampleProcessor(SampleProcessor):
    """Turns the paths of one task into padded samples with adjusted rewards, for DiCE.

    It fits a baseline to the discounted rewards, `discount^t r_t`, and subtracts it: these are the adjusted rewards,
    normalized over the steps that were taken if desired. Paths are padded with zeros to `max_path_length`. With a
    `return_baseline`, advantages are estimated as by `SampleProcessor`.

    Args:
        baseline: a `Baseline` of time alone (see the module's notes on bias), or any object with
            `fit(paths, target_key)` and `predict(path)`.
        max_path_length: number of steps to pad to, at least one.
        gae_lambda: lambda of the advantages, in [0, 1]; nothing else depends on it. Default: 1.
        normalize_adv: whether to give the adjusted rewards of the task (and the advantages) zero mean and unit
            standard deviation. Default: True.
        positive_adv: whether to shift the (normalized) adjusted rewards of the task (and the advantages) so that
            the smallest is just above zero (1e-8). Default: False.
        return_baseline: a `Baseline` of the returns, of state and time, for the advantages. Default: None, no
            advantages.

    References:
        Foerster et al. 2018, "DiCE: The Infinitely Differentiable Monte Carlo Estimator", arXiv:1802.05098.
    """

    max_path_length: int

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
            ValueError: a path is malformed or longer than `max_path_length`, or a number is not finite; names path and
                step.
        """
        return super().process_samples(paths, log, log_prefix)

    def _compute_entries(self, rollouts: Rollouts) -> Dict[str, np.ndarray]:
        longest = int(rollouts.lengths.max())
        if longest > self.max_path_length:
            m, p = np.argwhere(rollouts.lengths > self.max_path_length)[0].tolist()
            raise ValueError(f"{rollouts.name(m)}path {p}: expected at most max_path_length={self.max_path_length} "
                             f"steps, got {rollouts.lengths[m, p]}")
        entries = {"adjusted_rewards": np.zeros(rollouts.mask.shape),
                   "adjusted_rewards_after_end": np.zeros(rollouts.lengths.shape)}
        rewards = rollouts.zero_padded(rollouts.arrays.path["rewards"])
        discounted = rewards * self.discount ** np.arange(longest)
        rollouts.add("discounted_rewards", discounted)
        for m in range(len(rollouts)):
            adjusted = self._adjust_rewards(rollouts, m, discounted[m], rewards[m])
            mask = rollouts.mask[m]
            entries["adjusted_rewards"][m] = np.where(mask, adjusted, 0.0)
            after_end = np.zeros((len(mask), self.max_path_length))
            reached = np.arange(longest) < rollouts.lengths[m].max()
            after_end[:, :longest] = np.where(reached & ~mask, adjusted, 0.0)
            entries["adjusted_rewards_after_end"][m] = after_end.sum(axis=1)
        rollouts.check_finite("adjusted_rewards", entries["adjusted_rewards"])
        if self.return_baseline is not None:
            _, advantages = self._estimate_advantages(rollouts, self.return_baseline)
            entries["advantages"] = rollouts.zero_padded(self._normalize(rollouts, advantages))
        return entries

    def _stack(self, rollouts: Rollouts, entries: Mapping[str, np.ndarray]) -> Samples:
        return stack_rollouts(rollouts, entries, self.max_path_length)

    def _adjust_rewards(self, rollouts: Rollouts, m: int, discounted: np.ndarray, rewards: np.ndarray) -> np.ndarray:
        """Returns discounted rewards minus baseline, normalized if desired, of task `m`, float64 `[P, T]`.

        After the end of a path this is what a step with reward zero gets.
        """
        paths, mask = list(rollouts.values())[m], rollouts.mask[m]
        self.baseline.fit(paths, target_key="discounted_rewards")
        adjusted = discounted - self._predict(rollouts, m, paths, rewards)
        if self.normalize_adv:
            taken = adjusted[mask]
            try:
                adjusted = (adjusted - taken.mean()) / (finite_std(taken) + _EPSILON)
            except ValueError as error:
                raise ValueError(f"{rollouts.name(m)}{error}") from error
        if self.positive_adv:
            adjusted = adjusted - adjusted[mask].min() + _EPSILON
        return adjusted

    def _predict(self, rollouts: Rollouts, m: int, paths: Sequence[Path], rewards: np.ndarray) -> np.ndarray:
        """Returns the baseline up to the task's longest path, also after the end of a path; float64 `[P, T]`."""
        lengths = rollouts.path_lengths(m)
        longest = int(lengths.max())
        padded = {key: np.where(rollouts.mask[m].reshape(*rollouts.mask[m].shape, *[1] * (array.ndim - 3)), array[m], 0)
                  for key, array in rollouts.arrays.path.items()}
        predictions = [
            self.baseline.predict(path if length == longest else {key: array[p, :longest]
                                                                  for key, array in padded.items()})
            for p, (path, length) in enumerate(zip(paths, lengths, strict=True))
        ]
        values = np.zeros(rewards.shape)
        values[:len(paths), :longest] = check_predictions(
            rollouts.name(m), predictions, [longest] * len(paths)).reshape(len(paths), longest)
        return values


class DiceMetaSampleProcessor(MetaSampleProcessor, DiceSampleProcessor):  # type: ignore[misc]  # of several tasks
    """Turns the paths of a meta-batch into padded samples for DiCE, one dict per task.

    Their entry `adj_avg_rewards` `[P, T]` is zero on padding.
    """
