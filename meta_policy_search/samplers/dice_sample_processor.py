"""Sample processors for DiCE objectives (Foerster et al. 2018, arXiv:1802.05098).

DiCE multiplies the reward of step t by the magic box of all actions up to t. Samples therefore keep their position in
the path: all arrays have the shape `[P, T, ...]` with `T = max_path_length` and are zero after the end of a path, and a
mask marks the steps.

Two effects can bias a DiCE gradient:

- State-dependent baselines. Subtracting `b_t` from the reward of step t does not change the expected gradient if `b_t`
  depends only on time. A state depends on earlier actions, so a state-dependent `b_t` biases the gradient. Therefore,
  pass a `LinearTimeBaseline` (or `ZeroBaseline`) as `baseline`, and a state-dependent baseline as `return_baseline`.
- Paths that end early. If the subtraction ends with the path, the number of subtracted terms `b_t` depends on the
  actions, which biases the gradient. After the end of a path, the reward is zero, but `b_t` must still be subtracted.
  All magic boxes after the end equal the box of the whole path, so the sum of these terms is sufficient. The processors
  return it as `adjusted_rewards_after_end` `[P]`. The mean and shift of `normalize_adv` and `positive_adv` also act as
  baselines. With the box `box_pt` of the actions up to t and the box `box_p` of all actions, the unbiased
  objective is

  `1/P sum_p (sum_t box_pt adjusted_rewards_pt + box_p adjusted_rewards_after_end_p)`.

  Published code omits the second term. The sum in this term extends to the end of the longest path of the task, so the
  term is zero for the longest paths. Later steps, which no path reached, are omitted, because an extrapolated baseline
  only adds noise. The remaining bias is small if a path of the maximum length is likely.
"""
from typing import Any, List, Optional, Sequence, Tuple, Union

import numpy as np

from meta_policy_search.baselines import make_baseline
from meta_policy_search.samplers.base import SampleProcessor, add_to_paths, baselines_of, check_predictions
from meta_policy_search.samplers.paths import TaskPaths, pad_steps, path_mask
from meta_policy_search.types import Infos, Path, TaskSamples
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.threads import one_blas_thread
from meta_policy_search.utils.utils import normalize_advantages

_EPSILON = 1e-8


class DiceSampleProcessor(SampleProcessor):
    """Converts the paths of one task to padded samples with adjusted rewards, for DiCE.

    The processor fits a baseline to the discounted rewards `discount^t r_t` and subtracts it. The differences, called
    adjusted rewards, are optionally normalized over all paths and the steps up to the end of the longest path, also
    those after the end of a path. Paths are padded with zeros to `max_path_length`. With a
    `return_baseline`, advantages are estimated as in `SampleProcessor`.

    `process_samples` returns new arrays, zero after the end of a path: `mask` `[P, T]` (1 for steps, 0 for padding),
    `observations` `[P, T, O]`, `actions` `[P, T, A]`, `rewards` `[P, T]`, `adjusted_rewards` `[P, T]`, `advantages`
    `[P, T]` (only with a `return_baseline`), `env_infos` and `agent_infos` (dicts of `[P, T, ...]`). Two entries are
    not padded: `path_lengths`, int `[P]`, and `adjusted_rewards_after_end`, `[P]` (see the notes on bias in this
    module). It adds the keys `discounted_rewards` and `adjusted_rewards` to the path dicts and, with a
    `return_baseline`, also `returns` and `advantages` (before normalization and shift). A path longer than
    `max_path_length` is a `ValueError`.

    Args:
        baseline (str or Baseline): baseline of the rewards, which depends only on time (see the notes on bias in this
            module): the name of a class (one of `baselines.BASELINES`), a `Baseline`, or any object with
            `fit(paths, target_key)` and `predict(path)`.
        max_path_length (int): number of steps of padded paths, at least 1.
        discount (float): discount factor per step, in [0, 1]. Default: 0.99.
        gae_lambda (float): parameter lambda of generalized advantage estimation, in [0, 1]. Default: 1.
        normalize_adv (bool): whether to normalize the adjusted rewards (and the advantages) of a task to mean 0 and
            standard deviation 1; for adjusted rewards, steps up to the end of the longest path count. Default: True.
        positive_adv (bool): whether to shift the (normalized) adjusted rewards (and the advantages) of a task so that
            the smallest is 1e-8. Default: False.
        return_baseline (str, Baseline or None): baseline of the returns, for the advantages, in the same forms; it may
            depend on state and time. Default: None, no advantages are computed.

    Raises:
        TypeError, ValueError: an argument is invalid.

    References:
        Foerster et al. 2018, "DiCE: The Infinitely Differentiable Monte Carlo Estimator", arXiv:1802.05098.
    """

    max_path_length: int

    def __init__(self, baseline: Union[str, Any], max_path_length: int, discount: float = 0.99, gae_lambda: float = 1,
                 normalize_adv: bool = True, positive_adv: bool = False,
                 return_baseline: Optional[Union[str, Any]] = None) -> None:
        SampleProcessor.__init__(self, baseline, discount, gae_lambda, normalize_adv, positive_adv)
        self.max_path_length = check_positive_int("max_path_length", max_path_length)
        self.return_baseline = None if return_baseline is None else make_baseline(return_baseline, "return_baseline")

    @one_blas_thread()
    def train_baseline(self, paths: Sequence[Path]) -> None:
        """Trains both baselines, see `SampleProcessor.train_baseline`."""
        for baseline in baselines_of(self):
            baseline.train(paths, **({"target_key": "discounted_rewards"} if baseline is self.baseline else {}))

    def _make_samples(self, tasks: Sequence[TaskPaths]) -> List[TaskSamples]:
        for task in tasks:
            if task.lengths.max() > self.max_path_length:
                p = int(np.argmax(task.lengths > self.max_path_length))
                raise ValueError(f"{task.name}path {p}: expected at most max_path_length={self.max_path_length} steps, "
                                 f"got {task.lengths[p]}")
        samples = [self._make_padded(task) for task in tasks]
        if self.return_baseline is not None:
            _, advantages = self._estimate_advantages(tasks, self.return_baseline)
            for task, task_samples, values in zip(tasks, samples, advantages):
                task_samples["advantages"] = self._pad(task, self._normalize(task, values))
        return samples

    def _make_padded(self, task: TaskPaths) -> Any:
        """Computes the samples of a task, without advantages."""
        adjusted, after_end = self._adjust_rewards(task)

        def pad_infos(infos: Infos) -> Infos:
            return {key: self._pad(task, values) for key, values in infos.items()}

        return {"mask": path_mask(task.lengths, self.max_path_length).astype(np.float64),
                "adjusted_rewards_after_end": after_end, **pad_infos(task.arrays),
                "adjusted_rewards": self._pad(task, adjusted), "env_infos": pad_infos(task.env_infos),
                "agent_infos": pad_infos(task.agent_infos), "path_lengths": task.lengths}

    def _pad(self, task: TaskPaths, values: np.ndarray) -> np.ndarray:
        """Pads the steps `[N, ...]` of a task to `[P, max_path_length, ...]`."""
        return pad_steps(values, path_mask(task.lengths, self.max_path_length))

    def _adjust_rewards(self, task: TaskPaths) -> Tuple[np.ndarray, np.ndarray]:
        """Computes the adjusted rewards of a task and adds the discounted rewards to the path dicts.

        Returns:
            The adjusted rewards, float64 `[N]`; and for each path the sum of the adjusted rewards after its end, where
            rewards are zero, up to the end of the longest path, `[P]`.
        """
        mask = path_mask(task.lengths)
        discounted = pad_steps(task.arrays["rewards"], mask) * self.discount ** np.arange(mask.shape[1])
        add_to_paths(task, "discounted_rewards", discounted[mask])
        self.baseline.fit(task.paths, target_key="discounted_rewards")
        adjusted = discounted - self._predict(task, mask)
        if self.normalize_adv:
            adjusted = normalize_advantages(adjusted, f"{task.name}advantages")
        if self.positive_adv:
            adjusted = adjusted - adjusted[mask].min() + _EPSILON
        add_to_paths(task, "adjusted_rewards", adjusted[mask])
        after_end = np.zeros((len(mask), self.max_path_length))
        after_end[:, :mask.shape[1]] = np.where(mask, 0.0, adjusted)
        return adjusted[mask], after_end.sum(axis=1)

    def _predict(self, task: TaskPaths, mask: np.ndarray) -> np.ndarray:
        """Returns the predictions of the baseline up to the end of the longest path for each path, float64 `[P, T]`."""
        padded = {key: pad_steps(values, mask) for key, values in task.arrays.items()}
        predictions: Any = [self.baseline.predict({**path, **{key: values[p] for key, values in padded.items()}})
                            for p, path in enumerate(task.paths)]
        return check_predictions(task.name, predictions, np.full(*mask.shape)).reshape(mask.shape)
