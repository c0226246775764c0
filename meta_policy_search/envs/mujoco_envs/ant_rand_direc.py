"""Ant that runs forward or backward."""
import dataclasses
from typing import Optional

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.robots import ANT
from meta_policy_search.envs.mujoco_envs.tasks import Directions
from meta_policy_search.types import NumThreads, RenderMode


class AntRandDirecEnv(MujocoMetaEnv):
    """An ant runs forward or backward along x, as the task requires.

    The direction is not observed. MAML (arXiv:1703.03400, section 5.3), ProMP (arXiv:1810.06784) and PEARL
    (arXiv:1903.08254) use these tasks. The reward follows ProMP's public code.

    Observation:
        float64 `[111]`: `qpos[2:]`, `qvel`, then the contact torques and forces `cfrc_ext`, clipped to [-1, 1].

        =======  ==========================================================  =========
        index    observation                                                 unit
        =======  ==========================================================  =========
        0        height of the torso                                         m
        1-4      orientation of the torso (quaternion)                       1
        5-12     angles of hip and ankle for each leg: front left, front     rad
                 right, back left, back right
        13-15    velocity of the torso along x, y and z                      m/s
        16-18    angular velocity of the torso around its own axes           rad/s
        19-26    angular velocities of hip and ankle for each leg            rad/s
        27-110   contact torque, then contact force, on each of 14 bodies    N m and N
                 (world, torso, three parts of each leg); zero if
                 `contact_forces` is False
        =======  ==========================================================  =========

    Action:
        float64 `[8]`, clipped to [-1, 1], held for 5 simulation steps of 0.01 s.

        =====  ===================================================================
        index  action
        =====  ===================================================================
        0-1    torque on hip and ankle of the back right leg, in units of 150 N m
        2-3    torque on hip and ankle of the front left leg, in units of 150 N m
        4-5    torque on hip and ankle of the front right leg, in units of 150 N m
        6-7    torque on hip and ankle of the back left leg, in units of 150 N m
        =====  ===================================================================

    Reward:
        `direction * (x' - x) / 0.05 s - 0.5 * |action|^2 - 0.0005 * |c|^2 + 1` per step. `x` and `x'` are the positions
        of the torso before and after the step, m; `action` is the clipped action; `c` are the clipped contact torques
        and forces after the step. `env_infos` contain the terms `reward_forward`, `reward_ctrl`, `reward_contact` and
        `reward_survive`.

    Tasks:
        Direction along x, -1.0 (backward) or 1.0 (forward), with equal probability.

    Start:
        Positions of the model file (torso flat, at a height of 0.75 m) plus uniform noise in [-0.1, 0.1] (m, rad); the
        quaternion is normalized. Velocities are normal with mean 0 and standard deviation 0.1 (m/s, rad/s).

    End:
        The path terminates when the height of the torso is outside [0, 1] m.

    Logs:
        `AverageForwardReturn`, `MaxForwardReturn`, `MinForwardReturn` and `StdForwardReturn`: mean, maximum, minimum
        and standard deviation over paths of the mean `reward_forward` per step. `AverageCtrlCost`: mean of
        `-reward_ctrl`.

    Args:
        goal_direction: task before the first call of `set_task`, -1.0 or 1.0; default None, which means 1.0.
        engine, inertials, num_threads, render_mode: see `MujocoMetaEnv`.
        contact_forces: whether to compute contact forces. False (default): contact forces are zero, as in mujoco-py
            2.1, which does not compute them. True: steps are slower and match mujoco-py up to version 1.5.

    References:
        `AntRandDirecEnv` in the public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784).
    """

    def __init__(self, goal_direction: Optional[float] = None, *, engine: Optional[str] = None,
                 inertials: str = "mujoco210", num_threads: NumThreads = None, render_mode: RenderMode = None,
                 contact_forces: bool = False) -> None:
        super().__init__(dataclasses.replace(ANT, contact_forces=contact_forces),
                         Directions(1.0 if goal_direction is None else goal_direction), engine=engine,
                         inertials=inertials, num_threads=num_threads, render_mode=render_mode)
