"""Swimmer that swims at a task-specific velocity."""
from typing import Optional

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.robots import SWIMMER
from meta_policy_search.envs.mujoco_envs.tasks import Velocities
from meta_policy_search.types import NumThreads, RenderMode


class SwimmerRandVelEnv(MujocoMetaEnv):
    """A swimmer, a chain of three links in a viscous fluid, swims along x at a task-specific velocity.

    The target velocity is not observed. The robot was introduced by Coulom 2002 ("Reinforcement learning using neural
    networks, with applications to motor control"). Its links move in a plane and do not collide.

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
        float64 `[2]`, clipped to [-1, 1], held for 4 simulation steps of 0.01 s.

        =====  ============================================================
        index  action
        =====  ============================================================
        0-1    torque on the second and third link, in units of 150 N m
        =====  ============================================================

    Reward:
        `-|v - goal| - 0.0001 * |action|^2` per step, with the mean velocity `v = (x' - x) / 0.04 s`. `x` and `x'` are
        the positions of the first link before and after the step, m; `action` is the clipped action. `env_infos`
        contain `forward_vel` (`v`, m/s) and the terms `reward_fwd` and `reward_ctrl`. The public code of ProMP omits
        the minus sign of the first term, which rewards deviations from the target velocity.

    Tasks:
        Target velocity along x, m/s, uniform in [`min_velocity`, `max_velocity`). `set_task` accepts any finite number.

    Start:
        Positions of the model file (stretched along x) and zero velocities, plus uniform noise in [-0.1, 0.1] (m, rad,
        m/s, rad/s).

    End:
        Never. The sampler ends a path after `max_path_length` steps; published experiments use 200.

    Logs:
        `AvgForwardVel`: mean of `forward_vel` over all steps, m/s. `AvgFinalForwardVel`: mean of `forward_vel` over the
        last steps of the paths, m/s. `AvgCtrlCost`: mean of `-reward_ctrl`.

    Args:
        min_velocity: lower bound of the target velocities, m/s; default 0.1.
        max_velocity: upper bound of the target velocities, m/s, above `min_velocity`; default 0.2. The task before the
            first call of `set_task` is the mean of both bounds.
        engine, inertials, num_threads, render_mode: see `MujocoMetaEnv`.

    References:
        `SwimmerRandVelEnv` in the public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784).
    """

    def __init__(self, min_velocity: float = 0.1, max_velocity: float = 0.2, *, engine: Optional[str] = None,
                 inertials: str = "mujoco210", num_threads: NumThreads = None,
                 render_mode: RenderMode = None) -> None:
        super().__init__(SWIMMER, Velocities(min_velocity, max_velocity), engine=engine, inertials=inertials,
                         num_threads=num_threads, render_mode=render_mode)
