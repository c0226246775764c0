"""Sample processor for the paths of a meta-batch."""
from typing import Any, List, Mapping, Sequence

import numpy as np

from meta_policy_search.samplers.base import SampleProcessor
from meta_policy_search.samplers.paths import TaskPaths, concatenate_paths
from meta_policy_search.types import Path, TaskSamples
from meta_policy_search.utils.utils import finite_std

__all__ = ["MetaSampleProcessor"]


class MetaSampleProcessor(SampleProcessor):
    """Converts the paths of a meta-batch to samples with advantages, one `TaskSamples` per task.

    Args:
        baseline (str or Baseline): reward baseline: the name of a class (one of `baselines.BASELINES`), a `Baseline`,
            or any object with `fit(paths)` and `predict(path)`. It is fitted to each task separately.
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
        """Processes the paths of each task separately, and standardizes rewards over all tasks.

        The baseline is fitted to each task separately. Advantages are normalized and shifted within a task. The entry
        `adj_avg_rewards` contains the rewards of a task, standardized with the mean and standard deviation of the
        rewards of all tasks. Keys added to the path dicts: see `SampleProcessor.process_samples`.

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
        if not isinstance(paths_meta_batch, Mapping):
            raise TypeError("paths_meta_batch: expected a dict from task index to a list of paths, got "
                            f"{type(paths_meta_batch).__name__}")
        if not paths_meta_batch:
            raise ValueError("paths_meta_batch: expected the paths of at least one task, got an empty dict")
        tasks = [concatenate_paths(paths, f"task {task}, ") for task, paths in paths_meta_batch.items()]
        return self._process(tasks, log, log_prefix)

    def _make_samples(self, tasks: Sequence[TaskPaths]) -> List[TaskSamples]:
        samples = SampleProcessor._make_samples(self, tasks)
        for task_samples, rewards in zip(samples, standardized_rewards(tasks)):
            task_samples["adj_avg_rewards"] = rewards
        return samples


def standardized_rewards(tasks: Sequence[TaskPaths]) -> List[np.ndarray]:
    """Returns the rewards `[N]` of each task, standardized to mean 0 and standard deviation 1 over all tasks."""
    rewards = [task.arrays["rewards"] for task in tasks]
    of_all = np.concatenate(rewards)
    try:
        std = finite_std(of_all, "rewards")
    except ValueError as error:
        largest = int(np.argmax([np.abs(of_task).max() for of_task in rewards]))
        raise ValueError(f"{tasks[largest].name}{error}") from error
    return [(of_task - of_all.mean()) / (std + 1e-8) for of_task in rewards]
