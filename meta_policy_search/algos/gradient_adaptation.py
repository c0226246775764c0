"""Adapts the algorithms of `meta_algos` to the interface of `np.algos.MetaRLAlgorithm`."""
import copy
from typing import Any

from meta_policy_search.meta_algos.base import MetaAlgo
from meta_policy_search.np.algos.rl_algorithm import MetaRLAlgorithm
from meta_policy_search.policies.task_policy import TaskPolicy
from meta_policy_search.trajectory_batch import TrajectoryBatch
from meta_policy_search.utils.checks import check_type


class GradientAdaptation(MetaRLAlgorithm):
    """Adapts a meta-policy to single tasks with the gradient steps of an algorithm such as `ProMP` or `TRPOMAML`.

    Each task has a separate `TaskPolicy`, which starts with the current parameters of the meta-policy and is also used
    for exploration. An adaptation step is `algo.adapt` for this task only. To meta-train the algorithm, use a
    `Trainer`.

    Args:
        algo (MetaAlgo): the algorithm.
        sample_processor (SampleProcessor): converts paths to samples for `algo.adapt`, as in training. Each adaptation
            uses a copy, so tasks do not affect each other.
    """

    def __init__(self, algo: MetaAlgo, sample_processor: Any) -> None:
        self.algo = check_type("algo", algo, MetaAlgo, "a MetaAlgo (such as ProMP)")
        self.sample_processor = check_sample_processor(sample_processor)

    @property
    def policy(self) -> Any:
        """The meta-policy."""
        return self.algo.policy

    @property
    def num_inner_grad_steps(self) -> int:  # type: ignore[override]  # read-only
        """Number of adaptation steps in training."""
        return self.algo.num_inner_grad_steps

    def get_exploration_policy(self) -> TaskPolicy:
        """Returns a policy for one task with the current parameters of the meta-policy."""
        return TaskPolicy(self.algo.policy)

    def adapt_policy(self, exploration_policy: TaskPolicy, exploration_trajectories: TrajectoryBatch) -> TaskPolicy:
        """Takes one gradient step from the parameters of a policy, which may already be adapted.

        Args:
            exploration_policy (TaskPolicy): return value of `get_exploration_policy` or of this method; it is not
                changed.
            exploration_trajectories (TrajectoryBatch): trajectories collected with the policy.

        Returns:
            The adapted policy, which can also be used for further exploration.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: the trajectories lack an entry that the algorithm needs.
            FloatingPointError: a parameter would not be finite.
        """
        check_type("exploration_policy", exploration_policy, TaskPolicy, "a TaskPolicy")
        check_type("exploration_trajectories", exploration_trajectories, TrajectoryBatch, "a TrajectoryBatch")
        algo = self.algo.with_meta_batch_size(1)
        algo.policy.update_task_parameters([exploration_policy.get_param_values()])
        if exploration_policy.inner_state:
            vars(algo).update(_inner_state=exploration_policy.inner_state,
                              _adapted_values=algo.policy.stacked_param_values())
        processor = copy.deepcopy(self.sample_processor)
        algo.adapt(processor.process_samples({0: exploration_trajectories.to_paths()}))
        (adapted,) = algo.policy.policies_params_vals
        policy = exploration_policy.with_params(adapted)
        policy.inner_state = vars(algo).get("_inner_state", {})
        return policy


def check_sample_processor(sample_processor: Any) -> Any:
    """Returns `sample_processor` if it has a method `process_samples`; otherwise raises `TypeError`."""
    if not hasattr(sample_processor, "process_samples"):
        raise TypeError(f"sample_processor: expected an object with process_samples, got {sample_processor!r}")
    return sample_processor
