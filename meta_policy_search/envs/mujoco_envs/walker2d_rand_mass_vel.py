"""Walker with a task-specific mass that walks at a task-specific velocity."""
from typing import Optional

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.robots import WALKER2D_THAT_FALLS
from meta_policy_search.envs.mujoco_envs.tasks import ScaledParameters
from meta_policy_search.types import NumThreads, RenderMode


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
