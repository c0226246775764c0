"""The ant: a torso on four legs in space (Schulman et al. 2015, arXiv:1506.02438)."""
from typing import Any, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.base import BatchedMujocoEnv, flattened
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.types import Infos, Path
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import check_bool

__all__ = ["BatchedAntEnv"]

CONTACT_COST = 0.5e-3  # reward lost per squared unit of clipped contact force and torque, per step
LARGEST_CONTACT = 1.0  # N and N m; contact forces and torques are clipped to it
START_NOISE = 0.1  # half width of the start positions (m, rad), standard deviation of the start velocities (m/s, rad/s)


class BatchedAntEnv(BatchedMujocoEnv):
    """The robot of the ant environments: model, observation, start state, end and the parts of their rewards.

    The mean velocity during a step is that of the torso's frame. The public code takes the frame from the last stage of
    the last simulation step's Runge-Kutta method, which differs from that after the step in the fourth order.

    Args:
        num_envs: number of copies, at least one.
        contact_forces: whether contact forces are computed, or zero.
        **engine: see `BatchedMujocoEnv`.
    """

    robot = "ant"
    frame_skip = 5  # of 0.01 s: a step takes 0.05 s
    first_observed = 2  # coordinate of the position: without x and y
    control_cost = 0.5  # reward lost per squared unit of action, per step
    survival_reward = 1.0  # per step
    heights = (0.0, 1.0)  # m, between which the torso has to stay

    def __init__(self, num_envs: int, *, contact_forces: bool = False, **engine: Any) -> None:
        self.contact_forces = check_bool("contact_forces", contact_forces)
        super().__init__(num_envs, derived=("cfrc_ext",) if self.contact_forces else (), **engine)

    def _start_state(self, rng: np.random.Generator) -> Tuple[np.ndarray, np.ndarray]:
        return self._normal_start(START_NOISE, rng)

    def _observations(self, state: State) -> np.ndarray:
        return np.concatenate((state.qpos[:, self.first_observed:], state.qvel, self._contacts(state)), axis=1)

    def _contacts(self, state: State) -> np.ndarray:
        """Returns the clipped contact torques and forces of all bodies, float64 `[k, 84]`."""
        if not self.contact_forces:
            return np.zeros((len(state.qpos), 6 * self.engine.model.nbody))
        return np.clip(flattened(state.derived["cfrc_ext"]), -LARGEST_CONTACT, LARGEST_CONTACT)

    def _plane_velocity(self, before: State, after: State) -> np.ndarray:
        """Returns the mean velocity of the torso along x and y during the step, m/s, float64 `[k, 2]`."""
        return (after.qpos[:, :2] - before.qpos[:, :2]) / self.dt

    def _reward_terms(self, forward: np.ndarray, actions: np.ndarray, after: State) -> Tuple[np.ndarray, Infos]:
        """Returns rewards and infos, given the rewards `[k]` for getting ahead."""
        infos = {
            "reward_forward": forward,
            "reward_ctrl": -self.control_cost * np.square(actions).sum(axis=1),
            "reward_contact": self._contact_reward(after),
            "reward_survive": np.full(len(actions), self.survival_reward),
        }
        return sum(infos.values()), infos

    def _contact_reward(self, state: State) -> np.ndarray:
        """Returns minus the cost of contact forces, float64 `[k]`."""
        if not self.contact_forces:
            return np.zeros(len(state.qpos))
        return -CONTACT_COST * np.square(self._contacts(state)).sum(axis=1)

    def _terminated(self, state: State) -> np.ndarray:
        height = state.qpos[:, 2]
        return (height < self.heights[0]) | (height > self.heights[1])

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """Logs the paths' mean rewards for getting ahead, and the mean control cost, per step."""
        means = [np.mean(path["env_infos"]["reward_forward"]) for path in paths]
        for name, statistic in (("Average", np.mean), ("Max", np.max), ("Min", np.min), ("Std", np.std)):
            logger.logkv(f"{prefix}{name}ForwardReturn", statistic(means))
        costs = [-np.mean(path["env_infos"]["reward_ctrl"]) for path in paths]
        logger.logkv(prefix + "AverageCtrlCost", np.mean(costs))
