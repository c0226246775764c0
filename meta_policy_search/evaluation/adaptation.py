"""Adaptation to several tasks, in one interface for all algorithms."""
import abc
import copy
from typing import Any, Optional, Union

from meta_policy_search.actors.of_policies import TaskPolicies
from meta_policy_search.envs.env_spec import EnvSpec
from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.meta_algos.base import MetaAlgo
from meta_policy_search.np.algos import MetaRLAlgorithm
from meta_policy_search.samplers import MetaSampler
from meta_policy_search.trajectory_batch import TrajectoryBatch
from meta_policy_search.types import PathsMetaBatch


class Adaptation(abc.ABC):
    """Adapts the policy of an algorithm to several tasks, step by step; the algorithm itself stays as it is."""

    takes_step_sizes = False  # whether `step` can be given one

    def __init__(self, algo: Union[MetaAlgo, MetaRLAlgorithm]) -> None:
        self._algo: Any = algo

    @property
    def num_steps(self) -> int:
        """Number of steps in training; one, where there was none or the algorithm does not say."""
        return getattr(self._algo, "num_inner_grad_steps", 1) or 1

    @abc.abstractmethod
    def begin(self, num_tasks: int) -> Any:
        """Starts anew; returns the policy that acts in the tasks, for a `MetaSampler`, which each step changes."""

    @abc.abstractmethod
    def step(self, sampler: MetaSampler, paths: PathsMetaBatch, step_size: Optional[float] = None) -> PathsMetaBatch:
        """Takes an adaptation step in all tasks; returns the paths that the policy was adapted to.

        Args:
            sampler: collects further paths in the tasks, if the algorithm needs other ones.
            paths: those in which the policy acted last.
            step_size: default None, the algorithm's own.
        """


def make_adaptation(algo: Any, sample_processor: Any, env: MetaEnv) -> Adaptation:
    """Returns how an algorithm adapts; arguments as for `MetaEvaluator`."""
    if isinstance(algo, MetaAlgo):
        if not callable(getattr(sample_processor, "process_samples", None)):
            raise TypeError(f"sample_processor: expected an object with process_samples, got {sample_processor!r}")
        return JointAdaptation(algo, sample_processor)
    if not isinstance(algo, MetaRLAlgorithm):
        raise TypeError(f"algo: expected a MetaAlgo (such as ProMP) or a MetaRLAlgorithm, got {algo!r}")
    if sample_processor is not None:
        raise TypeError(f"sample_processor: expected None, as {type(algo).__name__} processes samples by itself, "
                        f"got {sample_processor!r}")
    return TaskwiseAdaptation(algo, EnvSpec.of(env))


class JointAdaptation(Adaptation):
    """Gradient steps of a `MetaAlgo`, in all tasks together; each start takes a copy of the sample processor."""

    takes_step_sizes = True

    def __init__(self, algo: MetaAlgo, sample_processor: Any) -> None:
        super().__init__(algo)
        self._sample_processor = sample_processor

    def begin(self, num_tasks: int) -> Any:
        self._algo_of_tasks = self._algo.with_meta_batch_size(num_tasks)
        self._processor = copy.deepcopy(self._sample_processor)
        return self._algo_of_tasks.policy

    def step(self, sampler: MetaSampler, paths: PathsMetaBatch, step_size: Optional[float] = None) -> PathsMetaBatch:
        samples = self._processor.process_samples(paths)
        self._algo_of_tasks.adapt(samples, **({} if step_size is None else {"step_size": step_size}))
        return paths


class TaskwiseAdaptation(Adaptation):
    """Steps of a `MetaRLAlgorithm`, such as a search or `GradientAdaptation`, in each task by itself."""

    def __init__(self, algo: MetaRLAlgorithm, env_spec: EnvSpec) -> None:
        super().__init__(algo)
        self._env_spec = env_spec

    def begin(self, num_tasks: int) -> TaskPolicies:
        self._acting = TaskPolicies([self._algo.get_initial_policy() for _ in range(num_tasks)])
        return self._acting

    def step(self, sampler: MetaSampler, paths: PathsMetaBatch, step_size: Optional[float] = None) -> PathsMetaBatch:
        """See `Adaptation.step`; collects paths, unless the policies that explore are those that acted."""
        acted = self._acting.policies
        exploring = self._acting.policies = [self._algo.next_exploration_policy(policy) for policy in acted]
        if any(explores is not acts for explores, acts in zip(exploring, acted, strict=True)):
            paths = sampler.obtain_samples()
        self._acting.policies = [
            self._algo.adapt_policy(policy, TrajectoryBatch.from_paths(self._env_spec, task_paths))
            for policy, task_paths in zip(exploring, paths.values(), strict=True)
        ]
        return paths
