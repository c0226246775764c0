"""Humanoid, walking forward or backward."""
from meta_policy_search.envs.mujoco_envs.base import ContactArguments, MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.humanoid import BatchedHumanoidEnv
from meta_policy_search.envs.mujoco_envs.tasks import DirectionTasks
from meta_policy_search.utils.signatures import Unpack


class BatchedHumanoidRandDirecEnv(DirectionTasks, BatchedHumanoidEnv):
    """`num_envs` copies of `HumanoidRandDirecEnv`."""


class HumanoidRandDirecEnv(MujocoMetaEnv):
    """A humanoid that is to walk forward, along x, in one half of the tasks and backward in the other.

    The direction is not observed: an agent learns it from rewards alone. One of the tasks of ProMP (arXiv:1810.06784).

    Reward:
        `1.25 * direction * v - 0.1 * |action|^2 - min(5e-7 * |c|^2, 10) + 5` per step, with the mean velocity
        `v = (x' - x) / 0.015 s`, where `x` and `x'` are the positions of the centre of mass before and after the step
        in m, the action as clipped, and `c` the contact torques and forces after the step. `env_infos` holds
        `forward_vel` (`direction * v`, m/s) and the terms: `reward_linvel`, `reward_quadctrl`, `reward_impact` and
        `reward_alive`.
    """

    batched_class = BatchedHumanoidRandDirecEnv

    def __init__(self, goal_direction: float = 1.0, **robot: Unpack[ContactArguments]) -> None:
        super().__init__(goal_direction=goal_direction, **robot)
