"""Sample processor for trials, the paths of RL^2 (arXiv:1611.02779)."""
from typing import Any, List, Optional, Sequence, Union

import numpy as np

from meta_policy_search.baselines.value_head_baseline import ValueHeadBaseline
from meta_policy_search.envs.trial_env import EPISODE
from meta_policy_search.samplers.base import SampleProcessor
from meta_policy_search.samplers.meta_sample_processor import MetaSampleProcessor
from meta_policy_search.samplers.paths import TaskPaths
from meta_policy_search.types import TaskSamples
from meta_policy_search.utils import logger


class TrialSampleProcessor(MetaSampleProcessor):
    """Converts the trials of a meta-batch to samples with advantages, one `TaskSamples` per task.

    The policy does not observe the task. Therefore the baseline is fitted to the trials of all tasks together, and
    advantages are normalized over all tasks. In contrast, `MetaSampleProcessor` treats each task separately.

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
        keys = [key for key in tasks[0].env_infos if all(key in task.env_infos for task in tasks)]
        joined = TaskPaths(
            "", [path for task in tasks for path in task.paths], np.concatenate([task.lengths for task in tasks]),
            {key: np.concatenate([task.arrays[key] for task in tasks]) for key in tasks[0].arrays},
            {key: np.concatenate([task.env_infos[key] for task in tasks]) for key in keys},
            {key: np.concatenate([task.agent_infos[key] for task in tasks]) for key in tasks[0].agent_infos})
        (samples,) = SampleProcessor._make_samples(self, [joined])
        ends = np.cumsum([task.lengths.sum() for task in tasks]).tolist()
        return [_task_samples(samples, slice(start, end), task.lengths)
                for start, end, task in zip([0, *ends], ends, tasks)]

    def _process(self, tasks: Sequence[TaskPaths], log: Any, log_prefix: str) -> List[TaskSamples]:
        samples = super()._process(tasks, log, log_prefix)
        if log not in (False, "reward") and all(EPISODE in task.env_infos for task in tasks):
            first, last = _end_returns(tasks)
            logger.logkvs({log_prefix + "FirstEpisodeReturn": first, log_prefix + "LastEpisodeReturn": last})
        return samples


def _task_samples(samples: Any, steps: slice, lengths: np.ndarray) -> TaskSamples:
    """Selects the rows `steps` of one task from the samples of all tasks."""
    of_task: Any = {}
    for key, value in samples.items():
        of_task[key] = {name: info[steps] for name, info in value.items()} if isinstance(value, dict) else value[steps]
    of_task["path_lengths"] = lengths
    return of_task


def _end_returns(tasks: Sequence[TaskPaths]) -> List[float]:
    """Returns the mean returns of the first and the last episode of a trial."""
    episodes, rewards = (np.concatenate(arrays) for arrays in zip(*(
        (task.env_infos[EPISODE], task.arrays["rewards"]) for task in tasks)))
    num_trials = sum(len(task.lengths) for task in tasks)
    return [float(rewards[episodes == number].sum() / num_trials) for number in (0, episodes.max())]
