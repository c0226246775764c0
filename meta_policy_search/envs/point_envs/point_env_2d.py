"""The way home: a point that starts anywhere in a square goes to its middle. There is a single task."""
from typing import List, Optional, Sequence

import numpy as np

from meta_policy_search.envs.point_envs.base import PointMetaEnv
from meta_policy_search.envs.point_envs.point_env_2d_navigation import BatchedMetaPointEnvNavigation
from meta_policy_search.envs.scenery import Scenery
from meta_policy_search.types import Task


class BatchedMetaPointEnvOrigin(BatchedMetaPointEnvNavigation):
    """Many `MetaPointEnvOrigin`, stepped together."""

    default_goal = (0.0, 0.0)
    start_range = 2.0

    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Returns `n_tasks` empty dicts, the only task."""
        return [{} for _ in range(n_tasks)]

    def set_tasks(self, tasks: Sequence[Task]) -> None:
        """See `BatchedEnv.set_tasks`; a task is an empty dict."""
        self._check_count(tasks)
        for i, task in enumerate(tasks):
            if not isinstance(task, dict) or task:
                raise ValueError(f"task {i}: expected an empty dict, the only task, got {task!r}")

    def get_tasks(self) -> List[Task]:
        return [{} for _ in range(self.num_envs)]

    def _start(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-self.start_range, self.start_range, size=2)

    def scenery(self, env_id: int) -> Scenery:
        return super().scenery(env_id)._replace(half_width=self.start_range)


class MetaPointEnvOrigin(PointMetaEnv):
    """A point that starts anywhere in a square and has to go to its middle.

    ===============  ============================================================================
    observation      position `(x, y)`
    action           displacement `(dx, dy)`, each clipped to `[-0.1, 0.1]`
    task             an empty dict, the only one: the goal is the origin
    start            uniform in `[-2, 2]^2`
    reward           minus the distance between the new position and the origin (a length, at most 0)
    end of episode   terminates when both coordinates are within 0.01 of zero
    ===============  ============================================================================

    As there is nothing to adapt to, it is a test of everything else: a policy that learns at all learns this.

    References:
        `MetaPointEnv` of this module in the public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784).
    """

    batched_class = BatchedMetaPointEnvOrigin

    def __init__(self, *, render_mode: Optional[str] = None) -> None:
        super().__init__(render_mode=render_mode)


MetaPointEnv = MetaPointEnvOrigin  # the name that existing scripts import from this module
