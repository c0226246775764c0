"""Creates environments by class name, for configuration files and command lines."""
from typing import Any, Dict, List, Type

from meta_policy_search.envs import control_envs, discrete_envs, meta_world, mujoco_envs, point_envs
from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.utils.checks import check_choice

_CLASSES: Dict[str, Type[MetaEnv]] = {
    name: vars(package)[name]
    for package in (control_envs, discrete_envs, meta_world, mujoco_envs, point_envs) for name in package.__all__
    if name != "MetaWorldTask"
}  # `MetaPointEnv` is the former name of `MetaPointEnvNavigation`


def available_envs() -> List[str]:
    """Returns the names that `get_env_class` and `make_env` accept, in alphabetical order."""
    return sorted(_CLASSES)


def get_env_class(name: str) -> Type[MetaEnv]:
    """Returns the environment class `name`, such as `"HalfCheetahRandDirecEnv"`.

    Raises:
        ValueError: `name` is unknown; the message lists the available names.
    """
    return _CLASSES[check_choice("name", name, available_envs())]


def make_env(name: str, **kwargs: Any) -> MetaEnv:
    """Creates the environment `name`.

    Args:
        name: one of `available_envs()`.
        **kwargs: arguments of the environment class.

    Raises:
        ValueError: `name` is unknown; the message lists the available names.

    Example:
        >>> env = make_env("MetaPointEnvCorner", reward_type="dense")
        >>> env.set_task((2.0, -2.0))
        >>> observation, _ = env.reset(seed=1)
        >>> observation, reward, terminated, truncated, _ = env.step([0.1, -0.1])
        >>> observation.shape, terminated
        ((2,), False)
    """
    return get_env_class(name)(**kwargs)
