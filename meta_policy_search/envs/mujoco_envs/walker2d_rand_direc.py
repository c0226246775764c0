"""Walker, walking forward or backward."""
from typing import Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv, Rows
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.envs.mujoco_envs.tasks import DirectionTasks
from meta_policy_search.envs.mujoco_envs.walker2d import BatchedWalker2DEnv
from meta_policy_search.types import Infos, Path

__all__ = ["BatchedWalker2DRandDirecEnv", "Walker2DRandDirecEnv"]

SURVIVAL_REWARD = 1.0  # per step


class BatchedWalker2DRandDirecEnv(DirectionTasks, BatchedWalker2DEnv):
    """`num_envs` copies of `Walker2DRandDirecEnv`, which says everything about them."""

    def _rewards(self, before: State, actions: np.ndarray, after: State, rows: Rows) -> Tuple[np.ndarray, Infos]:
        reward_run = self.goals[rows] * self._forward_velocity(before, after)
        reward_ctrl = self._control_reward(actions)
        return reward_run + reward_ctrl + SURVIVAL_REWARD, {"reward_run": reward_run, "reward_ctrl": reward_ctrl}

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """See `Walker2DRandDirecEnv`."""
        self._log_velocity(paths, prefix, "reward_run")


class Walker2DRandDirecEnv(MujocoMetaEnv):
    """A walker that is to walk forward in one half of the tasks and backward in the other.

    The direction is not observed: an agent learns it from rewards alone. One of the tasks of ProMP
    (arXiv:1810.06784).

    Observation, float64 `[17]`: `qpos[1:]`, then `qvel` clipped to [-10, 10].

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

    Action, float64 `[6]` in [-1, 1], dimensionless; clipped to it. Held for 8 simulation steps of 0.002 s.

    =====  ==================================================================
    index  action
    =====  ==================================================================
    0-2    share of the torque on the right thigh, leg and foot: 100 N m each
    3-5    share of the torque on the left thigh, leg and foot: 100 N m each
    =====  ==================================================================

    Reward per step: `direction * (x' - x) / 0.016 s - 0.001 * |action|^2 + 1`, with `x` and `x'` the positions of the
    torso before and after the step in m, and the action as clipped. `env_infos` holds the first two terms:
    `reward_run`, the mean velocity during the step in the direction asked for, m/s, and `reward_ctrl`.

    Tasks: -1.0 (backward) or 1.0 (forward), with equal probability.

    Start: positions of the model (upright, 1.25 m) and zero velocities, plus noise uniform in [-0.005, 0.005] (m, rad,
    m/s, rad/s) in every coordinate.

    End: when the torso is not between 0.8 m and 2.0 m high, or its pitch not between -1 and 1 rad.

    `log_diagnostics` logs `AvgForwardVel` and `AvgFinalForwardVel`, the velocity in the direction asked for over all
    steps and over the last steps of the paths, m/s, and `AvgCtrlCost`.

    Args:
        goal_direction: -1.0 or 1.0, the task until `set_task` is called; forward by default.
        engine: `"mujoco"`, the official package, or `"mujoco-py"`, MuJoCo 2.1.0; by default what the environment
            variable `META_POLICY_SEARCH_ENGINE` names, or else `"mujoco"`. The environment is the same with either.
        inertials: `"mujoco210"` (default), the robot's masses and inertias as the engine of the papers has them, or
            `"modern"`, as the installed MuJoCo computes them.
        num_threads: native threads that step the copies of `make_batched`; by default all cores that the process may
            use. Results do not depend on it.
        render_mode: `"rgb_array"` to draw pictures by `render`; None (default) for none.

    Raises:
        TypeError, ValueError: an argument is none of the above; so raises `set_task`.
        ImportError: the engine or `gymnasium` is not installed; says what to run.

    References:
        The public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784), in which it is `Walker2DRandDirecEnv`.
    """

    batched_class = BatchedWalker2DRandDirecEnv

    def __init__(
        self,
        goal_direction: float = 1.0,
        *,
        engine: Optional[str] = None,
        inertials: str = "mujoco210",
        num_threads: Optional[int] = None,
        render_mode: Optional[str] = None,
    ) -> None:
        super().__init__(
            goal_direction=goal_direction, engine=engine, inertials=inertials, num_threads=num_threads,
            render_mode=render_mode,
        )
