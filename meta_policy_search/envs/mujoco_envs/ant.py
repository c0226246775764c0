"""The ant: a torso on four legs in space (Schulman et al. 2015, arXiv:1506.02438)."""
from typing import Sequence, Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.base import BatchedContactEnv
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.types import Infos, Path
from meta_policy_search.utils import logger

CONTACT_COST = 0.5e-3  # reward lost per squared unit of clipped contact force and torque, per step
LARGEST_CONTACT = 1.0  # N and N m; contact forces and torques are clipped to it


class BatchedAntEnv(BatchedContactEnv):
    """The robot of the ant environments: model, observation, start state, end and the parts of their rewards.

    The mean velocity during a step is that of the torso's frame. The public code takes the frame from the last stage of
    the last simulation step's Runge-Kutta method, which differs from that after the step in the fourth order.

    Observation:
        float64 `[111]`: `qpos[2:]`, `qvel`, then the contact torques and forces `cfrc_ext`, clipped to [-1, 1]. That of
        `AntRandGoalEnv`, `[113]`, begins with the position of the torso along x and y, m.

        ======  =========================================================  =========
        index   observation                                                unit
        ======  =========================================================  =========
        0       height of the torso                                        m
        1-4     orientation of the torso, a quaternion                     1
        5-12    angles of hip and ankle, leg by leg: front left, front     rad
                right, back left, back right
        13-15   velocity of the torso along x, y and z                     m/s
        16-18   angular velocity of the torso around its own axes          rad/s
        19-26   angular velocities of hip and ankle, leg by leg            rad/s
        27-110  torque, then force, of contacts on each of 14 bodies (the  N m and N
                world, torso and, leg by leg, three parts); zero unless
                `contact_forces`
        ======  =========================================================  =========

    Action:
        float64 `[8]` in [-1, 1], dimensionless; clipped to it. Held for 5 simulation steps of 0.01 s.

        =====  ==================================================================
        index  action
        =====  ==================================================================
        0-1    share of the torque on hip and ankle, back right: 150 N m each
        2-3    the same, front left
        4-5    the same, front right
        6-7    the same, back left
        =====  ==================================================================

    Start:
        Positions of the model (flat, 0.75 m) plus noise uniform in [-0.1, 0.1] (m, rad) in every coordinate, the
        quaternion scaled to length one; velocities normal with standard deviation 0.1 (m/s, rad/s).

    End:
        When the torso is not between 0 m and 1 m high.

    Logs:
        `AverageForwardReturn`, `MaxForwardReturn`, `MinForwardReturn` and `StdForwardReturn`, statistics over paths of
        the mean of `reward_forward` over their steps, and `AverageCtrlCost`, all per step.

    References:
        The public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784), in which the class has the same name.
    """

    robot = "ant"
    frame_skip = 5  # of 0.01 s: a step takes 0.05 s
    start_noise = 0.1
    has_normal_start = True
    first_observed = 2  # without x and y
    control_cost = 0.5
    survival_reward = 1.0
    heights = (0.0, 1.0)

    def _observations(self, state: State) -> np.ndarray:
        return np.concatenate((super()._observations(state), self._contacts(state)), axis=1)

    def _contacts(self, state: State) -> np.ndarray:
        return np.clip(super()._contacts(state), -LARGEST_CONTACT, LARGEST_CONTACT)

    def _run_rewards(  # type: ignore[override]  # no task of the ant adds infos
        self, forward: np.ndarray, actions: np.ndarray, after: State
    ) -> Tuple[np.ndarray, Infos]:
        """Returns rewards and infos, given the rewards `[k]` for getting ahead."""
        contact = np.zeros(len(actions))
        if self.contact_forces:
            contact = -CONTACT_COST * np.square(self._contacts(after)).sum(axis=1)
        infos = {
            "reward_forward": forward,
            "reward_ctrl": self._control_reward(actions),
            "reward_contact": contact,
            "reward_survive": np.full(len(actions), self.survival_reward),
        }
        return sum(infos.values(), np.zeros(len(actions))), infos

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """Logs the paths' mean rewards for getting ahead, and the mean control cost, per step."""
        means = [np.mean(path["env_infos"]["reward_forward"]) for path in paths]
        for name, statistic in (("Average", np.mean), ("Max", np.max), ("Min", np.min), ("Std", np.std)):
            logger.logkv(f"{prefix}{name}ForwardReturn", statistic(means))
        costs = [-np.mean(path["env_infos"]["reward_ctrl"]) for path in paths]
        logger.logkv(prefix + "AverageCtrlCost", np.mean(costs))
