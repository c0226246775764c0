"""Meta-testing: what a policy returns in tasks of its own, after 0, 1, 2, ... adaptation steps on each.

In a notebook, for a run of the scripts in `experiments/` and within that checkout::

    from experiments.evaluate import load_evaluator
    evaluation = load_evaluator("data/my_run").evaluate(tasks=40, num_steps=3)
    print(evaluation)

and from any snapshot::

    snapshot = load_snapshot("data/my_run")
    algo = TRPOMAML(snapshot["policy"], meta_batch_size=snapshot["policy"].meta_batch_size)
    print(MetaEvaluator(algo, snapshot["env"], MetaSampleProcessor(snapshot["baseline"])).evaluate(num_steps=3))
"""
import copy
import dataclasses
import json
import os
from typing import Any, Callable, List, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np

from meta_policy_search.actors.task_policies import TaskPolicies
from meta_policy_search.envs.env_spec import EnvSpec
from meta_policy_search.envs.gym_compat import check_meta_env
from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.evaluation.recording import Recording, RecordingExecutor
from meta_policy_search.meta_algos.base import MetaAlgo
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.np.algos import MetaRLAlgorithm
from meta_policy_search.plotting import plot_adaptation_curve
from meta_policy_search.samplers import MetaSampler, RayOptions
from meta_policy_search.samplers.base import SampleProcessor
from meta_policy_search.samplers.meta_sampler import check_parallel
from meta_policy_search.samplers.ray.workers import keep_workers
from meta_policy_search.trajectory_batch import TrajectoryBatch
from meta_policy_search.types import PathsMetaBatch, Task
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_int_at_least, check_positive, check_positive_int
from meta_policy_search.utils.files import PathLike, write_csv, write_text
from meta_policy_search.utils.statistics import Interval, mean_interval, task_returns, task_timesteps
from meta_policy_search.utils.utils import ClassEncoder

__all__ = ["Evaluation", "MetaEvaluator"]

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What a policy returned in each task after each adaptation step, such as a gradient step.

    Returns are undiscounted sums of the rewards of a path, in the environment's reward unit. The methods that show and
    save take further evaluations, such as that of an untrained policy, to compare with.

    Args:
        name: of the policy.
        returns: float64 `[S, M, K + 1]`, the mean return of a task's paths by seed, task and adaptation steps taken.
        tasks: the tasks of each seed, `S` lists of `M`.
        are_given: whether the tasks were given, and so are the same for every seed, or sampled anew for each.
        seeds: the `S` seeds.
        step_sizes: of the `K` adaptation steps; None for the algorithm's own.
        rollouts_per_meta_task: paths in each task after each number of steps.
        max_path_length: most steps of a path.
        num_timesteps: environment steps taken, all seeds together.
        timesteps: int `[S, M, K + 1]`, environment steps that were taken in a task to adapt to it, until the policy
            had the return above; those of the paths that only measure this return do not count.
    """

    name: str
    returns: np.ndarray
    tasks: Tuple[List[Task], ...]
    are_given: bool
    seeds: Tuple[int, ...]
    step_sizes: Optional[Tuple[float, ...]]
    rollouts_per_meta_task: int
    max_path_length: int
    num_timesteps: int
    timesteps: np.ndarray

    @property
    def task_returns(self) -> np.ndarray:
        """The mean return in each task, float64 `[tasks, K + 1]`; given tasks are averaged over seeds."""
        return self.returns.mean(axis=0) if self.are_given else self.returns.reshape(-1, self.returns.shape[-1])

    @property
    def mean_timesteps(self) -> np.ndarray:
        """The mean over tasks of the environment steps taken in a task to adapt to it, float64 `[K + 1]`."""
        return self.timesteps.mean(axis=(0, 1))

    @property
    def mean_return(self) -> Interval:
        """The mean return with its 95% interval over tasks, `[K + 1]` each."""
        return mean_interval(self.task_returns)

    @property
    def gain(self) -> Interval:
        """What the steps changed, the mean over tasks of the return minus that before adaptation; `[K + 1]` each."""
        return mean_interval(self.task_returns - self.task_returns[:, :1])

    def __str__(self) -> str:
        return self.table()

    def table(self, *references: "Evaluation") -> str:
        """Returns the mean returns as a table to print, a row for each policy, and what adaptation gained."""
        evaluations = (self, *references)
        header = ["adaptation steps", *map(str, range(max(e.returns.shape[-1] for e in evaluations)))]
        rows = [header, *([e.name, *map(_as_text, *e.mean_return)] for e in evaluations)]
        name_width = max(len(row[0]) for row in rows)
        width = max(len(cell) for row in rows for cell in row[1:])
        lines = ["  ".join([row[0].ljust(name_width), *(cell.rjust(width) for cell in row[1:])]) for row in rows]
        gain, steps = _as_text(self.gain.mean[-1], self.gain.half_width[-1], sign="+"), self.returns.shape[-1] - 1
        return "\n".join([f"Mean return, +- half of its 95% interval over {self._describe()}", *lines,
                          f"Adaptation changes the return by {gain} in {_count(steps, 'step')}"])

    def plot(self, path: PathLike, *references: "Evaluation", title: Optional[str] = None) -> str:
        """Draws the mean return over adaptation steps, with its 95% intervals, as a PNG file; returns its path."""
        curves = [(e.name, e.task_returns) for e in (self, *references)]
        note = f"Bars: 95% interval over {self._describe()}. Thin lines: single tasks."
        return plot_adaptation_curve(curves, path, title or f"Adaptation of {self.name}", note)

    def plot_timesteps(self, path: PathLike, *references: "Evaluation", title: Optional[str] = None) -> str:
        """Draws the mean return over environment steps taken in a task (`timesteps`); else as `plot`."""
        curves = [(e.name, e.task_returns) for e in (self, *references)]
        note = f"Bars: 95% interval over {self._describe()}."
        return plot_adaptation_curve(curves, path, title or f"Adaptation of {self.name}", note,
                                     [e.mean_timesteps for e in (self, *references)])

    def write_csv(self, path: PathLike, *references: "Evaluation") -> None:
        """Writes the mean returns and gains, with half of their 95% intervals, a row for each policy and step.

        `timesteps` is the mean over tasks of the environment steps taken in a task to adapt to it.
        """
        rows = [("policy", "step", "timesteps", "return", "return_ci95", "gain", "gain_ci95")]
        for evaluation in (self, *references):
            columns = zip(evaluation.mean_timesteps, *evaluation.mean_return, *evaluation.gain, strict=True)
            rows += [(evaluation.name, step, *map(float, row)) for step, row in enumerate(columns)]
        write_csv(path, rows)

    def write_tasks_csv(self, path: PathLike, *references: "Evaluation") -> None:
        """Writes the return of each task and seed, a row for each step; `value` is the task itself, as JSON."""
        rows = [("policy", "seed", "task", "value", "step", "timesteps", "return")]
        for evaluation in (self, *references):
            for (s, m, step), value in np.ndenumerate(evaluation.returns):
                task = json.dumps(_as_json(evaluation.tasks[s][m]))
                timesteps = int(evaluation.timesteps[s, m, step])
                rows.append((evaluation.name, evaluation.seeds[s], m, task, step, timesteps, float(value)))
        write_csv(path, rows)

    def write_json(self, path: PathLike, *references: "Evaluation") -> None:
        """Writes everything: a list of evaluations, of which intervals that do not exist are null."""
        content = []
        for evaluation in (self, *references):
            fields = {field.name: getattr(evaluation, field.name) for field in dataclasses.fields(evaluation)}
            fields["tasks"] = [list(map(_as_json, tasks)) for tasks in evaluation.tasks]
            for name in ("mean_return", "gain"):
                mean, half_width = getattr(evaluation, name)
                fields[name] = mean
                fields[f"{name}_ci95"] = None if np.isnan(half_width).any() else half_width
            content.append(fields)
        write_text(path, json.dumps(content, cls=ClassEncoder, indent=2) + "\n")

    def save(self, folder: PathLike, *references: "Evaluation") -> str:
        """Writes `evaluation.json`, `returns.csv`, `task_returns.csv` and two pictures; returns the folder.

        These are `adaptation_curve.png`, over adaptation steps, and `return_over_timesteps.png`, over those of the
        environment.

        Args:
            folder: made if missing; files of these names in it are replaced.
            *references: evaluations to compare with.

        Raises:
            OSError: a file cannot be written.
        """
        folder = os.fspath(folder)
        os.makedirs(folder, exist_ok=True)
        self.write_json(os.path.join(folder, "evaluation.json"), *references)
        self.write_csv(os.path.join(folder, "returns.csv"), *references)
        self.write_tasks_csv(os.path.join(folder, "task_returns.csv"), *references)
        self.plot(os.path.join(folder, "adaptation_curve.png"), *references)
        self.plot_timesteps(os.path.join(folder, "return_over_timesteps.png"), *references)
        return folder

    def _describe(self) -> str:
        paths = self.rollouts_per_meta_task * (len(self.seeds) if self.are_given else 1)
        return f"{_count(len(self.task_returns), 'task')}, {_count(paths, 'path')} in each after each step"


class MetaEvaluator:
    """Adapts a policy to tasks and measures what it returns after each adaptation step.

    Whatever is drawn at random comes from the evaluation's own seeds, and policy, environment, baseline and logger stay
    as they are: a run in which a callback evaluates is, bit for bit, the run without it. The policy acts and is adapted
    with the parameters that it has at the time.

    An algorithm of `meta_algos` adapts to all tasks together. A `MetaRLAlgorithm` adapts to each by itself; one that
    explores with another policy than the adapted one takes as many paths again to explore, and those count as the
    environment steps of the adaptation. So what different algorithms make of the same number of steps in a task can be
    compared: `CEM` and `CMAES` (`np.algos.SearchAdaptation`) with gradient steps, say.

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

    Raises:
        ValueError: a number out of range.
        TypeError: an argument of the wrong type.
    """

    def __init__(
        self,
        algo: Union[MetaAlgo, MetaRLAlgorithm],
        env: MetaEnv,
        sample_processor: Optional[SampleProcessor] = None,
        rollouts_per_meta_task: int = 20,
        max_path_length: int = 100,
        envs_per_task: Optional[int] = None,
        parallel: Union[bool, str, RayOptions] = False,
        name: str = "policy",
    ) -> None:
        if not isinstance(algo, (MetaAlgo, MetaRLAlgorithm)):
            raise TypeError(f"algo: expected a MetaAlgo (such as ProMP) or a MetaRLAlgorithm, got {algo!r}")
        if isinstance(algo, MetaAlgo) and not callable(getattr(sample_processor, "process_samples", None)):
            raise TypeError(f"sample_processor: expected an object with process_samples, got {sample_processor!r}")
        if isinstance(algo, MetaRLAlgorithm) and sample_processor is not None:
            raise TypeError(f"sample_processor: expected None, as {type(algo).__name__} processes samples by itself, "
                            f"got {sample_processor!r}")
        check_meta_env(env)
        self.algo = algo
        self.env = env
        self.sample_processor = sample_processor
        self.rollouts_per_meta_task = check_positive_int("rollouts_per_meta_task", rollouts_per_meta_task)
        self.max_path_length = check_positive_int("max_path_length", max_path_length)
        self.envs_per_task = None if envs_per_task is None else check_positive_int("envs_per_task", envs_per_task)
        self.parallel = check_parallel(parallel)
        self.name = name

    @classmethod
    def from_trainer(cls, trainer: Trainer, **arguments: Any) -> "MetaEvaluator":
        """Returns the evaluator that samples and adapts as a trainer does.

        Args:
            trainer: where algorithm, environment, processor, number and length of paths come from.
            **arguments: of this class, in place of those of the trainer.
        """
        return cls(**{
            "algo": trainer.algo,
            "env": trainer.env,
            "sample_processor": trainer.sample_processor,
            "rollouts_per_meta_task": trainer.sampler.batch_size,
            "max_path_length": trainer.sampler.max_path_length,
            **arguments,
        })

    def evaluate(
        self,
        tasks: Union[int, Sequence[Task]] = 40,
        num_steps: Optional[int] = None,
        step_sizes: Optional[Sequence[float]] = None,
        seeds: Sequence[int] = (1,),
    ) -> Evaluation:
        """Measures returns after 0 to `num_steps` adaptation steps, each on paths drawn with the policy before it.

        A seed samples and adapts to all its tasks at once, so memory grows with the number of tasks, and not with that
        of seeds.

        Args:
            tasks: how many tasks each seed samples from the environment's distribution; or a list of tasks.
            num_steps: adaptation steps `K`, may be more than in training; default None, as many (one, where the
                algorithm does not say).
            step_sizes: of the first steps, the last one holding for those that follow, such as `(0.1, 0.05)`; default
                None, the algorithm's own, trained ones too. A `MetaRLAlgorithm` has its own.
            seeds: of all random numbers. The same seed gives the same tasks, and the same returns.

        Raises:
            ValueError: a number out of range, an empty list, more step sizes than steps, or a task that the environment
                does not accept.
            TypeError: an argument of the wrong type.
            FloatingPointError: a step would lead to parameters that are not finite.
        """
        num_tasks, given = _check_tasks(tasks)
        num_steps, sizes = self._check_steps(num_steps, step_sizes)
        seeds = _check_seeds(seeds)

        def make_sampler(env: MetaEnv, policy: Any) -> MetaSampler:
            return MetaSampler(env, policy, self.rollouts_per_meta_task, num_tasks, self.max_path_length,
                               self.envs_per_task, self.parallel)

        step_sizes = sizes or (None,) * num_steps
        with keep_workers(self.parallel):
            results = [self._adapt(seed, num_tasks, given, step_sizes, make_sampler, task_returns) for seed in seeds]
        returns, timesteps, tasks_of_seeds, num_timesteps = zip(*results, strict=True)
        return Evaluation(
            name=self.name,
            returns=np.array(returns).swapaxes(1, 2),
            tasks=tasks_of_seeds,
            are_given=given is not None,
            seeds=seeds,
            step_sizes=sizes,
            rollouts_per_meta_task=self.rollouts_per_meta_task,
            max_path_length=self.max_path_length,
            num_timesteps=sum(num_timesteps),
            timesteps=np.array(timesteps).swapaxes(1, 2),
        )

    def record(
        self,
        tasks: Union[int, Sequence[Task]] = 4,
        num_steps: Optional[int] = None,
        step_sizes: Optional[Sequence[float]] = None,
        seed: int = 1,
    ) -> Recording:
        """Keeps the paths before and after each adaptation step, to look at them.

        They are the paths that `evaluate` has the returns of, for the same arguments and a single seed; all of them
        are in memory.

        Args:
            tasks: how many tasks to sample, or a list of tasks.
            num_steps: adaptation steps; default None, as many as in training.
            step_sizes: see `evaluate`.
            seed: of all random numbers.

        Raises:
            ValueError, TypeError, FloatingPointError: see `evaluate`.
        """
        num_tasks, given = _check_tasks(tasks)
        num_steps, sizes = self._check_steps(num_steps, step_sizes)
        starts: List[List[np.random.Generator]] = []

        def make_sampler(env: MetaEnv, policy: Any) -> MetaSampler:
            return MetaSampler(env, policy, self.rollouts_per_meta_task, num_tasks, self.max_path_length,
                               executor=lambda *arguments: RecordingExecutor(*arguments, starts))

        seen, _, given, _ = self._adapt(*_check_seeds([seed]), num_tasks, given, sizes or (None,) * num_steps,
                                        make_sampler, lambda paths: (paths, starts[-1]))
        return Recording(self.name, copy.deepcopy(self.env), given, *map(list, zip(*seen, strict=True)))

    def _check_steps(self, num_steps: Any, step_sizes: Any) -> Tuple[int, Optional[Tuple[float, ...]]]:
        """Returns the number of adaptation steps, and their sizes if they are given."""
        num_steps = getattr(self.algo, "num_inner_grad_steps", 1) if num_steps is None else num_steps
        num_steps = check_positive_int("num_steps", num_steps)
        if step_sizes is not None and isinstance(self.algo, MetaRLAlgorithm):
            raise ValueError(f"step_sizes: expected None, as {type(self.algo).__name__} has its own, got "
                             f"{step_sizes!r}")
        return num_steps, None if step_sizes is None else _check_step_sizes(step_sizes, num_steps)

    def _adapt(
        self,
        seed: int,
        num_tasks: int,
        given: Optional[List[Task]],
        step_sizes: Sequence[Optional[float]],
        make_sampler: Callable[[MetaEnv, Any], MetaSampler],
        look: Callable[[PathsMetaBatch], T],
    ) -> Tuple[List[T], List[np.ndarray], List[Task], int]:
        """Samples and adapts in turn with the random numbers of a seed.

        Returns:
            What `look` made of the paths after 0, 1, ... adaptation steps; the environment steps `[M]` taken in each
            task to get there; the tasks; and the number of all environment steps.
        """
        with seeding.evaluation_seed(seed):
            adaptation = self._begin_adaptation(num_tasks)
            with make_sampler(copy.deepcopy(self.env), adaptation.policy) as sampler:
                sampler.update_tasks(given)
                paths = sampler.obtain_samples()
                seen, timesteps = [look(paths)], [np.zeros(num_tasks, int)]
                for step_size in step_sizes:
                    paths = adaptation.explore(sampler, paths)
                    timesteps.append(timesteps[-1] + task_timesteps(paths))
                    adaptation.adapt(paths, step_size)
                    paths = sampler.obtain_samples()
                    seen.append(look(paths))
                return seen, timesteps, sampler.tasks, sampler.total_timesteps_sampled

    def _begin_adaptation(self, num_tasks: int) -> Union["_JointAdaptation", "_SeparateAdaptation"]:
        if isinstance(self.algo, MetaAlgo):
            return _JointAdaptation(self.algo, self.sample_processor, num_tasks)
        return _SeparateAdaptation(self.algo, EnvSpec.of(self.env), num_tasks)


class _JointAdaptation:
    """Adapts the policy of a `MetaAlgo` to all tasks together.

    Attributes:
        policy: acts in the tasks.
    """

    def __init__(self, algo: MetaAlgo, sample_processor: SampleProcessor, num_tasks: int) -> None:
        self._algo, self._processor = algo.with_meta_batch_size(num_tasks), copy.deepcopy(sample_processor)
        self.policy = self._algo.policy

    def explore(self, sampler: MetaSampler, paths: PathsMetaBatch) -> PathsMetaBatch:
        """Returns paths to adapt to; `paths` are those in which the policy acted last."""
        return paths

    def adapt(self, paths: PathsMetaBatch, step_size: Optional[float]) -> None:
        """Takes an adaptation step."""
        samples = self._processor.process_samples(paths)
        self._algo.adapt(samples, **({} if step_size is None else {"step_size": step_size}))


class _SeparateAdaptation:
    """Has a `MetaRLAlgorithm` adapt to each task by itself; see `_JointAdaptation`."""

    def __init__(self, algo: MetaRLAlgorithm, env_spec: EnvSpec, num_tasks: int) -> None:
        self._algo, self._env_spec = algo, env_spec
        self.policy = TaskPolicies([algo.get_initial_policy() for _ in range(num_tasks)])

    def explore(self, sampler: MetaSampler, paths: PathsMetaBatch) -> PathsMetaBatch:
        acting = self.policy.policies
        self.policy.policies = [self._algo.next_exploration_policy(policy) for policy in acting]
        is_same = all(explores is acts for explores, acts in zip(self.policy.policies, acting, strict=True))
        return paths if is_same else sampler.obtain_samples()

    def adapt(self, paths: PathsMetaBatch, step_size: None) -> None:
        self.policy.policies = [
            self._algo.adapt_policy(policy, TrajectoryBatch.from_paths(self._env_spec, task_paths))
            for policy, task_paths in zip(self.policy.policies, paths.values(), strict=True)
        ]


def _check_tasks(tasks: Any) -> Tuple[int, Optional[List[Task]]]:
    """Returns the number of tasks, and the tasks if they are given."""
    if not isinstance(tasks, (list, tuple)) and np.ndim(tasks) == 0:
        return check_positive_int("tasks", tasks), None
    if len(tasks) == 0:
        raise ValueError(f"tasks: expected at least one task, or how many to sample, got {tasks!r}")
    return len(tasks), list(tasks)


def _check_step_sizes(step_sizes: Any, num_steps: int) -> Tuple[float, ...]:
    """Returns a step size for each step."""
    if not isinstance(step_sizes, (list, tuple)):
        raise TypeError(f"step_sizes: expected a list of numbers or None, got {step_sizes!r}")
    if not 1 <= len(step_sizes) <= num_steps:
        raise ValueError(f"step_sizes: expected 1 to num_steps={num_steps} of them, got {step_sizes!r}")
    sizes = [check_positive(f"step_sizes[{i}]", size) for i, size in enumerate(step_sizes)]
    return tuple(sizes + sizes[-1:] * (num_steps - len(sizes)))


def _check_seeds(seeds: Any) -> Tuple[int, ...]:
    if not isinstance(seeds, (list, tuple)):
        raise TypeError(f"seeds: expected a list of integers, got {seeds!r}")
    seeds = tuple(check_int_at_least(f"seeds[{i}]", seed, 0) for i, seed in enumerate(seeds))
    if not seeds or len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds: expected at least one, each of them once, got {seeds}")
    return seeds


def _as_json(task: Task) -> Any:
    """Returns a task in the types that JSON has; its `repr` if it cannot be put that way."""
    try:
        return json.loads(json.dumps(task, cls=ClassEncoder))
    except (TypeError, ValueError):
        return repr(task)


def _as_text(mean: float, half_width: float, sign: str = "") -> str:
    return f"{mean:{sign}.2f}" + ("" if np.isnan(half_width) else f" +- {half_width:.2f}")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
