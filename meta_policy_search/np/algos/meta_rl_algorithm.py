"""Interface of meta-RL algorithms, which adapt policies to tasks."""
import abc
from typing import Any, Optional

from meta_policy_search.np.algos.rl_algorithm import RLAlgorithm
from meta_policy_search.trajectory_batch import TrajectoryBatch


class MetaRLAlgorithm(RLAlgorithm, abc.ABC):
    """Base class for meta-RL algorithms.

    To adapt to a task, collect trajectories with the policy returned by `get_exploration_policy`, and pass policy and
    trajectories to `adapt_policy`. For further adaptation steps, explore with the policy returned by
    `next_exploration_policy`::

        policy = algo.get_exploration_policy()
        for _ in range(num_steps):
            adapted = algo.adapt_policy(policy, explore(task, policy))
            policy = algo.next_exploration_policy(adapted)

    A subclass implements `get_exploration_policy` and `adapt_policy`. If a `LocalRunner` trains it, it also implements
    `train`. If the policy for exploration differs from the policy for evaluation, it also implements
    `get_initial_policy` and `next_exploration_policy`.

    Attributes:
        num_inner_grad_steps (int or None): number of adaptation steps in training; None (default) if unknown.
    """

    num_inner_grad_steps: Optional[int] = None

    def train(self, runner: Any) -> Any:
        """Meta-trains the algorithm. Default: raises `NotImplementedError`."""
        raise NotImplementedError(f"{type(self).__name__} adapts policies but does not support training")

    @abc.abstractmethod
    def get_exploration_policy(self) -> Any:
        """Returns a policy that explores a task before adaptation. Call it once per task."""

    @abc.abstractmethod
    def adapt_policy(self, exploration_policy: Any, exploration_trajectories: TrajectoryBatch) -> Any:
        """Returns a policy that is adapted to a task.

        Args:
            exploration_policy: the policy that explored the task; do not use it after this call.
            exploration_trajectories (TrajectoryBatch): trajectories collected with `exploration_policy` in the task.
        """

    def get_initial_policy(self) -> Any:
        """Returns a policy that acts in an unknown task without exploration. Default: the exploration policy."""
        return self.get_exploration_policy()

    def next_exploration_policy(self, adapted_policy: Any) -> Any:
        """Returns a policy for further exploration of a task. Default: the adapted policy.

        Args:
            adapted_policy: the return value of `adapt_policy` or `get_initial_policy`.
        """
        return adapted_policy
