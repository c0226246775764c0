"""Humanoid, walking forward or backward."""
from typing import Optional

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.robots import Humanoid
from meta_policy_search.envs.mujoco_envs.tasks import Directions


class HumanoidRandDirecEnv(MujocoMetaEnv):
    """A humanoid is rewarded for walking forward, along x, in half of the tasks and backward in the other half.

    The direction is not observed. The task is one of those of ProMP (arXiv:1810.06784).

    Observation:
        float64 `[376]`: `qpos[2:]`, `qvel`, `cinert`, `cvel`, `qfrc_actuator`, then `cfrc_ext`.

        =======  =====================================================================  ============
        index    observation                                                            unit
        =======  =====================================================================  ============
        0        height of the torso                                                    m
        1-4      orientation of the torso, a quaternion                                 1
        5-21     angles of the joints: abdomen z, y, x; right hip x, z, y, right knee;  rad
                 the same on the left; right shoulder 1, 2, right elbow; the same on
                 the left
        22-24    velocity of the torso along x, y and z                                 m/s
        25-27    angular velocity of the torso around its own axes                      rad/s
        28-44    angular velocities of the joints                                       rad/s
        45-184   inertia of each of 14 bodies (the world, torso, lower waist, pelvis;   kg m^2, kg m
                 right thigh, shin, foot; the same on the left; right upper and lower   and kg
                 arm; the same on the left): 6 moments, 3 offsets from the center of
                 mass times mass, mass
        185-268  angular velocity, then velocity, of each body                          rad/s, m/s
        269-291  force of the actuators on the torso (6 zeros) and the joints           N m
        292-375  torque, then force, of contacts on each body; zero unless              N m and N
                 `contact_forces`
        =======  =====================================================================  ============

        Inertias, velocities and contacts of bodies are in world axes, around the center of mass of the robot.

    Action:
        float64 `[17]`, clipped to [-0.4, 0.4], held for 5 simulation steps of 0.003 s.

        =====  =================================================================================
        index  action
        =====  =================================================================================
        0-2    torque on abdomen y, z and x, in units of 100 N m
        3-6    torque on right hip x, z, y and right knee, in units of 100, 100, 300 and 200 N m
        7-10   the same on the left
        11-13  torque on right shoulder 1, 2 and right elbow, in units of 25 N m
        14-16  the same on the left
        =====  =================================================================================

    Reward:
        `1.25 * direction * v - 0.1 * |action|^2 - min(5e-7 * |c|^2, 10) + 5` per step, with the mean velocity
        `v = (x' - x) / 0.015 s`, where `x` and `x'` are the positions of the center of mass before and after the step
        in m, the action is clipped, and `c` are the contact torques and forces after the step. `env_infos` contain
        `forward_vel` (`direction * v`, m/s) and the terms: `reward_linvel`, `reward_quadctrl`, `reward_impact` and
        `reward_alive`.

    Tasks:
        -1.0 (backward) or 1.0 (forward), with equal probability.

    Start:
        Positions of the model (upright, 1.4 m) and zero velocities, plus uniform noise in [-0.01, 0.01] (m, rad, m/s,
        rad/s); the quaternion is normalized.

    End:
        When the height of the torso is outside of [1, 2] m.

    Logs:
        `AvgForwardVel` and `AvgFinalForwardVel`: `forward_vel`, m/s, averaged over all steps and over the last steps of
        the paths. `AvgCtrlCost`: mean of `-reward_quadctrl`.

    Args:
        goal_direction: the first task, -1.0 or 1.0.
        engine: physics engine, `"mujoco"` (the official package) or `"mujoco-py"` (MuJoCo 2.1.0). None: the value of
            the environment variable `META_POLICY_SEARCH_ENGINE`, or else `"mujoco"`.
        inertials: masses and inertias of the robot: `"mujoco210"`, those of MuJoCo 2.1.0, or `"modern"`, those that
            the installed MuJoCo computes.
        num_threads: native threads that step the copies of `make_batched`. None: all cores that the process may use.
            Results do not depend on it. The engine `"mujoco-py"` always uses one thread.
        render_mode: `"rgb_array"` for images by `render`, or None.
        contact_forces: whether contact forces are computed. If False, they count as zero, as in mujoco-py 2.1, which
            does not compute them. If True, each step takes longer and equals that of mujoco-py up to 1.5.

    References:
        The public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784), in which the class has the same name.
    """

    def __init__(self, goal_direction: float = 1.0, *, engine: Optional[str] = None, inertials: str = "mujoco210",
                 num_threads: Optional[int] = None, render_mode: Optional[str] = None,
                 contact_forces: bool = False) -> None:
        super().__init__(Humanoid(contact_forces=contact_forces), Directions(goal_direction), engine=engine,
                         inertials=inertials, num_threads=num_threads, render_mode=render_mode)
