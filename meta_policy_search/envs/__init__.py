"""Meta-environments (`make_env`): interfaces, wrappers, adapters, and point, discrete, control and robot environments.

Importing this package loads neither TensorFlow nor a physics engine. The engine is loaded when the first robot is
created.
"""
from meta_policy_search.envs.compat import GymnasiumMetaEnv, SingleTaskEnv
from meta_policy_search.envs.control_envs import CartPoleMassEnv, PendulumMassEnv
from meta_policy_search.envs.discrete_envs import KhazadDumEnv, MetaBernoulliBanditEnv, MetaTabularMDPEnv
from meta_policy_search.envs.interface import BatchableMetaEnv, BatchedEnv, MetaEnv, PhysicsError
from meta_policy_search.envs.meta_world import MetaWorldML1, MetaWorldML10, MetaWorldML25, MetaWorldML45
from meta_policy_search.envs.mujoco_envs.base import RandomEnv
from meta_policy_search.envs.normalized_env import NormalizedEnv, normalize
from meta_policy_search.envs.point_envs import (
    MetaPointEnv,
    MetaPointEnvCorner,
    MetaPointEnvCornerGoals,
    MetaPointEnvMomentum,
    MetaPointEnvNavigation,
    MetaPointEnvOrigin,
    MetaPointEnvSemicircle,
    MetaPointEnvV2,
    MetaPointEnvWalls,
)
from meta_policy_search.envs.registry import available_envs, find_env, get_env_class, load_tasks, make_env, register_env
from meta_policy_search.envs.spaces import EnvSpec
from meta_policy_search.envs.trial_env import TrialEnv
from meta_policy_search.envs.varied_env import VariedEnv, vary

__all__ = ["BatchableMetaEnv", "BatchedEnv", "CartPoleMassEnv", "EnvSpec", "GymnasiumMetaEnv", "KhazadDumEnv",
           "MetaBernoulliBanditEnv", "MetaEnv", "MetaPointEnv", "MetaPointEnvCorner", "MetaPointEnvCornerGoals",
           "MetaPointEnvMomentum", "MetaPointEnvNavigation", "MetaPointEnvOrigin", "MetaPointEnvSemicircle",
           "MetaPointEnvV2", "MetaPointEnvWalls", "MetaTabularMDPEnv", "MetaWorldML1", "MetaWorldML10",
           "MetaWorldML25", "MetaWorldML45", "NormalizedEnv", "PendulumMassEnv", "PhysicsError", "RandomEnv",
           "SingleTaskEnv", "TrialEnv", "VariedEnv", "available_envs", "find_env", "get_env_class", "load_tasks",
           "make_env", "normalize", "register_env", "vary"]
