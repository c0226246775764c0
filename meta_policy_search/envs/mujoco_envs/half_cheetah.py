"""The half cheetah: a planar two-legged runner (Wawrzynski 2009, doi:10.1109/ISIE.2009.5214007)."""
from meta_policy_search.envs.mujoco_envs.base import BatchedMujocoEnv


class BatchedHalfCheetahEnv(BatchedMujocoEnv):
    """The robot of the half-cheetah environments: model, observation, start state and the parts of their rewards.

    The observation leaves out `qpos[0]`, the distance from the start, so that no policy can depend on it.

    Observation:
        float64 `[17]`: `qpos[1:]`, then `qvel`.

        =====  ==================================================  =====
        index  observation                                         unit
        =====  ==================================================  =====
        0      height of the torso over its place in the model     m
        1      pitch of the torso                                  rad
        2-4    angle of the back thigh, shin and foot              rad
        5-7    angle of the front thigh, shin and foot             rad
        8      velocity of the torso along x                       m/s
        9      velocity of the torso along z                       m/s
        10     angular velocity of the torso                       rad/s
        11-13  angular velocity of the back thigh, shin and foot   rad/s
        14-16  angular velocity of the front thigh, shin and foot  rad/s
        =====  ==================================================  =====

    Action:
        float64 `[6]` in [-1, 1], dimensionless; clipped to it. Held for 5 simulation steps of 0.01 s.

        =====  =====================================================================
        index  action
        =====  =====================================================================
        0-2    share of the torque on the back thigh, shin, foot: 120, 90, 60 N m
        3-5    share of the torque on the front thigh, shin, foot: 120, 60, 30 N m
        =====  =====================================================================

    Start:
        Positions of the model plus noise uniform in [-0.1, 0.1] (m, rad) in every coordinate, velocities normal with
        standard deviation 0.1 (m/s, rad/s).

    End:
        Never; the sampler ends a path, published experiments after 100 or 200 steps.
    """

    robot = "half_cheetah"
    frame_skip = 5  # of 0.01 s: a step takes 0.05 s
    start_noise = 0.1
    has_normal_start = True
    control_cost = 0.05
