"""The interfaces of meta-environments: one environment, and `n` of them stepped together as arrays."""
import abc
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.spaces import as_array, is_discrete
from meta_policy_search.types import BatchedStep, Path, Task
from meta_policy_search.utils.checks import check_choice, check_positive_int
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.gym_import import gym
from meta_policy_search.utils.serializable import Configurable, check_own_pickle


class PhysicsError(RuntimeError):
    """A simulation diverged; the step that raises this error has moved none of its environments.

    Attributes:
        env_ids: which of the environments stepped together, a tuple of integers.
    """

    def __init__(self, message: str, env_ids: Sequence[int]) -> None:
        super().__init__(message)
        self.env_ids = tuple(env_ids)

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (str(self), self.env_ids)


class MetaEnv(Configurable, gym.Env):
    """A gym environment with a distribution of tasks.

    Subclasses implement `sample_tasks` and `set_task`, and follow gym 0.26: `reset(seed=, options=) -> (observation,
    info)` and `step(action) -> (observation, reward, terminated, truncated, info)`. Samplers also accept the classic
    forms (`reset() -> observation`, a four-tuple from `step`), and Gymnasium environments. An environment that can step
    many copies of itself at once has `make_batched(num_envs)`, which returns a `BatchedEnv`; see `BatchableMetaEnv`.
    Subclasses that can be drawn name their `metadata["render_modes"]`, and implement `_draw` or `render`.
    """

    observation_space: Any  # gym's class `Space` knows neither `low` nor `n`
    action_space: Any

    def sample_tasks(self, n_tasks: int) -> List[Task]:
        """Returns a list of `n_tasks` tasks, drawn from the environment's distribution.

        An implementation may take a second argument `rng` (`numpy.random.Generator` or None). Samplers then pass one,
        so that the tasks depend on the seed and the iteration alone.
        """
        raise NotImplementedError

    def set_task(self, task: Task) -> None:
        """Makes `task`, one of `sample_tasks`, the task from the next step on."""
        raise NotImplementedError

    def get_task(self) -> Task:
        """Returns the task that is set."""
        raise NotImplementedError

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """Logs figures of its own about the paths of all tasks; keys begin with `prefix`, such as `Step_0-`."""

    def render(self) -> np.ndarray:  # type: ignore[override]  # one of the frames that gym lets it return
        """Returns a picture of the environment as it is now, uint8 `[H, W, 3]`, for `render_mode="rgb_array"`.

        Raises:
            NotImplementedError: this kind of environment does not support it.
            RuntimeError: there is no render mode, or this machine cannot draw (says what to install).
        """
        if self.render_mode is None and self.metadata.get("render_modes"):
            raise RuntimeError(f'render: expected an environment made with render_mode="rgb_array", as in '
                               f'{type(self).__name__}(render_mode="rgb_array")')
        return self._draw()

    def _draw(self) -> np.ndarray:
        raise NotImplementedError(f'render: {type(self).__name__} does not support render_mode="rgb_array"')

    def __str__(self) -> str:
        return repr(self)


class BatchedEnv(abc.ABC):
    """`num_envs` copies of one environment, each with a task of its own, stepped together on arrays.

    A single environment is the case `num_envs=1` (`BatchableMetaEnv`), so both agree bit for bit. A row must not depend
    on other rows, nor on their number.

    Args:
        num_envs: number of copies, at least 1.

    Attributes:
        observation_space: `gym.spaces.Box` of one environment's observation.
        action_space: `gym.spaces.Box` of one environment's action, or `gym.spaces.Discrete`, with actions from 0.
        max_threads: how many threads may call `reset` and `step` at a time, each for other environments; default 1.
    """

    observation_space: Any
    action_space: Any
    max_threads: int = 1

    def __init__(self, num_envs: int) -> None:
        self.num_envs = check_positive_int("num_envs", num_envs)

    @abc.abstractmethod
    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws `n_tasks` tasks from `rng`."""

    @abc.abstractmethod
    def set_tasks(self, tasks: Sequence[Task]) -> None:
        """Gives each environment its task; raises `ValueError` if one is wrong, or there are not `num_envs` of them.

        Environments of the same task may be given the same object: it is not to be changed.
        """

    @abc.abstractmethod
    def get_tasks(self) -> List[Task]:
        """Returns the task of each environment, in a form that `set_tasks` takes."""

    @abc.abstractmethod
    def reset(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        """Starts a new path in some of the environments; returns new observations, float64 `[k, O]`.

        Args:
            env_ids: int `[k]`, which environments; no duplicates.
            rngs: `k` generators; environment `env_ids[i]` draws from `rngs[i]` until its next reset.
        """

    @abc.abstractmethod
    def step(self, actions: np.ndarray, env_ids: Optional[np.ndarray] = None) -> BatchedStep:
        """Takes one step in some of the environments, without resetting any; returns `k` rows, as new arrays.

        Args:
            actions: `[k, A]`, finite, which is not checked; clipped to the action space. Where it is discrete, int
                `[k]`.
            env_ids: int `[k]`, which environments; all of them by default.
        """

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """See `MetaEnv.log_diagnostics`."""

    def _check_count(self, tasks: Sequence[Task]) -> None:
        if len(tasks) != self.num_envs:
            raise ValueError(f"tasks: expected one for each of {self.num_envs} environments, got {len(tasks)}")

    def _rows(self, actions: np.ndarray, env_ids: Optional[np.ndarray]) -> Tuple[np.ndarray, np.ndarray]:
        """Returns the arguments of `step`, checked: actions float64 `[k, A]` or int64 `[k]`, env_ids int `[k]`."""
        ids = np.arange(self.num_envs) if env_ids is None else np.asarray(env_ids)
        actions = np.asarray(actions)
        expected = (len(ids), *self.action_space.shape)
        if actions.shape != expected:
            raise ValueError(f"actions: expected shape {expected}, got {actions.shape}")
        if not is_discrete(self.action_space):
            return np.asarray(actions, dtype=np.float64), ids
        if actions.dtype.kind not in "iu" or not ((0 <= actions) & (actions < self.action_space.n)).all():
            raise ValueError(f"actions: expected integers from 0 to {self.action_space.n - 1}, got {actions.tolist()}")
        return actions.astype(np.int64), ids


class BatchableMetaEnv(MetaEnv):
    """A `MetaEnv` that is a `BatchedEnv` with one environment in it, an object of `batched_class`.

    A subclass names its `batched_class`. One that has arguments states them in its constructor, and passes them on by
    name.

    Args:
        render_mode: one of `metadata["render_modes"]`, for pictures by `render`; None (default) for none.
        **kwargs: arguments of `batched_class`.

    Attributes:
        batched_class: the class of the vectorized form, called as `batched_class(num_envs, **kwargs)`.
    """

    batched_class: type

    def __init__(self, *, render_mode: Optional[str] = None, **kwargs: Any) -> None:
        self.render_mode = check_choice("render_mode", render_mode, (None, *self.metadata["render_modes"]))
        self._batched_kwargs: Dict[str, Any] = kwargs
        self._batched: BatchedEnv = self.batched_class(1, **kwargs)
        self.observation_space = self._batched.observation_space
        self.action_space = self._batched.action_space

    def __setstate__(self, state: Dict[str, Any]) -> None:
        check_own_pickle(self, state, "_batched")
        self.__dict__.update(state)

    @replaces("reset", "step", "set_task")
    def make_batched(self, num_envs: int) -> BatchedEnv:
        """Returns `num_envs` copies of this environment that step together; tasks are not copied."""
        return self.batched_class(num_envs, **self._batched_kwargs)

    def sample_tasks(self, n_tasks: int, rng: Optional[np.random.Generator] = None) -> List[Task]:
        """See `MetaEnv.sample_tasks`; draws from `rng`, by default from this environment's generator."""
        n_tasks = check_positive_int("n_tasks", n_tasks)
        return self._batched.sample_tasks(n_tasks, self.np_random if rng is None else rng)

    def set_task(self, task: Task) -> None:
        self._batched.set_tasks([task])

    def get_task(self) -> Task:
        return self._batched.get_tasks()[0]

    def reset(self, *, seed: Optional[int] = None, options: Optional[dict] = None) -> Tuple[np.ndarray, Dict[str, Any]]:
        """Starts a new path; returns `(observation [O], {})`."""
        super().reset(seed=None if seed is None else int(seed))  # gym's seeding wants a Python integer
        return self._batched.reset(np.zeros(1, dtype=int), [self.np_random])[0], {}

    def step(self, action: np.ndarray) -> Tuple[np.ndarray, float, bool, bool, Dict[str, Any]]:
        """Takes one step; returns `(observation [O], reward, terminated, truncated, env_info)`."""
        if not is_discrete(self.action_space):
            action = as_array("action", action, self.action_space.shape)
        answer = self._batched.step(np.asarray(action)[None])
        info = {key: values[0] for key, values in answer.env_infos.items()}
        return (answer.observations[0], float(answer.rewards[0]), bool(answer.terminated[0]),
                bool(answer.truncated[0]), info)

    def log_diagnostics(self, paths: Sequence[Path], prefix: str = "") -> None:
        self._batched.log_diagnostics(paths, prefix)
