"""Environments of other kinds as meta-environments."""
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from meta_policy_search.envs import gym_forms
from meta_policy_search.envs.base import MetaEnv
from meta_policy_search.types import Task
from meta_policy_search.utils.checks import check_positive_int

__all__ = ["SingleTaskEnv"]


class SingleTaskEnv(MetaEnv):
    """An environment without tasks as a meta-environment that has a single one, None.

    Stepping follows gym 0.26, whichever form the wrapped environment has. Attributes that are not found here are those
    of the wrapped environment.

    Args:
        env: environment of gym, Gymnasium or the classic form.

    Raises:
        TypeError: `env` cannot be stepped.
    """

    def __init__(self, env: Any) -> None:
        is_env = all(callable(getattr(env, method, None)) for method in ("reset", "step"))
        if isinstance(env, type) or not is_env:
            raise TypeError(f"env: expected an environment with the methods reset and step, got {env!r}")
        self.wrapped_env = env
        self.observation_space = env.observation_space
        self.action_space = env.action_space
        for name in ("metadata", "render_mode", "reward_range", "spec"):  # gym.Env has defaults that would hide these
            if hasattr(env, name):
                setattr(self, name, getattr(env, name))

    def __getattr__(self, name: str) -> Any:
        """Returns the wrapped environment's attribute; special methods, and a half-built object's, are its own."""
        if name.startswith("__") or name == "make_batched" or "wrapped_env" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.wrapped_env, name)

    @property
    def unwrapped(self) -> Any:
        """The environment inside all wrappers, whose generator paths draw from."""
        return getattr(self.wrapped_env, "unwrapped", self.wrapped_env)

    def sample_tasks(self, n_tasks: int) -> List[Task]:
        """Returns a list of `n_tasks` times None."""
        return [None] * check_positive_int("n_tasks", n_tasks)

    def set_task(self, task: Task) -> None:
        """Takes None, the only task; anything else raises `ValueError`."""
        if task is not None:
            raise ValueError(f"task: expected None, as {type(self.wrapped_env).__name__} has no tasks, got {task!r}")

    def get_task(self) -> Task:
        """Returns None."""
        return None

    def reset(
        self, *, seed: Optional[int] = None, options: Optional[dict] = None
    ) -> Tuple[np.ndarray, Dict[str, Any]]:
        """Starts a new path; returns `(observation [O], info)`."""
        return gym_forms.reset_with_info(self.wrapped_env, seed=seed, options=options)

    def step(self, action: Any) -> Tuple[np.ndarray, float, bool, bool, Dict[str, Any]]:
        """Takes one step; returns `(observation [O], reward, terminated, truncated, env_info)`."""
        return gym_forms.step_env(self.wrapped_env, action)

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """Renders the wrapped environment."""
        return self.wrapped_env.render(*args, **kwargs)

    def close(self) -> None:
        """Closes the wrapped environment, where it can be."""
        if hasattr(self.wrapped_env, "close"):
            self.wrapped_env.close()
