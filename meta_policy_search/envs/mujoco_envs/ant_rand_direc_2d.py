"""Ant, running in a direction of the plane."""
from typing import Sequence

from meta_policy_search.envs.mujoco_envs.ant import BatchedAntEnv
from meta_policy_search.envs.mujoco_envs.base import ContactArguments, MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.tasks import PlanarDirectionTasks
from meta_policy_search.utils.signatures import Unpack


class BatchedAntRandDirec2DEnv(PlanarDirectionTasks, BatchedAntEnv):
    """`num_envs` copies of `AntRandDirec2DEnv`."""


class AntRandDirec2DEnv(MujocoMetaEnv):
    """An ant that is to run in a direction of its task's own.

    The direction is not observed: an agent learns it from rewards alone. One of the tasks of ProMP (arXiv:1810.06784).

    Reward:
        `direction . (p' - p) / 0.05 s - 0.5 * |action|^2 - 0.0005 * |c|^2 + 1` per step, with `p` and `p'` the
        positions `(x, y)` of the torso before and after the step in m, `.` the scalar product, the action as clipped,
        and `c` the clipped contact torques and forces after the step. `env_infos` holds the terms: `reward_forward`,
        `reward_ctrl`, `reward_contact` and `reward_survive`.
    """

    batched_class = BatchedAntRandDirec2DEnv

    def __init__(self, goal_direction: Sequence[float] = (1.0, 0.0), **robot: Unpack[ContactArguments]) -> None:
        super().__init__(goal_direction=goal_direction, **robot)
