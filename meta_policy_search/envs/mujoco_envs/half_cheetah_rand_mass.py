"""Half cheetahs with a task-specific mass, alone or with a task-specific damping and head, or target velocity."""
from typing import Optional

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.robots import HALF_CHEETAH_TRACKED, HALF_CHEETAH_UPRIGHT
from meta_policy_search.envs.mujoco_envs.tasks import ScaledParameters
from meta_policy_search.types import NumThreads, RenderMode


class HalfCheetahRandMassEnv(MujocoMetaEnv):
    """A half cheetah with a task-specific mass runs forward.

    Observation:
        float64 `[20]`: the 17 numbers of `HalfCheetahRandDirecEnv`, then the position of the torso along x, y (zero)
        and z, m.

    Action:
        As in `HalfCheetahRandDirecEnv`.

    Reward:
        `v - 0.05 * |action|^2 + h` per step, with the mean velocity `v = (x' - x) / 0.05 s`. `x` and `x'` are the
        positions of the torso before and after the step, m; `h` is the first observation after the step, between -0.6
        and -0.4 if the robot lies on its back; `action` is the clipped action. `env_infos` contain the terms
        `reward_run` (m/s), `reward_ctrl` and `reward_height`.

    Tasks:
        float64 `[1]`: factor of all masses, which is not observed; its logarithm is uniform, between 0.5 and 2. The
        factor also scales the radius of each part of the body, 0.046 m. `set_task` accepts any factor above 0.

        Constants that MuJoCo derives from masses, and bounding spheres of the scaled parts, are recomputed for each
        task; the public code does not recompute them. Moments of inertia do not change.

    Start:
        Positions of the model file plus uniform noise in [-0.1, 0.1] (m, rad). Velocities are normal with mean 0 and
        standard deviation 0.1 (m/s, rad/s).

    End:
        Never. The sampler ends a path after `max_path_length` steps; the reference uses 200.

    Logs:
        `AvgForwardVel`: mean of `reward_run` over all steps, m/s. `AvgFinalForwardVel`: mean of `reward_run` over the
        last steps of the paths, m/s. `AvgCtrlCost`: mean of `-reward_ctrl`.

    Args:
        engine, inertials, num_threads, render_mode: see `MujocoMetaEnv`.

    References:
        Greenberg, Mannor, Chechik, Meirom: Train Hard, Fight Easy: Robust Meta Reinforcement Learning, 2023
        (arXiv:2301.11147), and `HalfCheetahMassEnv` in its public code (github.com/ido90/RobustMetaRL).
    """

    def __init__(self, *, engine: Optional[str] = None, inertials: str = "mujoco210", num_threads: NumThreads = None,
                 render_mode: RenderMode = None) -> None:
        super().__init__(HALF_CHEETAH_UPRIGHT, ScaledParameters({"mass": (0.5, 2.0)}, thickness=True, logarithmic=True),
                         engine=engine, inertials=inertials, num_threads=num_threads, render_mode=render_mode)


class HalfCheetahRandBodyEnv(MujocoMetaEnv):
    """A half cheetah with a task-specific mass, damping and length of the head runs forward.

    Observation, action, reward, start, end and logs are those of `HalfCheetahRandMassEnv`.

    Tasks:
        float64 `[3]`: factors of all masses, of the damping of all joints, and of the length of the head, which are not
        observed. Their logarithms are independent and uniform, between 0.5 and 2. The first factor also scales the
        radius of each part of the body, 0.046 m. `set_task` accepts any factors above 0.

        The paper calls the third factor the length of the torso. The public code scales the geometry with index 2,
        which is the head, and so does this environment.

        Constants that MuJoCo derives from masses, and bounding spheres of the scaled parts, are recomputed for each
        task; the public code does not recompute them. Moments of inertia do not change.

    Args:
        engine, inertials, num_threads, render_mode: see `MujocoMetaEnv`.

    References:
        Greenberg, Mannor, Chechik, Meirom: Train Hard, Fight Easy: Robust Meta Reinforcement Learning, 2023
        (arXiv:2301.11147), and `HalfCheetahBodyEnv` in its public code (github.com/ido90/RobustMetaRL).
    """

    def __init__(self, *, engine: Optional[str] = None, inertials: str = "mujoco210", num_threads: NumThreads = None,
                 render_mode: RenderMode = None) -> None:
        ranges = {name: (0.5, 2.0) for name in ("mass", "damping", "head")}
        super().__init__(HALF_CHEETAH_UPRIGHT, ScaledParameters(ranges, thickness=True, logarithmic=True),
                         engine=engine, inertials=inertials, num_threads=num_threads, render_mode=render_mode)


class HalfCheetahRandMassVelEnv(MujocoMetaEnv):
    """A half cheetah with a task-specific mass runs at a task-specific velocity.

    Observation, action, start and end are those of `HalfCheetahRandMassEnv`.

    Reward:
        `-|v - goal| - 0.05 * |action|^2` per step, with the mean velocity `v = (x' - x) / 0.05 s`. `x` and `x'` are the
        positions of the torso before and after the step, m; `action` is the clipped action. `env_infos` contain
        `forward_vel` (`v`, m/s) and the terms `reward_run` and `reward_ctrl`.

    Tasks:
        float64 `[2]`: factor of all masses, uniform in [0.75, 1.25), and target velocity along x, m/s, uniform in
        [0, 2). Neither is observed. `set_task` accepts any factor above 0 and any finite velocity.

        Constants that MuJoCo derives from masses are recomputed for each task; the public code does not recompute them.
        Moments of inertia do not change.

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
