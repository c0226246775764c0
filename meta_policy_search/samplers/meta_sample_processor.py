"""Processing of the paths of a whole meta-batch, task by task."""
from typing import Any, Dict, Mapping, Sequence

import numpy as np

from meta_policy_search.samplers.base import SampleProcessor
from meta_policy_search.samplers.rollouts import Rollouts
from meta_policy_search.samplers.samples import Samples
from meta_policy_search.types import Path
from meta_policy_search.utils.utils import finite_std

__all__ = ["MetaSampleProcessor"]


class MetaSampleProcessor(SampleProcessor):
    """Turns the paths of a meta-batch into samples with advantages, one `TaskSamples` per task.

    Inherited before another processor, it makes that one process the paths of a meta-batch.
    """

    def process_samples(  # type: ignore[override]  # of several tasks
        self, paths_meta_batch: Mapping[Any, Sequence[Path]], log: Any = False, log_prefix: str = ""
    ) -> Samples:
        """Processes the paths of each task by itself, and standardizes rewards over all tasks.

        The baseline is fitted anew for each task; advantages are normalized and shifted within a task. Each task's
        samples get the key `adj_avg_rewards`: its rewards minus the mean, divided by the standard deviation, of the
        rewards of all tasks' samples.

        Args:
            paths_meta_batch: dict of task index to the list of that task's paths, as a `MetaSampler` returns.
            log: what to log of all tasks' paths; see `SampleProcessor.process_samples`.
            log_prefix: put before each logged key, such as `Step_0-`.

        Returns:
            A list of `TaskSamples`, in the order of the dict (a `Samples`).

        Raises:
            ValueError: there are no tasks, a path is malformed, or a number is not finite; names task, path and step.
        """
        if not isinstance(paths_meta_batch, Mapping):
            raise TypeError("paths_meta_batch: expected a dict of task index to a list of paths, got "
                            f"{type(paths_meta_batch).__name__}")
        if not paths_meta_batch:
            raise ValueError("paths_meta_batch: expected the paths of at least one task, got an empty dict")
        return self._process(paths_meta_batch, log, log_prefix)

    def _compute_entries(self, rollouts: Rollouts) -> Dict[str, np.ndarray]:
        return {**super()._compute_entries(rollouts), "adj_avg_rewards": standardized_rewards(rollouts)}


def standardized_rewards(rollouts: Rollouts) -> np.ndarray:
    """Returns the rewards `[M, P, T]` with mean zero and standard deviation one over the steps of all tasks."""
    rewards = rollouts.arrays.path["rewards"]
    taken = rewards[rollouts.mask]
    try:
        std = finite_std(taken, "rewards")
    except ValueError as error:
        largest = int(np.abs(rollouts.zero_padded(rewards)).max(axis=(1, 2)).argmax())
        raise ValueError(f"{rollouts.name(largest)}{error}") from error
    return rollouts.zero_padded((rewards - taken.mean()) / (std + 1e-8))
