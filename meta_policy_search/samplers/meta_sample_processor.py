"""Processing of the paths of a whole meta-batch, task by task."""
from typing import Any, Mapping, Sequence

import numpy as np

from meta_policy_search.samplers.base import LOG_LEVELS, ProcessedTask, SampleProcessor, log_path_statistics
from meta_policy_search.types import Path, TaskSamples
from meta_policy_search.utils.checks import check_choice

__all__ = ["MetaSampleProcessor"]


class MetaSampleProcessor(SampleProcessor):
    """Turns the paths of a meta-batch into samples with advantages, one `TaskSamples` per task.

    Takes the arguments of `SampleProcessor`. Inherited before another processor, it makes that one process the paths
    of a meta-batch.
    """

    def process_samples(self, paths_meta_batch: Mapping[Any, Sequence[Path]], log: Any = False,
                        log_prefix: str = "") -> list[TaskSamples]:
        """Processes the paths of each task by itself, and standardizes rewards over all tasks.

        The baseline is fitted anew for each task; advantages are normalized and shifted within a task. Each task's
        samples get the key `adj_avg_rewards`: its rewards minus the mean, divided by the standard deviation, of the
        rewards of all tasks' samples.

        Args:
            paths_meta_batch: dict of task index to the list of that task's paths, as a `MetaSampler` returns.
            log: what to log of all tasks' paths; see `SampleProcessor.process_samples`.
            log_prefix: put before each logged key, such as `Step_0-`.

        Returns:
            A list of `TaskSamples`, in the order of the dict.

        Raises:
            TypeError: `paths_meta_batch` is not a dict, or holds something that is not a number.
            ValueError: there are no tasks, a path is malformed, or an observation, action, reward or advantage is
                not finite; names task, path and step.
        """
        log = check_choice("log", log, LOG_LEVELS)
        if not isinstance(paths_meta_batch, Mapping):
            raise TypeError("paths_meta_batch: expected a dict of task index to a list of paths, got "
                            f"{type(paths_meta_batch).__name__}")
        if not paths_meta_batch:
            raise ValueError("paths_meta_batch: expected the paths of at least one task, got an empty dict")
        processed = [self._process_task(paths, task) for task, paths in paths_meta_batch.items()]
        _standardize_rewards(processed)
        log_path_statistics(processed, log, log_prefix)
        return [task.samples for task in processed]


def _standardize_rewards(processed: Sequence[ProcessedTask]) -> None:
    """Adds `adj_avg_rewards` to the samples of every task; zero where the samples are padded."""
    rewards = np.concatenate([task.rewards for task in processed])
    mean, scale = rewards.mean(), rewards.std() + 1e-8
    for task in processed:
        mask = task.samples.get("mask", 1.0)
        task.samples["adj_avg_rewards"] = (task.samples["rewards"] - mean) / scale * mask
