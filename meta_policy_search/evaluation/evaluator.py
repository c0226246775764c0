"""Meta-testing: what a policy returns in tasks of its own, after 0, 1, 2, ... adaptation steps on each.

Of a run of a `Trainer` by `load_evaluator`, and of any snapshot::

    snapshot = load_snapshot("data/my_run")
    algo = TRPOMAML(snapshot["policy"], meta_batch_size=snapshot["policy"].meta_batch_size)
    print(MetaEvaluator(algo, snapshot["env"], MetaSampleProcessor(snapshot["baseline"])).evaluate(num_steps=3))
"""
import copy
from typing import Any, Callable, List, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np

from meta_policy_search.envs.gym_compat import check_meta_env
from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.evaluation.adaptation import make_adaptation
from meta_policy_search.evaluation.evaluation import Evaluation
from meta_policy_search.evaluation.recording import Recording, next_start_rngs
from meta_policy_search.meta_algos.base import MetaAlgo
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.np.algos import MetaRLAlgorithm
from meta_policy_search.samplers import MetaSampler, RayOptions
from meta_policy_search.samplers.base import SampleProcessor
from meta_policy_search.samplers.ray.options import check_parallel
from meta_policy_search.samplers.ray.pool import keep_workers
from meta_policy_search.types import PathsMetaBatch, Task
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_int_at_least, check_positive, check_positive_int
from meta_policy_search.utils.signatures import SharedArguments
from meta_policy_search.utils.statistics import task_returns, task_timesteps

T = TypeVar("T")


class MetaEvaluator(SharedArguments):
    """Adapts a policy to tasks and measures what it returns after each adaptation step.

    All random numbers come from the evaluation's own seeds, and policy, environment, baseline and logger stay as they
    are: a run in which a callback evaluates is, bit for bit, the run without it.

    An algorithm of `meta_algos` adapts to all tasks together, a `MetaRLAlgorithm` to each by itself. One that explores
    with another policy than the adapted one takes as many paths again to explore; these count as the environment steps
    of the adaptation. So searches (`np.algos.SearchAdaptation`) can be compared with gradient steps, for example.

    Args:
        algo (MetaAlgo or MetaRLAlgorithm): the algorithm, which takes the adaptation steps.
        env (MetaEnv): environment that the tasks belong to.
        sample_processor (SampleProcessor or None): turns paths into the samples that `algo.adapt` takes, as in
            training; None for a `MetaRLAlgorithm`, which needs none.
        rollouts_per_meta_task (int): paths in each task after each number of steps; default 20.
        max_path_length (int): a path is cut off after so many steps; default 100.
        envs_per_task (int or None): paths of a task under way at the same time; default None, all.
        parallel (bool, str or RayOptions): whether environments are stepped in worker processes, or paths collected on
            a Ray cluster (by the same workers as in training, where there are any); see `MetaSampler`; default False.
        name (str): what to call the policy in tables and pictures.
    """

    def __init__(self, algo: Union[MetaAlgo, MetaRLAlgorithm], env: MetaEnv,
                 sample_processor: Optional[SampleProcessor] = None, rollouts_per_meta_task: int = 20,
                 max_path_length: int = 100, envs_per_task: Optional[int] = None,
                 parallel: Union[bool, str, RayOptions] = False, name: str = "policy") -> None:
        check_meta_env(env)
        self._adaptation = make_adaptation(algo, sample_processor, env)
        self.algo, self.env, self.sample_processor = algo, env, sample_processor
        self.rollouts_per_meta_task = check_positive_int("rollouts_per_meta_task", rollouts_per_meta_task)
        self.max_path_length = check_positive_int("max_path_length", max_path_length)
        self.envs_per_task = None if envs_per_task is None else check_positive_int("envs_per_task", envs_per_task)
        self.parallel = check_parallel(parallel)
        self.name = name

    @classmethod
    def from_trainer(cls, trainer: Trainer, **arguments: Any) -> "MetaEvaluator":
        """Returns the evaluator that samples and adapts as a trainer does; `arguments` replace those of the trainer."""
        return cls(**{
            "algo": trainer.algo, "env": trainer.env, "sample_processor": trainer.sample_processor,
            "rollouts_per_meta_task": trainer.sampler.batch_size, "max_path_length": trainer.sampler.max_path_length,
            **arguments})

    @property
    def trained_steps(self) -> Optional[int]:
        """Adaptation steps that the policy was trained for; None where the algorithm does not say."""
        return getattr(self.algo, "num_inner_grad_steps", None)

    def evaluate(self, tasks: Union[int, Sequence[Task]] = 40, num_steps: Optional[int] = None,
                 step_sizes: Optional[Sequence[float]] = None, seeds: Sequence[int] = (1,)) -> Evaluation:
        """Measures returns after 0 to `num_steps` adaptation steps, each on paths drawn with the policy before it.

        Memory grows with the number of tasks, and not with that of seeds.

        Args:
            tasks: how many tasks each seed samples from the environment's distribution; or a list of tasks.
            num_steps: adaptation steps `K`, may be more than in training; default None, as many (one, where the
                algorithm does not say).
            step_sizes: of the first steps, the last one holding for those that follow, such as `(0.1, 0.05)`; default
                None, the algorithm's own, trained ones too. A `MetaRLAlgorithm` has its own.
            seeds: of all random numbers. The same seed gives the same tasks, and the same returns.

        Raises:
            FloatingPointError: a step would lead to parameters that are not finite.
        """
        num_tasks, given = _check_tasks(tasks)
        sizes, seeds = self._check_steps(num_steps, step_sizes), _check_seeds(seeds)

        def returns_of_next_paths(sampler: MetaSampler) -> Tuple[PathsMetaBatch, np.ndarray]:
            paths = sampler.obtain_samples()
            return paths, task_returns(paths)

        with keep_workers(self.parallel):
            results = [self._adapt(seed, num_tasks, given, sizes, returns_of_next_paths) for seed in seeds]
        returns, timesteps, tasks_of_seeds, num_timesteps = zip(*results, strict=True)
        return Evaluation(
            name=self.name, returns=np.array(returns).swapaxes(1, 2), tasks=tasks_of_seeds, are_given=given is not None,
            seeds=seeds, step_sizes=None if step_sizes is None else sizes,
            rollouts_per_meta_task=self.rollouts_per_meta_task, max_path_length=self.max_path_length,
            num_timesteps=sum(num_timesteps), timesteps=np.array(timesteps).swapaxes(1, 2),
            trained_steps=self.trained_steps)

    def record(self, tasks: Union[int, Sequence[Task]] = 4, num_steps: Optional[int] = None,
               step_sizes: Optional[Sequence[float]] = None, seed: int = 1) -> Recording:
        """Keeps paths before and after each adaptation step, to look at them; all are in memory.

        They are those that `evaluate` has the returns of, for the same arguments and a single seed.
        """
        num_tasks, given = _check_tasks(tasks)
        sizes = self._check_steps(num_steps, step_sizes)

        def next_paths(sampler: MetaSampler) -> Tuple[PathsMetaBatch, Tuple[PathsMetaBatch, Any]]:
            rngs, paths = next_start_rngs(sampler), sampler.obtain_samples()
            return paths, (paths, rngs)

        (seed,) = _check_seeds([seed])
        seen, _, given, _ = self._adapt(seed, num_tasks, given, sizes, next_paths)
        return Recording(self.name, copy.deepcopy(self.env), given, *map(list, zip(*seen, strict=True)))

    def _check_steps(self, num_steps: Any, step_sizes: Any) -> Tuple[Any, ...]:
        """Returns the size of each step, None for the algorithm's own."""
        num_steps = check_positive_int("num_steps", self._adaptation.num_steps if num_steps is None else num_steps)
        if step_sizes is None:
            return (None,) * num_steps
        if not self._adaptation.takes_step_sizes:
            raise ValueError(f"step_sizes: expected None, as {type(self.algo).__name__} has its own, got "
                             f"{step_sizes!r}")
        if not isinstance(step_sizes, (list, tuple)):
            raise TypeError(f"step_sizes: expected a list of numbers or None, got {step_sizes!r}")
        if not 1 <= len(step_sizes) <= num_steps:
            raise ValueError(f"step_sizes: expected 1 to num_steps={num_steps} of them, got {step_sizes!r}")
        sizes = [check_positive(f"step_sizes[{i}]", size) for i, size in enumerate(step_sizes)]
        return tuple(sizes + sizes[-1:] * (num_steps - len(sizes)))

    def _adapt(self, seed: int, num_tasks: int, given: Optional[List[Task]], step_sizes: Sequence[Optional[float]],
               collect: Callable[[MetaSampler], Tuple[PathsMetaBatch, T]]
               ) -> Tuple[List[T], List[np.ndarray], List[Task], int]:
        """Samples and adapts in turn; `collect` returns the next paths of a sampler, and what is to be kept of them.

        Returns:
            What is kept of the paths after 0, 1, ... adaptation steps; the environment steps `[M]` taken in each task
            to get there; the tasks; and the number of all environment steps.
        """
        with seeding.evaluation_seed(seed):
            policy = self._adaptation.begin(num_tasks)
            with MetaSampler(copy.deepcopy(self.env), policy, self.rollouts_per_meta_task, num_tasks,
                             self.max_path_length, self.envs_per_task, self.parallel) as sampler:
                sampler.update_tasks(given)
                paths, first = collect(sampler)
                kept = [first]
                timesteps: List[np.ndarray] = [np.zeros(num_tasks, int)]
                for step_size in step_sizes:
                    paths = self._adaptation.step(sampler, paths, step_size)
                    timesteps.append(timesteps[-1] + task_timesteps(paths))
                    paths, latest = collect(sampler)
                    kept.append(latest)
                return kept, timesteps, sampler.tasks or [], sampler.total_timesteps_sampled


def _check_tasks(tasks: Any) -> Tuple[int, Optional[List[Task]]]:
    if not isinstance(tasks, (list, tuple)) and np.ndim(tasks) == 0:
        return check_positive_int("tasks", tasks), None
    if len(tasks) == 0:
        raise ValueError(f"tasks: expected at least one task, or how many to sample, got {tasks!r}")
    return len(tasks), list(tasks)


def _check_seeds(seeds: Any) -> Tuple[int, ...]:
    if not isinstance(seeds, (list, tuple)):
        raise TypeError(f"seeds: expected a list of integers, got {seeds!r}")
    seeds = tuple(check_int_at_least(f"seeds[{i}]", seed, 0) for i, seed in enumerate(seeds))
    if not seeds or len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds: expected at least one, each of them once, got {seeds}")
    return seeds
