"""Every algorithm of `meta_algos` with the interface of `np.algos.MetaRLAlgorithm`."""
import copy
from typing import Any, Optional, Tuple

import numpy as np

from meta_policy_search.meta_algos.base import MetaAlgo
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.np.algos.meta_rl_algorithm import MetaRLAlgorithm
from meta_policy_search.np.algos.rl_algorithm import Runner
from meta_policy_search.policies.task_policy import TaskPolicy
from meta_policy_search.samplers.meta_sampler import MetaSampler
from meta_policy_search.trajectory_batch import TrajectoryBatch
from meta_policy_search.utils.checks import check_positive_int


class GradientAdaptation(MetaRLAlgorithm):
    """Adapts a meta-policy to single tasks by the gradient steps of an algorithm such as `ProMP` or `TRPOMAML`.

    Each task has a `TaskPolicy`, which starts with the current parameters of the meta-policy and explores as it acts.
    An adaptation step is `algo.adapt` for this task alone. A `LocalRunner` meta-trains it like a `Trainer`.

    Args:
        algo (MetaAlgo): the algorithm.
        sample_processor (SampleProcessor): turns paths into samples for `algo.adapt`, as in training. Each adaptation
            uses a copy, so that no task depends on another.
        rollouts_per_meta_task (int): paths in each task before and after each step, in training. Default: 20.
        max_path_length (int): most steps of a path, in training. Default: 100.
    """

    def __init__(self, algo: MetaAlgo, sample_processor: Any, rollouts_per_meta_task: int = 20,
                 max_path_length: int = 100) -> None:
        if not isinstance(algo, MetaAlgo):
            raise TypeError(f"algo: expected a MetaAlgo (such as ProMP), got {algo!r}")
        self.algo, self.sample_processor = algo, check_sample_processor(sample_processor)
        self.rollouts_per_meta_task = check_positive_int("rollouts_per_meta_task", rollouts_per_meta_task)
        self.max_path_length = check_positive_int("max_path_length", max_path_length)

    @property
    def policy(self) -> Any:
        """The meta-policy."""
        return self.algo.policy

    @property
    def baseline(self) -> Any:
        """The baseline of the sample processor."""
        return self.sample_processor.baseline

    @property
    def num_inner_grad_steps(self) -> int:  # type: ignore[override]  # read-only
        """Number of adaptation steps in training."""
        return self.algo.num_inner_grad_steps

    @staticmethod
    def sampler_cls(algo: "GradientAdaptation", env: Any, **arguments: Any) -> MetaSampler:
        """Creates the sampler of `train`, a `MetaSampler` with these further arguments."""
        return MetaSampler(env, algo.policy, algo.rollouts_per_meta_task, algo.policy.meta_batch_size,
                           algo.max_path_length, **arguments)

    def get_exploration_policy(self) -> TaskPolicy:
        """Returns a policy for one task with the current parameters of the meta-policy."""
        return TaskPolicy(self.algo.policy)

    def adapt_policy(self, exploration_policy: TaskPolicy, exploration_trajectories: TrajectoryBatch) -> TaskPolicy:
        """Takes one gradient step from the parameters of a policy; also accepts an adapted policy.

        Args:
            exploration_policy (TaskPolicy): result of `get_exploration_policy` or of this method; it is not changed.
            exploration_trajectories (TrajectoryBatch): trajectories in which it acted.

        Returns:
            The adapted policy, also to explore further.

        Raises:
            ValueError: an entry that the algorithm needs is missing in the trajectories.
            FloatingPointError: a parameter would not be finite.
        """
        if not isinstance(exploration_policy, TaskPolicy):
            raise TypeError(f"exploration_policy: expected a TaskPolicy, got {exploration_policy!r}")
        if not isinstance(exploration_trajectories, TrajectoryBatch):
            raise TypeError("exploration_trajectories: expected a TrajectoryBatch, got "
                            f"{type(exploration_trajectories).__name__}")
        algo = self.algo.with_meta_batch_size(1)
        algo.policy.update_task_parameters([exploration_policy.get_param_values()])
        processor = copy.deepcopy(self.sample_processor)
        algo.adapt(processor.process_samples({0: exploration_trajectories.to_paths()}))
        (adapted,) = algo.policy.policies_params_vals
        return exploration_policy.with_params(adapted)

    def get_state(self) -> Tuple:
        """Returns what an epoch of `train` changes: the meta-policy's parameters, and the state of the algorithm."""
        return self.algo.policy.get_param_values(), self.algo.get_state()

    def set_state(self, state: Tuple) -> None:
        """Restores what `get_state` returned."""
        self.algo.policy.set_params(state[0])
        self.algo.policy.switch_to_pre_update()
        if state[1] is not None:
            self.algo.set_state(state[1])

    def train(self, runner: Runner) -> Optional[float]:
        """Meta-trains: each epoch is an iteration of a `Trainer`, and logs the columns of one.

        The number of paths is `rollouts_per_meta_task`; the runner's batch size has no effect.

        Args:
            runner (LocalRunner): runs the epochs; its environment has tasks.

        Returns:
            The mean return after adaptation in the last epoch, an undiscounted sum of rewards.
        """
        average_return = None
        trainer = Trainer(self.algo, runner.env, runner.sampler, self.sample_processor, self.algo.policy, n_itr=1,
                          num_inner_grad_steps=self.algo.num_inner_grad_steps)
        for _ in runner.step_epochs():
            sampled_before = runner.sampler.total_timesteps_sampled
            trainer.itr = runner.step_itr
            average_return = float(np.mean(trainer.perform_itr()[-1]))
            runner.total_timesteps_sampled += runner.sampler.total_timesteps_sampled - sampled_before
            runner.step_itr += 1
        return average_return


def check_sample_processor(sample_processor: Any) -> Any:
    """Returns `sample_processor` if it can process samples; else raises `TypeError`."""
    if not hasattr(sample_processor, "process_samples"):
        raise TypeError(f"sample_processor: expected an object with process_samples, got {sample_processor!r}")
    return sample_processor
