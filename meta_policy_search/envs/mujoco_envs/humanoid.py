"""The humanoid: a torso with legs and arms in space (Tassa, Erez and Todorov 2012, doi:10.1109/IROS.2012.6386025)."""
from typing import Any, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.base import BatchedMujocoEnv, flattened
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.types import Infos, Path
from meta_policy_search.utils.checks import check_bool

__all__ = ["BatchedHumanoidEnv"]

VELOCITY_REWARD = 1.25  # per m/s: a quarter of the distance per simulation step, over the duration of one
CONTROL_COST = 0.1  # reward lost per squared unit of action, per step
IMPACT_COST = 0.5e-6  # reward lost per squared unit of contact force and torque, per step
LARGEST_IMPACT_COST = 10.0  # per step
SURVIVAL_REWARD = 5.0  # per step
START_NOISE = 0.01  # half width of start positions (m, rad) and velocities (m/s, rad/s)
HEIGHTS = (1.0, 2.0)  # m, between which the torso has to stay
_ROOT = 1  # number of the torso among the bodies


class BatchedHumanoidEnv(BatchedMujocoEnv):
    """The robot of the humanoid environments: model, observation, start state, end and the parts of their rewards.

    What is observed besides positions and velocities is of the state after the step. The public code takes it from the
    last stage of the last simulation step's Runge-Kutta method, which differs from that in the fourth order.

    Args:
        num_envs: number of copies, at least one.
        contact_forces: whether contact forces are computed, or zero.
        **engine: see `BatchedMujocoEnv`.
    """

    robot = "humanoid"
    frame_skip = 5  # of 0.003 s: a step takes 0.015 s

    def __init__(self, num_envs: int, *, contact_forces: bool = False, **engine: Any) -> None:
        self.contact_forces = check_bool("contact_forces", contact_forces)
        derived = ("cinert", "cvel", "qfrc_actuator", "subtree_com") + ("cfrc_ext",) * self.contact_forces
        super().__init__(num_envs, derived=derived, **engine)

    def _start_state(self, rng: np.random.Generator) -> Tuple[np.ndarray, np.ndarray]:
        return self._uniform_start(START_NOISE, rng)

    def _observations(self, state: State) -> np.ndarray:
        derived = state.derived
        parts = (state.qpos[:, 2:], state.qvel, flattened(derived["cinert"]), flattened(derived["cvel"]),
                 derived["qfrc_actuator"], self._contacts(state))
        return np.concatenate(parts, axis=1)

    def _contacts(self, state: State) -> np.ndarray:
        """Returns the contact torques and forces of all bodies, float64 `[k, 84]`."""
        if not self.contact_forces:
            return np.zeros((len(state.qpos), 6 * self.engine.model.nbody))
        return flattened(state.derived["cfrc_ext"])

    def _plane_velocity(self, before: State, after: State) -> np.ndarray:
        """Returns the mean velocity of the centre of mass along x and y during the step, m/s, float64 `[k, 2]`."""
        return (after.derived["subtree_com"][:, _ROOT, :2] - before.derived["subtree_com"][:, _ROOT, :2]) / self.dt

    def _reward_terms(self, velocity: np.ndarray, actions: np.ndarray, after: State) -> Tuple[np.ndarray, Infos]:
        """Returns rewards and infos, given the velocities `[k]` in the direction asked for, m/s."""
        impact = np.zeros(len(actions))
        if self.contact_forces:
            impact = IMPACT_COST * np.square(self._contacts(after)).sum(axis=1)
        rewards = {
            "reward_linvel": VELOCITY_REWARD * velocity,
            "reward_quadctrl": -CONTROL_COST * np.square(actions).sum(axis=1),
            "reward_alive": np.full(len(actions), SURVIVAL_REWARD),
            "reward_impact": -np.minimum(impact, LARGEST_IMPACT_COST),
        }
        return sum(rewards.values()), {"forward_vel": velocity, **rewards}

    def _terminated(self, state: State) -> np.ndarray:
        height = state.qpos[:, 2]
        return (height < HEIGHTS[0]) | (height > HEIGHTS[1])

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """Logs the velocity in the direction asked for, over all steps and over last steps, and the control cost."""
        self._log_velocity(paths, prefix, "forward_vel", "reward_quadctrl")
