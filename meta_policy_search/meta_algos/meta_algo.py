"""The interface of meta-learning algorithms."""
import abc
from typing import Any, Dict, Optional, Sequence

import numpy as np

from meta_policy_search.policies.base import MetaPolicy
from meta_policy_search.types import TaskSamples
from meta_policy_search.utils.serializable import Serializable


class MetaAlgo(Serializable, abc.ABC):
    """A meta-learning algorithm: adapts a policy to each task, and improves the parameters that adaptation starts from.

    Copies and pickles contain the constructor's arguments, the policy among them, and the algorithm's state; unpickling
    builds both again in the default graph.

    Args:
        policy (MetaPolicy): the policy to optimize.
    """

    meta_batch_size: int
    """Number of tasks `M`."""

    num_inner_grad_steps: int
    """Number of inner steps `K` in training."""

    adaptation_kl: Optional[np.ndarray] = None
    """Divergence `KL(before || after)` of the last `adapt` in each task, nats, `[M]`; None if it is not known."""

    def __init__(self, policy: MetaPolicy) -> None:
        self.policy = policy

    def adapt(self, samples: Sequence[TaskSamples], step_size: Optional[float] = None) -> None:
        """Adapts the policy to each task by one inner step, starting from the task's present parameters.

        Afterwards the policy acts with the adapted parameters; `policy.switch_to_pre_update` undoes this. The attribute
        `adaptation_kl` is the divergence `KL(before || after)` on each task's samples.

        Args:
            samples: the processed samples of each task, sampled with its present policy.
            step_size: replaces the algorithm's step sizes, for all parameters, in this step; default None.

        Raises:
            ValueError: the samples do not fit the algorithm, or `step_size` is not above 0.
            FloatingPointError: a parameter would not be finite; the policy is as it was.
        """
        self._adapt(samples, *([] if step_size is None else [step_size]))

    def _adapt(self, samples: Sequence[TaskSamples], step_size: Optional[float] = None) -> None:
        """Performs `adapt`. Subclasses that were written for the public code of ProMP override this method."""
        raise NotImplementedError

    @abc.abstractmethod
    def optimize_policy(self, all_samples_data: Sequence[Sequence[TaskSamples]], log: bool = True) -> None:
        """Performs one meta-update."""

    def build_diagnostics(self) -> None:
        """Builds the graph of `compute_diagnostics`; raises `ValueError` if there are none, as by default."""
        raise ValueError(f"diagnostics: expected False, as {type(self).__name__} has none, got True")

    def compute_diagnostics(self, all_samples_data: Sequence[Sequence[TaskSamples]]) -> Dict[str, float]:
        """Computes diagnostics of the next meta-update by column name; raises `ValueError` if there are none."""
        raise ValueError(f"{type(self).__name__} has no diagnostics")

    def get_state(self) -> Any:
        """Returns everything apart from the policy that the next meta-update depends on; None by default."""

    def set_state(self, state: Any) -> None:
        """Restores what `get_state` returned."""

    def with_meta_batch_size(self, meta_batch_size: int) -> "MetaAlgo":
        """Returns this algorithm for another number of tasks, so that a trained policy can be adapted to them.

        It shares graph and parameters with this one, and has its own policy with its own adapted parameters.
        """
        other = type(self).__new__(type(self))  # `copy.copy` would build another graph
        vars(other).update(vars(self))
        other.policy = self.policy.with_meta_batch_size(meta_batch_size)
        other.meta_batch_size = other.policy.meta_batch_size
        return other

    def __getstate__(self) -> Dict[str, Any]:
        """Returns constructor arguments and state."""
        return {"arguments": super().__getstate__(), "state": self.get_state()}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        """Builds the algorithm in the default graph and restores its state."""
        super().__setstate__(state["arguments"])
        if state["state"] is not None:
            self.set_state(state["state"])
