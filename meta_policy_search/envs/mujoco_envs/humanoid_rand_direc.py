"""Humanoid that walks forward or backward."""
import dataclasses
from typing import Optional

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.robots import HUMANOID
from meta_policy_search.envs.mujoco_envs.tasks import Directions
from meta_policy_search.types import NumThreads, RenderMode


class HumanoidRandDirecEnv(MujocoMetaEnv):
    """A humanoid walks forward or backward along x, as the task requires.

    The direction is not observed. ProMP (arXiv:1810.06784) uses these tasks.

    Observation:
        float64 `[376]`: `qpos[2:]`, `qvel`, `cinert`, `cvel`, `qfrc_actuator`, then `cfrc_ext`.

        =======  =====================================================================  ============
        index    observation                                                            unit
        =======  =====================================================================  ============
        0        height of the torso                                                    m
        1-4      orientation of the torso (quaternion)                                  1
        5-21     angles of the joints: abdomen z, y, x; right hip x, z, y, right knee;  rad
                 left hip x, z, y, left knee; right shoulder 1, 2, right elbow; left
                 shoulder 1, 2, left elbow
        22-24    velocity of the torso along x, y and z                                 m/s
        25-27    angular velocity of the torso around its own axes                      rad/s
        28-44    angular velocities of the joints                                       rad/s
        45-184   inertia of each of 14 bodies (world, torso, lower waist, pelvis;       kg m^2, kg m
                 right thigh, shin, foot; left thigh, shin, foot; right upper arm,      and kg
                 lower arm; left upper arm, lower arm): 6 moments of inertia; mass
                 times the 3 offsets from the center of mass; mass
        185-268  angular velocity, then velocity, of each body                          rad/s, m/s
        269-291  force of the actuators on the torso (6 zeros) and the joints           N m
        292-375  contact torque, then contact force, on each body; zero if              N m and N
                 `contact_forces` is False
        =======  =====================================================================  ============

        Inertias, velocities and contacts of bodies are expressed in world axes, relative to the center of mass of the
        robot.

    Action:
        float64 `[17]`, clipped to [-0.4, 0.4], held for 5 simulation steps of 0.003 s.

        =====  =================================================================================
        index  action
        =====  =================================================================================
        0-2    torque on abdomen y, z and x, in units of 100 N m
        3-6    torque on right hip x, z, y and right knee, in units of 100, 100, 300 and 200 N m
        7-10   torque on left hip x, z, y and left knee, in units of 100, 100, 300 and 200 N m
        11-13  torque on right shoulder 1, 2 and right elbow, in units of 25 N m
        14-16  torque on left shoulder 1, 2 and left elbow, in units of 25 N m
        =====  =================================================================================

    Reward:
        `1.25 * direction * v - 0.1 * |action|^2 - min(5e-7 * |c|^2, 10) + 5` per step, with the mean velocity
        `v = (x' - x) / 0.015 s`. `x` and `x'` are the positions of the center of mass before and after the step, m;
        `action` is the clipped action; `c` are the contact torques and forces after the step. `env_infos` contain
        `forward_vel` (`direction * v`, m/s) and the terms `reward_linvel`, `reward_quadctrl`, `reward_impact` and
        `reward_alive`.

    Tasks:
        Direction along x, -1.0 (backward) or 1.0 (forward), with equal probability.

    Start:
        Positions of the model file (upright, torso at a height of 1.4 m) and zero velocities, plus uniform noise in
        [-0.01, 0.01] (m, rad, m/s, rad/s); the quaternion is normalized.

    End:
        The path terminates when the height of the torso is outside [1, 2] m.

    Logs:
        `AvgForwardVel`: mean of `forward_vel` over all steps, m/s. `AvgFinalForwardVel`: mean of `forward_vel` over the
        last steps of the paths, m/s. `AvgCtrlCost`: mean of `-reward_quadctrl`.

    Args:
        goal_direction: task before the first call of `set_task`, -1.0 or 1.0 (default).
        engine, inertials, num_threads, render_mode: see `MujocoMetaEnv`.
        contact_forces: whether to compute contact forces. False (default): contact forces are zero, as in mujoco-py
            2.1, which does not compute them. True: steps are slower and match mujoco-py up to version 1.5.

    References:
        `HumanoidRandDirecEnv` in the public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784).
    """

    def __init__(self, goal_direction: float = 1.0, *, engine: Optional[str] = None, inertials: str = "mujoco210",
                 num_threads: NumThreads = None, render_mode: RenderMode = None,
                 contact_forces: bool = False) -> None:
        super().__init__(dataclasses.replace(HUMANOID, contact_forces=contact_forces), Directions(goal_direction),
                         engine=engine, inertials=inertials, num_threads=num_threads, render_mode=render_mode)
