"""Spaces of environments, the only properties that algorithms use.

They are recognized by their attributes, because the spaces of gym and Gymnasium have no common base class.
"""
from typing import Any, Callable, Optional, Tuple

import numpy as np

MAX_OBSERVATION_SIZE = 5000
"""Maximum number of entries of an observation: paths of 80,000 steps, such as 40 tasks with 20 paths of 100 steps, need
1.6 GB in float32."""


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

    def __repr__(self) -> str:
        return f"EnvSpec({self.observation_space!r}, {self.action_space!r})"


def check_env_spec(name: str, env_spec: Any) -> Any:
    """Returns an `EnvSpec` or environment unchanged; raises `TypeError` if it lacks spaces with a shape.

    `name` is its name in the error message.
    """
    try:
        EnvSpec.of(env_spec)
    except (AttributeError, TypeError):
        raise TypeError(f"{name}: expected an EnvSpec, got {env_spec!r}") from None
    return env_spec


def check_has_shape(name: str, space: Any) -> Any:
    """Returns `space` unchanged; raises `TypeError` if it has no shape. `name` is its name in the error message."""
    if getattr(space, "shape", None) is None:
        hint = ". gymnasium.wrappers.FlattenObservation flattens Dict and Tuple spaces" if "observation" in name else ""
        raise TypeError(f"{name}: expected a space with a shape, such as a gym.spaces.Box, got {space!r}{hint}")
    return space


def check_size(name: str, space: Any, size: int) -> None:
    """Raises `ValueError` if observations have more than `MAX_OBSERVATION_SIZE` numbers, before memory is allocated."""
    if size > MAX_OBSERVATION_SIZE:
        raise ValueError(f"{name}: expected observations of at most {MAX_OBSERVATION_SIZE:,} numbers, got {size:,} in "
                         f"{space}. Reduce images with a wrapper, such as gymnasium.wrappers.ResizeObservation, "
                         "GrayscaleObservation or a feature extractor")


def is_box(space: Any) -> bool:
    """Whether `space` is a box: arrays between `space.low` and `space.high`."""
    return hasattr(space, "low") and hasattr(space, "high")


def is_discrete(space: Any) -> bool:
    """Whether `space` is discrete: `space.n` integers, starting at `space.start` or 0."""
    return hasattr(space, "n") and tuple(space.shape) == ()


def extended_bounds(name: str, space: Any, count: int) -> Tuple[np.ndarray, np.ndarray]:
    """Returns the bounds of vector observations with `count` further entries, which are unbounded.

    Raises:
        ValueError: `space` does not consist of vectors; `name` is its name in the message.
    """
    if not is_box(space) or len(space.shape) != 1:
        raise ValueError(f"{name}: expected an environment with vector observations, got {space}")
    added = np.full(count, np.inf)
    return np.append(space.low, -added), np.append(space.high, added)


def as_array(name: str, value: Any, shape: Tuple[int, ...], expected: Optional[str] = None,
             fits: Optional[Callable[[np.ndarray], Any]] = None) -> np.ndarray:
    """Converts `value` to a new float64 array.

    Args:
        name: name of the value in the error message.
        value: an array or nested sequence of numbers.
        shape: the required shape.
        expected: description of a valid value for the error message; default "finite numbers of shape `shape`".
        fits: function that returns whether the array, or each of its entries, is valid; default None.

    Raises:
        ValueError: `value` has another shape, is not numeric, is not finite or does not fit.
    """
    expected = expected or f"finite numbers of shape {shape}"
    array = as_numbers(name, value, expected).astype(np.float64)
    if array.shape != shape or not np.isfinite(array).all() or (fits is not None and not np.all(fits(array))):
        raise ValueError(f"{name}: expected {expected}, got {value!r}")
    return array


def as_point(name: str, value: Any) -> np.ndarray:
    """Converts `value` to a new float64 `[2]`; raises `ValueError` unless it is two finite numbers."""
    return as_array(name, value, (2,), "two finite numbers (x, y)")


def as_numbers(name: str, value: Any, expected: str = "an array of real numbers") -> np.ndarray:
    """Converts `value` to an array; raises `ValueError` unless it consists of real numbers or booleans."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of unequal length
        array = np.empty(0, object)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name}: expected {expected}, got {value!r}")
    return array
