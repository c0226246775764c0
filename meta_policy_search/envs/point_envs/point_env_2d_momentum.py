"""2D navigation to one of four corners by a point with inertia, which actions accelerate."""
import numpy as np

from meta_policy_search.envs.point_envs.point_env_2d_corner import MetaPointEnvCorner
from meta_policy_search.envs.point_envs.point_env_2d_navigation import distances
from meta_policy_search.types import RenderMode


class MetaPointEnvMomentum(MetaPointEnvCorner):
    """A point without friction accelerates and brakes to reach one of four corners.

    ===============  ============================================================================
    observation      float64 `[4]`: position and velocity `(x, y, vx, vy)`
    action           float64 `[2]`: change of velocity `a = (dvx, dvy)` per step; each
                     component is clipped to [-0.1, 0.1]
    dynamics         `v' = v + a`, then `p' = p + v'`
    task             goal, one of the corners `(+-2, +-2)` with equal probability; default (2, 2)
    start            position uniform in `[-0.2, 0.2]^2`, velocity uniform in `[-0.1, 0.1]^2`
    reward           depends on `reward_type`, see below
    end of episode   never; the sampler ends a path after `max_path_length` steps
    ===============  ============================================================================

    Rewards, with the position `p'` after the step, the goal `g` and the Euclidean norm `|.|`:

    - `dense`: `-|p' - g|`.
    - `dense_squared`: `-|p' - g|^2`.
    - `sparse`: `max(sparse_reward_radius - |p' - g|, 0)`.

    There is no friction. Without braking, the start velocity alone usually carries the point out of the square between
    the corners within 100 steps, so a policy has to learn to stop at the goal. With the default radius of 2, the discs
    around the corners touch the axes but do not overlap, so a sparse reward identifies the corner.

    Args:
        reward_type: `"sparse"` (default), `"dense"` or `"dense_squared"`.
        sparse_reward_radius: distance to the goal, above 0, below which the sparse reward is positive; default 2.
        render_mode: `"rgb_array"` to enable `render`; default None.

    References:
        The public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784).
    """

    max_push = 0.1
    start_speed_range = 0.1
    state_size = 4  # position and velocity: x, y, vx, vy

    def __init__(self, reward_type: str = "sparse", sparse_reward_radius: float = 2.0, *,
                 render_mode: RenderMode = None) -> None:
        super().__init__(reward_type, sparse_reward_radius, render_mode=render_mode)

    def _start(self, rng: np.random.Generator) -> np.ndarray:
        position = super()._start(rng)
        return np.concatenate([position, rng.uniform(-self.start_speed_range, self.start_speed_range, size=2)])

    def _push(self, states: np.ndarray, pushes: np.ndarray) -> np.ndarray:
        velocities = states[:, 2:] + pushes
        return np.concatenate([states[:, :2] + velocities, velocities], axis=1)

    def _sparse_rewards(self, before: np.ndarray, after: np.ndarray, goals: np.ndarray) -> np.ndarray:
        return np.maximum(self.sparse_reward_radius - distances(after, goals), 0.0)
