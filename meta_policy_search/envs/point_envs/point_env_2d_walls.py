"""2D navigation to one of four corners through task-specific gaps in two circular walls."""
from typing import List

import numpy as np

from meta_policy_search.envs.point_envs.point_env_2d_corner import MetaPointEnvCorner
from meta_policy_search.envs.point_envs.point_env_2d_navigation import distances
from meta_policy_search.envs.scenery import Scenery
from meta_policy_search.envs.spaces import as_point
from meta_policy_search.types import RenderMode, Task

_KEYS = ("goal", "gap_1", "gap_2")


class MetaPointEnvWalls(MetaPointEnvCorner):
    """A point passes through the gaps of two circular walls and moves to one of four corners.

    ===============  ============================================================================
    observation      float64 `[2]`: position `(x, y)`
    action           float64 `[2]`: displacement `(dx, dy)`, each clipped to [-0.2, 0.2]
    walls            circles of radius 1 and 2 around the origin, each with one gap
    task             dict of `goal`, one of the corners `(+-2, +-2)`, `gap_1`, the center of the
                     gap in the inner wall, and `gap_2`, the center of the gap in the outer wall;
                     all independent and uniform; default (2, 2), (1, 0) and (2, 0)
    start            uniform in `[-0.2, 0.2]^2`
    reward           depends on `reward_type`, see below
    end of episode   never; the sampler ends a path after `max_path_length` steps
    ===============  ============================================================================

    A step that would cross a wall outward succeeds if its end is within a distance of 1 of the center of the gap.
    Otherwise the point stops just inside the wall, on the line from the origin to the intended end. Steps inward are
    not stopped. The corners are outside both walls, 2.83 from the origin, so the point has to find both gaps. The gap
    covers a third of the inner wall. In the outer wall, the gap extends 29 degrees to either side of its center.

    Rewards, with the position `p` before the step, the position `p'` after the step as if there were no walls, the goal
    `g` and the Euclidean norm `|.|`:

    - `dense`: `-|p' - g|`.
    - `dense_squared`: `-|p' - g|^2`.
    - `sparse`: `|p - g| - |p' - g|`, the decrease of the distance, if `|p' - g| < sparse_reward_radius`; otherwise 0.

    As in the public code of ProMP, the reward uses the position `p'` that the step would reach without walls. Therefore
    the sparse reward also rewards pushing against a wall. Outside the radius, the public code returns None as the
    sparse reward; this environment returns 0.

    Args:
        reward_type: `"dense"` (default), `"dense_squared"` or `"sparse"`.
        sparse_reward_radius: distance to the goal, above 0, below which the sparse reward is nonzero. With the default,
            2, this region begins just inside the inner wall, 0.83 from the origin.
        render_mode: `"rgb_array"` to enable `render`; default None.

    References:
        The public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784).
    """

    first_task = dict(zip(_KEYS, [(2.0, 2.0), (1.0, 0.0), (2.0, 0.0)]))
    wall_radii = (1.0, 2.0)
    gap_radius = 1.0
    clearance = 1e-6  # relative distance of a stopped point from its wall; prevents crossing by rounding

    def __init__(self, reward_type: str = "dense", sparse_reward_radius: float = 2.0, *,
                 render_mode: RenderMode = None) -> None:
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
                raise ValueError(f"{name}, {key}: expected a point on the wall, at distance {wall} from the origin, "
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
        """Returns the goal and the walls for drawings. A wall is drawn where every step that ends on it is stopped."""
        walls = []
        for radius, (gap_x, gap_y) in zip(self.wall_radii, self._batched.task_rows[0, 1:], strict=True):
            half_gap = 2.0 * np.arcsin(self.gap_radius / (2.0 * radius))  # angle of a chord of length `gap_radius`, rad
            angles = np.arctan2(gap_y, gap_x) + np.linspace(half_gap, 2.0 * np.pi - half_gap, 200)
            walls.append(radius * np.stack((np.cos(angles), np.sin(angles)), axis=1))
        return super().scenery()._replace(walls=walls)


def _on_circle(radius: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draws `n` uniform points on a circle around the origin, float64 `[n, 2]`."""
    angles = rng.uniform(-np.pi, np.pi, size=n)
    return radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
