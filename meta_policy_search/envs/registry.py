"""Environments by class name, for settings files and command lines; a module is imported when first needed."""
import importlib
from typing import Any, List, Type

from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.utils.checks import did_you_mean

_PACKAGE = "meta_policy_search.envs"
_MODULES = {
    "AntRandDirec2DEnv": "mujoco_envs.ant_rand_direc_2d",
    "AntRandDirecEnv": "mujoco_envs.ant_rand_direc",
    "AntRandGoalEnv": "mujoco_envs.ant_rand_goal",
    "CartPoleMassEnv": "control_envs.cart_pole_mass",
    "HalfCheetahRandDirecEnv": "mujoco_envs.half_cheetah_rand_direc",
    "HalfCheetahRandVelEnv": "mujoco_envs.half_cheetah_rand_vel",
    "HopperRandParamsEnv": "mujoco_envs.hopper_rand_params",
    "HumanoidRandDirec2DEnv": "mujoco_envs.humanoid_rand_direc_2d",
    "HumanoidRandDirecEnv": "mujoco_envs.humanoid_rand_direc",
    "MetaBernoulliBanditEnv": "discrete_envs.bernoulli_bandit",
    "MetaPointEnv": "point_envs",  # MetaPointEnvNavigation by its earlier name
    "MetaPointEnvCorner": "point_envs.point_env_2d_corner",
    "MetaPointEnvCornerGoals": "point_envs.corner_goals_point_env_2d",
    "MetaPointEnvMomentum": "point_envs.point_env_2d_momentum",
    "MetaPointEnvNavigation": "point_envs.point_env_2d_navigation",
    "MetaPointEnvOrigin": "point_envs.point_env_2d",
    "MetaPointEnvV2": "point_envs.point_env_2d_v2",
    "MetaPointEnvWalls": "point_envs.point_env_2d_walls",
    "MetaTabularMDPEnv": "discrete_envs.tabular_mdp",
    "MetaWorldML1": "meta_world",
    "MetaWorldML10": "meta_world",
    "MetaWorldML25": "meta_world",
    "MetaWorldML45": "meta_world",
    "PendulumMassEnv": "control_envs.pendulum_mass",
    "SwimmerRandVelEnv": "mujoco_envs.swimmer_rand_vel",
    "Walker2DRandDirecEnv": "mujoco_envs.walker2d_rand_direc",
    "Walker2DRandParamsEnv": "mujoco_envs.walker2d_rand_params",
    "Walker2DRandVelEnv": "mujoco_envs.walker2d_rand_vel",
}


def available_envs() -> List[str]:
    """Returns the names that `get_env_class` and `make_env` take, in alphabetical order."""
    return sorted(_MODULES)


def get_env_class(name: str) -> Type[MetaEnv]:
    """Returns the class of the environment called `name`, such as `"HalfCheetahRandDirecEnv"`.

    Raises:
        ValueError: there is no such environment; lists those that exist.
    """
    if name not in available_envs():
        raise ValueError(f"name: expected one of {', '.join(available_envs())}, got {name!r}"
                         + did_you_mean(name, _MODULES))
    return getattr(importlib.import_module(f"{_PACKAGE}.{_MODULES[name]}"), name)


def make_env(name: str, **kwargs: Any) -> MetaEnv:
    """Makes the environment called `name`, with the arguments of its class; raises like `get_env_class`.

    Example:
        >>> env = make_env("MetaPointEnvCorner", reward_type="dense")
        >>> env.set_task((2.0, -2.0))
        >>> observation, _ = env.reset(seed=1)
        >>> observation, reward, terminated, truncated, _ = env.step([0.1, -0.1])
        >>> observation.shape, terminated
        ((2,), False)
    """
    return get_env_class(name)(**kwargs)
