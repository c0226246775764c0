"""Base class of algorithms that learn from a replay buffer."""
import abc
import functools
from collections import deque
from typing import Any, Deque, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence

import numpy as np

from meta_policy_search.actors.flat_policy import check_spaces
from meta_policy_search.baselines import ZeroBaseline
from meta_policy_search.envs.spaces import check_env_spec
from meta_policy_search.np.algos.rl_algorithm import RLAlgorithm
from meta_policy_search.np.exploration_policies import ExplorationPolicy
from meta_policy_search.np.replay_buffer import ReplayBuffer
from meta_policy_search.samplers.base import SampleProcessor
from meta_policy_search.samplers.paths import concatenate_paths, has_success, path_returns
from meta_policy_search.samplers.single_task_sampler import SingleTaskSampler
from meta_policy_search.types import Path
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import check_bool, check_finite, check_int_at_least, check_positive_int, check_type

Transitions = Mapping[str, np.ndarray]
"""Return value of `ReplayBuffer.sample_transitions`, with scaled rewards."""

_SMOOTHED_OVER = 100  # paths


def _check_length(name: str, length: Optional[int]) -> Optional[int]:
    return None if length is None else check_positive_int(name, length)


class OffPolicyRLAlgorithm(RLAlgorithm):
    """Base class of off-policy algorithms such as DDPG.

    A subclass implements `init_opt`, which its constructor calls last, and `optimize_policy`. An interrupted epoch is
    not rolled back, because a copy of the replay buffer would take too long: resume the run from its snapshot.

    An epoch consists of `steps_per_epoch` cycles; each cycle is one iteration of the runner. A cycle collects paths
    with the exploration policy and stores them in the buffer. If the buffer contains at least `min_buffer_size`
    transitions, the cycle then performs `n_train_steps` updates, each on `buffer_batch_size` random transitions. After
    the last cycle, the policy is evaluated without exploration.

    Args:
        env_spec (EnvSpec): observation space and action space of the environment.
        policy (FlatPolicy): policy to train, such as a `np.policies.DeterministicMLPPolicy`.
        qf (object): the action-value function, such as a `np.q_functions.MLPQFunction`.
        replay_buffer (ReplayBuffer): stores the transitions.
        use_target (bool): whether to compute the targets of updates with target networks, which follow the learned
            networks slowly. Default: False.
        discount (float): discount factor per step, in [0, 1]. Default: 0.99.
        steps_per_epoch (int): number of cycles (`train_once` calls) per epoch. Default: 20.
        max_path_length (int or None): maximum number of steps of a path. Default: None, the time limit of the
            environment.
        max_eval_path_length (int or None): maximum number of steps of an evaluation path. Default: None,
            `max_path_length`.
        n_train_steps (int): number of updates per cycle. Default: 50.
        buffer_batch_size (int): number of transitions per update. Default: 64.
        min_buffer_size (int): number of transitions in the buffer before updates start. Default: 10000.
        rollout_batch_size (int): number of environments that step together; does not affect the data. Default: 1.
        reward_scale (float): factor of the rewards in updates; logged returns are not scaled. Default: 1.
        smooth_return (bool): whether the logged return is the mean over the last 100 exploration paths; otherwise, it
            is the mean over the exploration paths of the epoch. Default: True.
        exploration_policy (ExplorationPolicy): collects the paths. Default: None, `policy`.
        num_eval_paths (int): number of evaluation paths per epoch, at least 0. Default: 10.

    Raises:
        TypeError: `replay_buffer` is not a `ReplayBuffer`.
        ValueError: `policy` does not fit `env_spec`; `exploration_policy` explores with another policy; or the capacity
            of the buffer is less than `min_buffer_size`.
    """

    sampler_cls = SingleTaskSampler

    assignable_arguments = (
        "steps_per_epoch", "max_path_length", "max_eval_path_length", "n_train_steps", "buffer_batch_size",
        "min_buffer_size", "rollout_batch_size", "reward_scale", "exploration_policy", "num_eval_paths")
    _checks = {
        **dict.fromkeys(("steps_per_epoch", "n_train_steps", "buffer_batch_size", "min_buffer_size",
                         "rollout_batch_size"), check_positive_int),
        **dict.fromkeys(("max_path_length", "max_eval_path_length"), _check_length),
        "reward_scale": check_finite, "num_eval_paths": functools.partial(check_int_at_least, low=0)}

    def __init__(self, env_spec: Any, policy: Any, qf: Any, replay_buffer: Any, *, use_target: bool = False,
                 discount: float = 0.99, steps_per_epoch: int = 20, max_path_length: Optional[int] = None,
                 max_eval_path_length: Optional[int] = None, n_train_steps: int = 50, buffer_batch_size: int = 64,
                 min_buffer_size: int = 10000, rollout_batch_size: int = 1, reward_scale: float = 1.0,
                 smooth_return: bool = True, exploration_policy: Any = None, num_eval_paths: int = 10) -> None:
        self.env_spec = check_env_spec("env_spec", env_spec)
        check_spaces(policy, env_spec)
        self.policy, self.qf = policy, qf
        self.replay_buffer = check_type("replay_buffer", replay_buffer, ReplayBuffer, "a ReplayBuffer")
        self.use_target = check_bool("use_target", use_target)
        self._processor = SampleProcessor(ZeroBaseline(), discount=discount)  # logs the evaluation
        self.discount = self._processor.discount
        self.smooth_return = check_bool("smooth_return", smooth_return)
        self.steps_per_epoch, self.n_train_steps = steps_per_epoch, n_train_steps
        self.max_path_length, self.max_eval_path_length = max_path_length, max_eval_path_length
        self.buffer_batch_size, self.min_buffer_size = buffer_batch_size, min_buffer_size
        self.rollout_batch_size, self.num_eval_paths = rollout_batch_size, num_eval_paths
        self.reward_scale, self.exploration_policy = reward_scale, exploration_policy
        self._check_assigned()
        self._returns: Deque[float] = deque(maxlen=_SMOOTHED_OVER if self.smooth_return else None)
        self._successes: Deque[float] = deque(maxlen=self._returns.maxlen)
        self._reports_success = False  # whether any path has reported success or failure
        self._average_return: Optional[float] = None

    def _check_assigned(self) -> None:
        """Checks arguments that can be assigned against other parts."""
        if self.min_buffer_size > self.replay_buffer.size_in_transitions:
            raise ValueError(f"min_buffer_size: expected at most {self.replay_buffer.size_in_transitions}, the size of "
                             f"replay_buffer, got {self.min_buffer_size}")
        exploration = self.exploration_policy
        if isinstance(exploration, ExplorationPolicy) and exploration.policy is not self.policy:
            raise ValueError("exploration_policy: expected an exploration policy based on the argument "
                             "policy, got one based on another policy")

    @abc.abstractmethod
    def init_opt(self) -> None:
        """Sets up optimization, such as a TensorFlow graph."""

    @abc.abstractmethod
    def optimize_policy(self, batches: Iterable[Transitions]) -> Mapping[str, float]:
        """Performs one update per batch; returns values to log by column name.

        Args:
            batches: return values of `ReplayBuffer.sample_transitions`, with scaled rewards.
        """

    def train(self, runner: Any) -> Optional[float]:
        """Trains the policy for all epochs of the runner; warns if the buffer is too small for updates.

        Returns:
            The average undiscounted return of exploration paths; see `smooth_return`.
        """
        self._check_assigned()
        for _ in runner.step_epochs():
            if not self.smooth_return:
                self._returns.clear()
                self._successes.clear()
            for _ in range(self.steps_per_epoch):
                runner.step_path = runner.obtain_samples(runner.step_itr)
                self.train_once(runner.step_itr, runner.step_path)
                runner.step_itr += 1
            self.log_diagnostics(runner.step_path or [])
            if self.num_eval_paths:
                paths = runner.obtain_evaluation_samples(runner.step_itr, self.num_eval_paths)
                self._processor.process_samples(paths, log="all", log_prefix="Evaluation-")
        num_stored = self.replay_buffer.n_transitions_stored
        if num_stored < self.min_buffer_size:
            logger.warn(f"the policy was not updated, because the replay buffer contains {num_stored} transitions, "
                        f"fewer than min_buffer_size={self.min_buffer_size}")
        return self._average_return

    def train_once(self, itr: int, paths: Sequence[Path]) -> float:
        """Stores the paths of a cycle and performs its updates.

        Args:
            itr (int): iteration number.
            paths (list of dict): collected paths.

        Returns:
            The average undiscounted return of exploration paths; see `smooth_return`.
        """
        processed = self.process_samples(itr, paths)
        self.replay_buffer.add_paths(paths)
        ended = [path for path, is_complete in enumerate(processed["complete"]) if is_complete]
        self._returns.extend(processed["undiscounted_returns"][path] for path in ended)
        self._successes.extend(processed["success_history"][path] for path in ended)
        if self.replay_buffer.n_transitions_stored >= self.min_buffer_size:
            for key, value in self.optimize_policy(self._draw_batches()).items():
                logger.logkv_mean(key, value)
        self._average_return = float(np.mean(self._returns)) if self._returns else float("nan")
        return self._average_return

    def _draw_batches(self) -> Iterator[Transitions]:
        for _ in range(self.n_train_steps):
            transitions = self.replay_buffer.sample_transitions(self.buffer_batch_size)
            yield {**transitions, "rewards": transitions["rewards"] * np.float32(self.reward_scale)}

    def process_samples(self, itr: int, paths: Sequence[Path]) -> Dict[str, List]:
        """Returns the return, success and completeness of each path.

        Args:
            itr (int): iteration number.
            paths (list of dict): collected paths. A sampler that returns parts of paths marks unfinished paths with
                `complete=False`.

        Returns:
            Dict of lists with one entry per path:

            * `undiscounted_returns` (list of float): sums of rewards.
            * `success_history` (list of float): 1 if the environment reported a success (`env_infos['is_success']` or
              `env_infos['success']`) at any step, else 0.
            * `complete` (list of bool): whether the path has ended.
        """
        successes = [has_success(path) for path in paths]
        self._reports_success |= any(success is not None for success in successes)
        return {"undiscounted_returns": path_returns(concatenate_paths(paths)).tolist(),
                "success_history": [float(bool(success)) for success in successes],
                "complete": [bool(path.get("complete", True)) for path in paths]}

    def log_diagnostics(self, paths: Sequence[Path]) -> None:
        """Logs statistics of an epoch, and diagnostics of the policy on the paths of the last cycle."""
        logger.logkv("AverageReturn", self._average_return)
        if self._successes and self._reports_success:
            logger.logkv("SuccessRate", float(np.mean(self._successes)))
        logger.logkv("BufferSize", self.replay_buffer.n_transitions_stored)
        self.policy.log_diagnostics(paths)
