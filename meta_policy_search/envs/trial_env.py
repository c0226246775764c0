"""Environment wrapper that joins several episodes into one path, a trial of RL^2 (arXiv:1611.02779, section 2.2)."""
import reprlib
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.compat import BatchedWrapper, WrappingEnv
from meta_policy_search.envs.interface import BatchedEnv
from meta_policy_search.envs.spaces import extended_bounds, is_discrete
from meta_policy_search.types import BatchedStep, Path
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.gym_import import gym

EPISODE = "episode"
"""Key of the env info that holds the index of the current episode in the trial, starting at 0."""


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
    env_infos        the wrapped environment's infos, and `episode`, the index of the episode from 0. An info of
                     this name in the wrapped environment raises `ValueError`
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
        self.episodes_per_trial = check_positive_int("episodes_per_trial", episodes_per_trial)
        self.max_path_length = check_positive_int("max_path_length", max_path_length)
        self._episode = self._steps = 0  # index of the current episode, and number of its steps
        bounds = extended_bounds("env", self.observation_space, num_added(self.action_space))
        self.observation_space = gym.spaces.Box(*bounds, dtype=np.float64)

    @property
    def trial_length(self) -> int:
        """Maximum number of steps per trial; pass it to samplers as `max_path_length`."""
        return self.episodes_per_trial * self.max_path_length

    @replaces("reset", "step", "set_task")
    def make_batched(self, num_envs: int) -> Optional[BatchedEnv]:
        """Returns a vectorized environment of `num_envs` copies; None if the wrapped environment has none."""
        batched = super().make_batched(num_envs)
        return None if batched is None else BatchedTrialEnv(batched, self)

    def reset(self, *, seed: Optional[int] = None, options: Optional[dict] = None) -> Tuple[np.ndarray, Dict[str, Any]]:
        """Starts a new trial; returns `(observation, info)`."""
        observation, info = super().reset(seed=seed, options=options)
        self._episode = self._steps = 0
        return np.append(observation, np.zeros(num_added(self.action_space))), info

    def step(self, action: np.ndarray) -> Tuple[np.ndarray, float, bool, bool, Dict[str, Any]]:
        """Takes one step; returns `(observation, reward, terminated, truncated, info)`."""
        observation, reward, terminated, truncated, info = super().step(action)
        info = with_episode(info, self._episode)
        self._steps += 1
        ended = terminated or truncated or self._steps >= self.max_path_length
        if ended:
            self._episode, self._steps = self._episode + 1, 0
        is_last = self._episode >= self.episodes_per_trial
        if ended and not is_last:
            observation, _ = super().reset()
        extended = extend_observations(self.action_space, np.asarray(observation)[None], np.asarray(action)[None],
                                       np.array([reward]), np.array([ended]))
        return extended[0], reward, is_last, False, info

    def log_diagnostics(self, paths: Sequence[Path], prefix: str = "") -> None:
        """Splits the trials into episodes and passes these to `log_diagnostics` of the wrapped environment."""
        size = self.observation_space.shape[0] - num_added(self.action_space)
        episodes = [{**episode, "observations": episode["observations"][:, :size]}
                    for path in paths for episode in split_episodes(path)]
        super().log_diagnostics(episodes, prefix)  # type: ignore[arg-type]


class BatchedTrialEnv(BatchedWrapper):
    """Vectorized `TrialEnv`."""

    def __init__(self, batched_env: BatchedEnv, env: TrialEnv) -> None:
        super().__init__(batched_env, env)
        self._episodes_per_trial, self._max_path_length = env.episodes_per_trial, env.max_path_length
        self._episodes, self._steps = np.zeros(self.num_envs, int), np.zeros(self.num_envs, int)
        self._rngs: List[Any] = [None] * self.num_envs  # generators of the current trials

    def reset(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        """See `BatchedEnv.reset`; starts new trials."""
        for env_id, rng in zip(env_ids, rngs, strict=True):
            self._rngs[env_id] = rng
        self._episodes[env_ids] = self._steps[env_ids] = 0
        observations = self._batched_env.reset(env_ids, rngs)
        return np.concatenate([observations, np.zeros((len(env_ids), num_added(self.action_space)))], axis=1)

    def step(self, actions: np.ndarray, env_ids: Optional[np.ndarray] = None) -> BatchedStep:
        """See `BatchedEnv.step`."""
        ids = np.arange(self.num_envs) if env_ids is None else np.asarray(env_ids)
        step = self._batched_env.step(actions, env_ids)
        episodes = self._episodes[ids]
        self._steps[ids] += 1
        ended = np.logical_or(step.terminated, step.truncated) | (self._steps[ids] >= self._max_path_length)
        self._steps[ids[ended]] = 0
        self._episodes[ids] += ended
        is_last = self._episodes[ids] >= self._episodes_per_trial
        observations, restarted = step.observations, np.flatnonzero(ended & ~is_last)
        if len(restarted):
            observations = observations.copy()
            observations[restarted] = self._batched_env.reset(ids[restarted], [self._rngs[i] for i in ids[restarted]])
        extended = extend_observations(self.action_space, observations, np.asarray(actions), step.rewards, ended)
        return BatchedStep(extended, step.rewards, is_last, np.zeros(len(ids), bool),
                           with_episode(step.env_infos, episodes))


def with_episode(infos: Mapping[str, Any], episode: Any) -> Dict[str, Any]:
    """Returns infos with the index of the episode; raises `ValueError` if the environment has an info of this name."""
    if EPISODE in infos:
        raise ValueError(f"env: expected no info {EPISODE!r}, because TrialEnv adds it, got "
                         f"{reprlib.repr(infos[EPISODE])}. Rename it in a wrapper")
    return {**infos, EPISODE: episode}


def num_added(action_space: Any) -> int:
    """Returns the number of entries that `TrialEnv` appends to an observation."""
    return (int(action_space.n) if is_discrete(action_space) else int(np.prod(action_space.shape))) + 2


def extend_observations(action_space: Any, observations: np.ndarray, actions: np.ndarray, rewards: np.ndarray,
                        ended: np.ndarray) -> np.ndarray:
    """Appends previous actions, previous rewards and flags to observations; see `TrialEnv`.

    Args:
        action_space: the action space; discrete actions are encoded as one-hot vectors.
        observations: `[k, O]`, observations of the wrapped environment.
        actions: `[k, A]`, or int `[k]` for a discrete action space.
        rewards: `[k]`.
        ended: bool `[k]`, whether the previous step ended an episode.

    Returns:
        float64 `[k, O + num_added(action_space)]`.
    """
    shown = np.eye(action_space.n)[actions] if is_discrete(action_space) else actions.reshape(len(actions), -1)
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
