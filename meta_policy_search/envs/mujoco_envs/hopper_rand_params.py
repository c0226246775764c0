"""Hopper, whose masses, inertias, damping and friction are the task."""
from typing import Optional, Sequence

from meta_policy_search.envs.mujoco_envs.base import RandomEnv
from meta_policy_search.envs.mujoco_envs.robots import HOPPER


class HopperRandParamsEnv(RandomEnv):
    """A hopper is rewarded for hopping forward; its body and the ground differ from task to task.

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
        float64 `[3]`, clipped to [-1, 1], held for 4 simulation steps of 0.002 s: torques on thigh, leg and foot, in
        units of 200 N m.

    Reward:
        `(x' - x) / 0.008 s - 0.001 * |action|^2 + 1` per step, where `x` and `x'` are the positions of the torso before
        and after the step in m, and the action is clipped. `env_infos` contain the first two terms: `reward_run`, the
        mean velocity during the step, m/s, and `reward_ctrl`.

    Tasks:
        Dicts of parameter arrays, which are not observed. Each number is the one of the model times `base ** u`, where
        `u` is drawn from the uniform distribution over [-`log_scale_limit`, `log_scale_limit`] for each number.

        =============  ==================  ====  ==========================================================
        parameter      shape               base  meaning
        =============  ==================  ====  ==========================================================
        body_mass      `[bodies]`          1.5   masses of the bodies, kg; the first is the world's, zero
        dof_damping    `[nv]`              1.3   damping of the joints, N s/m or N m s/rad
        body_inertia   `[bodies, 3]`       1.5   principal moments of inertia, kg m^2
        geom_friction  `[geometries, 3]`   1.5   friction: sliding (no unit), torsional (m), rolling (m)
        =============  ==================  ====  ==========================================================

        Quantities that MuJoCo derives from masses and inertias are recomputed for each task; see `RandomEnv`.

    Start:
        Positions of the model (upright, 1.25 m) and zero velocities, plus uniform noise in [-0.005, 0.005] (m, rad,
        m/s, rad/s).

    End:
        When the height of the torso is at most 0.7 m, its pitch is outside of (-0.2, 0.2) rad, or another angle or a
        velocity is outside of (-100, 100) (rad, m/s, rad/s).

    Logs:
        `AvgForwardVel` and `AvgFinalForwardVel`: `reward_run`, m/s, averaged over all steps and over the last steps of
        the paths. `AvgCtrlCost`: mean of `-reward_ctrl`.

    Args:
        log_scale_limit: half-width of the distribution of the exponents, at least zero. The published value
            3.0 scales masses by factors between 0.30 and 3.4.
        rand_params: names of the parameters that a task changes; all by default.
        engine: physics engine, `"mujoco"` (the official package) or `"mujoco-py"` (MuJoCo 2.1.0). None: the value of
            the environment variable `META_POLICY_SEARCH_ENGINE`, or else `"mujoco"`.
        inertials: masses and inertias of the robot: `"mujoco210"`, those of MuJoCo 2.1.0, or `"modern"`, those that
            the installed MuJoCo computes.
        num_threads: native threads that step the copies of `make_batched`. None: all cores that the process may use.
            Results do not depend on it. The engine `"mujoco-py"` always uses one thread.
        render_mode: `"rgb_array"` for images by `render`, or None.

    References:
        The public code of rand_param_envs (github.com/dennisl88/rand_param_envs), in which it is
        `HopperRandParamsEnv`; used in ProMP, Rothfuss et al. 2018 (arXiv:1810.06784).
    """

    def __init__(self, log_scale_limit: float = 3.0, rand_params: Sequence[str] = RandomEnv.RAND_PARAMS, *,
                 engine: Optional[str] = None, inertials: str = "mujoco210", num_threads: Optional[int] = None,
                 render_mode: Optional[str] = None) -> None:
        super().__init__(HOPPER, log_scale_limit, rand_params, engine=engine, inertials=inertials,
                         num_threads=num_threads, render_mode=render_mode)
