"""2D navigation: the first reinforcement-learning experiment of MAML (arXiv:1703.03400, section 5.3).

The environment follows the authors' released code. Its reward is the negative distance to the goal; the paper uses the
negative squared distance.
"""
from meta_policy_search.envs.point_envs.base import PointMetaEnv


class MetaPointEnvNavigation(PointMetaEnv):
    """A point starts at the center of a square and moves to a task-specific goal in it.

    ===============  ============================================================================
    observation      float64 `[2]`: position `(x, y)`
    action           float64 `[2]`: displacement `(dx, dy)`, each clipped to [-0.1, 0.1]
    task             goal `(x, y)`, uniform in `[-0.5, 0.5]^2`; `set_task` accepts any finite goal;
                     default (0.5, 0.5)
    start            the origin
    reward           the negative distance between the new position and the goal
    end of episode   terminates when both coordinates are within 0.01 of the goal
    ===============  ============================================================================

    The goal is at most five full steps away; the usual horizon is 100 steps. Staying at the origin earns -0.38 per step
    on average over tasks.

    Args:
        render_mode: `"rgb_array"` to enable `render`; default None.

    References:
        Finn, Abbeel, Levine: Model-Agnostic Meta-Learning, 2017 (arXiv:1703.03400), and its released environment
        `PointEnvRandGoal`.
    """

    max_push = 0.1
    first_task = (0.5, 0.5)
    goal_range = 0.5
    goal_tolerance = 0.01
