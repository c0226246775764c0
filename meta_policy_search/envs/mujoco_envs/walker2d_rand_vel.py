"""Walker, walking at a given velocity."""
from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv, RobotArguments
from meta_policy_search.envs.mujoco_envs.tasks import VelocityTasks
from meta_policy_search.envs.mujoco_envs.walker2d import BatchedWalker2DEnv
from meta_policy_search.utils.signatures import Unpack


class BatchedWalker2DRandVelEnv(VelocityTasks, BatchedWalker2DEnv):
    """`num_envs` copies of `Walker2DRandVelEnv`."""

    survival_reward = 15.0  # so large that to fall never pays, however far the velocity is off


class Walker2DRandVelEnv(MujocoMetaEnv):
    """A walker that is to walk at a velocity of its task's own.

    The velocity asked for is not observed: an agent learns it from rewards alone. One of the environments of ProMP's
    public code (arXiv:1810.06784).

    Reward:
        `-|v - goal| - 0.001 * |action|^2 + 15` per step, with the mean velocity `v = (x' - x) / 0.016 s`, where `x` and
        `x'` are the positions of the torso before and after the step in m, and the action as clipped. `env_infos` holds
        `forward_vel` (`v`, m/s) and the first two terms, `reward_run` and `reward_ctrl`.
    """

    batched_class = BatchedWalker2DRandVelEnv

    def __init__(self, max_velocity: float = 10.0, **robot: Unpack[RobotArguments]) -> None:
        super().__init__(max_velocity=max_velocity, **robot)
