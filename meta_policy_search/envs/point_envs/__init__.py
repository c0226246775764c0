"""Six 2D point environments: small, fast worlds in which adaptation can be watched.

The module `point_env_2d_v2` has its environment under the name `MetaPointEnv` too, as existing scripts import
it; here, and in the registry, it is `MetaPointEnvV2`.
"""
from meta_policy_search.envs.point_envs.corner_goals_point_env_2d import MetaPointEnvCornerGoals
from meta_policy_search.envs.point_envs.point_env_2d import MetaPointEnv
from meta_policy_search.envs.point_envs.point_env_2d_corner import MetaPointEnvCorner
from meta_policy_search.envs.point_envs.point_env_2d_momentum import MetaPointEnvMomentum
from meta_policy_search.envs.point_envs.point_env_2d_v2 import MetaPointEnvV2
from meta_policy_search.envs.point_envs.point_env_2d_walls import MetaPointEnvWalls

__all__ = [
    "MetaPointEnv",
    "MetaPointEnvCorner",
    "MetaPointEnvCornerGoals",
    "MetaPointEnvMomentum",
    "MetaPointEnvV2",
    "MetaPointEnvWalls",
]
