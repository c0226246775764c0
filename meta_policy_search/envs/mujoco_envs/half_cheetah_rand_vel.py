"""Half cheetah, running at a given velocity."""
from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv, RobotArguments
from meta_policy_search.envs.mujoco_envs.half_cheetah import BatchedHalfCheetahEnv
from meta_policy_search.envs.mujoco_envs.tasks import VelocityTasks
from meta_policy_search.utils.signatures import Unpack


class BatchedHalfCheetahRandVelEnv(VelocityTasks, BatchedHalfCheetahEnv):
    """`num_envs` copies of `HalfCheetahRandVelEnv`."""


class HalfCheetahRandVelEnv(MujocoMetaEnv):
    """A half cheetah that is to run at a velocity of its task's own.

    The velocity asked for is not observed: an agent learns it from rewards alone. The task is that of MAML
    (arXiv:1703.03400, section 5.3, there up to 2 m/s) and ProMP (arXiv:1810.06784, up to 3 m/s).

    Reward:
        `-|v - goal| - 0.05 * |action|^2` per step, with the mean velocity `v = (x' - x) / 0.05 s`, where `x` and `x'`
        are the positions of the torso before and after the step in m, and the action as clipped. `env_infos` holds
        `forward_vel` (`v`, m/s) and the two terms, `reward_run` and `reward_ctrl`.
    """

    batched_class = BatchedHalfCheetahRandVelEnv

    def __init__(self, max_velocity: float = 3.0, **robot: Unpack[RobotArguments]) -> None:
        super().__init__(max_velocity=max_velocity, **robot)
