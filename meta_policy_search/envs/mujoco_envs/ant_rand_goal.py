"""Ant, running to a place and staying there."""
from typing import Any, List, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.ant import BatchedAntEnv
from meta_policy_search.envs.mujoco_envs.base import BatchedGoalEnv, ContactArguments, MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.envs.point_envs.base import as_point
from meta_policy_search.envs.scenery import Scenery
from meta_policy_search.types import Infos, Rows, Task
from meta_policy_search.utils.signatures import Unpack

LARGEST_DISTANCE = 3.0  # m, of goals from the origin


class BatchedAntRandGoalEnv(BatchedGoalEnv, BatchedAntEnv):
    """`num_envs` copies of `AntRandGoalEnv`.

    Args:
        goal: the task until `set_task` is called, two numbers `(x, y)`, m.
    """

    first_observed = 0
    control_cost = 0.1
    survival_reward = 0.0
    heights = (-np.inf, np.inf)

    def __init__(self, num_envs: int, *, goal: Sequence[float] = (2.0, 0.0), **settings: Any) -> None:
        super().__init__(num_envs, task=as_point("goal", goal), **settings)

    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws goals, each a float64 `[2]`, uniform in a disc."""
        angles = rng.uniform(0.0, 2.0 * np.pi, n_tasks)
        distances = LARGEST_DISTANCE * np.sqrt(rng.random(n_tasks))
        return list(distances[:, None] * np.stack((np.cos(angles), np.sin(angles)), axis=1))

    def scenery(self, env_id: int) -> Scenery:
        return Scenery(half_width=LARGEST_DISTANCE, goal=self.goals[env_id])

    def _check_task(self, name: str, task: Task) -> np.ndarray:
        return as_point(name, task)

    def _rewards(self, before: State, actions: np.ndarray, after: State, rows: Rows) -> Tuple[np.ndarray, Infos]:
        away = np.abs(after.qpos[:, :2] - self.goals[rows])
        return self._run_rewards(-(away[:, 0] + away[:, 1]), actions, after)


class AntRandGoalEnv(MujocoMetaEnv):
    """An ant that is to run to a place of its task's own.

    The place is not observed: an agent learns it from rewards alone. One of the tasks of ProMP (arXiv:1810.06784) and
    PEARL (arXiv:1903.08254).

    Reward:
        `-(|x' - goal_x| + |y' - goal_y|) - 0.1 * |action|^2 - 0.0005 * |c|^2` per step, with `x'` and `y'` the
        position of the torso after the step in m, the action as clipped, and `c` the clipped contact torques and forces
        after the step. `env_infos` holds the terms, `reward_forward`, `reward_ctrl` and `reward_contact`, and
        `reward_survive`, which is zero.

    Tasks:
        Places `(x, y)`, float64 `[2]`, m, uniform in the disc of radius 3 m around the origin. `set_task` takes any
        place.

    End:
        Never, not even when the ant has fallen over; the sampler ends a path, published experiments after 200 steps.
    """

    batched_class = BatchedAntRandGoalEnv

    def __init__(self, goal: Sequence[float] = (2.0, 0.0), **robot: Unpack[ContactArguments]) -> None:
        super().__init__(goal=goal, **robot)
