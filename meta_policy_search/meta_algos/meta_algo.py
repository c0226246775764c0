"""Interface of meta-learning algorithms."""
import abc
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.normalized_env import NormalizedEnv
from meta_policy_search.policies.base import MetaPolicy
from meta_policy_search.policies.categorical_mlp_policy import MetaCategoricalMLPPolicy
from meta_policy_search.policies.meta_gaussian_mlp_policy import MetaGaussianMLPPolicy
from meta_policy_search.samplers.meta_sample_processor import MetaSampleProcessor
from meta_policy_search.types import TaskSamples
from meta_policy_search.utils.serializable import Serializable, shallow_copy


class MetaAlgo(Serializable, abc.ABC):
    """Base class of meta-learning algorithms, which adapt a policy to each task and optimize its initial parameters.

    Copies and pickles contain the constructor arguments, including the policy, and the state of the algorithm.
    Unpickling rebuilds policy and algorithm in the default graph.

    The class attributes and `policy_cls` declare the parts of a training with this algorithm, which the function
    `meta_policy_search.train` and the command line build. A subclass replaces those that differ.

    Args:
        policy (MetaPolicy): the policy to optimize.
    """

    env_wrappers: Tuple[type, ...] = (NormalizedEnv,)
    """Wrappers of the environment, in the order in which they are applied. An environment that is an instance of one
    of them receives only the following ones."""

    sample_processor_cls: type = MetaSampleProcessor
    """Class that computes the samples for `adapt` and `optimize_policy`."""

    optimizer_cls: Optional[type] = None
    """Class of the constructor argument `optimizer`, whose arguments are settings of the training. Default: None, there
    is no such argument."""

    evaluator_cls: Optional[type] = None
    """Subclass of `evaluation.MetaEvaluator` that evaluates the policy. Default: None, the class for the environment:
    `TrialEvaluator` for a `TrialEnv`, otherwise `MetaEvaluator`."""

    default_settings: Mapping[str, Any] = {
        "env": "HalfCheetahRandDirecEnv", "n_itr": 100, "meta_batch_size": 20, "rollouts_per_meta_task": 20,
        "max_path_length": 100, "baseline": "LinearFeatureBaseline", "normalize_adv": True, "hidden_sizes": (64, 64)}
    """Settings of a training that have no default in their class, or another one. `env` applies to the command line."""

    meta_batch_size: int
    """Number of tasks `M`."""

    num_inner_grad_steps: int
    """Number of adaptation steps `K` in training."""

    adaptation_kl: Optional[np.ndarray] = None
    """Divergence `KL(before || after)` of the last `adapt` call in each task, in nats, `[M]`; None if unknown."""

    def __init__(self, policy: MetaPolicy) -> None:
        self.policy = policy

    @classmethod
    def policy_cls(cls, is_discrete: bool) -> type:
        """Returns the default policy class.

        Args:
            is_discrete: whether the actions of the environment are discrete.
        """
        return MetaCategoricalMLPPolicy if is_discrete else MetaGaussianMLPPolicy

    def adapt(self, samples: Sequence[TaskSamples], step_size: Optional[float] = None) -> None:
        """Adapts the policy to each task by one adaptation step from the task's current parameters.

        Afterwards, the policy acts with the adapted parameters; `policy.switch_to_pre_update` discards them. The
        attribute `adaptation_kl` is the divergence `KL(before || after)` on the samples of each task.

        Args:
            samples: processed samples of each task, sampled with its current policy.
            step_size: replaces all inner step sizes in this call; above 0. Default: None, the algorithm's step sizes.

        Raises:
            ValueError: the samples do not fit the algorithm, or `step_size` is not above 0.
            FloatingPointError: a parameter would not be finite. The policy is unchanged.
        """
        self._adapt(samples, *([] if step_size is None else [step_size]))

    def _adapt(self, samples: Sequence[TaskSamples], step_size: Optional[float] = None) -> None:
        """Implements `adapt`. Subclasses written for the public ProMP code override this method."""
        raise NotImplementedError

    @abc.abstractmethod
    def optimize_policy(self, all_samples_data: Sequence[Sequence[TaskSamples]], log: bool = True) -> None:
        """Performs one meta-update.

        Args:
            all_samples_data: `[K + 1][M]` processed samples: those of each adaptation step, then those of the adapted
                policies.
            log: whether to log statistics of the update. Default: True.
        """

    def build_diagnostics(self) -> None:
        """Builds the graph of `compute_diagnostics`. Default: raises `ValueError`, because there are no diagnostics."""
        raise ValueError(f"diagnostics: expected False, got True; {type(self).__name__} has no diagnostics")

    def compute_diagnostics(self, all_samples_data: Sequence[Sequence[TaskSamples]]) -> Dict[str, float]:
        """Computes diagnostics of the next meta-update by column name."""
        raise NotImplementedError

    def get_state(self) -> Any:
        """Returns the state that the next meta-update depends on, without the policy. Default: None."""

    def set_state(self, state: Any) -> None:
        """Restores the state that `get_state` returned."""

    def with_meta_batch_size(self, meta_batch_size: int) -> "MetaAlgo":
        """Returns a version of this algorithm for another number of tasks, for example to adapt to a single new task.

        The result shares the graph and the parameters with this algorithm. It has a separate policy object with
        separate adapted parameters.
        """
        policy = self.policy.with_meta_batch_size(meta_batch_size)
        return shallow_copy(self, policy=policy, meta_batch_size=policy.meta_batch_size)

    def __getstate__(self) -> Dict[str, Any]:
        """Returns constructor arguments and state."""
        return {"arguments": super().__getstate__(), "state": self.get_state()}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        """Builds the algorithm in the default graph and restores its state."""
        super().__setstate__(state["arguments"])
        if state["state"] is not None:
            self.set_state(state["state"])
