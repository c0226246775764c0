"""The interface of algorithms that learn to adapt."""
import abc
from typing import Any

from meta_policy_search.np.algos.rl_algorithm import RLAlgorithm
from meta_policy_search.trajectory_batch import TrajectoryBatch


class MetaRLAlgorithm(RLAlgorithm, abc.ABC):
    """Base class for meta-RL algorithms.

    To adapt to a task, explore it with the policy that `get_exploration_policy` returns, and give policy and
    trajectories to `adapt_policy`. To adapt further, explore with what `next_exploration_policy` makes of the adapted
    policy::

        policy = algo.get_exploration_policy()
        for _ in range(num_steps):
            adapted = algo.adapt_policy(policy, explore(task, policy))
            policy = algo.next_exploration_policy(adapted)

    A subclass supplies `get_exploration_policy`, `adapt_policy` and `train`, and, where a policy explores otherwise
    than it acts, `get_initial_policy` and `next_exploration_policy`.
    """

    @abc.abstractmethod
    def get_exploration_policy(self) -> Any:
        """Returns a policy that explores a task before adaptation; call it once for each task."""

    @abc.abstractmethod
    def adapt_policy(self, exploration_policy: Any, exploration_trajectories: TrajectoryBatch) -> Any:
        """Produces a policy adapted for a task.

        Args:
            exploration_policy: what `get_exploration_policy` returned; not to be used afterwards.
            exploration_trajectories (TrajectoryBatch): trajectories in which it explored the task.
        """

    def get_initial_policy(self) -> Any:
        """Returns a policy that acts, without exploring, in a task of which nothing is known.

        By default policies act as they explore.
        """
        return self.get_exploration_policy()

    def next_exploration_policy(self, adapted_policy: Any) -> Any:
        """Returns a policy that explores a task further; by default the adapted policy itself.

        Args:
            adapted_policy: what `adapt_policy` (or `get_initial_policy`) returned; not to be adapted otherwise.
        """
        return adapted_policy
