"""Interfaces of algorithms that a `LocalRunner` runs, and of meta-RL algorithms, which adapt policies to tasks."""
import abc
from typing import Any, Mapping, Optional, Sequence, Tuple, Type, TypeVar

from meta_policy_search.settings import inherit_default_settings
from meta_policy_search.trajectory_batch import TrajectoryBatch
from meta_policy_search.types import Path
from meta_policy_search.utils.serializable import Configurable

A = TypeVar("A", bound="RLAlgorithm")


class RLAlgorithm(Configurable, abc.ABC):
    """Base class of algorithms that a `LocalRunner` runs.

    A snapshot contains the whole object. Everything that training depends on must therefore be an attribute that can be
    pickled.

    Attributes:
        sampler_cls: class of the sampler that `LocalRunner.setup` creates. Default: None, no sampler.
        policy: the policy, stored in snapshots. Default: None.
        exploration_policy: policy that acts instead of `policy`, except in evaluations. Default: None.
        max_path_length: maximum number of steps of a path. Default: None, the time limit of the environment.
        max_eval_path_length: maximum number of steps of an evaluation path. Default: None, `max_path_length`.
        rollout_batch_size: number of environments that step together; does not affect the data. Default: None, all.
        baseline: the baseline, stored in snapshots. Default: None.
    """

    env_wrappers: Tuple[type, ...] = ()
    """Wrappers of the environment in a training with `meta_policy_search.train`."""

    default_settings: Mapping[str, Any] = {"env": "CartPole-v1", "n_itr": 100, "batch_size": 1000}
    """Defaults of the settings of a training with this algorithm. They replace other defaults. The entries of base
    classes apply as well. `env` applies to the command line."""

    sampler_cls: Any = None
    policy: Any = None
    exploration_policy: Any = None
    max_path_length: Optional[int] = None
    max_eval_path_length: Optional[int] = None
    rollout_batch_size: Optional[int] = None
    baseline: Any = None

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        inherit_default_settings(cls)

    @classmethod
    def for_env(cls: Type[A], env: Any, **settings: Any) -> A:
        """Builds the algorithm and its parts for an environment.

        Subclasses list the arguments of the parts explicitly; these are settings of `meta_policy_search.train`.

        Args:
            env: the environment, with all wrappers.
            **settings: arguments of the constructor.
        """
        raise NotImplementedError(f"{cls.__name__}.for_env: override this class method for meta_policy_search.train")

    @abc.abstractmethod
    def train(self, runner: Any) -> Any:
        """Obtains samples and trains, epoch by epoch.

        Args:
            runner (LocalRunner): provides `runner.obtain_samples()` and `runner.step_epochs()`, which also saves
                snapshots and controls the sampler. The algorithm increments `runner.step_itr`, which is 0 at the start
                of training and above 0 when training is resumed.

        Returns:
            The return value of `LocalRunner.train`.
        """

    def get_state(self) -> Any:
        """Returns the state that an epoch changes, for rollback; None (default) if it cannot be rolled back."""

    def set_state(self, state: Any) -> None:
        """Restores the state that `get_state` returned at the start of the epoch; not called for None."""


class NOP(RLAlgorithm):
    """Runs epochs without sampling or learning (no operation)."""

    def init_opt(self) -> None:
        """Does nothing."""

    def optimize_policy(self, paths: Sequence[Path]) -> None:
        """Does nothing."""

    def get_state(self) -> Tuple[()]:
        """Returns an empty state. No attribute changes, so an epoch can always be rolled back."""
        return ()

    def train(self, runner: Any) -> None:
        """Runs all epochs; each epoch is one iteration."""
        for _ in runner.step_epochs():
            runner.step_itr += 1


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
