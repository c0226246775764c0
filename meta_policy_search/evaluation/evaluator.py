"""Meta-testing: measures the returns of a policy in held-out tasks after 0, 1, 2, ... adaptation steps.

`load_evaluator` builds the evaluator for a run of a `Trainer`. For other snapshots, build it from its parts::

    snapshot = load_snapshot("data/my_run")
    algo = TRPOMAML(snapshot["policy"], meta_batch_size=snapshot["policy"].meta_batch_size)
    print(MetaEvaluator(algo, snapshot["env"], MetaSampleProcessor(snapshot["baseline"])).evaluate(num_steps=3))
"""
import contextlib
import copy
from typing import Any, Callable, Iterator, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np

from meta_policy_search.actors.from_policy import DeterministicActor
from meta_policy_search.envs.compat import check_meta_env, close_env, copy_env
from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.envs.normalized_env import fix_averages
from meta_policy_search.envs.registry import tasks_of
from meta_policy_search.envs.spaces import EnvSpec
from meta_policy_search.envs.trial_env import TrialEnv
from meta_policy_search.evaluation.evaluation import Evaluation
from meta_policy_search.evaluation.recording import Recording, next_start_rngs
from meta_policy_search.meta_algos.base import MetaAlgo
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.np.algos import MetaRLAlgorithm
from meta_policy_search.samplers import MetaSampler
from meta_policy_search.samplers.base import SampleProcessor
from meta_policy_search.samplers.paths import success_rate
from meta_policy_search.samplers.ray_executor import Parallel, check_parallel
from meta_policy_search.trajectory_batch import TrajectoryBatch
from meta_policy_search.types import PathsMetaBatch, Task
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_bool, check_int_at_least, check_positive, check_positive_int
from meta_policy_search.utils.serializable import Configurable, present_arguments
from meta_policy_search.utils.statistics import task_returns, task_timesteps

T = TypeVar("T")

Tasks = Union[int, List[Task]]
"""Tasks of an evaluation: a list, or the number of tasks to sample."""

Measured = Tuple[np.ndarray, np.ndarray, np.ndarray, List[Task], int]
"""Returns, success rates (NaN if unknown) and environment steps used to adapt, `[M, K + 1]` each; tasks; all steps."""

StepFunction = Callable[[MetaSampler, PathsMetaBatch, Optional[float]], PathsMetaBatch]
"""Function `step(sampler, paths, step_size)` that performs one adaptation step in all tasks.

`paths` are the latest paths of the policy; the function may collect further paths with `sampler`. `step_size=None`
selects the algorithm's own step size. The function returns the paths that it adapted the policy to.
"""


class MetaEvaluator(Configurable):
    """Adapts a policy to tasks and measures its returns after each adaptation step.

    An evaluation has no side effects: it derives all random numbers from its seeds and does not change policy,
    environment, baseline or logger. A run with a callback that evaluates equals the run without it, bit for bit.

    A `MetaAlgo` adapts to all tasks together; a `MetaRLAlgorithm` adapts to one task at a time. If the algorithm
    explores with a policy other than the adapted one, it collects additional paths. Their steps count as environment
    steps of the adaptation. This makes searches comparable with gradient steps.

    Args:
        algo (MetaAlgo or MetaRLAlgorithm): algorithm that performs the adaptation steps.
        env (MetaEnv): environment of the tasks.
        sample_processor (SampleProcessor or None): computes the samples for `algo.adapt`, as in training. Required for
            a `MetaAlgo`, ignored for a `MetaRLAlgorithm`. Default None.
        rollouts_per_meta_task (int): number of paths of each task, before adaptation and again after each adaptation
            step; default 20.
        max_path_length (int): maximum number of steps of a path; default 100.
        envs_per_task (int or None): number of environments per task that step at the same time. Default None: one
            environment per path.
        parallel (bool, str, dict or RayOptions): whether to step environments in worker processes, or to collect paths
            on a Ray cluster; see `MetaSampler`. On Ray, workers of a running training are reused. Default False.
        name (str): name of the policy in tables and figures; default `"policy"`.

    Raises:
        TypeError: `algo` is neither a `MetaAlgo` nor a `MetaRLAlgorithm`, or a `MetaAlgo` has no
            `sample_processor`.
        ValueError: a number is out of range.
    """

    assignable_arguments = ("algo", "env", "sample_processor", "rollouts_per_meta_task", "max_path_length",
                            "envs_per_task", "parallel", "name")
    _checks: Mapping[str, Callable[[str, Any], Any]] = {
        "rollouts_per_meta_task": check_positive_int, "max_path_length": check_positive_int}
    _evaluation_cls, _fewest_steps = Evaluation, 1  # result of `evaluate`, and its smallest `num_steps`

    def __init__(self, algo: Union[MetaAlgo, MetaRLAlgorithm], env: MetaEnv,
                 sample_processor: Optional[SampleProcessor] = None, rollouts_per_meta_task: int = 20,
                 max_path_length: int = 100, envs_per_task: Optional[int] = None,
                 parallel: Parallel = False, name: str = "policy") -> None:
        check_meta_env(env)
        if not isinstance(algo, (MetaAlgo, MetaRLAlgorithm)):
            raise TypeError(f"algo: expected a MetaAlgo (such as ProMP) or a MetaRLAlgorithm, got {algo!r}")
        if isinstance(algo, MetaAlgo) and sample_processor is None:
            raise TypeError("sample_processor: expected an object with process_samples, got None")
        self.algo, self.env, self.sample_processor = algo, env, sample_processor
        self.rollouts_per_meta_task, self.max_path_length = rollouts_per_meta_task, max_path_length
        self.envs_per_task = None if envs_per_task is None else check_positive_int("envs_per_task", envs_per_task)
        self.parallel = check_parallel(parallel)
        self.name = name

    @classmethod
    def from_trainer(cls, trainer: Trainer, **arguments: Any) -> "MetaEvaluator":
        """Builds an evaluator that samples and adapts like `trainer`; `arguments` override the trainer's settings."""
        of_sampler = present_arguments(trainer.sampler)
        return cls(**{
            "algo": trainer.algo, "env": trainer.sampled_env, "sample_processor": trainer.sample_processor,
            "rollouts_per_meta_task": trainer.sampler.batch_size, "max_path_length": trainer.sampler.max_path_length,
            **{name: of_sampler[name] for name in ("envs_per_task", "parallel") if name in of_sampler}, **arguments})

    @property
    def policy(self) -> Any:
        """The policy before adaptation."""
        return self.algo.policy if isinstance(self.algo, MetaAlgo) else self.algo.get_initial_policy()

    @property
    def trained_steps(self) -> Optional[int]:
        """Number of adaptation steps in training; None if unknown."""
        return self.algo.num_inner_grad_steps

    def evaluate(self, tasks: Union[int, str, Sequence[Task]] = 40, num_steps: Optional[int] = None,
                 step_sizes: Optional[Sequence[float]] = None, seeds: Sequence[int] = (1,),
                 deterministic: bool = False) -> Evaluation:
        """Measures the returns after 0, 1, ..., `num_steps` adaptation steps.

        Each adaptation step uses paths of the current policy. The required memory grows with the number of tasks, but
        not with the number of seeds.

        Args:
            tasks: list of tasks, or the number of tasks that each seed samples from the environment's distribution;
                `"test"` or `"train"`: the fixed tasks of the environment, see `envs.load_tasks`. Default 40.
            num_steps: number of adaptation steps `K`, which may exceed the number in training. Default None: the number
                in training, or 1 if that number is unknown or 0.
            step_sizes: sizes of the first steps, such as `(0.1, 0.05)`; the last size applies to all later steps.
                Default None: the step sizes of the algorithm, including trained step sizes. Must be None for a
                `MetaRLAlgorithm`.
            seeds: seeds of all random generators; default `(1,)`. The same seed gives the same tasks and returns.
            deterministic: whether to measure returns in further paths without the noise of the policy, which takes the
                mean, or the most probable action. Adaptation uses the same sampled actions as without. Default False.

        Returns:
            An `Evaluation`.

        Raises:
            FloatingPointError: an adaptation step would produce parameters that are not finite.
            TypeError: an argument has the wrong type.
            ValueError: a number is out of range, `tasks` or `seeds` is empty, or a seed occurs twice.
        """
        tasks, seeds = _check_tasks(tasks, self.env), _check_seeds(seeds)
        sizes = self._check_steps(num_steps, step_sizes, self._fewest_steps)
        deterministic = check_bool("deterministic", deterministic)
        results = [self._measure(seed, tasks, sizes, deterministic) for seed in seeds]
        returns, success, timesteps, tasks_of_seeds, num_timesteps = zip(*results, strict=True)
        return self._evaluation_cls(
            name=self.name, returns=np.array(returns), tasks=tasks_of_seeds, are_given=not isinstance(tasks, int),
            seeds=seeds, step_sizes=None if step_sizes is None else sizes,
            rollouts_per_meta_task=self.rollouts_per_meta_task,
            max_path_length=self.env.max_path_length if isinstance(self.env, TrialEnv) else self.max_path_length,
            num_timesteps=sum(num_timesteps), timesteps=np.array(timesteps), trained_steps=self.trained_steps,
            success=None if np.isnan(success).all() else np.nan_to_num(success), deterministic=deterministic)

    def _measure(self, seed: int, tasks: Tasks, step_sizes: Sequence[Optional[float]], deterministic: bool) -> Measured:
        """Measures the returns with one seed; for other arguments, see `_adapt`."""

        def returns_of_next_paths(sampler: MetaSampler) -> Tuple[PathsMetaBatch, np.ndarray]:
            measured = sample_deterministically(sampler) if deterministic else None
            paths = sampler.obtain_samples()
            measured = paths if measured is None else measured
            return paths, np.array([task_returns(measured), [success_rate(of_task) for of_task in measured.values()]])

        measured, timesteps, tasks, num_timesteps = self._adapt(seed, tasks, step_sizes, returns_of_next_paths)
        returns, success = np.array(measured).transpose(1, 2, 0)
        return returns, success, np.array(timesteps).T, tasks, num_timesteps

    def record(self, tasks: Union[int, Sequence[Task]] = 4, num_steps: Optional[int] = None,
               step_sizes: Optional[Sequence[float]] = None, seed: int = 1) -> Recording:
        """Records the paths before adaptation and after each adaptation step, in memory.

        `evaluate` with the same arguments and `seeds=(seed,)` measures the returns of the same paths.

        Args:
            tasks: list of tasks, or number of tasks to sample; default 4.
            num_steps: see `evaluate`; at least 1.
            step_sizes: see `evaluate`.
            seed: seed of all random generators; default 1.

        Returns:
            A `Recording`.

        Raises:
            FloatingPointError, TypeError, ValueError: as in `evaluate`.
        """
        tasks, (seed,) = _check_tasks(tasks, self.env), _check_seeds([seed])
        return self._record(seed, tasks, self._check_steps(num_steps, step_sizes, 1))

    def _record(self, seed: int, tasks: Tasks, step_sizes: Sequence[Optional[float]]) -> Recording:
        """Records paths; for arguments, see `_adapt`."""

        def next_paths(sampler: MetaSampler) -> Tuple[PathsMetaBatch, Tuple[PathsMetaBatch, Any, Any]]:
            rngs, paths = next_start_rngs(sampler), sampler.obtain_samples()
            return paths, (paths, rngs, sampler.policy)

        records, _, tasks, _ = self._adapt(seed, tasks, step_sizes, next_paths)
        rounds, rngs, policies = zip(*records, strict=True)
        return Recording(self.name, copy_env(self.env), tasks, rounds, rngs, policy=policies[-1])

    def _check_steps(self, num_steps: Any, step_sizes: Any, fewest: int) -> Tuple[Any, ...]:
        """Returns the size of each adaptation step; None stands for the algorithm's own step size."""
        num_steps = max(fewest, self.trained_steps or 0) if num_steps is None else num_steps
        num_steps = check_int_at_least("num_steps", num_steps, fewest)
        if step_sizes is None:
            return (None,) * num_steps
        if not isinstance(self.algo, MetaAlgo):
            raise ValueError(f"step_sizes: expected None for {type(self.algo).__name__}, got "
                             f"{step_sizes!r}")
        if not isinstance(step_sizes, (list, tuple, np.ndarray)):
            raise TypeError(f"step_sizes: expected a list of numbers or None, got {step_sizes!r}")
        if not 1 <= len(step_sizes) <= num_steps:
            raise ValueError(f"step_sizes: expected 1 to num_steps={num_steps} numbers, got {step_sizes!r}")
        sizes = [check_positive(f"step_sizes[{i}]", size) for i, size in enumerate(step_sizes)]
        return tuple(sizes + sizes[-1:] * (num_steps - len(sizes)))

    def _adapt(self, seed: int, tasks: Tasks, step_sizes: Sequence[Optional[float]],
               collect: Callable[[MetaSampler], Tuple[PathsMetaBatch, T]]
               ) -> Tuple[List[T], List[np.ndarray], List[Task], int]:
        """Alternates between sampling and adaptation.

        Args:
            seed: seed of all random generators.
            tasks: the tasks, or their number `M`.
            step_sizes: size of each adaptation step; None for the algorithm's own step size.
            collect: function that collects the next paths with a sampler; returns the paths and a record of them.

        Returns:
            The records after 0, 1, ... adaptation steps, the cumulative environment steps `[M]` used to adapt to each
            task, the tasks, and the total number of environment steps.
        """
        num_tasks = tasks if isinstance(tasks, int) else len(tasks)
        with seeding.evaluation_seed(seed):
            policy, step = (_adapt_jointly(self.algo, self.sample_processor, num_tasks)
                            if isinstance(self.algo, MetaAlgo) else
                            _adapt_task_by_task(self.algo, EnvSpec.of(self.env), num_tasks))
            env = copy_env(self.env)
            fix_averages(env)  # only training updates them
            with self._open_sampler(env, policy, tasks, self.max_path_length) as sampler:
                paths, record = collect(sampler)
                records = [record]
                timesteps: List[np.ndarray] = [np.zeros(num_tasks, int)]
                for step_size in step_sizes:
                    paths = step(sampler, paths, step_size)
                    timesteps.append(timesteps[-1] + task_timesteps(paths))
                    paths, record = collect(sampler)
                    records.append(record)
                return records, timesteps, sampler.tasks or [], sampler.total_timesteps_sampled

    @contextlib.contextmanager
    def _open_sampler(self, env: Any, policy: Any, tasks: Tasks, max_path_length: int) -> Iterator[MetaSampler]:
        """Yields a sampler with its tasks; closes the sampler and the environment at the end."""
        num_tasks, given = (tasks, None) if isinstance(tasks, int) else (len(tasks), tasks)
        with contextlib.ExitStack() as stack:
            stack.callback(close_env, env)
            sampler = stack.enter_context(MetaSampler(env, policy, self.rollouts_per_meta_task, num_tasks,
                                                      max_path_length, self.envs_per_task, self.parallel))
            sampler.update_tasks(given)
            yield sampler


def _adapt_jointly(algo: MetaAlgo, sample_processor: Any, num_tasks: int) -> Tuple[Any, StepFunction]:
    """Prepares the adaptation steps of a `MetaAlgo`, which adapts to all tasks together.

    Uses a copy of the sample processor, because processing fits its baseline.
    """
    algo, processor = algo.with_meta_batch_size(num_tasks), copy.deepcopy(sample_processor)

    def step(sampler: MetaSampler, paths: PathsMetaBatch, step_size: Optional[float]) -> PathsMetaBatch:
        samples = processor.process_samples({  # may change rewards
            task: [{**path, "rewards": path["rewards"].copy()} for path in of_task] for task, of_task in paths.items()})
        algo.adapt(samples, **({} if step_size is None else {"step_size": step_size}))
        return paths

    return algo.policy, step


def _adapt_task_by_task(algo: MetaRLAlgorithm, env_spec: EnvSpec, num_tasks: int) -> Tuple[Any, StepFunction]:
    """Prepares the adaptation steps of a `MetaRLAlgorithm`, such as a search, which adapts to each task separately."""
    acting = [algo.get_initial_policy() for _ in range(num_tasks)]  # the sampler has the same list

    def step(sampler: MetaSampler, paths: PathsMetaBatch, step_size: Optional[float]) -> PathsMetaBatch:
        acted = list(acting)
        acting[:] = [algo.next_exploration_policy(policy) for policy in acted]
        if any(explores is not acts for explores, acts in zip(acting, acted, strict=True)):
            paths = sampler.obtain_samples()
        acting[:] = [algo.adapt_policy(policy, TrajectoryBatch.from_paths(env_spec, task_paths))
                     for policy, task_paths in zip(acting, paths.values(), strict=True)]
        return paths

    return acting, step


def sample_deterministically(sampler: MetaSampler) -> PathsMetaBatch:
    """Returns paths with the random numbers of the next `obtain_samples`, but without the noise of the policy."""
    paths, rollouts = sampler.vec_env.collect(sampler.batch_size, sampler.path_rng,
                                              DeterministicActor(sampler.make_actor()))
    sampler.total_timesteps_sampled += sum(int(part.lengths.sum()) for part in rollouts)
    return paths


def _check_tasks(tasks: Any, env: Any = None) -> Tasks:
    if isinstance(tasks, str) and env is not None:
        tasks = tasks_of(env, tasks)
    if not isinstance(tasks, (list, tuple)) and np.ndim(tasks) == 0:
        return check_positive_int("tasks", tasks)
    if len(tasks) == 0:
        raise ValueError(f"tasks: expected a list of at least one task, or a number of tasks, got {tasks!r}")
    return list(tasks)


def _check_seeds(seeds: Sequence[int]) -> Tuple[int, ...]:
    if not isinstance(seeds, (list, tuple, range, np.ndarray)):
        raise TypeError(f"seeds: expected a list of integers, got {seeds!r}")
    seeds = tuple(check_int_at_least(f"seeds[{i}]", seed, 0) for i, seed in enumerate(seeds))
    if not seeds or len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds: expected at least one seed, without duplicates, got {seeds}")
    return seeds
