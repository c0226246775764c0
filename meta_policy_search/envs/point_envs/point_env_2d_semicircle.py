"""2D navigation to a goal on a semicircle with a sparse reward, an experiment of PEARL (arXiv:1903.08254)."""
from typing import List

import numpy as np

from meta_policy_search.envs.point_envs.point_env_2d_navigation import MetaPointEnvNavigation, distances
from meta_policy_search.types import RenderMode, Task
from meta_policy_search.utils.checks import check_positive


class MetaPointEnvSemicircle(MetaPointEnvNavigation):
    """A point explores a semicircle to find its goal; the reward is zero away from the goal.

    ===============  ============================================================================
    observation      float64 `[2]`: position `(x, y)`
    action           float64 `[2]`: displacement `(dx, dy)`, each clipped to [-0.1, 0.1]
    task             goal `(cos(a), sin(a))`, with the angle `a` uniform in [0, pi); `set_task`
                     accepts any finite goal; default (0, 1)
    start            the origin
    reward           `1 - d` if `d`, the distance between the new position and the goal, is at
                     most `goal_radius`; otherwise 0
    end of episode   never; the sampler ends a path after `max_path_length` steps (20 in PEARL)
    ===============  ============================================================================

    With the default radius, the first reward is at least six full steps away from the start, and it limits the goal to
    an eighth of the semicircle.

    Args:
        goal_radius: largest distance to the goal with a reward, above 0; default 0.2.
        render_mode: `"rgb_array"` to enable `render`; default None.

    References:
        Rakelly, Zhou, Quillen, Finn, Levine: Efficient Off-Policy Meta-Reinforcement Learning via Probabilistic Context
        Variables, 2019 (arXiv:1903.08254), and `SparsePointEnv` in its public code. The public code draws the goals
        from a grid of angles, and trains with the dense reward `-d`.
    """

    first_task = (0.0, 1.0)
    goal_range = 1.0
    task_dimensions = 1
    goal_tolerance = 0.0

    def __init__(self, goal_radius: float = 0.2, *, render_mode: RenderMode = None) -> None:
        self.goal_radius = check_positive("goal_radius", goal_radius)
        super().__init__(render_mode=render_mode)

    def tasks_at(self, points: np.ndarray) -> List[Task]:
        """Returns the goals at points of the unit interval, `[n, 1]`, which are fractions of the semicircle."""
        angles = np.pi * points[:, 0]
        return list(np.stack((np.cos(angles), np.sin(angles)), axis=1))

    def _rewards(self, before: np.ndarray, after: np.ndarray, goals: np.ndarray) -> np.ndarray:
        distance = distances(after, goals)
        return np.where(distance <= self.goal_radius, 1.0 - distance, 0.0)
