"""Processing of the paths of a whole meta-batch, task by task."""
from typing import Any, List, Mapping, Sequence

import numpy as np

from meta_policy_search.samplers.base import SampleProcessor
from meta_policy_search.samplers.paths import TaskPaths, concatenate_paths
from meta_policy_search.types import Path, TaskSamples
from meta_policy_search.utils.utils import finite_std

__all__ = ["MetaSampleProcessor"]


class MetaSampleProcessor(SampleProcessor):
    """Turns the paths of a meta-batch into samples with advantages, one `TaskSamples` per task.

    Args:
        baseline: a `Baseline`, or any object with `fit(paths)` and `predict(path)`; it is fitted to each task in turn.
        discount: discount factor per step, in [0, 1]. Default: 0.99.
        gae_lambda: lambda of the advantage estimation, in [0, 1]; see `SampleProcessor`. Default: 1.
        normalize_adv: whether to give each task's advantages zero mean and unit standard deviation. Default: False.
        positive_adv: whether to shift each task's (normalized) advantages so that the smallest is just above zero
            (1e-8). Default: False.
    """

    def process_samples(  # type: ignore[override]  # of several tasks
        self, paths_meta_batch: Mapping[Any, Sequence[Path]], log: Any = False, log_prefix: str = ""
    ) -> List[TaskSamples]:
        """Processes the paths of each task by itself, and standardizes rewards over all tasks.

        The baseline is fitted anew for each task; advantages are normalized and shifted within a task. Each task's
        samples get the key `adj_avg_rewards`: its rewards minus the mean, divided by the standard deviation, of the
        rewards of all tasks' samples. The path dicts get the keys that `SampleProcessor.process_samples` names.

        Args:
            paths_meta_batch: dict of task index to the list of that task's paths, as a `MetaSampler` returns.
            log: what to log of all tasks' paths; see `SampleProcessor.process_samples`.
            log_prefix: put before each logged key, such as `Step_0-`.

        Returns:
            A list of `TaskSamples`, in the order of the dict.

        Raises:
            ValueError: there are no tasks, a path is malformed, or a number is not finite; names task, path and step.
        """
        if not isinstance(paths_meta_batch, Mapping):
            raise TypeError("paths_meta_batch: expected a dict of task index to a list of paths, got "
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
    """Returns the rewards `[N]` of each task with mean zero and standard deviation one over the steps of all tasks."""
    rewards = [task.arrays["rewards"] for task in tasks]
    of_all = np.concatenate(rewards)
    try:
        std = finite_std(of_all, "rewards")
    except ValueError as error:
        largest = int(np.argmax([np.abs(of_task).max() for of_task in rewards]))
        raise ValueError(f"{tasks[largest].name}{error}") from error
    return [(of_task - of_all.mean()) / (std + 1e-8) for of_task in rewards]
