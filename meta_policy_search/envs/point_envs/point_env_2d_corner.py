"""2D navigation to one of four corners with a sparse reward: the exploration experiment of ProMP (arXiv:1810.06784)."""

import numpy as np

from meta_policy_search.envs.point_envs.base import CornerTaskEnv, distances
from meta_policy_search.types import RenderMode


class MetaPointEnvCorner(CornerTaskEnv):
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

    max_push = 0.2

    def __init__(self, reward_type: str = "sparse", sparse_reward_radius: float = 0.5, *,
                 render_mode: RenderMode = None) -> None:
        super().__init__(reward_type, sparse_reward_radius, render_mode=render_mode)

    def _sparse_rewards(self, before: np.ndarray, after: np.ndarray, goals: np.ndarray) -> np.ndarray:
        has_left = np.abs(after[:, 0]) + np.abs(after[:, 1]) >= self.sparse_reward_radius
        # In its own quadrant, including the axes, no corner is nearer than the goal.
        is_nearest = (after[:, 0] * goals[:, 0] >= 0.0) & (after[:, 1] * goals[:, 1] >= 0.0)
        return np.where(has_left & is_nearest, distances(before, goals) - distances(after, goals), 0.0)
