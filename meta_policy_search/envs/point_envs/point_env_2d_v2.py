"""2D navigation in a square of four times the side: goals too far away to meet by chance."""
from typing import Optional

from meta_policy_search.envs.point_envs.base import PointMetaEnv
from meta_policy_search.envs.point_envs.point_env_2d_navigation import BatchedMetaPointEnvNavigation


class BatchedMetaPointEnvV2(BatchedMetaPointEnvNavigation):
    """Many `MetaPointEnvV2`, stepped together."""

    default_goal = (2.0, 2.0)
    goal_range = 2.0


class MetaPointEnvV2(PointMetaEnv):
    """A point that starts in the middle of a square and has to find its goal, up to 20 full steps away.

    ===============  ============================================================================
    observation      position `(x, y)`
    action           displacement `(dx, dy)`, each clipped to `[-0.1, 0.1]`
    task             goal `(x, y)`, uniform in `[-2, 2]^2`; any finite goal may be set; at first (2, 2)
    start            the origin
    reward           minus the distance between the new position and the goal (a length, at most 0)
    end of episode   terminates when both coordinates are within 0.01 of the goal's
    ===============  ============================================================================

    The square is that of the corner environments. Its half side is 20 full steps, so exploration around the start
    seldom meets the goal: the direction has to be read off the slope of the reward.

    The public code of ProMP (arXiv:1810.06784), which this follows, ends a path within 0.01 of the origin, where an
    older variant had its goal; here a path ends at the goal.
    """

    batched_class = BatchedMetaPointEnvV2

    def __init__(self, *, render_mode: Optional[str] = None) -> None:
        super().__init__(render_mode=render_mode)


MetaPointEnv = MetaPointEnvV2  # the name that existing scripts import from this module
