"""The humanoid: a torso with legs and arms in space (Tassa, Erez and Todorov 2012, doi:10.1109/IROS.2012.6386025)."""
from typing import Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.base import BatchedContactEnv, flattened
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.types import Infos

VELOCITY_REWARD = 1.25  # per m/s: a quarter of the distance per simulation step, over the duration of one
IMPACT_COST = 0.5e-6  # reward lost per squared unit of contact force and torque, per step
LARGEST_IMPACT_COST = 10.0  # per step
_ROOT = 1  # number of the torso among the bodies


class BatchedHumanoidEnv(BatchedContactEnv):
    """The robot of the humanoid environments: model, observation, start state, end and the parts of their rewards.

    What is observed besides positions and velocities is of the state after the step. The public code takes it from the
    last stage of the last simulation step's Runge-Kutta method, which differs from that in the fourth order.

    Observation:
        float64 `[376]`: `qpos[2:]`, `qvel`, `cinert`, `cvel`, `qfrc_actuator`, then `cfrc_ext`.

        =======  =====================================================================  ============
        index    observation                                                            unit
        =======  =====================================================================  ============
        0        height of the torso                                                    m
        1-4      orientation of the torso, a quaternion                                 1
        5-21     angles of the joints: abdomen z, y, x; right hip x, z, y, right knee;  rad
                 the same on the left; right shoulder 1, 2, right elbow; the same on
                 the left
        22-24    velocity of the torso along x, y and z                                 m/s
        25-27    angular velocity of the torso around its own axes                      rad/s
        28-44    angular velocities of the joints                                       rad/s
        45-184   inertia of each of 14 bodies (the world, torso, lower waist, pelvis;   kg m^2, kg m
                 right thigh, shin, foot; the same on the left; right upper and lower   and kg
                 arm; the same on the left): 6 moments, 3 offsets from the centre of
                 mass times mass, mass
        185-268  angular velocity, then velocity, of each body                          rad/s, m/s
        269-291  force of the actuators on the torso (6 zeros) and the joints           N m
        292-375  torque, then force, of contacts on each body; zero unless              N m and N
                 `contact_forces`
        =======  =====================================================================  ============

        Inertias, velocities and contacts of bodies are in the directions of the world's axes, around the centre of mass
        of the robot.

    Action:
        float64 `[17]` in [-0.4, 0.4], dimensionless; clipped to it. Held for 5 simulation steps of 0.003 s.

        =====  ==============================================================================
        index  action
        =====  ==============================================================================
        0-2    share of the torque on abdomen y, z, x: 100 N m each
        3-6    the same on right hip x, z, y and right knee: 100, 100, 300 and 200 N m
        7-10   the same on the left
        11-13  the same on right shoulder 1, 2 and right elbow: 25 N m each
        14-16  the same on the left
        =====  ==============================================================================

    Start:
        Positions of the model (upright, 1.4 m) and zero velocities, plus noise uniform in [-0.01, 0.01] (m, rad, m/s,
        rad/s) in every coordinate, the quaternion scaled to length one.

    End:
        When the torso is not between 1 m and 2 m high.

    References:
        The public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784), in which the class has the same name.
    """

    robot = "humanoid"
    frame_skip = 5  # of 0.003 s: a step takes 0.015 s
    start_noise = 0.01
    control_cost = 0.1
    survival_reward = 5.0
    heights = (1.0, 2.0)
    derived = ("cinert", "cvel", "qfrc_actuator", "subtree_com")
    logged_infos = ("forward_vel", "reward_quadctrl")

    def _observations(self, state: State) -> np.ndarray:
        derived = state.derived
        parts = (state.qpos[:, 2:], state.qvel, flattened(derived["cinert"]), flattened(derived["cvel"]),
                 derived["qfrc_actuator"], self._contacts(state))
        return np.concatenate(parts, axis=1)

    def _plane_velocity(self, before: State, after: State) -> np.ndarray:
        """Returns the mean velocity of the centre of mass."""
        return (after.derived["subtree_com"][:, _ROOT, :2] - before.derived["subtree_com"][:, _ROOT, :2]) / self.dt

    def _run_rewards(  # type: ignore[override]  # no task of the humanoid adds infos
        self, velocity: np.ndarray, actions: np.ndarray, after: State
    ) -> Tuple[np.ndarray, Infos]:
        """Returns rewards and infos, given the velocities `[k]` in the direction asked for, m/s."""
        impact = np.zeros(len(actions))
        if self.contact_forces:
            impact = IMPACT_COST * np.square(self._contacts(after)).sum(axis=1)
        rewards = {
            "reward_linvel": VELOCITY_REWARD * velocity,
            "reward_quadctrl": self._control_reward(actions),
            "reward_alive": np.full(len(actions), self.survival_reward),
            "reward_impact": -np.minimum(impact, LARGEST_IMPACT_COST),
        }
        return sum(rewards.values(), np.zeros(len(actions))), {"forward_vel": velocity, **rewards}
