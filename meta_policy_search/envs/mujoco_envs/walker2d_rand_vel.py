"""Walkers that walk at a task-specific velocity, one of them with a task-specific mass."""
import dataclasses
from typing import Optional

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.robots import WALKER2D, WALKER2D_THAT_FALLS
from meta_policy_search.envs.mujoco_envs.tasks import ScaledParameters, Velocities
from meta_policy_search.types import NumThreads, RenderMode


class Walker2DRandVelEnv(MujocoMetaEnv):
    """A walker walks at a task-specific velocity.

    The target velocity is not observed.

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
        `-|v - goal| - 0.001 * |action|^2 + 15` per step, with the mean velocity `v = (x' - x) / 0.016 s`. `x` and `x'`
        are the positions of the torso before and after the step, m; `action` is the clipped action. `env_infos` contain
        `forward_vel` (`v`, m/s) and the first two terms, `reward_run` and `reward_ctrl`. With the default
        `max_velocity`, the constant 15 is large enough that falling early never increases the return.

    Tasks:
        Target velocity along x, m/s, uniform in [0, `max_velocity`). `set_task` accepts any finite number.

    Start:
        Positions of the model file (upright, torso at a height of 1.25 m) and zero velocities, plus uniform noise in
        [-0.005, 0.005] (m, rad, m/s, rad/s).

    End:
        The path terminates when the height of the torso is outside (0.8, 2) m or its pitch is outside (-1, 1) rad.

    Logs:
        `AvgForwardVel`: mean of `forward_vel` over all steps, m/s. `AvgFinalForwardVel`: mean of `forward_vel` over the
        last steps of the paths, m/s. `AvgCtrlCost`: mean of `-reward_ctrl`.

    Args:
        max_velocity: upper bound of the target velocities, m/s, above 0; default 10.0. The task before the first call
            of `set_task` is `max_velocity / 2`.
        engine, inertials, num_threads, render_mode: see `MujocoMetaEnv`.

    References:
        `Walker2DRandVelEnv` in the public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784).
    """

    def __init__(self, max_velocity: float = 10.0, *, engine: Optional[str] = None, inertials: str = "mujoco210",
                 num_threads: NumThreads = None, render_mode: RenderMode = None) -> None:
        super().__init__(dataclasses.replace(WALKER2D, survival_reward=15.0), Velocities(0.0, max_velocity),
                         engine=engine, inertials=inertials, num_threads=num_threads, render_mode=render_mode)


class Walker2DRandMassVelEnv(MujocoMetaEnv):
    """A walker with a task-specific mass walks at a task-specific velocity.

    Observation:
        float64 `[20]`: the 17 numbers of `Walker2DRandDirecEnv`, then the position of the torso along x, y (zero)
        and z, m.

    Action:
        As in `Walker2DRandDirecEnv`, but held for 4 simulation steps of 0.002 s.

    Reward:
        `-|v - goal| - 0.05 * |action|^2 + 1` per step, with the mean velocity `v = (x' - x) / 0.008 s`. `x` and `x'`
        are the positions of the torso before and after the step, m; `action` is the clipped action. `env_infos` contain
        `forward_vel` (`v`, m/s) and the terms `reward_run` and `reward_ctrl`.

    Tasks:
        float64 `[2]`: factor of all masses, uniform in [0.75, 1.25), and target velocity along x, m/s, uniform in
        [0, 2). Neither is observed. `set_task` accepts any factor above 0 and any finite velocity.

        Constants that MuJoCo derives from masses are recomputed for each task; the public code does not recompute them.
        Moments of inertia do not change.

    Start:
        Positions of the model file (upright, torso at a height of 1.25 m) and zero velocities, plus uniform noise in
        [-0.005, 0.005] (m, rad, m/s, rad/s).

    End:
        Never, even if the walker falls. The sampler ends a path after `max_path_length` steps; the reference uses 200.

    Logs:
        `AvgForwardVel`: mean of `forward_vel` over all steps, m/s. `AvgFinalForwardVel`: mean of `forward_vel` over the
        last steps of the paths, m/s. `AvgCtrlCost`: mean of `-reward_ctrl`.

    Args:
        engine, inertials, num_threads, render_mode: see `MujocoMetaEnv`.

    References:
        Wang, Xiao, Mao, Qu, Shen, Lv, Ji: Beyond Any-Shot Adaptation: Predicting Optimization Outcome for Robustness
        Gains without Extra Pay, 2025 (arXiv:2501.11039), and `Walker2dMassVelEnv` in its public code
        (github.com/thu-rllab/MPTS).
    """

    def __init__(self, *, engine: Optional[str] = None, inertials: str = "mujoco210", num_threads: NumThreads = None,
                 render_mode: RenderMode = None) -> None:
        super().__init__(WALKER2D_THAT_FALLS, ScaledParameters({"mass": (0.75, 1.25), "velocity": (0.0, 2.0)}),
                         engine=engine, inertials=inertials, num_threads=num_threads, render_mode=render_mode)
