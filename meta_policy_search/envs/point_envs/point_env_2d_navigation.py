"""2D navigation: the first reinforcement-learning experiment of MAML (arXiv:1703.03400, section 5.3).

Follows the authors' released code, which differs from the paper in its reward (minus the distance, not minus
its square).
"""
from meta_policy_search.envs.point_envs.base import PointMetaEnv


class MetaPointEnvNavigation(PointMetaEnv):
    """A point that starts in the middle of a square and has to find its goal somewhere in it.

    ===============  ============================================================================
    observation      position `(x, y)`
    action           displacement `(dx, dy)`, each clipped to `[-0.1, 0.1]`
    task             goal `(x, y)`, uniform in `[-0.5, 0.5]^2`; any finite goal may be set; at first (0.5, 0.5)
    start            the origin
    reward           minus the distance between the new position and the goal (a length, at most 0)
    end of episode   terminates when both coordinates are within 0.01 of the goal's
    ===============  ============================================================================

    The goal is at most five full steps away, of a usual horizon of 100. Staying at the origin earns -0.38 a step on
    average over tasks.

    Args:
        render_mode: `"rgb_array"` to draw pictures by `render`; None (default) for none.

    References:
        Finn, Abbeel, Levine: Model-Agnostic Meta-Learning, 2017 (arXiv:1703.03400), and its released
        environment `PointEnvRandGoal`.
    """

    max_push = 0.1
    first_task = (0.5, 0.5)
    goal_range = 0.5
    goal_tolerance = 0.01
