"""Half cheetah that runs at a task-specific velocity."""
from typing import Optional

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.robots import HALF_CHEETAH
from meta_policy_search.envs.mujoco_envs.tasks import Velocities
from meta_policy_search.types import NumThreads, RenderMode


class HalfCheetahRandVelEnv(MujocoMetaEnv):
    """A half cheetah runs at a task-specific velocity.

    The target velocity is not observed. MAML (arXiv:1703.03400, section 5.3; up to 2 m/s) and ProMP (arXiv:1810.06784;
    up to 3 m/s) use these tasks.

    Observation:
        float64 `[17]`: `qpos[1:]`, then `qvel`. The position along x, `qpos[0]`, is not observed.

        =====  ==================================================  =====
        index  observation                                         unit
        =====  ==================================================  =====
        0      height of the torso minus that in the model file    m
        1      pitch of the torso                                  rad
        2-4    angle of the back thigh, shin and foot              rad
        5-7    angle of the front thigh, shin and foot             rad
        8      velocity of the torso along x                       m/s
        9      velocity of the torso along z                       m/s
        10     angular velocity of the torso                       rad/s
        11-13  angular velocity of the back thigh, shin and foot   rad/s
        14-16  angular velocity of the front thigh, shin and foot  rad/s
        =====  ==================================================  =====

    Action:
        float64 `[6]`, clipped to [-1, 1], held for 5 simulation steps of 0.01 s.

        =====  ==========================================================================
        index  action
        =====  ==========================================================================
        0-2    torque on the back thigh, shin and foot, in units of 120, 90 and 60 N m
        3-5    torque on the front thigh, shin and foot, in units of 120, 60 and 30 N m
        =====  ==========================================================================

    Reward:
        `-|v - goal| - 0.05 * |action|^2` per step, with the mean velocity `v = (x' - x) / 0.05 s`. `x` and `x'` are the
        positions of the torso before and after the step, m; `action` is the clipped action. `env_infos` contain
        `forward_vel` (`v`, m/s) and the terms `reward_run` and `reward_ctrl`.

    Tasks:
        Target velocity along x, m/s, uniform in [0, `max_velocity`). `set_task` accepts any finite number.

    Start:
        Positions of the model file plus uniform noise in [-0.1, 0.1] (m, rad). Velocities are normal with mean 0 and
        standard deviation 0.1 (m/s, rad/s).

    End:
        Never. The sampler ends a path after `max_path_length` steps; published experiments use 100 or 200.

    Logs:
        `AvgForwardVel`: mean of `forward_vel` over all steps, m/s. `AvgFinalForwardVel`: mean of `forward_vel` over the
        last steps of the paths, m/s. `AvgCtrlCost`: mean of `-reward_ctrl`.

    Args:
        max_velocity: upper bound of the target velocities, m/s, above 0; default 3.0. The task before the first call of
            `set_task` is `max_velocity / 2`.
        engine, inertials, num_threads, render_mode: see `MujocoMetaEnv`.
    """

    def __init__(self, max_velocity: float = 3.0, *, engine: Optional[str] = None, inertials: str = "mujoco210",
                 num_threads: NumThreads = None, render_mode: RenderMode = None) -> None:
        super().__init__(HALF_CHEETAH, Velocities(0.0, max_velocity), engine=engine, inertials=inertials,
                         num_threads=num_threads, render_mode=render_mode)
