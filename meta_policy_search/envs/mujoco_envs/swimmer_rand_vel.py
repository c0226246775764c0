"""Swimmer, swimming at a given velocity."""
from typing import Optional

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.robots import SWIMMER
from meta_policy_search.envs.mujoco_envs.tasks import Velocities


class SwimmerRandVelEnv(MujocoMetaEnv):
    """A chain of three links in a viscous fluid is rewarded for swimming along x at a task-specific velocity.

    The robot is that of Coulom 2002 ("Reinforcement learning using neural networks, with applications to motor
    control"). Its links lie in a plane and do not collide. The target velocity is not observed. The environment is one
    of those of ProMP's public code (arXiv:1810.06784).

    Observation:
        float64 `[8]`: `qpos[2:]`, then `qvel`.

        =====  =====================================================  =====
        index  observation                                            unit
        =====  =====================================================  =====
        0      heading of the first link                              rad
        1-2    angle of the second and third link relative to the     rad
               previous link
        3-4    velocity of the first link along x and y               m/s
        5      angular velocity of the first link                     rad/s
        6-7    angular velocity of the second and third link          rad/s
               relative to the previous link
        =====  =====================================================  =====

    Action:
        float64 `[2]`, clipped to [-1, 1], held for 4 simulation steps of 0.01 s: torques on the second and the third
        link, in units of 150 N m.

    Reward:
        `-|v - goal| - 0.0001 * |action|^2` per step, with the mean velocity `v = (x' - x) / 0.04 s`, where `x` and `x'`
        are the positions of the first link before and after the step in m, and the action is clipped. `env_infos`
        contain `forward_vel` (`v`, m/s) and the two terms, `reward_fwd` and `reward_ctrl`. (In the public code of ProMP
        the first term lacks its minus sign, so it rewards missing the velocity.)

    Tasks:
        Target velocity, m/s, uniform in [`min_velocity`, `max_velocity`). `set_task` accepts any finite number.

    Start:
        Positions of the model (stretched along x) and zero velocities, plus uniform noise in [-0.1, 0.1] (m, rad, m/s,
        rad/s).

    End:
        Never. The sampler ends a path; published experiments use 200 steps.

    Logs:
        `AvgForwardVel` and `AvgFinalForwardVel`: `forward_vel`, m/s, averaged over all steps and over the last steps of
        the paths. `AvgCtrlCost`: mean of `-reward_ctrl`.

    Args:
        min_velocity: lower end of the task distribution, m/s.
        max_velocity: upper end of the task distribution, m/s, above `min_velocity`. The first task is the
            mean of both.
        engine: physics engine, `"mujoco"` (the official package) or `"mujoco-py"` (MuJoCo 2.1.0). None: the value of
            the environment variable `META_POLICY_SEARCH_ENGINE`, or else `"mujoco"`.
        inertials: masses and inertias of the robot: `"mujoco210"`, those of MuJoCo 2.1.0, or `"modern"`, those that
            the installed MuJoCo computes.
        num_threads: native threads that step the copies of `make_batched`. None: all cores that the process may use.
            Results do not depend on it. The engine `"mujoco-py"` always uses one thread.
        render_mode: `"rgb_array"` for images by `render`, or None.

    References:
        The public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784), in which it is `SwimmerRandVelEnv`.
    """

    def __init__(self, min_velocity: float = 0.1, max_velocity: float = 0.2, *, engine: Optional[str] = None,
                 inertials: str = "mujoco210", num_threads: Optional[int] = None,
                 render_mode: Optional[str] = None) -> None:
        super().__init__(SWIMMER, Velocities(min_velocity, max_velocity), engine=engine, inertials=inertials,
                         num_threads=num_threads, render_mode=render_mode)
