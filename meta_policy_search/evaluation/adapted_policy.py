"""Adapts a policy to one task with a single call, and returns the adapted policy."""
import copy
import os
from typing import Any, Dict, Optional, Sequence, Tuple, Union

import numpy as np

from meta_policy_search.baselines import LinearFeatureBaseline
from meta_policy_search.envs.compat import adapt_env, copy_env
from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.envs.normalized_env import NormalizedEnv, act_unscaled
from meta_policy_search.envs.trial_env import TrialEnv, episode_returns, extend_observations
from meta_policy_search.evaluation.evaluator import MetaEvaluator
from meta_policy_search.evaluation.recording import write_video
from meta_policy_search.evaluation.trial_evaluator import TrialEvaluator
from meta_policy_search.meta_algos import RL2, VPGMAML, MetaAlgo
from meta_policy_search.plotting import describe_task
from meta_policy_search.policies import MetaPolicy, RecurrentPolicy
from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler
from meta_policy_search.samplers.base import SampleProcessor
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import Params, Task
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import (
    check_bool,
    check_finite,
    check_int_at_least,
    check_non_negative,
    check_positive_int,
)
from meta_policy_search.utils.files import PathLike, user_path
from meta_policy_search.utils.serializable import shallow_copy
from meta_policy_search.utils.statistics import Interval, mean_interval


def adapt(policy: Union[MetaPolicy, RecurrentPolicy], env: MetaEnv, task: Task = None, num_steps: Optional[int] = None,
          rollouts: int = 20, seed: int = 1, *, step_size: float = 0.1, max_path_length: int = 100,
          adapt_params: Union[str, Sequence[str]] = "all",
          sample_processor: Optional[SampleProcessor] = None) -> "AdaptedPolicy":
    """Adapts a policy to one task.

    This function is for policies without a run, for example with weights from `policy.load_npz`. `Run.adapt` adapts the
    policy of a run with the settings of the run.

    A `MetaPolicy` takes policy-gradient steps (the inner steps of `VPGMAML`). A `RecurrentPolicy` adapts through its
    recurrent state: it acts in `num_steps` episodes of a trial. The policy, its graph, the environment and the state of
    all random generators do not change.

    Args:
        policy: policy to adapt, starting from its parameters before adaptation.
        env: environment of the task, wrapped as in training (`normalize`).
        task: the task. Default None: a task sampled with the seed.
        num_steps: number of gradient steps, or of episodes before the policy acts; at least 1. Default None: 1; for a
            `RecurrentPolicy` and a `TrialEnv`, all episodes of a trial but the last.
        rollouts: number of paths per step, or number of trials that `returns` is the mean of; default 20.
        seed: seed of all random generators; default 1.
        step_size: size of the gradient steps, at least 0; default 0.1. Without effect for a `RecurrentPolicy`.
        max_path_length: maximum number of steps per path. A `TrialEnv` has its own limit. Default 100.
        adapt_params: parameters that gradient steps change, see `meta_algos.adapted_params`; default `"all"`. Without
            effect for a `RecurrentPolicy`.
        sample_processor: computes the samples of a gradient step, with settings such as the discount. Default None:
            `MetaSampleProcessor(LinearFeatureBaseline(), normalize_adv=True)`.

    Returns:
        The adapted policy.

    Raises:
        TypeError: `policy` is neither a `MetaPolicy` nor a `RecurrentPolicy`, or `env` has no tasks.
        ValueError: a number is out of range, or the policy does not fit the environment.
        FloatingPointError: a gradient step would produce parameters that are not finite.
    """
    if not isinstance(policy, (MetaPolicy, RecurrentPolicy)):
        raise TypeError(f"policy: expected a MetaPolicy (such as MetaGaussianMLPPolicy) or a RecurrentPolicy, got a "
                        f"{type(policy).__name__}")
    check_non_negative("step_size", step_size)
    check_positive_int("rollouts", rollouts)
    evaluator: MetaEvaluator
    processor = sample_processor or MetaSampleProcessor(LinearFeatureBaseline(), normalize_adv=True)
    with seeding.evaluation_seed(0), tf.Graph().as_default():  # a copy, because algorithms extend the policy's graph
        policy = copy.deepcopy(policy.with_meta_batch_size(1))
        if isinstance(policy, RecurrentPolicy):
            env = env if isinstance(env, TrialEnv) else TrialEnv(env, max_path_length=max_path_length)
            evaluator = TrialEvaluator(RL2(policy, 1), env, processor, rollouts)
        else:
            algo = VPGMAML(policy, step_size, 1, first_order=True, adapt_params=adapt_params)
            evaluator = MetaEvaluator(algo, env, processor, rollouts, max_path_length)
    return adapt_with(evaluator, task, num_steps, seed)


def adapt_with(evaluator: MetaEvaluator, task: Task = None, num_steps: Optional[int] = None,
               seed: int = 1) -> "AdaptedPolicy":
    """Adapts the policy of an evaluator to one task, with the settings of the evaluator.

    Args:
        evaluator: the evaluator, such as a return value of `load_evaluator` or `load_pretrained`.
        task: the task. Default None: a task sampled with the seed.
        num_steps: number of adaptation steps, at least 1; see `adapt`. Default None: as in training.
        seed: seed of all random generators; default 1.

    Returns:
        The adapted policy.

    Raises:
        TypeError: `evaluator` is no evaluator, or its algorithm is not a `MetaAlgo`.
        ValueError: a number is out of range, or the environment rejects the task.
        FloatingPointError: a gradient step would produce parameters that are not finite.
    """
    if not (isinstance(evaluator, MetaEvaluator) and isinstance(evaluator.algo, MetaAlgo)):
        raise TypeError(f"evaluator: expected a MetaEvaluator of a MetaAlgo, got a {type(evaluator).__name__}; for a "
                        "run, call run.adapt")
    check_int_at_least("seed", seed, 0)
    if isinstance(evaluator, TrialEvaluator):
        return AdaptedRecurrentPolicy(evaluator, task, num_steps, seed)
    return AdaptedPolicy(evaluator, task, num_steps, seed)


class AdaptedPolicy:
    """A policy that was adapted to one task by gradient steps. Returned by `adapt` and `Run.adapt`.

    Args:
        evaluator (MetaEvaluator): samples paths and takes the gradient steps.
        task: the task. Default None: a task sampled with the seed.
        num_steps (int or None): number of gradient steps; default None, as in training.
        seed (int): seed of all random generators; default 1.

    Attributes:
        task: the task.
        env: copy of the environment with this task, without the wrapper `normalize`.
        returns: float64 `[K + 1]`, mean return of the paths before adaptation and after each of the `K` steps.
        params: the adapted parameters by name.
        policy: the adapted policy, which acts in `recording.env`, the environment as in training;
            `samplers.utils.rollout` accepts both. Its `save_npz` saves the parameters before adaptation.
        recording (Recording): the paths before adaptation and after each step.
    """

    def __init__(self, evaluator: MetaEvaluator, task: Task = None, num_steps: Optional[int] = None,
                 seed: int = 1) -> None:
        self._evaluator, self._seed = evaluator, seed
        self.recording = evaluator.record(1 if task is None else [task], num_steps, seed=seed)
        self.policy = self.recording.policy
        (self.task,), (self.returns,) = self.recording.tasks, self.recording.returns
        adapt_env(self.recording.env).set_task(self.task)
        self._env = copy_env(self.recording.env)
        self.env: MetaEnv = self._env.wrapped_env if isinstance(self._env, NormalizedEnv) else self._env
        self._initial_params: Params = self.policy.get_param_values()
        params = self.policy.policies_params_vals[0] if isinstance(self.policy, MetaPolicy) else self._initial_params
        self.params: Params = {name: value.copy() for name, value in params.items()}

    def act(self, observation: np.ndarray, deterministic: bool = False) -> Any:
        """Returns an action `[A]` (an integer if actions are discrete) for an observation `[O]` of the environment.

        The action has the units of the environment: pass it to `env.step`, or to `step` of your own environment.
        Actions of `policy.act` have the units of training, where the wrapper `normalize` scales the action bounds to
        `-normalization_scale` and `normalization_scale` (default 10).

        Args:
            observation: `[O]`.
            deterministic: whether to return the mean, or the most probable action, instead of a sample; default False.
        """
        return act_unscaled(self._env, observation, lambda observed: self.policy.act(observed, deterministic))

    def observe(self, reward: float, done: bool = False) -> None:
        """Reports the result of the last action. Default: does nothing; only recurrent policies depend on it.

        Args:
            reward: reward of the last action.
            done: whether the episode has ended; default False.
        """

    def evaluate(self, rollouts: int = 100, seed: Optional[int] = None) -> Dict[str, Interval]:
        """Measures the mean return in the task, before and after adaptation, with new paths.

        Args:
            rollouts: number of paths, or number of new trials of a recurrent policy; default 100.
            seed: seed of the paths; default None, the seed of the adaptation plus one.

        Returns:
            Dict with the keys `"before"`, `"after"` and `"gain"`. Each value is an `Interval` with `mean`, and
            `half_width` of the 95% interval over paths.
        """
        seed = self._seed + 1 if seed is None else check_int_at_least("seed", seed, 0)
        before, after = self._sample_returns(check_positive_int("rollouts", rollouts), seed)
        return {"before": mean_interval(before), "after": mean_interval(after), "gain": mean_interval(after - before)}

    def _sample_returns(self, rollouts: int, seed: int) -> Tuple[np.ndarray, np.ndarray]:
        """Returns the returns before and after adaptation, float64 `[rollouts]` each. Both use the same noise."""
        returns = []
        for params in (self._initial_params, self.params):
            with seeding.evaluation_seed(seed):
                policy, env = self.policy.with_meta_batch_size(1), copy_env(self._evaluator.env)
                policy.update_task_parameters([params])
                with MetaSampler(env, policy, rollouts, 1, self._evaluator.max_path_length) as sampler:
                    sampler.update_tasks([self.task])
                    returns.append(np.array([path["rewards"].sum() for path in sampler.obtain_samples()[0]]))
        return returns[0], returns[1]

    def record(self, path: PathLike, fps: Optional[float] = None, overwrite: bool = False) -> None:
        """Writes an MP4 video of an episode before adaptation (left) and after the last step (right).

        Args:
            path: file to write.
            fps: environment steps per second; default None, real time.
            overwrite: whether to replace an existing file; default False.

        Raises:
            ValueError: the file exists and `overwrite` is False, or see `evaluation.recording.write_video`.
            ImportError, OSError, RuntimeError: see `evaluation.recording.write_video`.
        """
        if not check_bool("overwrite", overwrite) and os.path.exists(user_path("path", path)):
            raise ValueError(f"path: expected a file that does not exist, got {path}. Replace it with overwrite=True")
        write_video(self.recording, path, fps)

    def __repr__(self) -> str:
        return (f"<{type(self).__name__} in task {describe_task(self.task)}, returns "
                f"{', '.join(f'{value:.2f}' for value in self.returns)}>")


class AdaptedRecurrentPolicy(AdaptedPolicy):
    """A recurrent policy (RL^2) after some episodes of a trial in one task. Returned by `adapt` and `Run.adapt`.

    `act` continues the first of the recorded trials, with its hidden state. Each action must be followed by `observe`,
    because the policy observes rewards and the ends of episodes::

        observation, _ = adapted.env.reset()
        for step in range(max_path_length):  # as in training
            observation, reward, terminated, truncated, _ = adapted.env.step(adapted.act(observation))
            done = terminated or truncated or step == max_path_length - 1
            adapted.observe(reward, done)
            if done:
                break

    Args:
        evaluator (TrialEvaluator): samples the trials.
        task: the task. Default None: a task sampled with the seed.
        num_steps (int or None): number of episodes `K` before the policy acts; default None, all episodes of a trial in
            training but the last.
        seed (int): seed of all random generators; default 1.

    Attributes:
        task: the task.
        env: copy of the environment with this task, without the wrappers `normalize` and `TrialEnv`.
        returns: float64 `[K + 1]`, mean return of each episode of the trials.
        params: the parameters by name, which adaptation does not change.
        policy: the policy with the hidden state of the trial.
        recording (Recording): the episodes of the trials; episode `k` corresponds to `k` adaptation steps.
    """
    _evaluator: TrialEvaluator

    def __init__(self, evaluator: TrialEvaluator, task: Task = None, num_steps: Optional[int] = None,
                 seed: int = 1) -> None:
        super().__init__(evaluator, task, num_steps, seed)
        self.policy.reset()
        for episodes in self.recording.rounds[:-1]:
            last = episodes[0][0]
            for observation in last["observations"]:
                self.policy.get_action(observation)  # sets the hidden state
        self._action: Any = last["actions"][-1]
        self._reward: Optional[float] = last["rewards"][-1]  # None if `observe` must be called
        self._done = True

    def act(self, observation: np.ndarray, deterministic: bool = False) -> Any:
        """Returns the next action of the trial and updates the hidden state; see `AdaptedPolicy.act`.

        Raises:
            RuntimeError: `observe` was not called after the last action.
            ValueError: the observation does not have the shape of the environment's observations.
        """
        if self._reward is None:
            raise RuntimeError("act: expected a call of `observe` after each action, got none")
        return act_unscaled(self._env, observation, lambda observed: self._act_in_trial(observed, deterministic))

    def _act_in_trial(self, observation: np.ndarray, deterministic: bool) -> Any:
        """Returns the next action of the trial in the units of training, for an observation of training."""
        observation, expected = np.asarray(observation), self._env.observation_space.shape
        if observation.shape != expected:
            raise ValueError(f"observation: expected shape {expected}, got {observation.shape}")
        extended = extend_observations(self._env.action_space, observation[None], np.asarray(self._action)[None],
                                       np.array([self._reward]), np.array([self._done]))
        self._action, self._reward = self.policy.act(extended[0], deterministic), None
        return self._action

    def observe(self, reward: float, done: bool = False) -> None:
        """Reports the result of the last action.

        Args:
            reward: reward of the last action.
            done: whether the episode has ended, also if the caller ended it at a time limit. The next observation is
                then the first one of the next episode. Default False.

        Raises:
            RuntimeError: `act` was not called before.
        """
        if self._reward is not None:
            raise RuntimeError("observe: expected a call of `act` before each call of `observe`, which reports the "
                               "result of the action")
        self._done, reward = check_bool("done", done), check_finite("reward", reward)
        is_normalized = isinstance(self._env, NormalizedEnv)
        self._reward = float(self._env.normalized_rewards(reward) if is_normalized else reward)

    def _sample_returns(self, rollouts: int, seed: int) -> Tuple[np.ndarray, np.ndarray]:
        """Returns the returns of the first and last episode of new trials, float64 `[rollouts]` each."""
        evaluator = shallow_copy(self._evaluator, rollouts_per_meta_task=rollouts)
        num_episodes = len(self.returns)
        paths, *_ = evaluator.sample_trials(seed, [self.task], num_episodes)
        returns = np.array([episode_returns(path, num_episodes) for path in paths[0]])
        return returns[:, 0], returns[:, -1]
