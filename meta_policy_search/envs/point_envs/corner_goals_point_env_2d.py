"""2D navigation with four goals, the corners of the square of `MetaPointEnvNavigation`."""
from meta_policy_search.envs.point_envs.point_env_2d_navigation import MetaPointEnvNavigation


class MetaPointEnvCornerGoals(MetaPointEnvNavigation):
    """A point starts at the center of a square and moves to a task-specific corner.

    ===============  ============================================================================
    observation      float64 `[2]`: position `(x, y)`
    action           float64 `[2]`: displacement `(dx, dy)`, each clipped to [-0.1, 0.1]
    task             goal, one of `(+-0.5, +-0.5)` with equal probability; `set_task` accepts any
                     finite goal; default (0.5, 0.5)
    start            the origin
    reward           the negative distance between the new position and the goal
    end of episode   terminates when both coordinates are within 0.01 of the goal
    ===============  ============================================================================

    This is `MetaPointEnvNavigation` with only four goals. It is the smallest test of adaptation with a reward that is
    informative at every position. The best policy without adaptation stays at the start and earns `-sqrt(0.5)` per step
    in every task. In `MetaPointEnvCorner`, the corners are farther away and the default reward is sparse.

    Args:
        render_mode: `"rgb_array"` to enable `render`; default None.
    """

    only_corners = True


MetaPointEnv = MetaPointEnvCornerGoals  # name used by earlier scripts
