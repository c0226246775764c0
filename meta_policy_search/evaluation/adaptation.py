"""Adaptation to several tasks, in one interface for all algorithms."""
import abc
import copy
from typing import Any, Optional, Union

from meta_policy_search.actors.task_policies import TaskPolicies
from meta_policy_search.envs.env_spec import EnvSpec
from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.meta_algos.base import MetaAlgo
from meta_policy_search.np.algos import MetaRLAlgorithm
from meta_policy_search.samplers import MetaSampler
from meta_policy_search.samplers.base import SampleProcessor
from meta_policy_search.trajectory_batch import TrajectoryBatch
from meta_policy_search.types import PathsMetaBatch


class Adaptation(abc.ABC):
    """Adapts the policy of an algorithm to `M` tasks, step by step.

    `begin` starts anew from the algorithm's policy as it is. Each step then takes `explore` and `adapt`. The algorithm
    itself stays as it is.

    Args:
        algo: the algorithm.

    Attributes:
        takes_step_sizes (bool): whether `adapt` can be given a step size; otherwise the algorithm has its own.
    """

    takes_step_sizes = False

    def __init__(self, algo: Union[MetaAlgo, MetaRLAlgorithm]) -> None:
        self._algo = algo

    @property
    def num_steps(self) -> int:
        """Number of steps in training; one, where the algorithm does not say."""
        return getattr(self._algo, "num_inner_grad_steps", 1)

    @abc.abstractmethod
    def begin(self, num_tasks: int) -> Any:
        """Starts from the policy as it is.

        Returns:
            What acts in the tasks, for a `MetaSampler`: a policy that changes with each step.
        """

    def explore(self, sampler: MetaSampler, paths: PathsMetaBatch) -> PathsMetaBatch:
        """Returns the paths to adapt to.

        Args:
            sampler: collects further paths in the tasks, with what `begin` returned.
            paths: those in which the policy acted last; by default they are the ones to adapt to.
        """
        return paths

    @abc.abstractmethod
    def adapt(self, paths: PathsMetaBatch, step_size: Optional[float] = None) -> None:
        """Takes an adaptation step in all tasks.

        Args:
            paths: what `explore` returned.
            step_size: default None, the algorithm's own.

        Raises:
            FloatingPointError: a parameter would not be finite.
        """


def make_adaptation(algo: Any, sample_processor: Optional[SampleProcessor], env: MetaEnv) -> Adaptation:
    """Returns how an algorithm adapts; the arguments are those of `MetaEvaluator`.

    Raises:
        TypeError: an algorithm of another kind, or a sample processor that it lacks or does not use.
    """
    if isinstance(algo, MetaAlgo):
        return JointAdaptation(algo, sample_processor)
    if not isinstance(algo, MetaRLAlgorithm):
        raise TypeError(f"algo: expected a MetaAlgo (such as ProMP) or a MetaRLAlgorithm, got {algo!r}")
    if sample_processor is not None:
        raise TypeError(f"sample_processor: expected None, as {type(algo).__name__} processes samples by itself, "
                        f"got {sample_processor!r}")
    return TaskwiseAdaptation(algo, EnvSpec.of(env))


class JointAdaptation(Adaptation):
    """Gradient steps of a `MetaAlgo`, in all tasks together."""

    takes_step_sizes = True

    def __init__(self, algo: MetaAlgo, sample_processor: Any) -> None:
        if not callable(getattr(sample_processor, "process_samples", None)):
            raise TypeError(f"sample_processor: expected an object with process_samples, got {sample_processor!r}")
        super().__init__(algo)
        self._sample_processor = sample_processor

    def begin(self, num_tasks: int) -> Any:
        """Returns a meta-policy for so many tasks."""
        self._algo_of_tasks = self._algo.with_meta_batch_size(num_tasks)
        self._processor = copy.deepcopy(self._sample_processor)
        return self._algo_of_tasks.policy

    def adapt(self, paths: PathsMetaBatch, step_size: Optional[float] = None) -> None:
        """Takes a gradient step."""
        samples = self._processor.process_samples(paths)
        self._algo_of_tasks.adapt(samples, **({} if step_size is None else {"step_size": step_size}))


class TaskwiseAdaptation(Adaptation):
    """Steps of a `MetaRLAlgorithm`, such as a search or `GradientAdaptation`, in each task by itself."""

    def __init__(self, algo: MetaRLAlgorithm, env_spec: EnvSpec) -> None:
        super().__init__(algo)
        self._env_spec = env_spec

    def begin(self, num_tasks: int) -> TaskPolicies:
        """Returns policies for so many tasks."""
        self._acting = TaskPolicies([self._algo.get_initial_policy() for _ in range(num_tasks)])
        return self._acting

    def explore(self, sampler: MetaSampler, paths: PathsMetaBatch) -> PathsMetaBatch:
        """Collects paths, unless the policies that explore are those that acted."""
        acted = self._acting.policies
        self._acting.policies = [self._algo.next_exploration_policy(policy) for policy in acted]
        is_same = all(explores is acts for explores, acts in zip(self._acting.policies, acted, strict=True))
        return paths if is_same else sampler.obtain_samples()

    def adapt(self, paths: PathsMetaBatch, step_size: Optional[float] = None) -> None:
        """Adapts each policy to the paths of its task."""
        self._acting.policies = [
            self._algo.adapt_policy(policy, TrajectoryBatch.from_paths(self._env_spec, task_paths))
            for policy, task_paths in zip(self._acting.policies, paths.values(), strict=True)
        ]
