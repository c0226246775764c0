"""Half cheetah with a task-specific mass, damping and head."""
from typing import Optional

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.robots import HALF_CHEETAH_UPRIGHT
from meta_policy_search.envs.mujoco_envs.tasks import ScaledParameters
from meta_policy_search.types import NumThreads, RenderMode


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
