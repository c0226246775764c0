"""Hopper, whose masses, inertias, damping and friction are the task."""
from typing import Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.base import Rows
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.envs.mujoco_envs.random_env import BatchedRandomEnv, RandomEnv
from meta_policy_search.types import Infos, Path

__all__ = ["BatchedHopperRandParamsEnv", "HopperRandParamsEnv"]

CONTROL_COST = 1e-3  # reward lost per squared unit of action, per step
SURVIVAL_REWARD = 1.0  # per step
START_NOISE = 0.005  # half width of start positions (m, rad) and velocities (m/s, rad/s)
LOWEST_HEIGHT = 0.7  # m, above which the torso has to stay
LARGEST_PITCH = 0.2  # rad, to either side
LARGEST_STATE = 100.0  # rad, m/s, rad/s, of everything but the position of the torso
LARGEST_OBSERVED_VELOCITY = 10.0  # m/s and rad/s; observed velocities are clipped to it


class BatchedHopperRandParamsEnv(BatchedRandomEnv):
    """`num_envs` copies of `HopperRandParamsEnv`, which says everything about them."""

    robot = "hopper"
    frame_skip = 4  # of 0.002 s: a step takes 0.008 s

    def _start_state(self, rng: np.random.Generator) -> Tuple[np.ndarray, np.ndarray]:
        return self._uniform_start(START_NOISE, rng)

    def _observations(self, state: State) -> np.ndarray:
        velocities = np.clip(state.qvel, -LARGEST_OBSERVED_VELOCITY, LARGEST_OBSERVED_VELOCITY)
        return np.concatenate((state.qpos[:, 1:], velocities), axis=1)

    def _rewards(self, before: State, actions: np.ndarray, after: State, rows: Rows) -> Tuple[np.ndarray, Infos]:
        reward_run = self._forward_velocity(before, after)
        reward_ctrl = -CONTROL_COST * np.square(actions).sum(axis=1)
        return reward_run + reward_ctrl + SURVIVAL_REWARD, {"reward_run": reward_run, "reward_ctrl": reward_ctrl}

    def _terminated(self, state: State) -> np.ndarray:
        is_up = (state.qpos[:, 1] > LOWEST_HEIGHT) & (np.abs(state.qpos[:, 2]) < LARGEST_PITCH)
        is_calm = (np.abs(state.qpos[:, 2:]) < LARGEST_STATE).all(axis=1)
        is_calm &= (np.abs(state.qvel) < LARGEST_STATE).all(axis=1)
        return ~(is_up & is_calm)

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """See `HopperRandParamsEnv`."""
        self._log_velocity(paths, prefix, "reward_run")


class HopperRandParamsEnv(RandomEnv):
    """A hopper that is to hop forward, with a body and a ground that differ from task to task.

    The robot is planar and has one leg (Erez, Tassa and Todorov 2011, "Infinite-horizon model predictive control for
    periodic tasks with contacts").

    Observation, float64 `[11]`: `qpos[1:]`, then `qvel` clipped to [-10, 10].

    =====  ============================================  =====
    index  observation                                   unit
    =====  ============================================  =====
    0      height of the torso                           m
    1      pitch of the torso                            rad
    2-4    angle of the thigh, leg and foot              rad
    5      velocity of the torso along x                 m/s
    6      velocity of the torso along z                 m/s
    7      angular velocity of the torso                 rad/s
    8-10   angular velocity of the thigh, leg and foot   rad/s
    =====  ============================================  =====

    Action, float64 `[3]` in [-1, 1], dimensionless; clipped to it: shares of the torques on thigh, leg and foot, 200 N
    m each. Held for 4 simulation steps of 0.002 s.

    Reward per step: `(x' - x) / 0.008 s - 0.001 * |action|^2 + 1`, with `x` and `x'` the positions of the torso before
    and after the step in m, and the action as clipped. `env_infos` holds the first two terms: `reward_run`, the mean
    velocity during the step, m/s, and `reward_ctrl`.

    Tasks: dicts of arrays of physical parameters; the masses of the bodies, their moments of inertia, the damping of
    the joints and the friction of the geometries are those of the model, each number times `b^u` with `b` 1.5 (damping:
    1.3) and `u` uniform in [-`log_scale_limit`, `log_scale_limit`]. `RandomEnv` has a table of them. The parameters are
    not observed.

    Start: positions of the model (upright, 1.25 m) and zero velocities, plus noise uniform in [-0.005, 0.005] (m, rad,
    m/s, rad/s) in every coordinate.

    End: when the torso is not above 0.7 m, its pitch not between -0.2 and 0.2 rad, or an angle or a velocity not
    between -100 and 100 (rad, m/s, rad/s).

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
        `HopperRandParamsEnv`; used in ProMP, Rothfuss et al. 2018 (arXiv:1810.06784).
    """

    batched_class = BatchedHopperRandParamsEnv

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
