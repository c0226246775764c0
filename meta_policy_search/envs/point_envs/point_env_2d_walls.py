"""2D navigation to one of four corners, out of two circular walls whose gaps are part of the task."""
from typing import List, Optional

import numpy as np

from meta_policy_search.envs.point_envs.base import CornerTaskEnv, as_point, distances
from meta_policy_search.envs.scenery import Scenery
from meta_policy_search.types import Task

_KEYS = ("goal", "gap_1", "gap_2")


class MetaPointEnvWalls(CornerTaskEnv):
    """A point that has to find the gaps of two round walls on its way to one of four corners.

    ===============  ============================================================================
    observation      position `(x, y)`
    action           displacement `(dx, dy)`, each clipped to `[-0.2, 0.2]`
    walls            circles of radius 1 and 2 around the origin, closed from inside except for one gap
    task             dict of `goal`, one of the corners `(+-2, +-2)`, and the centers of the gaps, `gap_1` on
                     the inner and `gap_2` on the outer wall; corner and directions are all independent and
                     uniform; at first (2, 2), (1, 0) and (2, 0)
    start            uniform in `[-0.2, 0.2]^2`
    reward           by `reward_type`, below (a length; a squared one for `dense_squared`)
    end of episode   never; the sampler's path length cuts it off
    ===============  ============================================================================

    A step that would cross a wall outwards succeeds if it ends within distance 1 of the gap's center. Otherwise it ends
    where the line from the origin to its intended end meets the wall, just inside. Inwards the walls do not stop. The
    corners lie outside both walls, at 2.83 from the origin, so both gaps have to be found. A gap is a third of the
    inner wall, and 29 degrees to either side on the outer one.

    With `p` the position before the step, `p'` the one after it without walls, `g` the goal and `|.|` Euclidean:

    - `dense`: `-|p' - g|`.
    - `dense_squared`: `-|p' - g|^2`.
    - `sparse`: `|p - g| - |p' - g|`, the decrease of the distance, while `|p' - g| < sparse_reward_radius`;
      else 0.

    As in the public code of ProMP, which this follows, the reward is for the position `p'` that the step would have led
    to without walls; so `sparse` pays for pushing against a wall. (The public code gives None for a sparse reward
    outside the radius; here it is 0.)

    Args:
        reward_type: `"dense"` (default), `"dense_squared"` or `"sparse"`.
        sparse_reward_radius: distance to the goal, above 0, within which the sparse reward is not zero; default 2, so
            that it begins just inside the inner wall, 0.83 from the origin.
        render_mode: `"rgb_array"` to draw pictures by `render`; None (default) for none.

    References:
        The public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784).
    """

    max_push = 0.2
    first_task = dict(zip(_KEYS, [(2.0, 2.0), (1.0, 0.0), (2.0, 0.0)]))
    wall_radii = (1.0, 2.0)
    gap_radius = 1.0
    clearance = 1e-6  # a stopped point stays inside its wall by this share of the radius, against rounding

    def __init__(self, reward_type: str = "dense", sparse_reward_radius: float = 2.0, *,
                 render_mode: Optional[str] = None) -> None:
        super().__init__(reward_type, sparse_reward_radius, render_mode=render_mode)

    def _draw_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws `n_tasks` dicts with `goal`, `gap_1` and `gap_2`, each a float64 `[2]`."""
        goals = super()._draw_tasks(n_tasks, rng)
        gaps_1, gaps_2 = (_on_circle(radius, n_tasks, rng) for radius in self.wall_radii)
        return [dict(zip(_KEYS, points, strict=True)) for points in zip(goals, gaps_1, gaps_2, strict=True)]

    def _check_task(self, name: str, task: Task) -> np.ndarray:
        if not isinstance(task, dict) or set(task) != set(_KEYS):
            raise ValueError(f"{name}: expected a dict with the keys goal, gap_1 and gap_2, got {task!r}")
        points = [super()._check_task(f"{name}, goal", task["goal"])[0]]
        for key, wall in zip(_KEYS[1:], self.wall_radii, strict=True):
            gap = as_point(f"{name}, {key}", task[key])
            if abs(np.hypot(*gap) - wall) > 1e-6:
                raise ValueError(f"{name}, {key}: expected a point at distance {wall} from the origin, on its wall, "
                                 f"got {task[key]!r}")
            points.append(gap)
        return np.array(points)

    def _as_task(self, row: np.ndarray) -> Task:
        return dict(zip(_KEYS, row, strict=True))

    def _stop(self, states: np.ndarray, moved: np.ndarray, points: np.ndarray) -> np.ndarray:
        origin = np.zeros_like(states)
        radius_before, radius_after = distances(states, origin), distances(moved, origin)
        shrink = np.ones(len(states))
        for i, wall in enumerate(self.wall_radii, 1):
            crosses = (radius_before <= wall) & (radius_after > wall)
            is_stopped = crosses & (distances(moved, points[:, i]) > self.gap_radius)
            shrink[is_stopped] = wall / (radius_after[is_stopped] + wall * self.clearance)
        return moved * shrink[:, None]

    def _sparse_rewards(self, before: np.ndarray, after: np.ndarray, goals: np.ndarray) -> np.ndarray:
        distance = distances(after, goals)
        return np.where(distance < self.sparse_reward_radius, distances(before, goals) - distance, 0.0)

    def scenery(self) -> Scenery:
        """See `PointMetaEnv.scenery`; a wall is drawn where no step that ends on it gets through."""
        walls = []
        for radius, (gap_x, gap_y) in zip(self.wall_radii, self._batched.task_rows[0, 1:], strict=True):
            half_gap = 2.0 * np.arcsin(self.gap_radius / (2.0 * radius))  # rad, of a chord of length `gap_radius`
            angles = np.arctan2(gap_y, gap_x) + np.linspace(half_gap, 2.0 * np.pi - half_gap, 200)
            walls.append(radius * np.stack((np.cos(angles), np.sin(angles)), axis=1))
        return super().scenery()._replace(walls=walls)


def _on_circle(radius: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draws `n` points uniformly on a circle around the origin; `[n, 2]`."""
    angles = rng.uniform(-np.pi, np.pi, size=n)
    return radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
