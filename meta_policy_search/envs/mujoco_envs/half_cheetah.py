"""The half cheetah: a planar two-legged runner (Wawrzynski 2009, doi:10.1109/ISIE.2009.5214007)."""
from typing import Sequence, Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.base import BatchedNumberTaskEnv
from meta_policy_search.envs.mujoco_envs.engine import State
from meta_policy_search.types import Path
from meta_policy_search.utils import logger

__all__ = ["BatchedHalfCheetahEnv"]

CONTROL_COST = 0.05  # reward lost per squared unit of action, per step
START_NOISE = 0.1  # half width of the start positions (m, rad), standard deviation of the start velocities (m/s, rad/s)


class BatchedHalfCheetahEnv(BatchedNumberTaskEnv):
    """The robot of the half-cheetah environments: model, observation, start state and the parts of their rewards.

    The observation leaves out `qpos[0]`, the distance from the start, so that no policy can depend on it; a table of it
    is in `HalfCheetahRandDirecEnv`.

    Arguments and attributes are those of `BatchedNumberTaskEnv`.
    """

    robot = "half_cheetah"
    frame_skip = 5  # of 0.01 s: a step takes 0.05 s

    def _start_state(self, rng: np.random.Generator) -> Tuple[np.ndarray, np.ndarray]:
        qpos = self.engine.init_qpos + rng.uniform(-START_NOISE, START_NOISE, self.engine.nq)
        return qpos, START_NOISE * rng.standard_normal(self.engine.nv)

    def _observations(self, state: State) -> np.ndarray:
        return np.concatenate((state.qpos[:, 1:], state.qvel), axis=1)

    def _forward_velocity(self, before: State, after: State) -> np.ndarray:
        """Returns the mean velocity along x during the step, m/s, float64 `[k]`."""
        return (after.qpos[:, 0] - before.qpos[:, 0]) / self.dt

    @staticmethod
    def _control_reward(actions: np.ndarray) -> np.ndarray:
        """Returns minus the control cost of clipped actions, float64 `[k]`."""
        return -CONTROL_COST * np.square(actions).sum(axis=1)

    @staticmethod
    def _log_velocity(paths: Sequence[Path], prefix: str, key: str) -> None:
        """Logs means of the velocity `env_infos[key]`, of all steps and of last steps, and of the control cost."""
        velocities = [path["env_infos"][key] for path in paths]
        costs = [-path["env_infos"]["reward_ctrl"] for path in paths]
        logger.logkv(prefix + "AvgForwardVel", np.mean(np.concatenate(velocities)))
        logger.logkv(prefix + "AvgFinalForwardVel", np.mean([velocity[-1] for velocity in velocities]))
        logger.logkv(prefix + "AvgCtrlCost", np.mean(np.concatenate(costs)))
