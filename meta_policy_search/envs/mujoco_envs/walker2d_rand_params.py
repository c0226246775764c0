"""Walker, whose masses, inertias, damping and friction are the task."""
from typing import Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.base import Rows
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.envs.mujoco_envs.random_env import BatchedRandomEnv, RandomEnv
from meta_policy_search.envs.mujoco_envs.walker2d import BatchedWalker2DEnv
from meta_policy_search.types import Infos, Path

__all__ = ["BatchedWalker2DRandParamsEnv", "Walker2DRandParamsEnv"]

SURVIVAL_REWARD = 1.0  # per step


class BatchedWalker2DRandParamsEnv(BatchedRandomEnv, BatchedWalker2DEnv):
    """`num_envs` copies of `Walker2DRandParamsEnv`, which says everything about them."""

    frame_skip = 5  # of 0.002 s: a step takes 0.01 s

    def _rewards(self, before: State, actions: np.ndarray, after: State, rows: Rows) -> Tuple[np.ndarray, Infos]:
        reward_run = self._forward_velocity(before, after)
        reward_ctrl = self._control_reward(actions)
        return reward_run + reward_ctrl + SURVIVAL_REWARD, {"reward_run": reward_run, "reward_ctrl": reward_ctrl}

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """See `Walker2DRandParamsEnv`."""
        self._log_velocity(paths, prefix, "reward_run")


class Walker2DRandParamsEnv(RandomEnv):
    """A walker that is to walk forward, with a body and a ground that differ from task to task.

    Observation (float64 `[17]`), action (float64 `[6]` in [-1, 1]), start and end are those of `Walker2DRandDirecEnv`,
    which has tables of them; but actions are held for 5 simulation steps of 0.002 s.

    Reward per step: `(x' - x) / 0.01 s - 0.001 * |action|^2 + 1`, with `x` and `x'` the positions of the torso before
    and after the step in m, and the action as clipped. `env_infos` holds the first two terms: `reward_run`, the mean
    velocity during the step, m/s, and `reward_ctrl`.

    Tasks: dicts of arrays of physical parameters; the masses of the bodies, their moments of inertia, the damping of
    the joints and the friction of the geometries are those of the model, each number times `b^u` with `b` 1.5 (damping:
    1.3) and `u` uniform in [-`log_scale_limit`, `log_scale_limit`]. `RandomEnv` has a table of them. The parameters are
    not observed.

    `log_diagnostics` logs `AvgForwardVel` and `AvgFinalForwardVel`, the velocity over all steps and over the last steps
    of the paths, m/s, and `AvgCtrlCost`.

    Args:
        log_scale_limit: half width of the exponents' distribution, dimensionless, at least zero; 3.0 by default, as
            published, which scales masses by factors between 0.30 and 3.4.
        rand_params: which of `RAND_PARAMS` a task changes; all by default.
        engine: `"mujoco"`, the official package, or `"mujoco-py"`, MuJoCo 2.1.0; by default what the environment
            variable `META_POLICY_SEARCH_ENGINE` names, or else `"mujoco"`. The environment is the same with either.
        inertials: `"mujoco210"` (default), the robot's masses and inertias as the engine of the papers has them, or
            `"modern"`, as the installed MuJoCo computes them.
        num_threads: native threads that step the copies of `make_batched`; by default all cores that the process may
            use. Results do not depend on it.
        render_mode: `"rgb_array"` to draw pictures by `render`; None (default) for none.

    Raises:
        TypeError, ValueError: an argument is none of the above; `set_task`: see `RandomEnv`.
        ImportError: the engine or `gymnasium` is not installed; says what to run.

    References:
        The public code of rand_param_envs (github.com/dennisl88/rand_param_envs), in which it is
        `Walker2DRandParamsEnv`; used in ProMP, Rothfuss et al. 2018 (arXiv:1810.06784).
    """

    batched_class = BatchedWalker2DRandParamsEnv

    def __init__(
        self,
        log_scale_limit: float = 3.0,
        rand_params: Sequence[str] = RandomEnv.RAND_PARAMS,
        *,
        engine: Optional[str] = None,
        inertials: str = "mujoco210",
        num_threads: Optional[int] = None,
        render_mode: Optional[str] = None,
    ) -> None:
        super().__init__(
            log_scale_limit, rand_params, engine=engine, inertials=inertials, num_threads=num_threads,
            render_mode=render_mode,
        )
