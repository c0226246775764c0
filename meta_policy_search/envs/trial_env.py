"""Environment wrapper that joins several episodes into one path, a trial of RL^2 (arXiv:1611.02779, section 2.2)."""
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.compat import WrappingEnv
from meta_policy_search.envs.interface import BatchedEnv
from meta_policy_search.envs.spaces import is_box, is_discrete
from meta_policy_search.types import BatchedStep, Path, Task
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.gym_import import gym

EPISODE = "episode"
"""Key of the env info that holds the index of the current episode in the trial, starting at 0."""

_ONLY = np.zeros(1, int)  # the row of a single environment


class TrialEnv(WrappingEnv):
    """Environment wrapper whose paths are trials: consecutive episodes of the same task.

    ===============  ============================================================================
    observation      concatenation of the wrapped environment's observation, the previous action
                     (discrete: one-hot), the previous reward, and a flag: 1 if the previous step ended an
                     episode, else 0. At the first step of a trial, the added entries are zero.
    action, reward   same as in the wrapped environment
    end of episode   when the wrapped environment ends it, or after `max_path_length` steps. After every
                     episode but the last, the observation is the first one of the next episode
    end of path      terminated at the end of the last episode
    env_infos        the wrapped environment's infos, and `episode`, the index of the episode from 0
    ===============  ============================================================================

    All other attributes are looked up on the wrapped environment. `make_batched(num_envs)` returns None if the wrapped
    environment is not vectorized.

    Args:
        env: meta-environment to wrap, with the gym 0.26, Gymnasium or classic gym API. Its observations are vectors.
        episodes_per_trial: number of episodes per trial, at least one; default 2.
        max_path_length: maximum number of steps per episode; default 100.

    Raises:
        TypeError: `env` is not a meta-environment, or has no spaces.
        ValueError: a number is out of range, or observations are not vectors.
    """

    def __init__(self, env: Any, episodes_per_trial: int = 2, max_path_length: int = 100) -> None:
        super().__init__(env)
        if not is_box(env.observation_space) or len(env.observation_space.shape) != 1:
            raise ValueError(f"env: expected an environment that observes vectors, got {env.observation_space}")
        self.episodes_per_trial = check_positive_int("episodes_per_trial", episodes_per_trial)
        self.max_path_length = check_positive_int("max_path_length", max_path_length)
        self._trials = self.make_trials(1)
        added = np.full(self._trials.num_added, np.inf)
        low, high = np.append(env.observation_space.low, -added), np.append(env.observation_space.high, added)
        self.observation_space = gym.spaces.Box(low, high, dtype=np.float64)

    @property
    def trial_length(self) -> int:
        """Maximum number of steps per trial; pass it to samplers as `max_path_length`."""
        return self.episodes_per_trial * self.max_path_length

    @replaces("reset", "step", "set_task")
    def make_batched(self, num_envs: int) -> Optional[BatchedEnv]:
        """Returns a vectorized environment of `num_envs` copies; None if the wrapped environment has none."""
        batched = super().make_batched(num_envs)
        return None if batched is None else BatchedTrialEnv(batched, self.make_trials(num_envs), self.observation_space)

    def make_trials(self, num_envs: int) -> "_Trials":
        """Returns the episode and step counters of `num_envs` copies."""
        return _Trials(num_envs, self.action_space, self.episodes_per_trial, self.max_path_length)

    def reset(self, *, seed: Optional[int] = None, options: Optional[dict] = None) -> Tuple[np.ndarray, Dict[str, Any]]:
        """Starts a new trial; returns `(observation, info)`."""
        observation, info = super().reset(seed=seed, options=options)
        return self._trials.start(_ONLY, np.asarray(observation)[None])[0], info

    def step(self, action: np.ndarray) -> Tuple[np.ndarray, float, bool, bool, Dict[str, Any]]:
        """Takes one step; returns `(observation, reward, terminated, truncated, info)`."""
        observation, reward, terminated, truncated, info = super().step(action)
        episodes, ended, is_last = self._trials.count(_ONLY, np.array([terminated or truncated]))
        if ended[0] and not is_last[0]:
            observation, _ = super().reset()
        joined = self._trials.join(np.asarray(observation)[None], np.asarray(action)[None], np.array([reward]), ended)
        return joined[0], reward, bool(is_last[0]), False, {**info, EPISODE: episodes[0]}

    def log_diagnostics(self, paths: Sequence[Path], prefix: str = "") -> None:
        """Splits the trials into episodes and passes these to `log_diagnostics` of the wrapped environment."""
        size = self.observation_space.shape[0] - self._trials.num_added
        episodes = [{**episode, "observations": episode["observations"][:, :size]}
                    for path in paths for episode in split_episodes(path)]
        super().log_diagnostics(episodes, prefix)  # type: ignore[arg-type]


class BatchedTrialEnv(BatchedEnv):
    """Vectorized `TrialEnv`; `trials` are the episode and step counters of its copies."""

    def __init__(self, batched_env: BatchedEnv, trials: "_Trials", observation_space: Any) -> None:
        super().__init__(batched_env.num_envs)
        self._batched_env, self._trials = batched_env, trials
        self._rngs: List[Any] = [None] * self.num_envs  # generators of the current trials
        self.max_threads = batched_env.max_threads
        self.observation_space, self.action_space = observation_space, batched_env.action_space

    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        return self._batched_env.sample_tasks(n_tasks, rng)

    def set_tasks(self, tasks: Sequence[Task]) -> None:
        self._batched_env.set_tasks(tasks)

    def get_tasks(self) -> List[Task]:
        return self._batched_env.get_tasks()

    def reset(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        """See `BatchedEnv.reset`; starts new trials."""
        for env_id, rng in zip(env_ids, rngs, strict=True):
            self._rngs[env_id] = rng
        return self._trials.start(np.asarray(env_ids), self._batched_env.reset(env_ids, rngs))

    def step(self, actions: np.ndarray, env_ids: Optional[np.ndarray] = None) -> BatchedStep:
        """See `BatchedEnv.step`."""
        ids = np.arange(self.num_envs) if env_ids is None else np.asarray(env_ids)
        answer = self._batched_env.step(actions, env_ids)
        episodes, ended, is_last = self._trials.count(ids, answer.terminated | answer.truncated)
        observations, restarted = answer.observations, np.flatnonzero(ended & ~is_last)
        if len(restarted):
            observations = observations.copy()
            observations[restarted] = self._batched_env.reset(ids[restarted], [self._rngs[i] for i in ids[restarted]])
        return BatchedStep(self._trials.join(observations, np.asarray(actions), answer.rewards, ended), answer.rewards,
                           is_last, np.zeros(len(ids), bool), {**answer.env_infos, EPISODE: episodes})


class _Trials:
    """Counts episodes and steps of `num_envs` environments, and extends their observations."""

    def __init__(self, num_envs: int, action_space: Any, episodes_per_trial: int, max_path_length: int) -> None:
        self._num_actions = int(action_space.n) if is_discrete(action_space) else None
        self.num_added = (self._num_actions or int(np.prod(action_space.shape))) + 2
        self._episodes_per_trial, self._max_path_length = episodes_per_trial, max_path_length
        self._episodes, self._steps = np.zeros(num_envs, int), np.zeros(num_envs, int)

    def start(self, rows: np.ndarray, observations: np.ndarray) -> np.ndarray:
        """Resets the counters of the environments `rows` `[k]`; returns their extended first observations."""
        self._episodes[rows] = self._steps[rows] = 0
        return np.concatenate([observations, np.zeros((len(observations), self.num_added))], axis=1)

    def count(self, rows: np.ndarray, ended: np.ndarray) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Counts one step of the environments `rows` `[k]`.

        Args:
            rows: indices of the environments.
            ended: bool `[k]`, whether the wrapped environment ended the episode.

        Returns:
            `(episodes, ended, is_last)`, each `[k]`: the index of the step's episode, whether the step ended the
            episode, and whether it ended the trial.
        """
        self._steps[rows] += 1
        episodes = self._episodes[rows]
        ended = ended | (self._steps[rows] >= self._max_path_length)
        self._steps[rows[ended]] = 0
        self._episodes[rows] += ended
        return episodes, ended, self._episodes[rows] >= self._episodes_per_trial

    def join(self, observations: np.ndarray, actions: np.ndarray, rewards: np.ndarray, ended: np.ndarray) -> np.ndarray:
        """Appends previous actions, previous rewards and the flags `ended` to observations, float64 `[k, O]`."""
        shown = actions.reshape(len(actions), -1) if self._num_actions is None else np.eye(self._num_actions)[actions]
        return np.concatenate([observations, shown, rewards[:, None], ended[:, None]], axis=1)


def split_episodes(path: Path) -> List[Path]:
    """Splits a trial into one path dict per episode. The arrays are views; `last_observation` is omitted."""
    ends = np.flatnonzero(np.diff(path["env_infos"][EPISODE])) + 1
    bounds = [0, *ends.tolist(), len(path["rewards"])]

    def part(value: Any, steps: slice) -> Any:
        if isinstance(value, dict):
            return {key: part(item, steps) for key, item in value.items()}
        return value[steps] if isinstance(value, np.ndarray) and len(value) == len(path["rewards"]) else value

    entries = {key: value for key, value in path.items() if key != "last_observation"}
    return [part(entries, slice(start, stop)) for start, stop in zip(bounds[:-1], bounds[1:])]


def episode_lengths(path: Path, num_episodes: int) -> np.ndarray:
    """Returns the number of steps of each episode of a trial, int `[num_episodes]`."""
    return np.bincount(path["env_infos"][EPISODE].astype(int), minlength=num_episodes)


def episode_returns(path: Path, num_episodes: int) -> np.ndarray:
    """Returns the sum of rewards of each episode of a trial, float64 `[num_episodes]`."""
    return np.bincount(path["env_infos"][EPISODE].astype(int), path["rewards"], minlength=num_episodes)
