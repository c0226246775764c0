"""Walker, walking forward or backward."""
from typing import Optional

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.robots import WALKER2D
from meta_policy_search.envs.mujoco_envs.tasks import Directions


class Walker2DRandDirecEnv(MujocoMetaEnv):
    """A walker is rewarded for walking forward in half of the tasks and backward in the other half.

    The direction is not observed. The task is one of those of ProMP (arXiv:1810.06784).

    Observation:
        float64 `[17]`: `qpos[1:]`, then `qvel` clipped to [-10, 10].

        =====  ==================================================  =====
        index  observation                                         unit
        =====  ==================================================  =====
        0      height of the torso                                 m
        1      pitch of the torso                                  rad
        2-4    angle of the right thigh, leg and foot              rad
        5-7    angle of the left thigh, leg and foot               rad
        8      velocity of the torso along x                       m/s
        9      velocity of the torso along z                       m/s
        10     angular velocity of the torso                       rad/s
        11-13  angular velocity of the right thigh, leg and foot   rad/s
        14-16  angular velocity of the left thigh, leg and foot    rad/s
        =====  ==================================================  =====

    Action:
        float64 `[6]`, clipped to [-1, 1], held for 8 simulation steps of 0.002 s.

        =====  =============================================================
        index  action
        =====  =============================================================
        0-2    torque on the right thigh, leg and foot, in units of 100 N m
        3-5    torque on the left thigh, leg and foot, in units of 100 N m
        =====  =============================================================

    Reward:
        `direction * (x' - x) / 0.016 s - 0.001 * |action|^2 + 1` per step, where `x` and `x'` are the positions of the
        torso before and after the step in m, and the action is clipped. `env_infos` contain the first two terms:
        `reward_run`, the mean velocity in the direction of the task, m/s, and `reward_ctrl`.

    Tasks:
        -1.0 (backward) or 1.0 (forward), with equal probability.

    Start:
        Positions of the model (upright, 1.25 m) and zero velocities, plus uniform noise in [-0.005, 0.005] (m, rad,
        m/s, rad/s).

    End:
        When the height of the torso is outside of (0.8, 2) m, or its pitch outside of (-1, 1) rad.

    Logs:
        `AvgForwardVel` and `AvgFinalForwardVel`: `reward_run`, m/s, averaged over all steps and over the last steps of
        the paths. `AvgCtrlCost`: mean of `-reward_ctrl`.

    Args:
        goal_direction: the first task, -1.0 or 1.0.
        engine: physics engine, `"mujoco"` (the official package) or `"mujoco-py"` (MuJoCo 2.1.0). None: the value of
            the environment variable `META_POLICY_SEARCH_ENGINE`, or else `"mujoco"`.
        inertials: masses and inertias of the robot: `"mujoco210"`, those of MuJoCo 2.1.0, or `"modern"`, those that
            the installed MuJoCo computes.
        num_threads: native threads that step the copies of `make_batched`. None: all cores that the process may use.
            Results do not depend on it. The engine `"mujoco-py"` always uses one thread.
        render_mode: `"rgb_array"` for images by `render`, or None.

    References:
        The public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784), in which the class has the same name.
    """

    def __init__(self, goal_direction: float = 1.0, *, engine: Optional[str] = None, inertials: str = "mujoco210",
                 num_threads: Optional[int] = None, render_mode: Optional[str] = None) -> None:
        super().__init__(WALKER2D, Directions(goal_direction), engine=engine, inertials=inertials,
                         num_threads=num_threads, render_mode=render_mode)
