"""2D navigation with four possible goals: the corners of the square of `point_env_2d_navigation`."""
from typing import List

import numpy as np

from meta_policy_search.envs.point_envs.base import CORNERS, PointMetaEnv
from meta_policy_search.envs.scenery import Scenery
from meta_policy_search.types import Task


class MetaPointEnvCornerGoals(PointMetaEnv):
    """A point that starts in the middle of a square and has to find out which corner it is to go to.

    ===============  ============================================================================
    observation      position `(x, y)`
    action           displacement `(dx, dy)`, each clipped to `[-0.1, 0.1]`
    task             goal, one of `(+-0.5, +-0.5)` with equal probability; any finite goal may be set;
                     at first (0.5, 0.5)
    start            the origin
    reward           minus the distance between the new position and the goal (a length, at most 0)
    end of episode   terminates when both coordinates are within 0.01 of the goal's
    ===============  ============================================================================

    The rules of `MetaPointEnvNavigation` with four tasks: the smallest test of adaptation whose reward is informative
    everywhere. Without adaptation nothing is better on average than staying at the start, for `-sqrt(0.5)` a step in
    every task. (In `MetaPointEnvCorner` the corners are farther away and the default reward is sparse.)

    Args:
        render_mode: `"rgb_array"` to draw pictures by `render`; None (default) for none.
    """

    max_push = 0.1
    first_task = (0.5, 0.5)
    goal_range = 0.5
    goal_tolerance = 0.01

    def _draw_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        return list(self._corners()[rng.integers(len(CORNERS), size=n_tasks)])

    def scenery(self) -> Scenery:
        return super().scenery()._replace(other_goals=self._corners())

    def _corners(self) -> np.ndarray:
        return np.sign(CORNERS) * self.goal_range


MetaPointEnv = MetaPointEnvCornerGoals  # the name that existing scripts import from this module
