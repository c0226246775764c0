"""2D navigation to one of four corners with a sparse reward: the exploration experiment of ProMP (arXiv:1810.06784)."""
import numpy as np

from meta_policy_search.envs.point_envs.point_env_2d_navigation import CORNERS, MetaPointEnvNavigation, distances
from meta_policy_search.envs.spaces import as_array
from meta_policy_search.types import RenderMode, Task
from meta_policy_search.utils.checks import check_choice, check_positive

REWARD_TYPES = ("dense", "dense_squared", "sparse")


class MetaPointEnvCorner(MetaPointEnvNavigation):
    """A point explores four corners to find the one that is its goal; the default reward is sparse.

    ===============  ============================================================================
    observation      float64 `[2]`: position `(x, y)`
    action           float64 `[2]`: displacement `(dx, dy)`, each clipped to [-0.2, 0.2]
    task             goal, one of the corners `(+-2, +-2)` with equal probability; default (2, 2)
    start            uniform in `[-0.2, 0.2]^2`
    reward           depends on `reward_type`, see below
    end of episode   never; the sampler ends a path after `max_path_length` steps
    ===============  ============================================================================

    Rewards, with the positions `p = (x, y)` before and `p' = (x', y')` after the step, the goal `g` and the Euclidean
    norm `|.|`:

    - `dense`: `-|p' - g|`.
    - `dense_squared`: `-|p' - g|^2`.
    - `sparse`: `|p - g| - |p' - g|`, the decrease of the distance, if `|x'| + |y'| >= sparse_reward_radius` and no
      corner is nearer to `p'` than the goal; otherwise 0.

    The sparse reward is zero around the start and in the quadrants of the other corners, so the pre-update policy has
    to learn to explore. A corner is ten full steps away, a tenth of the usual horizon of 100 steps, so a path can visit
    several corners. With the sparse reward, the direct way to the goal earns a return of about 2.5.

    Args:
        reward_type: `"sparse"` (default), `"dense"` or `"dense_squared"`.
        sparse_reward_radius: L1 distance from the origin, above 0, below which the sparse reward is zero. The default,
            0.5, is just outside the square of start positions.
        render_mode: `"rgb_array"` to enable `render`; default None.

    References:
        Rothfuss, Lee, Clavera, Asfour, Abbeel: ProMP: Proximal Meta-Policy Search, 2018 (arXiv:1810.06784).
    """

    first_task: Task = (2.0, 2.0)
    max_push = 0.2
    goal_range = 2.0
    only_corners = True
    goal_tolerance = 0.0
    start_range = 0.2

    def __init__(self, reward_type: str = "sparse", sparse_reward_radius: float = 0.5, *,
                 render_mode: RenderMode = None) -> None:
        self.reward_type = check_choice("reward_type", reward_type, REWARD_TYPES)
        self.sparse_reward_radius = check_positive("sparse_reward_radius", sparse_reward_radius)
        super().__init__(render_mode=render_mode)

    def _check_task(self, name: str, task: Task) -> np.ndarray:
        corners = self.goal_range * CORNERS
        return as_array(name, task, (2,), f"one of the corners {corners.tolist()}",
                        lambda point: (corners == point).all(axis=1).any())[None]

    def _rewards(self, before: np.ndarray, after: np.ndarray, goals: np.ndarray) -> np.ndarray:
        if self.reward_type == "sparse":
            return self._sparse_rewards(before, after, goals)
        distance = distances(after, goals)
        return -distance if self.reward_type == "dense" else -distance * distance

    def _sparse_rewards(self, before: np.ndarray, after: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """Returns the rewards `[k]` for `reward_type="sparse"`."""
        has_left = np.abs(after[:, 0]) + np.abs(after[:, 1]) >= self.sparse_reward_radius
        # In its own quadrant, including the axes, no corner is nearer than the goal.
        is_nearest = (after[:, 0] * goals[:, 0] >= 0.0) & (after[:, 1] * goals[:, 1] >= 0.0)
        return np.where(has_left & is_nearest, distances(before, goals) - distances(after, goals), 0.0)
