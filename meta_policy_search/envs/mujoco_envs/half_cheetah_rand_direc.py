"""Half cheetah, running forward or backward."""
from typing import Optional

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv, RobotArguments
from meta_policy_search.envs.mujoco_envs.half_cheetah import BatchedHalfCheetahEnv
from meta_policy_search.envs.mujoco_envs.tasks import DirectionTasks
from meta_policy_search.utils.signatures import Unpack


class BatchedHalfCheetahRandDirecEnv(DirectionTasks, BatchedHalfCheetahEnv):
    """`num_envs` copies of `HalfCheetahRandDirecEnv`."""


class HalfCheetahRandDirecEnv(MujocoMetaEnv):
    """A half cheetah that is to run forward in one half of the tasks and backward in the other.

    The direction is not observed: an agent learns it from rewards alone, so that a policy which is not adapted can do
    no better than stand still. The task is that of MAML (arXiv:1703.03400, section 5.3) and ProMP (arXiv:1810.06784).

    Reward:
        `direction * (x' - x) / 0.05 s - 0.05 * |action|^2` per step, with `x` and `x'` the positions of the torso
        before and after the step in m, and the action as clipped (the same as the action as given under `normalize`,
        as the published experiments have it). `env_infos` holds the two terms: `reward_run`, the mean velocity during
        the step in the direction asked for, m/s, and `reward_ctrl`.
    """

    batched_class = BatchedHalfCheetahRandDirecEnv

    def __init__(self, goal_direction: Optional[float] = None, **robot: Unpack[RobotArguments]) -> None:
        super().__init__(goal_direction=1.0 if goal_direction is None else goal_direction, **robot)
