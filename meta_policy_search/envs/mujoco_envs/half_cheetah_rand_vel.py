"""Half cheetah, running at a given velocity."""
from typing import Optional

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.robots import HALF_CHEETAH
from meta_policy_search.envs.mujoco_envs.tasks import Velocities


class HalfCheetahRandVelEnv(MujocoMetaEnv):
    """A half cheetah is rewarded for running at a task-specific velocity.

    The target velocity is not observed. The task is that of MAML (arXiv:1703.03400, section 5.3, there up to 2 m/s) and
    ProMP (arXiv:1810.06784, up to 3 m/s).

    Observation:
        float64 `[17]`: `qpos[1:]`, then `qvel`. The distance from the start, `qpos[0]`, is not observed.

        =====  ==================================================  =====
        index  observation                                         unit
        =====  ==================================================  =====
        0      height of the torso relative to the model           m
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
        `-|v - goal| - 0.05 * |action|^2` per step, with the mean velocity `v = (x' - x) / 0.05 s`, where `x` and `x'`
        are the positions of the torso before and after the step in m, and the action is clipped. `env_infos` contain
        `forward_vel` (`v`, m/s) and the two terms, `reward_run` and `reward_ctrl`.

    Tasks:
        Target velocity, m/s, uniform in [0, `max_velocity`). `set_task` accepts any finite number.

    Start:
        Positions of the model plus uniform noise in [-0.1, 0.1] (m, rad). Velocities are normal with standard deviation
        0.1 (m/s, rad/s).

    End:
        Never. The sampler ends a path; published experiments use 100 or 200 steps.

    Logs:
        `AvgForwardVel` and `AvgFinalForwardVel`: `forward_vel`, m/s, averaged over all steps and over the last steps of
        the paths. `AvgCtrlCost`: mean of `-reward_ctrl`.

    Args:
        max_velocity: upper end of the task distribution, m/s, above zero. The first task is half of it.
        engine: physics engine, `"mujoco"` (the official package) or `"mujoco-py"` (MuJoCo 2.1.0). None: the value of
            the environment variable `META_POLICY_SEARCH_ENGINE`, or else `"mujoco"`.
        inertials: masses and inertias of the robot: `"mujoco210"`, those of MuJoCo 2.1.0, or `"modern"`, those that
            the installed MuJoCo computes.
        num_threads: native threads that step the copies of `make_batched`. None: all cores that the process may use.
            Results do not depend on it. The engine `"mujoco-py"` always uses one thread.
        render_mode: `"rgb_array"` for images by `render`, or None.
    """

    def __init__(self, max_velocity: float = 3.0, *, engine: Optional[str] = None, inertials: str = "mujoco210",
                 num_threads: Optional[int] = None, render_mode: Optional[str] = None) -> None:
        super().__init__(HALF_CHEETAH, Velocities(0.0, max_velocity), engine=engine, inertials=inertials,
                         num_threads=num_threads, render_mode=render_mode)
