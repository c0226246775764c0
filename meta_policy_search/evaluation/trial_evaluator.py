"""Evaluates RL^2 in held-out tasks: mean return of each episode of a trial."""
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.compat import copy_env
from meta_policy_search.envs.trial_env import TrialEnv, episode_lengths, episode_returns, split_episodes
from meta_policy_search.evaluation.evaluation import Evaluation
from meta_policy_search.evaluation.evaluator import Measured, MetaEvaluator, Tasks, sample_deterministically
from meta_policy_search.evaluation.recording import Recording, next_start_rngs
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.np.algos import RLAlgorithm
from meta_policy_search.samplers.paths import success_rate
from meta_policy_search.types import PathsMetaBatch, Task
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_type
from meta_policy_search.utils.progress import text_table
from meta_policy_search.utils.serializable import shallow_copy
from meta_policy_search.utils.statistics import Interval, exact_sum, mean_interval, task_timesteps, worst_quarter


class TrialEvaluation(Evaluation):
    """Results of evaluating a recurrent policy: the mean return of each episode of a trial.

    Episode `k` of a trial corresponds to `k` adaptation steps in `Evaluation`.

    Args:
        name: name of the policy.
        returns: float64 `[S, M, K + 1]`, mean return over the trials of a task, by seed, task and episode.
        tasks: `S` lists of `M` tasks, one list per seed.
        are_given: True if the user gave the tasks (the same for every seed), False if each seed sampled its tasks.
        seeds: the `S` seeds.
        step_sizes: always None.
        rollouts_per_meta_task: number of trials per task.
        max_path_length: maximum number of steps per episode.
        num_timesteps: number of environment steps of all seeds together.
        timesteps: int `[S, M, K + 1]`, mean number of environment steps of a trial before the start of each episode.
        trained_steps: number of episodes per trial in training, minus one.
        success: float64 `[S, M, K + 1]`, share of trials with a success in each episode, see `Evaluation`. Default
            None.
        deterministic: whether the policy acted without noise; default False.
    """

    @property
    def trial_return(self) -> Interval:
        """Mean return of whole trials over tasks, and its 95% interval (Student's t)."""
        return mean_interval(exact_sum(self.task_returns, axis=1))

    def table(self, *references: Evaluation) -> str:
        """Formats the mean return by episode and of a whole trial as a text table.

        Without references, the table shows about 10 evenly spaced episodes and the last one. With references, it has
        the format of `Evaluation.table`.
        """
        num_episodes = self.returns.shape[-1]
        if references:
            text = super().table(*references)
        else:
            shown = sorted({*range(0, num_episodes, -(-num_episodes // 10)), num_episodes - 1})
            rows = [["episode", *map(str, shown)], ["return", *(f"{self.mean_return.mean[k]:.2f}" for k in shown)]]
            if self.success_rate is not None:
                rows.append(["success", *(f"{self.success_rate[k]:.2f}" for k in shown)])
            text = (f"Mean return in {len(self.task_returns)} tasks, {self.rollouts_per_meta_task} trials in each, by "
                    f"episode\n{text_table(rows, right=range(len(rows[0])))}")
        worst = worst_quarter(exact_sum(self.task_returns, axis=1))
        return (f"{text}\nReturn of a trial of {num_episodes} episodes: {self.trial_return:.2f}"
                + f", worst quarter of the tasks: {worst:.2f}" * self._has_many_tasks)


class TrialEvaluator(MetaEvaluator):
    """Evaluates a policy trained with `RL2`: measures the return of each episode of a trial.

    `evaluate` and `record` sample trials with `num_steps + 1` episodes, by default as many as in training; `evaluate`
    accepts `num_steps=0`. `step_sizes` must be None, because RL^2 has no gradient steps. With `deterministic=True`, the
    policy acts without noise in the whole trial. `evaluate` returns a `TrialEvaluation`.

    Args:
        algo (RL2): algorithm with the policy to evaluate.
        env (TrialEnv): environment of the tasks.
        sample_processor (SampleProcessor): required by `MetaEvaluator`; has no effect here.
        rollouts_per_meta_task (int): number of trials per task; default 20.
        max_path_length (int): has no effect; `env.max_path_length` limits the steps of an episode. Default 100.
        envs_per_task (int or None): number of environments per task that step at the same time. Default None: one
            environment per trial.
        parallel (bool, str, dict or RayOptions): whether to step environments in worker processes, or to collect trials
            on a Ray cluster; see `MetaSampler`; default False.
        name (str): name of the policy in tables and figures; default `"policy"`.

    Raises:
        TypeError: `env` is not a `TrialEnv`.
    """

    env: TrialEnv
    _checks = {**MetaEvaluator._checks, "env": lambda name, env: check_type(name, env, TrialEnv, "a TrialEnv")}
    _evaluation_cls, _fewest_steps = TrialEvaluation, 0

    @property
    def trained_steps(self) -> int:
        """Number of episodes per trial in training, minus one: the adaptation steps before the last episode."""
        return self.env.episodes_per_trial - 1

    def _check_steps(self, num_steps: Any, step_sizes: Any, fewest: int) -> Tuple[Any, ...]:
        if step_sizes is not None:
            raise ValueError(f"step_sizes: expected None, as RL2 has no gradient steps, got {step_sizes!r}")
        return super()._check_steps(num_steps, None, fewest)

    def _measure(self, seed: int, tasks: Tasks, step_sizes: Sequence[Optional[float]], deterministic: bool) -> Measured:
        num_episodes = len(step_sizes) + 1
        paths, _, tasks, _ = self.sample_trials(seed, tasks, num_episodes, deterministic)
        returns, lengths = (np.array([np.mean([measure(path, num_episodes) for path in of_task], axis=0)
                                      for of_task in paths.values()]) for measure in (episode_returns, episode_lengths))
        episodes = [zip(*map(split_episodes, of_task), strict=True) for of_task in paths.values()]
        success = np.array([[success_rate(of_episode) for of_episode in of_task] for of_task in episodes])
        before = np.cumsum(lengths, axis=1) - lengths  # environment steps of a trial before each episode
        return returns, success, np.rint(before).astype(int), tasks, int(task_timesteps(paths).sum())

    def _record(self, seed: int, tasks: Tasks, step_sizes: Sequence[Optional[float]]) -> Recording:
        num_episodes = len(step_sizes) + 1
        paths, rngs, tasks, policy = self.sample_trials(seed, tasks, num_episodes)
        trials = {m: [split_episodes(path) for path in of_task] for m, of_task in paths.items()}
        rounds = [{m: [trial[k] for trial in of_task] for m, of_task in trials.items()} for k in range(num_episodes)]
        return Recording(self.name, copy_env(self.env.wrapped_env), tasks, rounds, [rngs], is_trial=True, policy=policy)

    def sample_trials(self, seed: int, tasks: Tasks, num_episodes: int, deterministic: bool = False
                      ) -> Tuple[PathsMetaBatch, List[List[np.random.Generator]], List[Task], Any]:
        """Samples trials; returns them, the generators `[M][P]` of their environments, the tasks and the policy."""
        env = copy_env(shallow_copy(self.env, episodes_per_trial=num_episodes))  # sampling changes its averages
        with seeding.evaluation_seed(seed):
            policy = self.algo.policy.with_meta_batch_size(tasks if isinstance(tasks, int) else len(tasks))
            with self._open_sampler(env, policy, tasks, env.trial_length) as sampler:
                rngs = next_start_rngs(sampler)
                paths = sample_deterministically(sampler) if deterministic else sampler.obtain_samples()
                return paths, rngs, sampler.tasks or [], policy


def make_evaluator(trainer: Trainer, **arguments: Any) -> MetaEvaluator:
    """Builds the evaluator of a trainer: `algo.evaluator_cls`, by default the class for the environment.

    Raises:
        TypeError: the algorithm learns a single task.
    """
    check_adapts(trainer.algo)
    default = TrialEvaluator if isinstance(trainer.env, TrialEnv) else MetaEvaluator
    return (trainer.algo.evaluator_cls or default).from_trainer(trainer, **arguments)


def check_adapts(algo: Any) -> None:
    """Raises a `TypeError` for an algorithm that learns a single task, such as `CEM`."""
    if isinstance(algo, RLAlgorithm):
        raise TypeError(f"run: expected an algorithm that adapts to tasks, got {type(algo).__name__}, which learns a "
                        "single task; run.act returns the actions of its policy")
