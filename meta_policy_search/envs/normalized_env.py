"""Wrapper that rescales actions and optionally normalizes observations and rewards."""
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.compat import WrappingEnv
from meta_policy_search.envs.interface import BatchedEnv
from meta_policy_search.envs.spaces import as_array, is_box
from meta_policy_search.types import BatchedStep, Rows, Task
from meta_policy_search.utils.checks import check_bool, check_fraction, check_positive
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.gym_import import gym
from meta_policy_search.utils.serializable import check_own_pickle

_ONLY = slice(None)  # selects the row of a single environment
_EPSILON = 1e-8  # added to standard deviations to avoid division by zero


class NormalizedEnv(WrappingEnv):
    """Wrapper that rescales actions and optionally normalizes observations and rewards.

    Actions: the action space of the wrapper is `[-normalization_scale, normalization_scale]` in every dimension.
    Actions are mapped linearly to the action box of the wrapped environment and clipped to it. With the default scale,
    the initial standard deviation of a Gaussian policy (1) is a tenth of the half width of the action box. Other action
    spaces are unchanged.

    Observations and rewards: exponential moving averages estimate the mean `m` (initially 0) and the variance `v`
    (initially 1). Each new value `x` updates them with step size `alpha`:

        `m <- (1 - alpha) m + alpha x`,   `v <- (1 - alpha) v + alpha (x - m)^2`

    Then an observation is normalized to `(x - m) / (sqrt(v) + 1e-8)` and a reward to `x / (sqrt(v) + 1e-8)`. Each reset
    sets `m` and `v` to their initial values, so the data of a path do not depend on other paths.

    The methods follow the gym 0.26 API. Attributes that this class does not define are looked up on the wrapped
    environment. `make_batched(num_envs)` returns None if the wrapped environment cannot be vectorized.

    Args:
        env: the meta-environment, with the gym 0.26, Gymnasium or classic gym API.
        scale_reward: positive factor of the (normalized) reward; default 1.
        normalize_obs: whether to normalize each entry of the observations; default False.
        normalize_reward: whether to normalize rewards; default False.
        obs_alpha: step size of the observation averages, in `(0, 1)`; default 0.001.
        reward_alpha: step size of the reward averages, in `(0, 1)`; default 0.001.
        normalization_scale: positive bound of the rescaled actions; default 10.

    Raises:
        TypeError: `env` is not a meta-environment or has no spaces, or an argument has the wrong type.
        ValueError: the action box of `env` is unbounded; `normalize_obs` is True and the observation space is not a
            box; or an argument is out of range.

    References:
        The environment wrapper of rllab, Duan et al. 2016 (arXiv:1604.06778), and of ProMP's public code.
    """

    def __init__(self, env: Any, scale_reward: float = 1.0, normalize_obs: bool = False, normalize_reward: bool = False,
                 obs_alpha: float = 0.001, reward_alpha: float = 0.001, normalization_scale: float = 10.0) -> None:
        super().__init__(env)
        self._settings: Dict[str, Any] = {
            "scale_reward": check_positive("scale_reward", scale_reward),
            "normalize_obs": check_bool("normalize_obs", normalize_obs),
            "normalize_reward": check_bool("normalize_reward", normalize_reward),
            "obs_alpha": check_fraction("obs_alpha", obs_alpha, high_open=True),
            "reward_alpha": check_fraction("reward_alpha", reward_alpha, high_open=True),
            "normalization_scale": check_positive("normalization_scale", normalization_scale),
        }
        self._normalizer = self.make_normalizer(1)
        self.observation_space = self._normalizer.observation_space
        self.action_space = self._normalizer.action_space

    def __setstate__(self, state: Dict[str, Any]) -> None:
        check_own_pickle(self, state, "_normalizer")
        self.__dict__.update(state)

    @replaces("reset", "step", "set_task")
    def make_batched(self, num_envs: int) -> Optional[BatchedEnv]:
        """Returns a vectorized environment of `num_envs` copies, or None if the wrapped environment has none."""
        batched = super().make_batched(num_envs)
        return None if batched is None else BatchedNormalizedEnv(batched, self.make_normalizer(num_envs))

    def make_normalizer(self, num_envs: int) -> "_Normalizer":
        """Returns a normalizer for the data of `num_envs` wrapped environments."""
        return _Normalizer(num_envs, self.wrapped_env, **self._settings)

    def reset(self, *, seed: Optional[int] = None, options: Optional[dict] = None) -> Tuple[np.ndarray, Dict[str, Any]]:
        """Starts a new path and resets the running averages; returns `(observation, info)`.

        `seed` and `options` are passed to the wrapped environment unless they are None.
        """
        observation, info = super().reset(seed=seed, options=options)
        self._normalizer.reset(_ONLY)
        return self._normalizer.observations(np.asarray(observation)[None], _ONLY)[0], info

    def step(self, action: np.ndarray) -> Tuple[np.ndarray, float, bool, bool, Dict[str, Any]]:
        """Takes one step; returns `(observation, reward, terminated, truncated, info)`."""
        if is_box(self.action_space):
            action = self._normalizer.actions(as_array("action", action, self.action_space.shape)[None])[0]
        observation, reward, terminated, truncated, info = super().step(action)
        observation = self._normalizer.observations(np.asarray(observation)[None], _ONLY)[0]
        reward = self._normalizer.rewards(np.array([reward]), _ONLY)[0]
        return observation, float(reward), terminated, truncated, info


normalize = NormalizedEnv


class BatchedNormalizedEnv(BatchedEnv):
    """Vectorized environment of `NormalizedEnv` copies.

    Args:
        batched_env: vectorized wrapped environment.
        normalizer: result of `NormalizedEnv.make_normalizer` for the same number of copies.
    """

    def __init__(self, batched_env: BatchedEnv, normalizer: "_Normalizer") -> None:
        super().__init__(batched_env.num_envs)
        self._batched_env, self._normalizer = batched_env, normalizer
        self.max_threads = batched_env.max_threads
        self.observation_space, self.action_space = normalizer.observation_space, normalizer.action_space

    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        return self._batched_env.sample_tasks(n_tasks, rng)

    def set_tasks(self, tasks: Sequence[Task]) -> None:
        self._batched_env.set_tasks(tasks)

    def get_tasks(self) -> List[Task]:
        return self._batched_env.get_tasks()

    def reset(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        """Starts new paths in the selected copies and resets their running averages; see `BatchedEnv.reset`."""
        observations = self._batched_env.reset(env_ids, rngs)
        self._normalizer.reset(env_ids)
        return self._normalizer.observations(observations, env_ids)

    def step(self, actions: np.ndarray, env_ids: Optional[np.ndarray] = None) -> BatchedStep:
        """Takes one step in the selected copies with rescaled `actions`; see `BatchedEnv.step`."""
        actions, _ = self._rows(actions, env_ids)
        answer = self._batched_env.step(self._normalizer.actions(actions), env_ids)
        rows = slice(None) if env_ids is None else env_ids
        return answer._replace(observations=self._normalizer.observations(answer.observations, rows),
                               rewards=self._normalizer.rewards(answer.rewards, rows))


class _Normalizer:
    """Normalizes the data of `num_envs` environments and stores their averages; see `NormalizedEnv`."""

    def __init__(self, num_envs: int, env: Any, scale_reward: float, normalize_obs: bool, normalize_reward: bool,
                 obs_alpha: float, reward_alpha: float, normalization_scale: float) -> None:
        self._scale_reward = scale_reward
        self._normalization_scale = normalization_scale
        observation_space, action_space = env.observation_space, env.action_space
        self.observation_space, self.action_space = observation_space, action_space
        if is_box(action_space):
            self._low = np.asarray(action_space.low, dtype=np.float64)
            self._high = np.asarray(action_space.high, dtype=np.float64)
            if not (np.isfinite(self._low).all() and np.isfinite(self._high).all()):
                raise ValueError(f"env: expected an action box with finite bounds, got {action_space}")
            self.action_space = gym.spaces.Box(-normalization_scale, normalization_scale, self._low.shape, np.float64)
        self._obs_averages: Optional[Tuple[np.ndarray, np.ndarray, float]] = None
        if normalize_obs:
            if not is_box(observation_space):
                raise ValueError(f"normalize_obs: expected an environment with a Box observation space, got "
                                 f"{observation_space}")
            self.observation_space = gym.spaces.Box(-np.inf, np.inf, observation_space.shape, np.float64)
            self._obs_averages = _averages(num_envs, observation_space.shape, obs_alpha)
        self._reward_averages = _averages(num_envs, (), reward_alpha) if normalize_reward else None

    def reset(self, rows: Rows) -> None:
        for averages in (self._obs_averages, self._reward_averages):
            if averages is not None:
                averages[0][rows], averages[1][rows] = 0.0, 1.0

    def actions(self, actions: np.ndarray) -> np.ndarray:
        """Maps rescaled actions, float64 `[k, A]`, to actions of the wrapped environments."""
        if not is_box(self.action_space):
            return actions
        scale = self._normalization_scale
        scaled = self._low + (actions + scale) * ((self._high - self._low) / (2.0 * scale))
        return np.clip(scaled, self._low, self._high)

    def observations(self, observations: np.ndarray, rows: Rows) -> np.ndarray:
        """Updates the averages of the environments `rows`; returns normalized observations `[k, O]`."""
        if self._obs_averages is None:
            return observations
        if observations.shape[1:] != self.observation_space.shape:
            raise ValueError(f"observation: expected shape {self.observation_space.shape} (observation_space), "
                             f"got {observations.shape[1:]}")
        mean, std = _update(self._obs_averages, observations, rows)
        return (observations - mean) / (std + _EPSILON)

    def rewards(self, rewards: np.ndarray, rows: Rows) -> np.ndarray:
        """Updates the averages of the environments `rows`; returns normalized and scaled rewards `[k]`."""
        if self._reward_averages is not None:
            _, std = _update(self._reward_averages, rewards, rows)
            rewards = rewards / (std + _EPSILON)
        return rewards * self._scale_reward


def _averages(num_envs: int, shape: Tuple[int, ...], alpha: float) -> Tuple[np.ndarray, np.ndarray, float]:
    """Returns the initial means and variances of `num_envs` environments, and the step size."""
    return np.zeros((num_envs, *shape)), np.ones((num_envs, *shape)), alpha


def _update(averages: Tuple[np.ndarray, np.ndarray, float], values: np.ndarray,
            rows: Rows) -> Tuple[np.ndarray, np.ndarray]:
    """Updates the averages of the environments `rows` with one value each; returns `(mean, std)` of these rows."""
    means, variances, alpha = averages
    mean = (1.0 - alpha) * means[rows] + alpha * values
    var = (1.0 - alpha) * variances[rows] + alpha * np.square(values - mean)
    means[rows], variances[rows] = mean, var
    return mean, np.sqrt(var)
