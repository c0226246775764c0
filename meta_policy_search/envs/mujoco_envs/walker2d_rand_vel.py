"""Walker, walking at a given velocity."""
from typing import Any, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv, Rows
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.envs.mujoco_envs.tasks import VelocityTasks
from meta_policy_search.envs.mujoco_envs.walker2d import BatchedWalker2DEnv
from meta_policy_search.types import Infos, Path

__all__ = ["BatchedWalker2DRandVelEnv", "Walker2DRandVelEnv"]

SURVIVAL_REWARD = 15.0  # per step; so large that to fall never pays, however far the velocity is off


class BatchedWalker2DRandVelEnv(VelocityTasks, BatchedWalker2DEnv):
    """`num_envs` copies of `Walker2DRandVelEnv`, which says everything about them."""

    def __init__(self, num_envs: int, *, max_velocity: float = 10.0, **engine: Any) -> None:
        super().__init__(num_envs, min_velocity=0.0, max_velocity=max_velocity, **engine)

    def _rewards(self, before: State, actions: np.ndarray, after: State, rows: Rows) -> Tuple[np.ndarray, Infos]:
        forward_vel = self._forward_velocity(before, after)
        reward_run = -np.abs(forward_vel - self.goals[rows])
        reward_ctrl = self._control_reward(actions)
        infos = {"forward_vel": forward_vel, "reward_run": reward_run, "reward_ctrl": reward_ctrl}
        return reward_run + reward_ctrl + SURVIVAL_REWARD, infos

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """See `Walker2DRandVelEnv`."""
        self._log_velocity(paths, prefix, "forward_vel")


class Walker2DRandVelEnv(MujocoMetaEnv):
    """A walker that is to walk at a velocity of its task's own.

    The velocity asked for is not observed: an agent learns it from rewards alone. One of the environments of ProMP's
    public code (arXiv:1810.06784).

    Observation (float64 `[17]`), action (float64 `[6]` in [-1, 1], held for 0.016 s), start and end are those of
    `Walker2DRandDirecEnv`, which has tables of them.

    Reward per step: `-|v - goal| - 0.001 * |action|^2 + 15`, with the mean velocity `v = (x' - x) / 0.016 s`, where `x`
    and `x'` are the positions of the torso before and after the step in m, and the action as clipped. `env_infos` holds
    `forward_vel` (`v`, m/s) and the first two terms, `reward_run` and `reward_ctrl`.

    Tasks: the velocity asked for, m/s, uniform in [0, `max_velocity`). `set_task` takes any finite number, so that
    velocities outside the distribution can be tried too.

    `log_diagnostics` logs `AvgForwardVel` and `AvgFinalForwardVel`, the velocity over all steps and over the last steps
    of the paths, m/s, and `AvgCtrlCost`.

    Args:
        max_velocity: upper end of the task distribution, m/s, above zero; 10.0 by default. Half of it is the task until
            `set_task` is called.
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
        The public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784), in which it is `Walker2DRandVelEnv`.
    """

    batched_class = BatchedWalker2DRandVelEnv

    def __init__(
        self,
        max_velocity: float = 10.0,
        *,
        engine: Optional[str] = None,
        inertials: str = "mujoco210",
        num_threads: Optional[int] = None,
        render_mode: Optional[str] = None,
    ) -> None:
        super().__init__(
            max_velocity=max_velocity, engine=engine, inertials=inertials, num_threads=num_threads,
            render_mode=render_mode,
        )
