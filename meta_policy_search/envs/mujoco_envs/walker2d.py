"""The walker: a planar robot with a torso and two legs (Levine and Koltun 2013, "Guided policy search")."""
import numpy as np

from meta_policy_search.envs.mujoco_envs.base import BatchedMujocoEnv
from meta_policy_search.envs.mujoco_envs.engines.base import State

HEIGHTS = (0.8, 2.0)  # m, between which the torso has to stay
PITCHES = (-1.0, 1.0)  # rad, the same


class BatchedWalker2DEnv(BatchedMujocoEnv):
    """The robot of the walker environments: model, observation, start state, end and the parts of their rewards.

    Observation:
        float64 `[17]`: `qpos[1:]`, then `qvel` clipped to [-10, 10].

        =====  ==================================================  =====
        index  observation                                         unit
        =====  ==================================================  =====
        0      height of the torso                                 m
        1      pitch of the torso                                  rad
        2-4    angle of the right thigh, leg and foot              rad
        5-7    angle of the left thigh, leg and foot               rad
        8      velocity of the torso along x                       m/s
        9      velocity of the torso along z                       m/s
        10     angular velocity of the torso                       rad/s
        11-13  angular velocity of the right thigh, leg and foot   rad/s
        14-16  angular velocity of the left thigh, leg and foot    rad/s
        =====  ==================================================  =====

    Action:
        float64 `[6]` in [-1, 1], dimensionless; clipped to it. Held for 8 simulation steps of 0.002 s
        (`Walker2DRandParamsEnv`: 5).

        =====  ==================================================================
        index  action
        =====  ==================================================================
        0-2    share of the torque on the right thigh, leg and foot: 100 N m each
        3-5    share of the torque on the left thigh, leg and foot: 100 N m each
        =====  ==================================================================

    Start:
        Positions of the model (upright, 1.25 m) and zero velocities, plus noise uniform in [-0.005, 0.005] (m, rad,
        m/s, rad/s) in every coordinate.

    End:
        When the torso is not between 0.8 m and 2.0 m high, or its pitch not between -1 and 1 rad.

    References:
        The public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784), in which the class has the same name.
    """

    robot = "walker2d"
    frame_skip = 8  # of 0.002 s: a step takes 0.016 s
    start_noise = 0.005
    largest_observed_velocity = 10.0
    control_cost = 1e-3
    survival_reward = 1.0

    def _terminated(self, state: State) -> np.ndarray:
        height, pitch = state.qpos[:, 1], state.qpos[:, 2]
        return ~((HEIGHTS[0] < height) & (height < HEIGHTS[1]) & (PITCHES[0] < pitch) & (pitch < PITCHES[1]))
