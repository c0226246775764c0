"""The interface of algorithms that learn to adapt."""
import abc
from typing import Any, Optional

from meta_policy_search.np.algos.rl_algorithm import RLAlgorithm
from meta_policy_search.trajectory_batch import TrajectoryBatch


class MetaRLAlgorithm(RLAlgorithm, abc.ABC):
    """Base class for meta-RL algorithms.

    To adapt to a task, explore it with the policy of `get_exploration_policy`, and pass policy and trajectories to
    `adapt_policy`. To adapt further, explore with the policy of `next_exploration_policy`::

        policy = algo.get_exploration_policy()
        for _ in range(num_steps):
            adapted = algo.adapt_policy(policy, explore(task, policy))
            policy = algo.next_exploration_policy(adapted)

    A subclass supplies `get_exploration_policy` and `adapt_policy`; if a `LocalRunner` is to train it, also `train`. If
    exploring differs from acting, it also supplies `get_initial_policy` and `next_exploration_policy`.

    Attributes:
        num_inner_grad_steps (int or None): adaptation steps in training; None (default) if unknown.
    """

    num_inner_grad_steps: Optional[int] = None

    def train(self, runner: Any) -> Any:
        """Raises `NotImplementedError`, unless a subclass implements meta-training."""
        raise NotImplementedError(f"{type(self).__name__} adapts policies, but does not train them")

    @abc.abstractmethod
    def get_exploration_policy(self) -> Any:
        """Returns a policy that explores a task before adaptation; call it once for each task."""

    @abc.abstractmethod
    def adapt_policy(self, exploration_policy: Any, exploration_trajectories: TrajectoryBatch) -> Any:
        """Produces a policy adapted for a task.

        Args:
            exploration_policy: the policy that explored; it must not be used afterwards.
            exploration_trajectories (TrajectoryBatch): trajectories in which it explored the task.
        """

    def get_initial_policy(self) -> Any:
        """Returns a policy that acts in an unknown task without exploring; by default the one that explores."""
        return self.get_exploration_policy()

    def next_exploration_policy(self, adapted_policy: Any) -> Any:
        """Returns a policy that explores a task further; by default the adapted policy itself.

        Args:
            adapted_policy: the result of `adapt_policy` or `get_initial_policy`.
        """
        return adapted_policy
