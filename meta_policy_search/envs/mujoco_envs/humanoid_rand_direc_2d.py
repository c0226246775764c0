"""Humanoid, walking in a direction of the plane."""
from typing import Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv, Rows
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.envs.mujoco_envs.humanoid import BatchedHumanoidEnv
from meta_policy_search.envs.mujoco_envs.tasks import PlanarDirectionTasks
from meta_policy_search.types import Infos

__all__ = ["BatchedHumanoidRandDirec2DEnv", "HumanoidRandDirec2DEnv"]


class BatchedHumanoidRandDirec2DEnv(PlanarDirectionTasks, BatchedHumanoidEnv):
    """`num_envs` copies of `HumanoidRandDirec2DEnv`, which says everything about them."""

    def _rewards(self, before: State, actions: np.ndarray, after: State, rows: Rows) -> Tuple[np.ndarray, Infos]:
        return self._reward_terms(self._along_goal(self._plane_velocity(before, after), rows), actions, after)


class HumanoidRandDirec2DEnv(MujocoMetaEnv):
    """A humanoid that is to walk in a direction of its task's own.

    The direction is not observed: an agent learns it from rewards alone. One of the tasks of ProMP (arXiv:1810.06784)
    and PEARL (arXiv:1903.08254).

    Observation (float64 `[376]`), action (float64 `[17]` in [-0.4, 0.4], held for 0.015 s), start and end are those of
    `HumanoidRandDirecEnv`, which has tables of them.

    Reward per step: `1.25 * direction . v - 0.1 * |action|^2 - min(5e-7 * |c|^2, 10) + 5`, with the mean velocity `v =
    (p' - p) / 0.015 s`, where `p` and `p'` are the positions `(x, y)` of the centre of mass before and after the step
    in m and `.` is the scalar product, the action as clipped, and `c` the contact torques and forces after the step.
    `env_infos` holds `forward_vel` (`direction . v`, m/s) and the terms: `reward_linvel`, `reward_quadctrl`,
    `reward_impact` and `reward_alive`.

    Tasks: unit vectors `(x, y)`, float64 `[2]`, all directions equally likely.

    `log_diagnostics` logs `AvgForwardVel` and `AvgFinalForwardVel`, the velocity in the direction asked for over all
    steps and over the last steps of the paths, m/s, and `AvgCtrlCost`.

    Args:
        goal_direction: the task until `set_task` is called, two numbers `(x, y)`, a vector of length one; along x by
            default.
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
        The public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784), in which it is `HumanoidRandDirec2DEnv`.
    """

    batched_class = BatchedHumanoidRandDirec2DEnv

    def __init__(
        self,
        goal_direction: Sequence[float] = (1.0, 0.0),
        *,
        contact_forces: bool = False,
        engine: Optional[str] = None,
        inertials: str = "mujoco210",
        num_threads: Optional[int] = None,
        render_mode: Optional[str] = None,
    ) -> None:
        super().__init__(
            goal_direction=goal_direction, contact_forces=contact_forces, engine=engine, inertials=inertials,
            num_threads=num_threads, render_mode=render_mode,
        )
