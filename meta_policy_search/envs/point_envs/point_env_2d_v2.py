"""2D navigation in a large square, with goals that random exploration seldom reaches."""
from meta_policy_search.envs.point_envs.point_env_2d_navigation import MetaPointEnvNavigation


class MetaPointEnvV2(MetaPointEnvNavigation):
    """A point starts at the center of a square and moves to a task-specific goal, up to 20 full steps away.

    ===============  ============================================================================
    observation      float64 `[2]`: position `(x, y)`
    action           float64 `[2]`: displacement `(dx, dy)`, each clipped to [-0.1, 0.1]
    task             goal `(x, y)`, uniform in `[-2, 2]^2`; `set_task` accepts any finite goal;
                     default (2, 2)
    start            the origin
    reward           the negative distance between the new position and the goal
    end of episode   terminates when both coordinates are within 0.01 of the goal
    ===============  ============================================================================

    The sides of the square are four times as long as in `MetaPointEnvNavigation`. The corners of the square are the
    goals of `MetaPointEnvCorner`. Exploration around the start seldom reaches the goal, so a policy has to infer the
    direction from changes of the reward.

    The public code of ProMP (arXiv:1810.06784) terminates a path within 0.01 of the origin, the goal of an earlier
    variant. Here, a path terminates at its goal.

    Args:
        render_mode: `"rgb_array"` to enable `render`; default None.

    References:
        The public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784).
    """

    first_task = (2.0, 2.0)
    goal_range = 2.0


MetaPointEnv = MetaPointEnvV2  # name used by earlier scripts
