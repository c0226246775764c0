"""Half cheetah, running forward or backward."""
from typing import Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv, Rows
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.envs.mujoco_envs.half_cheetah import BatchedHalfCheetahEnv
from meta_policy_search.envs.mujoco_envs.tasks import DirectionTasks
from meta_policy_search.types import Infos, Path

__all__ = ["BatchedHalfCheetahRandDirecEnv", "HalfCheetahRandDirecEnv"]

class BatchedHalfCheetahRandDirecEnv(DirectionTasks, BatchedHalfCheetahEnv):
    """`num_envs` copies of `HalfCheetahRandDirecEnv`, which says everything about them."""

    def _rewards(self, before: State, actions: np.ndarray, after: State, rows: Rows) -> Tuple[np.ndarray, Infos]:
        reward_run = self.goals[rows] * self._forward_velocity(before, after)
        reward_ctrl = self._control_reward(actions)
        return reward_run + reward_ctrl, {"reward_run": reward_run, "reward_ctrl": reward_ctrl}

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """See `HalfCheetahRandDirecEnv.log_diagnostics`."""
        self._log_velocity(paths, prefix, "reward_run")


class HalfCheetahRandDirecEnv(MujocoMetaEnv):
    """A half cheetah that is to run forward in one half of the tasks and backward in the other.

    The direction is not observed: an agent learns it from rewards alone, so that a policy which is not adapted can do
    no better than stand still. The task is that of MAML (arXiv:1703.03400, section 5.3) and ProMP (arXiv:1810.06784).

    Observation, float64 `[17]`: `qpos[1:]`, then `qvel`.

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

    Action, float64 `[6]` in [-1, 1], dimensionless; clipped to it. Held for 5 simulation steps of 0.01 s.

    =====  =====================================================================
    index  action
    =====  =====================================================================
    0-2    share of the torque on the back thigh, shin, foot: 120, 90, 60 N m
    3-5    share of the torque on the front thigh, shin, foot: 120, 60, 30 N m
    =====  =====================================================================

    Reward per step: `direction * (x' - x) / 0.05 s - 0.05 * |action|^2`, with `x` and `x'` the positions of the torso
    before and after the step in m, and the action as clipped (the same as the action as given under `normalize`, as
    the published experiments have it). `env_infos` holds the two terms: `reward_run`, the mean velocity during the
    step in the direction asked for, m/s, and `reward_ctrl`.

    Tasks: -1.0 (backward) or 1.0 (forward), with equal probability.

    Start: positions of the model plus noise uniform in [-0.1, 0.1] (m, rad) in every coordinate, velocities normal
    with standard deviation 0.1 (m/s, rad/s).

    End: never; the sampler ends a path, published experiments after 100 or 200 steps.

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
    """

    batched_class = BatchedHalfCheetahRandDirecEnv

    def __init__(
        self,
        goal_direction: Optional[float] = None,
        *,
        engine: Optional[str] = None,
        inertials: str = "mujoco210",
        num_threads: Optional[int] = None,
        render_mode: Optional[str] = None,
    ) -> None:
        super().__init__(
            goal_direction=1.0 if goal_direction is None else goal_direction, engine=engine, inertials=inertials,
            num_threads=num_threads, render_mode=render_mode,
        )

    def log_diagnostics(self, paths: Sequence[Path], prefix: str = "") -> None:
        """Logs the velocity in the direction asked for and the control cost.

        `AvgForwardVel` and `AvgCtrlCost` are means over all steps, `AvgFinalForwardVel` is the mean over the last
        steps of the paths; m/s and reward per step.

        Args:
            paths: paths of this environment, of all tasks.
            prefix: put before each key.
        """
        super().log_diagnostics(paths, prefix)
