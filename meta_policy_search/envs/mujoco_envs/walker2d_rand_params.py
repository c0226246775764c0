"""Walker, whose masses, inertias, damping and friction are the task."""
import dataclasses
from typing import Optional, Sequence

from meta_policy_search.envs.mujoco_envs.base import RandomEnv
from meta_policy_search.envs.mujoco_envs.robots import WALKER2D


class Walker2DRandParamsEnv(RandomEnv):
    """A walker is rewarded for walking forward; its body and the ground differ from task to task.

    Observation:
        float64 `[17]`: `qpos[1:]`, then `qvel` clipped to [-10, 10].

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

    Action:
        float64 `[6]`, clipped to [-1, 1], held for 5 simulation steps of 0.002 s.

        =====  =============================================================
        index  action
        =====  =============================================================
        0-2    torque on the right thigh, leg and foot, in units of 100 N m
        3-5    torque on the left thigh, leg and foot, in units of 100 N m
        =====  =============================================================

    Reward:
        `(x' - x) / 0.01 s - 0.001 * |action|^2 + 1` per step, where `x` and `x'` are the positions of the torso before
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
        When the height of the torso is outside of (0.8, 2) m, or its pitch outside of (-1, 1) rad.

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
        `Walker2DRandParamsEnv`; used in ProMP, Rothfuss et al. 2018 (arXiv:1810.06784).
    """

    def __init__(self, log_scale_limit: float = 3.0, rand_params: Sequence[str] = RandomEnv.RAND_PARAMS, *,
                 engine: Optional[str] = None, inertials: str = "mujoco210", num_threads: Optional[int] = None,
                 render_mode: Optional[str] = None) -> None:
        super().__init__(dataclasses.replace(WALKER2D, frame_skip=5), log_scale_limit, rand_params, engine=engine,
                         inertials=inertials, num_threads=num_threads, render_mode=render_mode)
