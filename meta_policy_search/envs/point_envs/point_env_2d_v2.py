"""2D navigation in a square of four times the side: goals too far away to meet by chance."""
from meta_policy_search.envs.point_envs.base import PointMetaEnv


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

    Args:
        render_mode: `"rgb_array"` to draw pictures by `render`; None (default) for none.
    """

    max_push = 0.1
    first_task = (2.0, 2.0)
    goal_range = 2.0
    goal_tolerance = 0.01


MetaPointEnv = MetaPointEnvV2  # the name that existing scripts import from this module
