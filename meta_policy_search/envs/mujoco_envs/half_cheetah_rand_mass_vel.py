"""Half cheetah with a task-specific mass that runs at a task-specific velocity."""
from typing import Optional

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.robots import HALF_CHEETAH_TRACKED
from meta_policy_search.envs.mujoco_envs.tasks import ScaledParameters
from meta_policy_search.types import NumThreads, RenderMode


class HalfCheetahRandMassVelEnv(MujocoMetaEnv):
    """A half cheetah with a task-specific mass runs at a task-specific velocity.

    Observation:
        float64 `[20]`: the 17 numbers of `HalfCheetahRandDirecEnv`, then the position of the torso along x, y (zero)
        and z, m.

    Action:
        As in `HalfCheetahRandDirecEnv`.

    Reward:
        `-|v - goal| - 0.05 * |action|^2` per step, with the mean velocity `v = (x' - x) / 0.05 s`. `x` and `x'` are the
        positions of the torso before and after the step, m; `action` is the clipped action. `env_infos` contain
        `forward_vel` (`v`, m/s) and the terms `reward_run` and `reward_ctrl`.

    Tasks:
        float64 `[2]`: factor of all masses, uniform in [0.75, 1.25), and target velocity along x, m/s, uniform in
        [0, 2). Neither is observed. `set_task` accepts any factor above 0 and any finite velocity.

        Constants that MuJoCo derives from masses are recomputed for each task; the public code does not recompute them.
        Moments of inertia do not change.

    Start:
        Positions of the model file plus uniform noise in [-0.1, 0.1] (m, rad). Velocities are normal with mean 0 and
        standard deviation 0.1 (m/s, rad/s).

    End:
        Never. The sampler ends a path after `max_path_length` steps; the reference uses 200.

    Logs:
        `AvgForwardVel`: mean of `forward_vel` over all steps, m/s. `AvgFinalForwardVel`: mean of `forward_vel` over the
        last steps of the paths, m/s. `AvgCtrlCost`: mean of `-reward_ctrl`.

    Args:
        engine, inertials, num_threads, render_mode: see `MujocoMetaEnv`.

    References:
        Wang, Xiao, Mao, Qu, Shen, Lv, Ji: Beyond Any-Shot Adaptation: Predicting Optimization Outcome for Robustness
        Gains without Extra Pay, 2025 (arXiv:2501.11039), and `HalfCheetahMassVelEnv` in its public code
        (github.com/thu-rllab/MPTS).
    """

    def __init__(self, *, engine: Optional[str] = None, inertials: str = "mujoco210", num_threads: NumThreads = None,
                 render_mode: RenderMode = None) -> None:
        super().__init__(HALF_CHEETAH_TRACKED, ScaledParameters({"mass": (0.75, 1.25), "velocity": (0.0, 2.0)}),
                         engine=engine, inertials=inertials, num_threads=num_threads, render_mode=render_mode)
