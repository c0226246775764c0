"""Ant, running to a place and staying there."""
from typing import Optional, Sequence

import numpy as np

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.robots import Ant
from meta_policy_search.envs.mujoco_envs.tasks import Goals


class AntRandGoalEnv(MujocoMetaEnv):
    """An ant is rewarded for running to a task-specific place and staying there.

    The place is not observed. The task is one of those of ProMP (arXiv:1810.06784) and PEARL (arXiv:1903.08254).

    Observation:
        float64 `[113]`: `qpos`, `qvel`, then the contact torques and forces `cfrc_ext`, clipped to [-1, 1].

        =======  ==========================================================  =========
        index    observation                                                 unit
        =======  ==========================================================  =========
        0-1      position of the torso along x and y                         m
        2        height of the torso                                         m
        3-6      orientation of the torso, a quaternion                      1
        7-14     angles of hip and ankle for each leg: front left, front     rad
                 right, back left, back right
        15-17    velocity of the torso along x, y and z                      m/s
        18-20    angular velocity of the torso around its own axes           rad/s
        21-28    angular velocities of hip and ankle for each leg            rad/s
        29-112   torque, then force, of contacts on each of 14 bodies (the   N m and N
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
        `-(|x' - goal_x| + |y' - goal_y|) - 0.1 * |action|^2 - 0.0005 * |c|^2` per step, where `x'` and `y'` are the
        position of the torso after the step in m, the action is clipped, and `c` are the clipped contact torques and
        forces after the step. `env_infos` contain the terms, `reward_forward`, `reward_ctrl` and `reward_contact`, and
        `reward_survive`, which is zero.

    Tasks:
        Places `(x, y)`, float64 `[2]`, m, uniform in the disc of radius 3 m around the origin. `set_task` accepts any
        place.

    Start:
        Positions of the model (flat, 0.75 m) plus uniform noise in [-0.1, 0.1] (m, rad); the quaternion is normalized.
        Velocities are normal with standard deviation 0.1 (m/s, rad/s).

    End:
        Never, not even when the ant has fallen over. The sampler ends a path; published experiments use 200 steps.

    Logs:
        `AverageForwardReturn`, `MaxForwardReturn`, `MinForwardReturn` and `StdForwardReturn`: statistics over paths of
        the mean `reward_forward` of their steps. `AverageCtrlCost`: mean of `-reward_ctrl`.

    Args:
        goal: the first task, a place `(x, y)`, m.
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

    def __init__(self, goal: Sequence[float] = (2.0, 0.0), *, engine: Optional[str] = None,
                 inertials: str = "mujoco210", num_threads: Optional[int] = None, render_mode: Optional[str] = None,
                 contact_forces: bool = False) -> None:
        robot = Ant(first_observed=0, control_cost=0.1, survival_reward=0.0, contact_forces=contact_forces,
                    heights=(-np.inf, np.inf))
        super().__init__(robot, Goals(goal, radius=3.0), engine=engine, inertials=inertials, num_threads=num_threads,
                         render_mode=render_mode)
