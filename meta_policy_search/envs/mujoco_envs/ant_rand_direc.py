"""Ant, running forward or backward."""
from typing import Optional, Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.ant import BatchedAntEnv
from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv, Rows
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.envs.mujoco_envs.tasks import DirectionTasks
from meta_policy_search.types import Infos

__all__ = ["AntRandDirecEnv", "BatchedAntRandDirecEnv"]


class BatchedAntRandDirecEnv(DirectionTasks, BatchedAntEnv):
    """`num_envs` copies of `AntRandDirecEnv`, which says everything about them."""

    def _rewards(self, before: State, actions: np.ndarray, after: State, rows: Rows) -> Tuple[np.ndarray, Infos]:
        return self._reward_terms(self.goals[rows] * self._forward_velocity(before, after), actions, after)


class AntRandDirecEnv(MujocoMetaEnv):
    """An ant that is to run forward, along x, in one half of the tasks and backward in the other.

    The direction is not observed: an agent learns it from rewards alone. The task is that of MAML (arXiv:1703.03400,
    section 5.3), ProMP (arXiv:1810.06784) and PEARL (arXiv:1903.08254), in the form of ProMP's public code.

    Observation, float64 `[111]`: `qpos[2:]`, `qvel`, then the contact torques and forces `cfrc_ext`, clipped to [-1,
    1].

    ======  =========================================================  =========
    index   observation                                                unit
    ======  =========================================================  =========
    0       height of the torso                                        m
    1-4     orientation of the torso, a quaternion                     1
    5-12    angles of hip and ankle, leg by leg: front left, front     rad
            right, back left, back right
    13-15   velocity of the torso along x, y and z                     m/s
    16-18   angular velocity of the torso around its own axes          rad/s
    19-26   angular velocities of hip and ankle, leg by leg            rad/s
    27-110  torque, then force, of contacts on each of 14 bodies (the  N m and N
            world, torso and, leg by leg, three parts); zero unless
            `contact_forces`
    ======  =========================================================  =========

    Action, float64 `[8]` in [-1, 1], dimensionless; clipped to it. Held for 5 simulation steps of 0.01 s.

    =====  ==================================================================
    index  action
    =====  ==================================================================
    0-1    share of the torque on hip and ankle, back right: 150 N m each
    2-3    the same, front left
    4-5    the same, front right
    6-7    the same, back left
    =====  ==================================================================

    Reward per step: `direction * (x' - x) / 0.05 s - 0.5 * |action|^2 - 0.0005 * |c|^2 + 1`, with `x` and `x'` the
    positions of the torso before and after the step in m, the action as clipped, and `c` the clipped contact torques
    and
    forces after the step. `env_infos` holds the terms: `reward_forward`, `reward_ctrl`,
    `reward_contact` and `reward_survive`.

    Tasks: -1.0 (backward) or 1.0 (forward), with equal probability.

    Start: positions of the model (flat, 0.75 m) plus noise uniform in [-0.1, 0.1] (m, rad) in every coordinate, the
    quaternion scaled to length one; velocities normal with standard deviation 0.1 (m/s, rad/s).

    End: when the torso is not between 0 m and 1 m high.

    `log_diagnostics` logs `AverageForwardReturn`, `MaxForwardReturn`, `MinForwardReturn` and `StdForwardReturn`,
    statistics over paths of the mean of `reward_forward` over their steps, and `AverageCtrlCost`, all per step.

    Args:
        goal_direction: -1.0 or 1.0, the task until `set_task` is called; forward by default.
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
        The public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784), in which it is `AntRandDirecEnv`.
    """

    batched_class = BatchedAntRandDirecEnv

    def __init__(
        self,
        goal_direction: Optional[float] = None,
        *,
        contact_forces: bool = False,
        engine: Optional[str] = None,
        inertials: str = "mujoco210",
        num_threads: Optional[int] = None,
        render_mode: Optional[str] = None,
    ) -> None:
        super().__init__(
            goal_direction=1.0 if goal_direction is None else goal_direction, contact_forces=contact_forces,
            engine=engine, inertials=inertials, num_threads=num_threads, render_mode=render_mode,
        )
