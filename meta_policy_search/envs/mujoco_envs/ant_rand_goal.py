"""Ant, running to a place and staying there."""
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.ant import BatchedAntEnv
from meta_policy_search.envs.mujoco_envs.base import BatchedGoalEnv, MujocoMetaEnv, Rows
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.envs.point_envs.base import as_point
from meta_policy_search.envs.scenery import Scenery
from meta_policy_search.types import Infos, Task

__all__ = ["AntRandGoalEnv", "BatchedAntRandGoalEnv"]

LARGEST_DISTANCE = 3.0  # m, of goals from the origin


class BatchedAntRandGoalEnv(BatchedGoalEnv, BatchedAntEnv):
    """`num_envs` copies of `AntRandGoalEnv`, which says everything about them."""

    first_observed = 0
    control_cost = 0.1
    survival_reward = 0.0
    heights = (-np.inf, np.inf)

    def __init__(self, num_envs: int, *, goal: Sequence[float] = (2.0, 0.0), **settings: Any) -> None:
        super().__init__(num_envs, task=as_point("goal", goal), **settings)

    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws `n_tasks` goals, each a float64 `[2]`, uniform in a disc."""
        angles = rng.uniform(0.0, 2.0 * np.pi, n_tasks)
        distances = LARGEST_DISTANCE * np.sqrt(rng.random(n_tasks))
        return list(distances[:, None] * np.stack((np.cos(angles), np.sin(angles)), axis=1))

    def scenery(self, env_id: int) -> Scenery:
        """See `BatchedMujocoEnv.scenery`."""
        return Scenery(half_width=LARGEST_DISTANCE, goal=self.goals[env_id])

    def _check_task(self, name: str, task: Task) -> np.ndarray:
        return as_point(name, task)

    def _rewards(self, before: State, actions: np.ndarray, after: State, rows: Rows) -> Tuple[np.ndarray, Infos]:
        away = np.abs(after.qpos[:, :2] - self.goals[rows])
        return self._reward_terms(-(away[:, 0] + away[:, 1]), actions, after)


class AntRandGoalEnv(MujocoMetaEnv):
    """An ant that is to run to a place of its task's own.

    The place is not observed: an agent learns it from rewards alone. One of the tasks of ProMP (arXiv:1810.06784) and
    PEARL (arXiv:1903.08254).

    Observation, float64 `[113]`: `qpos`, `qvel`, then the contact torques and forces `cfrc_ext`, clipped to [-1, 1].
    That is, the position of the torso along x and y in m, then what `AntRandDirecEnv` has in its table, as it has of
    the action (float64 `[8]` in [-1, 1], held for 0.05 s).

    Reward per step: `-(|x' - goal_x| + |y' - goal_y|) - 0.1 * |action|^2 - 0.0005 * |c|^2`, with `x'` and `y'` the
    position of the torso after the step in m, the action as clipped, and `c` the clipped contact torques and forces
    after the step. `env_infos` holds the terms, `reward_forward`, `reward_ctrl` and `reward_contact`, and
    `reward_survive`, which is zero.

    Tasks: places `(x, y)`, float64 `[2]`, m, uniform in the disc of radius 3 m around the origin. `set_task` takes any
    place.

    Start: as in `AntRandDirecEnv`, at the origin.

    End: never, not even when the ant has fallen over; the sampler ends a path, published experiments after 200 steps.

    `log_diagnostics` logs `AverageForwardReturn`, `MaxForwardReturn`, `MinForwardReturn` and `StdForwardReturn`,
    statistics over paths of the mean of `reward_forward` over their steps, and `AverageCtrlCost`, all per step.

    Args:
        goal: the task until `set_task` is called, two numbers `(x, y)`, m; (2, 0) by default.
        contact_forces: whether contact forces are computed. False by default, and then they count as zero, as they do
            under mujoco-py 2.1, which never computes them; with them each step takes longer, and is the environment as
            it was with engines up to 1.5.
        engine: `"mujoco"`, the official package, or `"mujoco-py"`, MuJoCo 2.1.0; by default what the environment
            variable `META_POLICY_SEARCH_ENGINE` names, or else `"mujoco"`. The environment is the same with either.
        inertials: `"mujoco210"` (default), the robot's masses and inertias as the engine of the papers has them, or
            `"modern"`, as the installed MuJoCo computes them.
        num_threads: native threads that step the copies of `make_batched`; by default all cores that the process may
            use. Results do not depend on it.
        render_mode: `"rgb_array"` to draw pictures by `render`; None (default) for none.

    Raises:
        TypeError, ValueError: an argument is none of the above; so raises `set_task`.
        ImportError: the engine or `gymnasium` is not installed; says what to run.

    References:
        The public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784), in which it is `AntRandGoalEnv`.
    """

    batched_class = BatchedAntRandGoalEnv

    def __init__(
        self,
        goal: Sequence[float] = (2.0, 0.0),
        *,
        contact_forces: bool = False,
        engine: Optional[str] = None,
        inertials: str = "mujoco210",
        num_threads: Optional[int] = None,
        render_mode: Optional[str] = None,
    ) -> None:
        super().__init__(
            goal=goal, contact_forces=contact_forces, engine=engine, inertials=inertials, num_threads=num_threads,
            render_mode=render_mode,
        )
