"""2D navigation with four possible goals: the corners of the square of `point_env_2d_navigation`."""
from typing import List, Optional

import numpy as np

from meta_policy_search.envs.point_envs.base import CORNERS, PointMetaEnv
from meta_policy_search.envs.point_envs.point_env_2d_navigation import BatchedMetaPointEnvNavigation
from meta_policy_search.envs.scenery import Scenery
from meta_policy_search.types import Task


class BatchedMetaPointEnvCornerGoals(BatchedMetaPointEnvNavigation):
    """Many `MetaPointEnvCornerGoals`, stepped together."""

    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws `n_tasks` of the four corners `(+-goal_range, +-goal_range)`, with replacement."""
        return list(self._corners()[rng.integers(len(CORNERS), size=n_tasks)])

    def scenery(self, env_id: int) -> Scenery:
        """See `BatchedPointEnv.scenery`; shows all four corners."""
        return super().scenery(env_id)._replace(other_goals=self._corners())

    def _corners(self) -> np.ndarray:
        return np.sign(CORNERS) * self.goal_range


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
    """

    batched_class = BatchedMetaPointEnvCornerGoals

    def __init__(self, *, render_mode: Optional[str] = None) -> None:
        super().__init__(render_mode=render_mode)


MetaPointEnv = MetaPointEnvCornerGoals  # the name that existing scripts import from this module
