"""Point environments: a point in the plane has to find its goal, in worlds small enough to watch adaptation in.

`MetaPointEnvV2` is called `MetaPointEnv` in its module `point_env_2d_v2`, as existing scripts import it.
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
