"""Sample processors for the paths of a meta-batch, and for the trials of RL^2 (arXiv:1611.02779)."""
from typing import Any, List, Mapping, Optional, Sequence, Union

import numpy as np

from meta_policy_search.baselines.base import ValueHeadBaseline
from meta_policy_search.envs.trial_env import EPISODE
from meta_policy_search.samplers.base import SampleProcessor, as_samples, split_tasks
from meta_policy_search.samplers.dice_sample_processor import DiceSampleProcessor
from meta_policy_search.samplers.paths import TaskPaths, concatenate_paths, concatenate_tasks
from meta_policy_search.types import Path, TaskSamples
from meta_policy_search.utils import logger
from meta_policy_search.utils.utils import normalize_advantages

__all__ = ["DiceMetaSampleProcessor", "MetaSampleProcessor", "TrialSampleProcessor"]


class MetaSampleProcessor(SampleProcessor):
    """Converts the paths of a meta-batch to samples with advantages, one `TaskSamples` per task.

    The baseline is fitted to each task separately. Advantages are normalized and shifted within a task. The entry
    `adj_avg_rewards` contains the rewards of a task, standardized with the mean and standard deviation of the rewards
    of all tasks.

    Args:
        baseline (str or Baseline): reward baseline: the name of a class (one of `baselines.BASELINES`), a `Baseline`,
            or any object with `fit(paths)` and `predict(path)`.
        discount (float): discount factor per step, in [0, 1]. Default: 0.99.
        gae_lambda (float): parameter lambda of generalized advantage estimation, in [0, 1]; see `SampleProcessor`.
            Default: 1.
        normalize_adv (bool): whether to normalize the advantages of a task to mean 0 and standard deviation 1. Default:
            False.
        positive_adv (bool): whether to shift the (normalized) advantages of a task so that the smallest is 1e-8.
            Default: False.

    Raises:
        TypeError, ValueError: an argument is invalid.
    """

    def process_samples(  # type: ignore[override]  # takes several tasks
        self, paths_meta_batch: Mapping[Any, Sequence[Path]], log: Any = False, log_prefix: str = ""
    ) -> List[TaskSamples]:
        """Processes the paths of all tasks; see the class.

        Keys added to the path dicts: see `SampleProcessor.process_samples`.

        Args:
            paths_meta_batch: dict from task index to the list of path dicts of the task, as returned by `MetaSampler`.
            log: statistics to log over the paths of all tasks; see `SampleProcessor.process_samples`.
            log_prefix: prefix of the logged keys, such as `Step_0-`.

        Returns:
            A list of `TaskSamples`, in the order of `paths_meta_batch`.

        Raises:
            TypeError: `paths_meta_batch` is not a dict.
            ValueError: there are no tasks, a path is malformed, or a number is not finite; the message names task, path
                and step.
        """
        return self._process(concatenate_tasks(paths_meta_batch), log, log_prefix)

    def _make_samples(self, tasks: Sequence[TaskPaths]) -> List[TaskSamples]:
        samples = SampleProcessor._make_samples(self, tasks)
        for task_samples, rewards in zip(samples, standardized_rewards(tasks)):
            task_samples["adj_avg_rewards"] = rewards
        return samples


class DiceMetaSampleProcessor(MetaSampleProcessor, DiceSampleProcessor):  # several tasks
    """Converts the paths of a meta-batch to padded samples for DiCE, one dict per task.

    The dicts have the entries of `DiceSampleProcessor`, and `adj_avg_rewards` `[P, T]`, the
    rewards standardized over all tasks, zero on padding.

    Args:
        baseline (str or Baseline): baseline of the rewards, which depends only on time (see the notes on bias in
            `samplers.dice_sample_processor`): the name of a class (one of `baselines.BASELINES`), a `Baseline`, or any
            object with `fit(paths, target_key)` and `predict(path)`. It is fitted to each task separately.
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
    """

    def _make_samples(self, tasks: Sequence[TaskPaths]) -> List[TaskSamples]:
        samples = DiceSampleProcessor._make_samples(self, tasks)
        for task, task_samples, rewards in zip(tasks, samples, standardized_rewards(tasks)):
            task_samples["adj_avg_rewards"] = self._pad(task, rewards)
        return samples


class TrialSampleProcessor(MetaSampleProcessor):
    """Converts the trials of a meta-batch to samples with advantages, one `TaskSamples` per task.

    The policy does not observe the task. Therefore the baseline is fitted to the trials of all tasks together, and
    advantages are normalized over all tasks. There is no entry `adj_avg_rewards`.

    The processor also logs the mean return of the first and of the last episode of a trial, as `FirstEpisodeReturn` and
    `LastEpisodeReturn`.

    Args:
        baseline (str, Baseline or None): reward baseline: the name of a class (one of `baselines.BASELINES`), a
            `Baseline`, or any object with `fit(paths)` and `predict(path)`. Default: None, a `ValueHeadBaseline`, which
            uses the value head of the policy.
        discount (float): discount factor per step, in [0, 1]. Default: 0.99.
        gae_lambda (float): parameter lambda of generalized advantage estimation, in [0, 1]; see `SampleProcessor`.
            Default: 0.3.
        normalize_adv (bool): whether to normalize advantages to mean 0 and standard deviation 1. Default: True.
        positive_adv (bool): whether to shift the (normalized) advantages so that the smallest is 1e-8. Default: False.
    """

    def __init__(self, baseline: Optional[Union[str, Any]] = None, discount: float = 0.99, gae_lambda: float = 0.3,
                 normalize_adv: bool = True, positive_adv: bool = False) -> None:
        super().__init__(ValueHeadBaseline() if baseline is None else baseline, discount, gae_lambda, normalize_adv,
                         positive_adv)

    def _make_samples(self, tasks: Sequence[TaskPaths]) -> List[TaskSamples]:
        joined = concatenate_paths([path for task in tasks for path in task.paths])
        (returns,), (advantages,) = self._estimate_advantages([joined], self.baseline)
        advantages = self._normalize(joined, advantages)
        return list(map(as_samples, tasks, split_tasks(tasks, returns), split_tasks(tasks, advantages)))

    def _process(self, tasks: Sequence[TaskPaths], log: Any, log_prefix: str) -> List[TaskSamples]:
        samples = super()._process(tasks, log, log_prefix)
        if log not in (False, "reward") and all(EPISODE in task.env_infos for task in tasks):
            first, last = _end_returns(tasks)
            logger.logkvs({log_prefix + "FirstEpisodeReturn": first, log_prefix + "LastEpisodeReturn": last})
        return samples


def standardized_rewards(tasks: Sequence[TaskPaths]) -> List[np.ndarray]:
    """Returns the rewards `[N]` of each task, standardized to mean 0 and standard deviation 1 over all tasks."""
    rewards = [task.arrays["rewards"] for task in tasks]
    largest = int(np.argmax([np.abs(of_task).max() for of_task in rewards]))
    return split_tasks(tasks, normalize_advantages(np.concatenate(rewards), f"{tasks[largest].name}rewards"))


def _end_returns(tasks: Sequence[TaskPaths]) -> List[float]:
    """Returns the mean returns of the first and the last episode of a trial."""
    episodes, rewards = (np.concatenate(arrays) for arrays in zip(*(
        (task.env_infos[EPISODE], task.arrays["rewards"]) for task in tasks)))
    lengths = np.concatenate([task.lengths for task in tasks])
    last = np.repeat(episodes[np.cumsum(lengths) - 1], lengths)
    return [float(rewards[episodes == number].sum() / len(lengths)) for number in (0, last)]
