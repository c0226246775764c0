"""Walker that walks forward or backward."""
from typing import Optional

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.robots import WALKER2D
from meta_policy_search.envs.mujoco_envs.tasks import Directions
from meta_policy_search.types import NumThreads, RenderMode


class Walker2DRandDirecEnv(MujocoMetaEnv):
    """A walker walks forward or backward, as the task requires.

    The direction is not observed. ProMP (arXiv:1810.06784) uses these tasks.

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
        `direction * (x' - x) / 0.016 s - 0.001 * |action|^2 + 1` per step. `x` and `x'` are the positions of the torso
        before and after the step, m; `action` is the clipped action. `env_infos` contain the first two terms,
        `reward_run` (mean velocity in the direction of the task, m/s) and `reward_ctrl`.

    Tasks:
        Direction along x, -1.0 (backward) or 1.0 (forward), with equal probability.

    Start:
        Positions of the model file (upright, torso at a height of 1.25 m) and zero velocities, plus uniform noise in
        [-0.005, 0.005] (m, rad, m/s, rad/s).

    End:
        The path terminates when the height of the torso is outside (0.8, 2) m or its pitch is outside (-1, 1) rad.

    Logs:
        `AvgForwardVel`: mean of `reward_run` over all steps, m/s. `AvgFinalForwardVel`: mean of `reward_run` over the
        last steps of the paths, m/s. `AvgCtrlCost`: mean of `-reward_ctrl`.

    Args:
        goal_direction: task before the first call of `set_task`, -1.0 or 1.0 (default).
        engine, inertials, num_threads, render_mode: see `MujocoMetaEnv`.

    References:
        `Walker2DRandDirecEnv` in the public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784).
    """

    def __init__(self, goal_direction: float = 1.0, *, engine: Optional[str] = None, inertials: str = "mujoco210",
                 num_threads: NumThreads = None, render_mode: RenderMode = None) -> None:
        super().__init__(WALKER2D, Directions(goal_direction), engine=engine, inertials=inertials,
                         num_threads=num_threads, render_mode=render_mode)
