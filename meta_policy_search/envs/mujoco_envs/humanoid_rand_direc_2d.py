"""Humanoid, walking in a direction of the plane."""
from typing import Sequence

from meta_policy_search.envs.mujoco_envs.base import ContactArguments, MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.humanoid import BatchedHumanoidEnv
from meta_policy_search.envs.mujoco_envs.tasks import PlanarDirectionTasks
from meta_policy_search.utils.signatures import Unpack


class BatchedHumanoidRandDirec2DEnv(PlanarDirectionTasks, BatchedHumanoidEnv):
    """`num_envs` copies of `HumanoidRandDirec2DEnv`."""


class HumanoidRandDirec2DEnv(MujocoMetaEnv):
    """A humanoid that is to walk in a direction of its task's own.

    The direction is not observed: an agent learns it from rewards alone. One of the tasks of ProMP (arXiv:1810.06784)
    and PEARL (arXiv:1903.08254).

    Reward:
        `1.25 * direction . v - 0.1 * |action|^2 - min(5e-7 * |c|^2, 10) + 5` per step, with the mean velocity
        `v = (p' - p) / 0.015 s`, where `p` and `p'` are the positions `(x, y)` of the centre of mass before and after
        the step in m and `.` is the scalar product, the action as clipped, and `c` the contact torques and forces after
        the step. `env_infos` holds `forward_vel` (`direction . v`, m/s) and the terms: `reward_linvel`,
        `reward_quadctrl`, `reward_impact` and `reward_alive`.
    """

    batched_class = BatchedHumanoidRandDirec2DEnv

    def __init__(self, goal_direction: Sequence[float] = (1.0, 0.0), **robot: Unpack[ContactArguments]) -> None:
        super().__init__(goal_direction=goal_direction, **robot)
