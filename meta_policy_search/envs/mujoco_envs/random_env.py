"""Robots whose physical parameters differ from task to task."""
from typing import Optional, Sequence

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.robots import Robot
from meta_policy_search.envs.mujoco_envs.tasks import SCALE_BASES, RandomParameters


class RandomEnv(MujocoMetaEnv):
    """Base class of environments whose tasks are masses, inertias, damping and friction of a robot.

    The reward is that for velocity along x. A subclass passes a robot of `envs.mujoco_envs.robots`, or a robot of its
    own, to the constructor::

        class HopperRandParamsEnv(RandomEnv):
            def __init__(self, log_scale_limit=3.0):
                super().__init__(Hopper(), log_scale_limit)

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

        A task may lack parameters: they are those of the model. Quantities that MuJoCo derives from masses and inertias
        are recomputed for each task (the public code leaves them unchanged). Moments of inertia are scaled one by one,
        so they need not belong to a solid body; the equations of motion are well defined nevertheless.

    Args:
        robot: the robot.
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

    Raises:
        TypeError, ValueError: an argument is invalid. `set_task`: the task has an unknown parameter, or one of the
            wrong shape, negative or not finite.
        ImportError: the engine or `gymnasium`, which contains the model files, is not installed.

    Attributes:
        RAND_PARAMS: names of all parameters that a task can change.
    """

    RAND_PARAMS = tuple(SCALE_BASES)

    def __init__(self, robot: Robot, log_scale_limit: float = 3.0, rand_params: Sequence[str] = RAND_PARAMS, *,
                 engine: Optional[str] = None, inertials: str = "mujoco210", num_threads: Optional[int] = None,
                 render_mode: Optional[str] = None) -> None:
        super().__init__(robot, RandomParameters(log_scale_limit, rand_params), engine=engine, inertials=inertials,
                         num_threads=num_threads, render_mode=render_mode)
