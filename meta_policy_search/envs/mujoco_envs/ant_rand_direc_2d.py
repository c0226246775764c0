"""Ant, running in a direction of the plane."""
from typing import Optional, Sequence

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.robots import Ant
from meta_policy_search.envs.mujoco_envs.tasks import PlanarDirections


class AntRandDirec2DEnv(MujocoMetaEnv):
    """An ant is rewarded for running in a task-specific direction.

    The direction is not observed. The task is one of those of ProMP (arXiv:1810.06784).

    Observation:
        float64 `[111]`: `qpos[2:]`, `qvel`, then the contact torques and forces `cfrc_ext`, clipped to [-1, 1].

        =======  ==========================================================  =========
        index    observation                                                 unit
        =======  ==========================================================  =========
        0        height of the torso                                         m
        1-4      orientation of the torso, a quaternion                      1
        5-12     angles of hip and ankle for each leg: front left, front     rad
                 right, back left, back right
        13-15    velocity of the torso along x, y and z                      m/s
        16-18    angular velocity of the torso around its own axes           rad/s
        19-26    angular velocities of hip and ankle for each leg            rad/s
        27-110   torque, then force, of contacts on each of 14 bodies (the   N m and N
                 world, torso and, for each leg, three parts); zero unless
                 `contact_forces`
        =======  ==========================================================  =========

    Action:
        float64 `[8]`, clipped to [-1, 1], held for 5 simulation steps of 0.01 s.

        =====  ==================================================================
        index  action
        =====  ==================================================================
        0-1    torque on hip and ankle of the back right leg, in units of 150 N m
        2-3    the same for the front left leg
        4-5    the same for the front right leg
        6-7    the same for the back left leg
        =====  ==================================================================

    Reward:
        `direction . (p' - p) / 0.05 s - 0.5 * |action|^2 - 0.0005 * |c|^2 + 1` per step, where `p` and `p'` are the
        positions `(x, y)` of the torso before and after the step in m, `.` is the scalar product, the action is
        clipped, and `c` are the clipped contact torques and forces after the step. `env_infos` contain the terms:
        `reward_forward`, `reward_ctrl`, `reward_contact` and `reward_survive`.

    Tasks:
        Unit vectors `(x, y)`, float64 `[2]`, uniform over all angles.

    Start:
        Positions of the model (flat, 0.75 m) plus uniform noise in [-0.1, 0.1] (m, rad); the quaternion is normalized.
        Velocities are normal with standard deviation 0.1 (m/s, rad/s).

    End:
        When the height of the torso is outside of [0, 1] m.

    Logs:
        `AverageForwardReturn`, `MaxForwardReturn`, `MinForwardReturn` and `StdForwardReturn`: statistics over paths of
        the mean `reward_forward` of their steps. `AverageCtrlCost`: mean of `-reward_ctrl`.

    Args:
        goal_direction: the first task, a vector `(x, y)` of length one.
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

    def __init__(self, goal_direction: Sequence[float] = (1.0, 0.0), *, engine: Optional[str] = None,
                 inertials: str = "mujoco210", num_threads: Optional[int] = None, render_mode: Optional[str] = None,
                 contact_forces: bool = False) -> None:
        super().__init__(Ant(contact_forces=contact_forces), PlanarDirections(goal_direction), engine=engine,
                         inertials=inertials, num_threads=num_threads, render_mode=render_mode)
