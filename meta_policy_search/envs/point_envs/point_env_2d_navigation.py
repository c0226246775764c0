"""2D navigation: the first reinforcement-learning experiment of MAML (arXiv:1703.03400, section 5.3).

Follows the authors' released code, which differs from the paper in its reward (minus the distance, not minus
its square).
"""
from typing import List, Optional

import numpy as np

from meta_policy_search.envs.point_envs.base import BatchedPointEnv, PointMetaEnv, distances
from meta_policy_search.types import Task


class BatchedMetaPointEnvNavigation(BatchedPointEnv):
    """Many `MetaPointEnvNavigation`, stepped together.

    Attributes:
        goal_range: goals are uniform in `[-goal_range, goal_range]^2`.
        goal_tolerance: the goal is reached when both coordinates are closer to it than this.
    """

    max_push = 0.1
    default_goal = (0.5, 0.5)
    goal_range = 0.5
    goal_tolerance = 0.01

    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws `n_tasks` goals, each a float64 `[2]`."""
        return list(rng.uniform(-self.goal_range, self.goal_range, size=(n_tasks, 2)))

    def _start(self, rng: np.random.Generator) -> np.ndarray:
        return np.zeros(2)

    def _rewards(self, before: np.ndarray, after: np.ndarray, goals: np.ndarray) -> np.ndarray:
        return -distances(after, goals)

    def _terminated(self, positions: np.ndarray, goals: np.ndarray) -> np.ndarray:
        apart = np.abs(positions - goals)
        return (apart[:, 0] < self.goal_tolerance) & (apart[:, 1] < self.goal_tolerance)


class MetaPointEnvNavigation(PointMetaEnv):
    """A point that starts in the middle of a square and has to find its goal somewhere in it.

    ===============  ============================================================================
    observation      position `(x, y)`
    action           displacement `(dx, dy)`, each clipped to `[-0.1, 0.1]`
    task             goal `(x, y)`, uniform in `[-0.5, 0.5]^2`; any finite goal may be set; at first (0.5, 0.5)
    start            the origin
    reward           minus the distance between the new position and the goal (a length, at most 0)
    end of episode   terminates when both coordinates are within 0.01 of the goal's
    ===============  ============================================================================

    The goal is at most five full steps away, of a usual horizon of 100. Staying at the origin earns -0.38 a step on
    average over tasks.

    References:
        Finn, Abbeel, Levine: Model-Agnostic Meta-Learning, 2017 (arXiv:1703.03400), and its released
        environment `PointEnvRandGoal`.
    """

    batched_class = BatchedMetaPointEnvNavigation

    def __init__(self, *, render_mode: Optional[str] = None) -> None:
        super().__init__(render_mode=render_mode)
