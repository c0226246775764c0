"""Observation and action space of an environment, the only properties that algorithms use."""
from typing import Any, Tuple

import numpy as np

from meta_policy_search.envs.compat import attribute
from meta_policy_search.envs.spaces import check_has_shape, is_discrete


class EnvSpec:
    """Observation and action space of an environment.

    Args:
        observation_space: a space with a shape, such as a `Box`.
        action_space: a `Box`, or a `Discrete` space that starts at 0.

    Raises:
        TypeError: a space has no shape.
    """

    def __init__(self, observation_space: Any, action_space: Any) -> None:
        self.observation_space = check_has_shape("observation_space", observation_space)
        self.action_space = check_has_shape("action_space", action_space)

    @classmethod
    def of(cls, env: Any) -> "EnvSpec":
        """Returns the `EnvSpec` of an environment with the gym, Gymnasium or classic gym API."""
        return cls(env.observation_space, env.action_space)

    @property
    def obs_dim(self) -> int:
        """Size `O` of an observation."""
        return int(np.prod(self.observation_space.shape))

    @property
    def action_dim(self) -> int:
        """Size `A` of an action; for a discrete action space, the number of actions."""
        return int(self.action_space.n) if self.is_discrete else int(np.prod(self.action_space.shape))

    @property
    def is_discrete(self) -> bool:
        """Whether the action space is discrete, with actions from 0 to `action_dim - 1`."""
        return is_discrete(self.action_space)

    @property
    def action_shape(self) -> Tuple[int, ...]:
        """Shape of an action; `()` for a discrete action space."""
        return tuple(self.action_space.shape)

    def __repr__(self) -> str:
        return f"EnvSpec({self.observation_space!r}, {self.action_space!r})"


def check_env_spec(name: str, env_spec: Any) -> Any:
    """Checks that `env_spec` has an observation and an action space, and returns it unchanged.

    Args:
        name: name of the argument in the error message.
        env_spec: an `EnvSpec` or an environment.

    Raises:
        TypeError: a space is missing.
    """
    if attribute(env_spec, "observation_space") is None or attribute(env_spec, "action_space") is None:
        raise TypeError(f"{name}: expected an EnvSpec, got {env_spec!r}")
    return env_spec
