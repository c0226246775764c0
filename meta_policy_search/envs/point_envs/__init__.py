"""Point environments: a point in the plane searches for its goal; small enough to visualize adaptation.

In earlier scripts, the classes of the modules `point_env_2d`, `point_env_2d_v2` and `corner_goals_point_env_2d` are
named `MetaPointEnv`. These names still work. In this package, `MetaPointEnv` is an alias of `MetaPointEnvNavigation`.
"""
from meta_policy_search.envs.point_envs.corner_goals_point_env_2d import MetaPointEnvCornerGoals
from meta_policy_search.envs.point_envs.point_env_2d import MetaPointEnvOrigin
from meta_policy_search.envs.point_envs.point_env_2d_corner import MetaPointEnvCorner
from meta_policy_search.envs.point_envs.point_env_2d_momentum import MetaPointEnvMomentum
from meta_policy_search.envs.point_envs.point_env_2d_navigation import MetaPointEnvNavigation, MetaPointEnvSemicircle
from meta_policy_search.envs.point_envs.point_env_2d_v2 import MetaPointEnvV2
from meta_policy_search.envs.point_envs.point_env_2d_walls import MetaPointEnvWalls

__all__ = ["MetaPointEnv", "MetaPointEnvCorner", "MetaPointEnvCornerGoals", "MetaPointEnvMomentum",
           "MetaPointEnvNavigation", "MetaPointEnvOrigin", "MetaPointEnvSemicircle", "MetaPointEnvV2",
           "MetaPointEnvWalls"]

MetaPointEnv = MetaPointEnvNavigation
