"""Ant, running in a direction of the plane."""
from typing import Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.ant import BatchedAntEnv
from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv, Rows
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.envs.mujoco_envs.tasks import PlanarDirectionTasks
from meta_policy_search.types import Infos

__all__ = ["AntRandDirec2DEnv", "BatchedAntRandDirec2DEnv"]


class BatchedAntRandDirec2DEnv(PlanarDirectionTasks, BatchedAntEnv):
    """`num_envs` copies of `AntRandDirec2DEnv`, which says everything about them."""

    def _rewards(self, before: State, actions: np.ndarray, after: State, rows: Rows) -> Tuple[np.ndarray, Infos]:
        return self._reward_terms(self._along_goal(self._plane_velocity(before, after), rows), actions, after)


class AntRandDirec2DEnv(MujocoMetaEnv):
    """An ant that is to run in a direction of its task's own.

    The direction is not observed: an agent learns it from rewards alone. One of the tasks of ProMP
    (arXiv:1810.06784).

    Observation (float64 `[111]`), action (float64 `[8]` in [-1, 1], held for 0.05 s), start and end are those of
    `AntRandDirecEnv`, which has tables of them.

    Reward per step: `direction . (p' - p) / 0.05 s - 0.5 * |action|^2 - 0.0005 * |c|^2 + 1`, with `p` and `p'` the
    positions `(x, y)` of the torso before and after the step in m, `.` the scalar product, the action as clipped, and
    `c` the clipped contact torques and forces after the step. `env_infos` holds the terms: `reward_forward`,
    `reward_ctrl`, `reward_contact` and `reward_survive`.

    Tasks: unit vectors `(x, y)`, float64 `[2]`, all directions equally likely.

    `log_diagnostics` logs `AverageForwardReturn`, `MaxForwardReturn`, `MinForwardReturn` and `StdForwardReturn`,
    statistics over paths of the mean of `reward_forward` over their steps, and `AverageCtrlCost`, all per step.

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
        The public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784), in which it is `AntRandDirec2DEnv`.
    """

    batched_class = BatchedAntRandDirec2DEnv

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
