"""Hopper with task-specific physical parameters."""
from typing import Optional, Sequence

from meta_policy_search.envs.mujoco_envs.base import RandomEnv
from meta_policy_search.envs.mujoco_envs.robots import HOPPER
from meta_policy_search.types import NumThreads, RenderMode


class HopperRandParamsEnv(RandomEnv):
    """A hopper with task-specific masses, inertias, damping and friction hops forward.

    The robot is planar and has one leg (Erez, Tassa and Todorov 2011, "Infinite-horizon model predictive control for
    periodic tasks with contacts").

    Observation:
        float64 `[11]`: `qpos[1:]`, then `qvel` clipped to [-10, 10].

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

    Action:
        float64 `[3]`, clipped to [-1, 1], held for 4 simulation steps of 0.002 s.

        =====  ==================================================
        index  action
        =====  ==================================================
        0-2    torque on thigh, leg and foot, in units of 200 N m
        =====  ==================================================

    Reward:
        `(x' - x) / 0.008 s - 0.001 * |action|^2 + 1` per step. `x` and `x'` are the positions of the torso before and
        after the step, m; `action` is the clipped action. `env_infos` contain the first two terms, `reward_run` (mean
        velocity during the step, m/s) and `reward_ctrl`.

    Tasks:
        A dict of physical parameters, which are not observed. Each number in the model is multiplied by `base ** u`
        with a separate `u`, uniform in [-`log_scale_limit`, `log_scale_limit`].

        =============  ==================  ====  ==========================================================
        parameter      shape               base  meaning
        =============  ==================  ====  ==========================================================
        body_mass      `[bodies]`          1.5   mass of each body, kg; zero for the first body (world)
        dof_damping    `[nv]`              1.3   damping of each joint coordinate, N s/m or N m s/rad
        body_inertia   `[bodies, 3]`       1.5   principal moments of inertia of each body, kg m^2
        geom_friction  `[geometries, 3]`   1.5   friction: sliding (unitless), torsional (m), rolling (m)
        =============  ==================  ====  ==========================================================

        Constants that MuJoCo derives from masses and inertias are recomputed for each task; see `RandomEnv`.

    Start:
        Positions of the model file (upright, torso at a height of 1.25 m) and zero velocities, plus uniform noise in
        [-0.005, 0.005] (m, rad, m/s, rad/s).

    End:
        The path terminates when the height of the torso is at most 0.7 m, its pitch is outside (-0.2, 0.2) rad, or any
        other angle or a velocity is outside (-100, 100) (rad, m/s, rad/s).

    Logs:
        `AvgForwardVel`: mean of `reward_run` over all steps, m/s. `AvgFinalForwardVel`: mean of `reward_run` over the
        last steps of the paths, m/s. `AvgCtrlCost`: mean of `-reward_ctrl`.

    Args:
        log_scale_limit: half-width of the distribution of the exponents `u`, at least 0. The default, 3.0, is the
            published value and scales masses by factors between 0.30 and 3.4.
        rand_params: names of the parameters that a task changes; default all.
        engine, inertials, num_threads, render_mode: see `MujocoMetaEnv`.

    References:
        `HopperRandParamsEnv` in the public code of rand_param_envs (github.com/dennisl88/rand_param_envs), used by
        ProMP, Rothfuss et al. 2018 (arXiv:1810.06784).
    """

    def __init__(self, log_scale_limit: float = 3.0, rand_params: Sequence[str] = RandomEnv.RAND_PARAMS, *,
                 engine: Optional[str] = None, inertials: str = "mujoco210", num_threads: NumThreads = None,
                 render_mode: RenderMode = None) -> None:
        super().__init__(HOPPER, log_scale_limit, rand_params, engine=engine, inertials=inertials,
                         num_threads=num_threads, render_mode=render_mode)
