"""Ant, running forward or backward."""
from typing import Optional

from meta_policy_search.envs.mujoco_envs.ant import BatchedAntEnv
from meta_policy_search.envs.mujoco_envs.base import ContactArguments, MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.tasks import DirectionTasks
from meta_policy_search.utils.signatures import Unpack


class BatchedAntRandDirecEnv(DirectionTasks, BatchedAntEnv):
    """`num_envs` copies of `AntRandDirecEnv`."""


class AntRandDirecEnv(MujocoMetaEnv):
    """An ant that is to run forward, along x, in one half of the tasks and backward in the other.

    The direction is not observed: an agent learns it from rewards alone. The task is that of MAML (arXiv:1703.03400,
    section 5.3), ProMP (arXiv:1810.06784) and PEARL (arXiv:1903.08254), in the form of ProMP's public code.

    Reward:
        `direction * (x' - x) / 0.05 s - 0.5 * |action|^2 - 0.0005 * |c|^2 + 1` per step, with `x` and `x'` the
        positions of the torso before and after the step in m, the action as clipped, and `c` the clipped contact
        torques and forces after the step. `env_infos` holds the terms: `reward_forward`, `reward_ctrl`,
        `reward_contact` and `reward_survive`.
    """

    batched_class = BatchedAntRandDirecEnv

    def __init__(self, goal_direction: Optional[float] = None, **robot: Unpack[ContactArguments]) -> None:
        super().__init__(goal_direction=1.0 if goal_direction is None else goal_direction, **robot)
