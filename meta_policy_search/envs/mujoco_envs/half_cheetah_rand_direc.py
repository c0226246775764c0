"""Half cheetah that runs forward or backward."""
from typing import Optional

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.robots import HALF_CHEETAH
from meta_policy_search.envs.mujoco_envs.tasks import Directions
from meta_policy_search.types import NumThreads, RenderMode


class HalfCheetahRandDirecEnv(MujocoMetaEnv):
    """A half cheetah runs forward or backward, as the task requires.

    The direction is not observed, so the best policy without adaptation stands still. MAML (arXiv:1703.03400, section
    5.3) and ProMP (arXiv:1810.06784) use these tasks.

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
        `direction * (x' - x) / 0.05 s - 0.05 * |action|^2` per step. `x` and `x'` are the positions of the torso before
        and after the step, m; `action` is the clipped action. `env_infos` contain the terms `reward_run` (mean velocity
        in the direction of the task, m/s) and `reward_ctrl`. The `normalize` wrapper, which published experiments use,
        passes only actions within [-1, 1], so clipping has no effect in these experiments.

    Tasks:
        Direction along x, -1.0 (backward) or 1.0 (forward), with equal probability.

    Start:
        Positions of the model file plus uniform noise in [-0.1, 0.1] (m, rad). Velocities are normal with mean 0 and
        standard deviation 0.1 (m/s, rad/s).

    End:
        Never. The sampler ends a path after `max_path_length` steps; published experiments use 100 or 200.

    Logs:
        `AvgForwardVel`: mean of `reward_run` over all steps, m/s. `AvgFinalForwardVel`: mean of `reward_run` over the
        last steps of the paths, m/s. `AvgCtrlCost`: mean of `-reward_ctrl`.

    Args:
        goal_direction: task before the first call of `set_task`, -1.0 or 1.0; default None, which means 1.0.
        engine, inertials, num_threads, render_mode: see `MujocoMetaEnv`.
    """

    def __init__(self, goal_direction: Optional[float] = None, *, engine: Optional[str] = None,
                 inertials: str = "mujoco210", num_threads: NumThreads = None,
                 render_mode: RenderMode = None) -> None:
        super().__init__(HALF_CHEETAH, Directions(1.0 if goal_direction is None else goal_direction), engine=engine,
                         inertials=inertials, num_threads=num_threads, render_mode=render_mode)
