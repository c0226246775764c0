"""Sparse 2D navigation to one of four corners: the exploration experiment of ProMP (arXiv:1810.06784)."""
from typing import Optional

import numpy as np

from meta_policy_search.envs.point_envs.base import CornerTaskEnv, distances


class MetaPointEnvCorner(CornerTaskEnv):
    """A point that has to explore four corners to find the one that rewards coming closer.

    ===============  ============================================================================
    observation      position `(x, y)`
    action           displacement `(dx, dy)`, each clipped to `[-0.2, 0.2]`
    task             goal, one of the corners `(+-2, +-2)` with equal probability; at first (2, 2)
    start            uniform in `[-0.2, 0.2]^2`
    reward           by `reward_type`, below (a length; a squared one for `dense_squared`)
    end of episode   never; the sampler's path length cuts it off
    ===============  ============================================================================

    With `p` and `p'` the position before and after the step, `g` the goal and `|.|` Euclidean:

    - `dense`: `-|p' - g|`.
    - `dense_squared`: `-|p' - g|^2`.
    - `sparse`: 0 while `|x'| + |y'| < sparse_reward_radius`; beyond that `|p - g| - |p' - g|`, the decrease of
      the distance, while no corner is nearer to `p'` than the goal; else 0.

    The sparse reward is zero around the start and in the quadrants of the other corners, so pre-update sampling has to
    be trained to explore. A corner is ten full steps away, a tenth of the usual horizon of 100, which leaves time to
    visit others. The straight way from the start to the goal earns about 2.5 in all.

    Args:
        reward_type: `"sparse"` (default), `"dense"` or `"dense_squared"`.
        sparse_reward_radius: L1 distance from the origin, above 0, below which the sparse reward is zero; default 0.5,
            just outside the square of start positions.
        render_mode: `"rgb_array"` to draw pictures by `render`; None (default) for none.

    References:
        Rothfuss, Lee, Clavera, Asfour, Abbeel: ProMP: Proximal Meta-Policy Search, 2018 (arXiv:1810.06784).
    """

    max_push = 0.2

    def __init__(self, reward_type: str = "sparse", sparse_reward_radius: float = 0.5, *,
                 render_mode: Optional[str] = None) -> None:
        super().__init__(reward_type, sparse_reward_radius, render_mode=render_mode)

    def _sparse_rewards(self, before: np.ndarray, after: np.ndarray, goals: np.ndarray) -> np.ndarray:
        has_left = np.abs(after[:, 0]) + np.abs(after[:, 1]) >= self.sparse_reward_radius
        # the goal is the nearest corner in its own quadrant, axes included
        is_nearest = (after[:, 0] * goals[:, 0] >= 0.0) & (after[:, 1] * goals[:, 1] >= 0.0)
        return np.where(has_left & is_nearest, distances(before, goals) - distances(after, goals), 0.0)
