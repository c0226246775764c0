"""Wrapper that rescales actions and optionally normalizes observations and rewards."""
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.compat import BatchedWrapper, WrappingEnv, copy_env, layers
from meta_policy_search.envs.interface import BatchedEnv
from meta_policy_search.envs.spaces import as_array, as_numbers, extended_bounds, is_box
from meta_policy_search.types import BatchedStep, Path, Task
from meta_policy_search.utils.checks import check_bool, check_fraction, check_positive
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.gym_import import gym
from meta_policy_search.utils.serializable import check_own_pickle

Averages = Dict[str, Tuple[np.ndarray, np.ndarray]]
"""Mean and variance of `"observations"` and `"rewards"`."""

_EPSILON = 1e-8  # added to standard deviations to avoid division by zero


class NormalizedEnv(WrappingEnv):
    """Wrapper that rescales actions and optionally normalizes observations and rewards.

    Actions: the action space of the wrapper is `[-normalization_scale, normalization_scale]` in every dimension.
    Actions are mapped linearly to the action box of the wrapped environment and clipped to it. With the default scale,
    the initial standard deviation of a Gaussian policy (1) is a tenth of the half width of the action box. Other action
    spaces are unchanged.

    Observations and rewards: running averages estimate the mean `m` (initially 0) and the variance `v` (initially 1) of
    each entry of the observations, and of the rewards. An observation is normalized to `(x - m) / (sqrt(v) + 1e-8)`, a
    reward to `x / (sqrt(v) + 1e-8)`. The averages persist over paths. They are constant while paths are sampled, so the
    paths do not depend on the number of copies or workers. In training, each call of `obtain_samples` updates them
    with the mean and variance of all values `x` of the sampled paths:

        `m <- (1 - w) m + w mean(x)`,   `v <- (1 - w) v + w mean((x - m)^2)`,   `w = 1 - (1 - alpha)^T`

    `T` is the number of steps of the longest path. This corresponds to `T` updates with step size `alpha`.

    The methods follow the gym 0.26 API. Attributes that this class does not define are looked up on the wrapped
    environment. `make_batched(num_envs)` returns None if the wrapped environment cannot be vectorized.

    Args:
        env: the meta-environment, with the gym 0.26, Gymnasium or classic gym API.
        scale_reward: positive factor of the (normalized) reward; default 1.
        normalize_obs: whether to normalize each entry of the observations; default False.
        normalize_reward: whether to normalize rewards; default False. The unit of rewards then changes in training, so
            returns of different iterations are not comparable, and the best snapshot is often the last. Constant
            rewards grow without bound, because their variance decreases to 0.
        obs_alpha: step size of the observation averages, in `(0, 1)`; default 0.001.
        reward_alpha: step size of the reward averages, in `(0, 1)`; default 0.001.
        normalization_scale: positive bound of the rescaled actions; default 10.
        observe_task: whether to append the task to the observations, for an oracle policy; default False. The task is a
            number, an array of numbers, or a dict of these, whose values are appended in the order of their keys.

    Attributes:
        averages: means and variances by name, `"observations"` and `"rewards"`; empty if nothing is normalized.

    Raises:
        TypeError: `env` is not a meta-environment or has no spaces, an argument has the wrong type, or `observe_task`
            is True and tasks are not numbers.
        ValueError: the action box of `env` is unbounded; `env` normalizes already and `scale_reward`,
            `normalize_obs` or `normalize_reward` is given; an observation is not a box where `normalize_obs`
            is True, or not a vector where `observe_task` is True; or an argument is out of range.

    References:
        The environment wrapper of rllab, Duan et al. 2016 (arXiv:1604.06778), and of ProMP's public code.
    """

    def __init__(self, env: Any, scale_reward: float = 1.0, normalize_obs: bool = False, normalize_reward: bool = False,
                 obs_alpha: float = 0.001, reward_alpha: float = 0.001, normalization_scale: float = 10.0,
                 observe_task: bool = False) -> None:
        super().__init__(env)
        self._scale_reward = check_positive("scale_reward", scale_reward)
        if normalizers(env) and (normalize_obs or normalize_reward or scale_reward != 1.0):
            raise ValueError("env: expected an environment that normalizes neither observations nor rewards yet (pass "
                             f"scale_reward, normalize_obs and normalize_reward to its NormalizedEnv), got {env!r}")
        self._normalization_scale = check_positive("normalization_scale", normalization_scale)
        self._alphas = {"observations": check_fraction("obs_alpha", obs_alpha, high_open=True),
                        "rewards": check_fraction("reward_alpha", reward_alpha, high_open=True)}
        self.averages: Averages = {}
        space = self.observation_space
        if check_bool("normalize_obs", normalize_obs):
            if not is_box(space):
                raise ValueError(f"normalize_obs: expected an environment with a Box observation space, got {space}")
            self.averages["observations"] = np.zeros(space.shape), np.ones(space.shape)
            self.observation_space = gym.spaces.Box(-np.inf, np.inf, space.shape, np.float64)
        if check_bool("normalize_reward", normalize_reward):
            self.averages["rewards"] = np.zeros(()), np.ones(())
        self._size = int(np.prod(space.shape))  # of an observation without the task
        self.observes_task = check_bool("observe_task", observe_task)
        if observe_task:
            (task,) = copy_env(self).sample_tasks(1, np.random.default_rng(0))
            bounds = extended_bounds("observe_task", self.observation_space, len(task_numbers(task)))
            self.observation_space = gym.spaces.Box(*bounds, dtype=np.float64)
        if is_box(self.action_space):
            self._low, self._high = (np.asarray(bound, dtype=np.float64)
                                     for bound in (self.action_space.low, self.action_space.high))
            if not (np.isfinite(self._low).all() and np.isfinite(self._high).all()):
                raise ValueError(f"env: expected an action box with finite bounds, got {self.action_space}")
            scale = self._normalization_scale
            self.action_space = gym.spaces.Box(-scale, scale, self._low.shape, np.float64)

    def __setstate__(self, state: Dict[str, Any]) -> None:
        check_own_pickle(self, state, "averages")
        self.__dict__.update(state)

    @replaces("reset", "step", "set_task", "get_task")
    def make_batched(self, num_envs: int) -> Optional[BatchedEnv]:
        """Returns a vectorized environment of `num_envs` copies, or None if the wrapped environment has none."""
        batched = super().make_batched(num_envs)
        return None if batched is None else BatchedNormalizedEnv(batched, self)

    def update_averages(self, paths: Sequence[Path]) -> None:
        """Updates the averages with the paths of a call of `obtain_samples`; see `NormalizedEnv`.

        Args:
            paths: path dicts with normalized observations and rewards, sampled with the current averages.
        """
        weights = {name: 1.0 - (1.0 - alpha) ** max(len(path["rewards"]) for path in paths)
                   for name, alpha in self._alphas.items()}
        for name, (mean, var) in self.averages.items():
            values = np.concatenate([path[name] for path in paths])  # type: ignore[literal-required]
            scale = np.sqrt(var) + _EPSILON
            if name == "observations":
                values = values.reshape(len(values), -1)[:, :self._size].reshape(-1, *mean.shape) * scale + mean
            else:
                values = values / self._scale_reward * scale
            mean = mean + weights[name] * (values.mean(axis=0) - mean)
            self.averages[name] = mean, var + weights[name] * (np.square(values - mean).mean(axis=0) - var)

    def reset(self, *, seed: Optional[int] = None, options: Optional[dict] = None) -> Tuple[np.ndarray, Dict[str, Any]]:
        """Starts a new path; returns `(observation, info)`.

        `seed` and `options` are passed to the wrapped environment unless they are None.
        """
        observation, info = super().reset(seed=seed, options=options)
        return self.normalized_observation(observation), info

    def step(self, action: np.ndarray) -> Tuple[np.ndarray, float, bool, bool, Dict[str, Any]]:
        """Takes one step; returns `(observation, reward, terminated, truncated, info)`."""
        if is_box(self.action_space):
            action = self.unscaled_actions(as_array("action", action, self.action_space.shape))
        observation, reward, terminated, truncated, info = super().step(action)
        reward = float(self.normalized_rewards(reward))
        return self.normalized_observation(observation), reward, terminated, truncated, info

    def normalized_observation(self, observation: Any) -> np.ndarray:
        """Returns the observation of this wrapper for an observation of the wrapped environment."""
        observation = self.normalized_observations(as_numbers("observation", observation)[None])[0]
        return np.append(observation, task_numbers(self.get_task())) if self.observes_task else observation

    def unscaled_actions(self, actions: np.ndarray) -> np.ndarray:
        """Maps rescaled actions `[..., A]` to actions of the wrapped environment, in their type."""
        if not is_box(self.action_space):
            return actions
        scale = self._normalization_scale
        scaled = self._low + (np.asarray(actions, np.float64) + scale) * ((self._high - self._low) / (2.0 * scale))
        return np.clip(scaled, self._low, self._high).astype(self.wrapped_env.action_space.dtype)

    def normalized_observations(self, observations: np.ndarray) -> np.ndarray:
        """Returns normalized observations `[k, ...]`."""
        if "observations" not in self.averages:
            return observations
        mean, var = self.averages["observations"]
        if observations.shape[1:] != mean.shape:
            raise ValueError(f"observation: expected shape {mean.shape} (observation_space), "
                             f"got {observations.shape[1:]}")
        return (observations - mean) / (np.sqrt(var) + _EPSILON)

    def normalized_rewards(self, rewards: Any) -> Any:
        """Returns normalized and scaled rewards, a number or an array."""
        if "rewards" in self.averages:
            rewards = rewards / (np.sqrt(self.averages["rewards"][1]) + _EPSILON)
        return rewards * self._scale_reward


normalize = NormalizedEnv


def act_unscaled(env: Any, observation: Any, act: Callable[[Any], Any]) -> Any:
    """Returns the action of `act`, a function of an observation of `env`, in units of the environment in its wrapper.

    If the outermost wrapper of `env` is a `NormalizedEnv`, `observation` and the action are those of the environment
    that it wraps; otherwise, they are those of `env`. The action is clipped to the bounds.
    """
    if isinstance(observation, tuple) and isinstance(observation[-1], dict):
        raise ValueError("observation: expected the first value of `reset` or `step`, got all of them")
    if not isinstance(env, NormalizedEnv):
        action, space = act(observation), env.action_space
        return np.clip(action, space.low, space.high) if is_box(space) else action
    observation, shape = as_numbers("observation", observation), env.wrapped_env.observation_space.shape
    if observation.shape != shape:
        raise ValueError(f"observation: expected shape {shape}, got {observation.shape}")
    return env.unscaled_actions(act(env.normalized_observation(observation)))


def normalizers(env: Any) -> List[NormalizedEnv]:
    """Returns the environment that normalizes observations or rewards: `env`, or one that it wraps; [] if none."""
    return [layer for layer in layers(env) if isinstance(layer, NormalizedEnv) and layer.averages]


def get_averages(env: Any) -> Averages:
    """Returns the running averages of an environment; empty if it does not normalize observations or rewards."""
    return {name: values for normalizer in normalizers(env) for name, values in normalizer.averages.items()}


def update_averages(sampled_env: Any, env: Any, paths: Sequence[Path]) -> None:
    """Updates the running averages of `sampled_env` with its paths, and sets those of `env` to the same values."""
    for normalizer in normalizers(sampled_env):
        normalizer.update_averages(paths)
    set_averages(env, get_averages(sampled_env))


def check_wrapped_like(env: Any, other: Any, owner: str) -> None:
    """Raises `ValueError` if an environment has another action space or normalization than `other`, that of `owner`."""
    if env.action_space != other.action_space:
        raise ValueError(f"env: expected the action space of {owner}, {other.action_space}, got {env.action_space}; "
                         "wrap the environment as in training (normalization_scale)")
    if get_averages(env).keys() != (averages := get_averages(other)).keys():
        raise ValueError(f"env: expected normalized {' and '.join(averages) or 'neither observations nor rewards'}, as "
                         f"in training ({owner}), got {env!r}")


def set_averages(env: Any, averages: Averages) -> None:
    """Restores running averages that `get_averages` returned."""
    for normalizer in normalizers(env):
        normalizer.averages = dict(averages)


def fix_averages(env: Any) -> None:
    """Stops the updates of an environment's running averages."""
    for normalizer in normalizers(env):
        normalizer._alphas = dict.fromkeys(normalizer._alphas, 0.0)


class BatchedNormalizedEnv(BatchedWrapper):
    """Vectorized `NormalizedEnv`."""

    def __init__(self, batched_env: BatchedEnv, env: NormalizedEnv) -> None:
        super().__init__(batched_env, env)
        self._env = env
        self._shown = self._shown_part()

    def set_tasks(self, tasks: Sequence[Task]) -> None:
        super().set_tasks(tasks)
        self._shown = self._shown_part()

    def reset(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        return self._observed(self._batched_env.reset(env_ids, rngs), env_ids)

    def step(self, actions: np.ndarray, env_ids: Optional[np.ndarray] = None) -> BatchedStep:
        """Takes one step in the selected copies with rescaled `actions`; see `BatchedEnv.step`."""
        actions, ids = self._rows(actions, env_ids)
        step = self._batched_env.step(self._env.unscaled_actions(actions), env_ids)
        return step._replace(observations=self._observed(step.observations, ids),
                             rewards=self._env.normalized_rewards(step.rewards))

    def _observed(self, observations: np.ndarray, env_ids: np.ndarray) -> np.ndarray:
        observations = self._env.normalized_observations(observations)
        return observations if self._shown is None else np.concatenate((observations, self._shown[env_ids]), axis=1)

    def _shown_part(self) -> Optional[np.ndarray]:
        """Returns the current tasks, float64 `[num_envs, k]`; None if they are not part of the observations."""
        return np.array(list(map(task_numbers, self.get_tasks()))) if self._env.observes_task else None


def task_numbers(task: Task) -> np.ndarray:
    """Converts a task to a vector, float64 `[k]`; raises `TypeError` if it does not consist of numbers.

    The values of a dict are ordered by their keys.
    """
    parts = [task[key] for key in sorted(task)] if isinstance(task, Mapping) else [task]
    try:
        return np.concatenate([np.empty(0), *(as_numbers("task", part).ravel() for part in parts)])
    except ValueError:
        raise TypeError(f"observe_task: expected an environment with numeric tasks, got the task {task!r}") from None
