"""2D navigation from a random position to the origin, the only task."""
from typing import Any, Dict, List

import numpy as np

from meta_policy_search.envs.point_envs.point_env_2d_navigation import MetaPointEnvNavigation
from meta_policy_search.types import Task


class MetaPointEnvOrigin(MetaPointEnvNavigation):
    """A point starts at a random position in a square and moves to its center.

    ===============  ============================================================================
    observation      float64 `[2]`: position `(x, y)`
    action           float64 `[2]`: displacement `(dx, dy)`, each clipped to [-0.1, 0.1]
    task             an empty dict, the only task; the goal is the origin
    start            uniform in `[-2, 2]^2`
    reward           the negative distance between the new position and the origin
    end of episode   terminates when both coordinates are within 0.01 of zero
    ===============  ============================================================================

    All tasks are equal, so no adaptation is needed. The environment tests all other parts of an algorithm: a correct
    algorithm learns to reach the origin.

    Args:
        render_mode: `"rgb_array"` to enable `render`; default None.

    References:
        `MetaPointEnv` of this module in the public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784).
    """

    first_task: Dict[str, Any] = {}
    goal_range = 0.0
    task_ranges = ()
    start_range = 2.0

    def _draw_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        return [{} for _ in range(n_tasks)]

    def _check_task(self, name: str, task: Task) -> np.ndarray:
        if not isinstance(task, dict) or task:
            raise ValueError(f"{name}: expected an empty dict, the only task, got {task!r}")
        return np.zeros((1, 2))

    def _as_task(self, row: np.ndarray) -> Task:
        return {}


MetaPointEnv = MetaPointEnvOrigin  # name used by earlier scripts
