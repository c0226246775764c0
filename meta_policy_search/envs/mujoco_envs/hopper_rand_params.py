"""Hopper, whose masses, inertias, damping and friction are the task."""
import numpy as np

from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.envs.mujoco_envs.random_env import BatchedRandomEnv, RandomEnv

LOWEST_HEIGHT = 0.7  # m, above which the torso has to stay
LARGEST_PITCH = 0.2  # rad, to either side
LARGEST_STATE = 100.0  # rad, m/s, rad/s, of everything but the position of the torso


class BatchedHopperRandParamsEnv(BatchedRandomEnv):
    """`num_envs` copies of `HopperRandParamsEnv`."""

    robot = "hopper"
    frame_skip = 4  # of 0.002 s: a step takes 0.008 s
    start_noise = 0.005
    largest_observed_velocity = 10.0
    control_cost = 1e-3
    survival_reward = 1.0

    def _terminated(self, state: State) -> np.ndarray:
        is_up = (state.qpos[:, 1] > LOWEST_HEIGHT) & (np.abs(state.qpos[:, 2]) < LARGEST_PITCH)
        is_calm = (np.abs(state.qpos[:, 2:]) < LARGEST_STATE).all(axis=1)
        is_calm &= (np.abs(state.qvel) < LARGEST_STATE).all(axis=1)
        return ~(is_up & is_calm)


class HopperRandParamsEnv(RandomEnv):
    """A hopper that is to hop forward, with a body and a ground that differ from task to task.

    The robot is planar and has one leg (Erez, Tassa and Todorov 2011, "Infinite-horizon model predictive control for
    periodic tasks with contacts").

    Observation:
        float64 `[11]`: `qpos[1:]`, then `qvel` clipped to [-10, 10].

        =====  ============================================  =====
        index  observation                                   unit
        =====  ============================================  =====
        0      height of the torso                           m
        1      pitch of the torso                            rad
        2-4    angle of the thigh, leg and foot              rad
        5      velocity of the torso along x                 m/s
        6      velocity of the torso along z                 m/s
        7      angular velocity of the torso                 rad/s
        8-10   angular velocity of the thigh, leg and foot   rad/s
        =====  ============================================  =====

    Action:
        float64 `[3]` in [-1, 1], dimensionless; clipped to it: shares of the torques on thigh, leg and foot, 200 N m
        each. Held for 4 simulation steps of 0.002 s.

    Reward:
        `(x' - x) / 0.008 s - 0.001 * |action|^2 + 1` per step, with `x` and `x'` the positions of the torso before and
        after the step in m, and the action as clipped. `env_infos` holds the first two terms: `reward_run`, the mean
        velocity during the step, m/s, and `reward_ctrl`.

    Start:
        Positions of the model (upright, 1.25 m) and zero velocities, plus noise uniform in [-0.005, 0.005] (m, rad,
        m/s, rad/s) in every coordinate.

    End:
        When the torso is not above 0.7 m, its pitch not between -0.2 and 0.2 rad, or an angle or a velocity not
        between -100 and 100 (rad, m/s, rad/s).

    References:
        The public code of rand_param_envs (github.com/dennisl88/rand_param_envs), in which it is
        `HopperRandParamsEnv`; used in ProMP, Rothfuss et al. 2018 (arXiv:1810.06784).
    """

    batched_class = BatchedHopperRandParamsEnv
