"""Walker, walking forward or backward."""
from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv, RobotArguments
from meta_policy_search.envs.mujoco_envs.tasks import DirectionTasks
from meta_policy_search.envs.mujoco_envs.walker2d import BatchedWalker2DEnv
from meta_policy_search.utils.signatures import Unpack


class BatchedWalker2DRandDirecEnv(DirectionTasks, BatchedWalker2DEnv):
    """`num_envs` copies of `Walker2DRandDirecEnv`."""


class Walker2DRandDirecEnv(MujocoMetaEnv):
    """A walker that is to walk forward in one half of the tasks and backward in the other.

    The direction is not observed: an agent learns it from rewards alone. One of the tasks of ProMP (arXiv:1810.06784).

    Reward:
        `direction * (x' - x) / 0.016 s - 0.001 * |action|^2 + 1` per step, with `x` and `x'` the positions of the torso
        before and after the step in m, and the action as clipped. `env_infos` holds the first two terms: `reward_run`,
        the mean velocity during the step in the direction asked for, m/s, and `reward_ctrl`.
    """

    batched_class = BatchedWalker2DRandDirecEnv

    def __init__(self, goal_direction: float = 1.0, **robot: Unpack[RobotArguments]) -> None:
        super().__init__(goal_direction=goal_direction, **robot)
