"""Swimmer, swimming at a given velocity."""
from typing import Any, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv, Rows
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.envs.mujoco_envs.tasks import VelocityTasks
from meta_policy_search.types import Infos, Path

__all__ = ["BatchedSwimmerRandVelEnv", "SwimmerRandVelEnv"]

CONTROL_COST = 1e-4  # reward lost per squared unit of action, per step
START_NOISE = 0.1  # half width of start positions (m, rad) and velocities (m/s, rad/s)


class BatchedSwimmerRandVelEnv(VelocityTasks):
    """`num_envs` copies of `SwimmerRandVelEnv`, which says everything about them."""

    robot = "swimmer"
    frame_skip = 4  # of 0.01 s: a step takes 0.04 s

    def __init__(
        self, num_envs: int, *, min_velocity: float = 0.1, max_velocity: float = 0.2, **engine: Any
    ) -> None:
        super().__init__(num_envs, min_velocity=min_velocity, max_velocity=max_velocity, **engine)

    def _start_state(self, rng: np.random.Generator) -> Tuple[np.ndarray, np.ndarray]:
        return self._uniform_start(START_NOISE, rng)

    def _observations(self, state: State) -> np.ndarray:
        return np.concatenate((state.qpos[:, 2:], state.qvel), axis=1)

    def _rewards(self, before: State, actions: np.ndarray, after: State, rows: Rows) -> Tuple[np.ndarray, Infos]:
        forward_vel = self._forward_velocity(before, after)
        reward_fwd = -np.abs(forward_vel - self.goals[rows])
        reward_ctrl = -CONTROL_COST * np.square(actions).sum(axis=1)
        infos = {"forward_vel": forward_vel, "reward_fwd": reward_fwd, "reward_ctrl": reward_ctrl}
        return reward_fwd + reward_ctrl, infos

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """See `SwimmerRandVelEnv`."""
        self._log_velocity(paths, prefix, "forward_vel")


class SwimmerRandVelEnv(MujocoMetaEnv):
    """A chain of three links in a viscous fluid that is to swim along x at a velocity of its task's own.

    The robot is that of Coulom 2002 ("Reinforcement learning using neural networks, with applications to motor
    control"); its links lie in a plane and collide with nothing. The velocity asked for is not observed: an agent
    learns it from rewards alone. One of the environments of ProMP's public code (arXiv:1810.06784).

    Observation, float64 `[8]`: `qpos[2:]`, then `qvel`.

    =====  ==================================================  =====
    index  observation                                         unit
    =====  ==================================================  =====
    0      heading of the first link                           rad
    1-2    angle of the second and third link to the one       rad
           before
    3-4    velocity of the first link along x and y            m/s
    5      angular velocity of the first link                  rad/s
    6-7    angular velocity of the second and third link to    rad/s
           the one before
    =====  ==================================================  =====

    Action, float64 `[2]` in [-1, 1], dimensionless; clipped to it: shares of the torques on the second and the third
    link, 150 N m each. Held for 4 simulation steps of 0.01 s.

    Reward per step: `-|v - goal| - 0.0001 * |action|^2`, with the mean velocity `v = (x' - x) / 0.04 s`, where `x` and
    `x'` are the positions of the first link before and after the step in m, and the action as clipped. `env_infos`
    holds `forward_vel` (`v`, m/s) and the two terms, `reward_fwd` and `reward_ctrl`. (In the public code of ProMP the
    first term lacks its minus sign, so that it pays to miss the velocity.)

    Tasks: the velocity asked for, m/s, uniform in [`min_velocity`, `max_velocity`). `set_task` takes any finite number,
    so that velocities outside the distribution can be tried too.

    Start: positions of the model (stretched along x) and zero velocities, plus noise uniform in [-0.1, 0.1] (m, rad,
    m/s, rad/s) in every coordinate.

    End: never; the sampler ends a path, published experiments after 200 steps.

    `log_diagnostics` logs `AvgForwardVel` and `AvgFinalForwardVel`, the velocity over all steps and over the last steps
    of the paths, m/s, and `AvgCtrlCost`.

    Args:
        min_velocity: lower end of the task distribution, m/s; 0.1 by default.
        max_velocity: its upper end, m/s, above the lower one; 0.2 by default. The mean of both is the task until
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
        The public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784), in which it is `SwimmerRandVelEnv`.
    """

    batched_class = BatchedSwimmerRandVelEnv

    def __init__(
        self,
        min_velocity: float = 0.1,
        max_velocity: float = 0.2,
        *,
        engine: Optional[str] = None,
        inertials: str = "mujoco210",
        num_threads: Optional[int] = None,
        render_mode: Optional[str] = None,
    ) -> None:
        super().__init__(
            min_velocity=min_velocity, max_velocity=max_velocity, engine=engine, inertials=inertials,
            num_threads=num_threads, render_mode=render_mode,
        )
