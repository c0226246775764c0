"""2D navigation to one of four corners by a point with inertia: actions accelerate it."""
from typing import Optional

import numpy as np

from meta_policy_search.envs.point_envs.base import CornerTaskEnv, distances


class MetaPointEnvMomentum(CornerTaskEnv):
    """A point without friction that has to be steered, and braked, to one of four corners.

    ===============  ============================================================================
    observation      position and velocity `(x, y, vx, vy)`
    action           change of velocity `(dvx, dvy)`, each clipped to `[-0.1, 0.1]` (lengths a step)
    dynamics         `v' = v + a`, then `p' = p + v'`
    task             goal, one of the corners `(+-2, +-2)` with equal probability; at first (2, 2)
    start            position uniform in `[-0.2, 0.2]^2`, velocity uniform in `[-0.1, 0.1]^2`
    reward           by `reward_type`, below (a length; a squared one for `dense_squared`)
    end of episode   never; the sampler's path length cuts it off
    ===============  ============================================================================

    With `p'` the position after the step, `g` the goal and `|.|` Euclidean:

    - `dense`: `-|p' - g|`.
    - `dense_squared`: `-|p' - g|^2`.
    - `sparse`: `max(sparse_reward_radius - |p' - g|, 0)`.

    Nothing slows the point down, and the start velocity alone carries it out of the world within a horizon of 100
    steps: a policy has to learn to stop at the goal. With the default radius of 2, discs around the corners just touch
    the axes and do not overlap, so a sparse reward also tells which corner it comes from.

    Args:
        reward_type: `"sparse"` (default), `"dense"` or `"dense_squared"`.
        sparse_reward_radius: distance to the goal, above 0, at which the sparse reward begins; default 2.
        render_mode: `"rgb_array"` to draw pictures by `render`; None (default) for none.

    References:
        The public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784).
    """

    max_push = 0.1
    start_speed_range = 0.1
    state_size = 4  # x, y, and their velocities

    def __init__(self, reward_type: str = "sparse", sparse_reward_radius: float = 2.0, *,
                 render_mode: Optional[str] = None) -> None:
        super().__init__(reward_type, sparse_reward_radius, render_mode=render_mode)

    def _start(self, rng: np.random.Generator) -> np.ndarray:
        position = super()._start(rng)
        return np.concatenate([position, rng.uniform(-self.start_speed_range, self.start_speed_range, size=2)])

    def _push(self, states: np.ndarray, pushes: np.ndarray) -> np.ndarray:
        velocities = states[:, 2:] + pushes
        return np.concatenate([states[:, :2] + velocities, velocities], axis=1)

    def _sparse_rewards(self, before: np.ndarray, after: np.ndarray, goals: np.ndarray) -> np.ndarray:
        return np.maximum(self.sparse_reward_radius - distances(after, goals), 0.0)
