"""Swimmer, swimming at a given velocity."""
from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv, RobotArguments
from meta_policy_search.envs.mujoco_envs.tasks import VelocityTasks
from meta_policy_search.utils.signatures import Unpack


class BatchedSwimmerRandVelEnv(VelocityTasks):
    """`num_envs` copies of `SwimmerRandVelEnv`."""

    robot = "swimmer"
    frame_skip = 4  # of 0.01 s: a step takes 0.04 s
    control_cost = 1e-4
    start_noise = 0.1
    first_observed = 2  # without x and y
    run_reward = "reward_fwd"


class SwimmerRandVelEnv(MujocoMetaEnv):
    """A chain of three links in a viscous fluid that is to swim along x at a velocity of its task's own.

    The robot is that of Coulom 2002 ("Reinforcement learning using neural networks, with applications to motor
    control"); its links lie in a plane and collide with nothing. The velocity asked for is not observed: an agent
    learns it from rewards alone. One of the environments of ProMP's public code (arXiv:1810.06784).

    Observation:
        float64 `[8]`: `qpos[2:]`, then `qvel`.

        =====  ==================================================  =====
        index  observation                                         unit
        =====  ==================================================  =====
        0      heading of the first link                           rad
        1-2    angle of the second and third link to the one       rad
               before
        3-4    velocity of the first link along x and y            m/s
        5      angular velocity of the first link                  rad/s
        6-7    angular velocity of the second and third link to    rad/s
               the one before
        =====  ==================================================  =====

    Action:
        float64 `[2]` in [-1, 1], dimensionless; clipped to it: shares of the torques on the second and the third link,
        150 N m each. Held for 4 simulation steps of 0.01 s.

    Reward:
        `-|v - goal| - 0.0001 * |action|^2` per step, with the mean velocity `v = (x' - x) / 0.04 s`, where `x` and `x'`
        are the positions of the first link before and after the step in m, and the action as clipped. `env_infos`
        holds `forward_vel` (`v`, m/s) and the two terms, `reward_fwd` and `reward_ctrl`. (In the public code of ProMP
        the first term lacks its minus sign, so that it pays to miss the velocity.)

    Start:
        Positions of the model (stretched along x) and zero velocities, plus noise uniform in [-0.1, 0.1] (m, rad, m/s,
        rad/s) in every coordinate.

    End:
        Never; the sampler ends a path, published experiments after 200 steps.

    References:
        The public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784), in which it is `SwimmerRandVelEnv`.
    """

    batched_class = BatchedSwimmerRandVelEnv

    def __init__(self, min_velocity: float = 0.1, max_velocity: float = 0.2, **robot: Unpack[RobotArguments]) -> None:
        super().__init__(min_velocity=min_velocity, max_velocity=max_velocity, **robot)
