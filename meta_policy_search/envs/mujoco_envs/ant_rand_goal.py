"""Ant that runs to a task-specific goal position."""
import dataclasses
from typing import Optional, Sequence

import numpy as np

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.robots import ANT
from meta_policy_search.envs.mujoco_envs.tasks import Goals
from meta_policy_search.types import NumThreads, RenderMode


class AntRandGoalEnv(MujocoMetaEnv):
    """An ant runs to a task-specific goal position and stays there.

    The goal is not observed. ProMP (arXiv:1810.06784) and PEARL (arXiv:1903.08254) use these tasks.

    Observation:
        float64 `[113]`: `qpos`, `qvel`, then the contact torques and forces `cfrc_ext`, clipped to [-1, 1].

        =======  ==========================================================  =========
        index    observation                                                 unit
        =======  ==========================================================  =========
        0-1      position of the torso along x and y                         m
        2        height of the torso                                         m
        3-6      orientation of the torso (quaternion)                       1
        7-14     angles of hip and ankle for each leg: front left, front     rad
                 right, back left, back right
        15-17    velocity of the torso along x, y and z                      m/s
        18-20    angular velocity of the torso around its own axes           rad/s
        21-28    angular velocities of hip and ankle for each leg            rad/s
        29-112   contact torque, then contact force, on each of 14 bodies    N m and N
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
        `-(|x' - goal_x| + |y' - goal_y|) - 0.1 * |action|^2 - 0.0005 * |c|^2` per step. `(x', y')` is the position of
        the torso after the step, m; `action` is the clipped action; `c` are the clipped contact torques and forces
        after the step. `env_infos` contain the terms `reward_forward`, `reward_ctrl` and `reward_contact`, and
        `reward_survive`, which is zero.

    Tasks:
        Goal position `(x, y)`, float64 `[2]`, m, uniform in the disc of radius 3 m around the origin. `set_task`
        accepts any finite position.

    Start:
        Positions of the model file (torso flat, at a height of 0.75 m) plus uniform noise in [-0.1, 0.1] (m, rad); the
        quaternion is normalized. Velocities are normal with mean 0 and standard deviation 0.1 (m/s, rad/s).

    End:
        Never, even if the ant falls over. The sampler ends a path after `max_path_length` steps; published experiments
        use 200.

    Logs:
        `AverageForwardReturn`, `MaxForwardReturn`, `MinForwardReturn` and `StdForwardReturn`: mean, maximum, minimum
        and standard deviation over paths of the mean `reward_forward` per step. `AverageCtrlCost`: mean of
        `-reward_ctrl`.

    Args:
        goal: task before the first call of `set_task`, a position `(x, y)`, m; default (2, 0).
        engine, inertials, num_threads, render_mode: see `MujocoMetaEnv`.
        contact_forces: whether to compute contact forces. False (default): contact forces are zero, as in mujoco-py
            2.1, which does not compute them. True: steps are slower and match mujoco-py up to version 1.5.

    References:
        `AntRandGoalEnv` in the public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784).
    """

    def __init__(self, goal: Sequence[float] = (2.0, 0.0), *, engine: Optional[str] = None,
                 inertials: str = "mujoco210", num_threads: NumThreads = None, render_mode: RenderMode = None,
                 contact_forces: bool = False) -> None:
        robot = dataclasses.replace(ANT, first_observed=0, control_cost=0.1, survival_reward=0.0,
                                    contact_forces=contact_forces, heights=(-np.inf, np.inf))
        super().__init__(robot, Goals(goal, radius=3.0), engine=engine, inertials=inertials, num_threads=num_threads,
                         render_mode=render_mode)
