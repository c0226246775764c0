"""Walker, whose masses, inertias, damping and friction are the task."""
from meta_policy_search.envs.mujoco_envs.random_env import BatchedRandomEnv, RandomEnv
from meta_policy_search.envs.mujoco_envs.walker2d import BatchedWalker2DEnv


class BatchedWalker2DRandParamsEnv(BatchedRandomEnv, BatchedWalker2DEnv):
    """`num_envs` copies of `Walker2DRandParamsEnv`."""

    frame_skip = 5  # of 0.002 s: a step takes 0.01 s


class Walker2DRandParamsEnv(RandomEnv):
    """A walker that is to walk forward, with a body and a ground that differ from task to task.

    Reward:
        `(x' - x) / 0.01 s - 0.001 * |action|^2 + 1` per step, with `x` and `x'` the positions of the torso before and
        after the step in m, and the action as clipped. `env_infos` holds the first two terms: `reward_run`, the mean
        velocity during the step, m/s, and `reward_ctrl`.

    References:
        The public code of rand_param_envs (github.com/dennisl88/rand_param_envs), in which it is
        `Walker2DRandParamsEnv`; used in ProMP, Rothfuss et al. 2018 (arXiv:1810.06784).
    """

    batched_class = BatchedWalker2DRandParamsEnv
