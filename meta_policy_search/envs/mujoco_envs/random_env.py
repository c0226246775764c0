"""Robots whose physics differ from task to task."""
from typing import Any, Dict, List, Mapping, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.base import BatchedMujocoEnv, MujocoMetaEnv, RobotArguments
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.types import Infos, Rows, Task
from meta_policy_search.utils.checks import check_choice, check_non_negative
from meta_policy_search.utils.signatures import Unpack

SCALE_BASES = {"body_mass": 1.5, "dof_damping": 1.3, "body_inertia": 1.5, "geom_friction": 1.5}
"""Physical parameters that can differ between tasks, each with the base of its random multipliers."""


class BatchedRandomEnv(BatchedMujocoEnv):
    """`num_envs` copies of a `RandomEnv`, whose arguments it takes; by default the reward is for velocity."""

    def __init__(self, num_envs: int, *, log_scale_limit: float, rand_params: Sequence[str] = tuple(SCALE_BASES),
                 **engine: Any) -> None:
        self.log_scale_limit = check_non_negative("log_scale_limit", log_scale_limit)
        names = {check_choice("rand_params", name, SCALE_BASES) for name in rand_params}
        if not names:
            raise ValueError(f"rand_params: expected one or more of {list(SCALE_BASES)}, got {rand_params!r}")
        self.rand_params = tuple(name for name in SCALE_BASES if name in names)
        super().__init__(num_envs, **engine)
        self._tasks: List[Task] = [{name: self.engine.get_parameter(name) for name in self.rand_params}] * num_envs

    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws dicts of parameters, see `RandomEnv`."""
        return [{name: self._scaled(name, rng) for name in self.rand_params} for _ in range(n_tasks)]

    def set_tasks(self, tasks: Sequence[Task]) -> None:
        """See `BatchedEnv.set_tasks`; environments that are given the same object share one model."""
        self._check_count(tasks)
        checked: Dict[int, Dict[str, np.ndarray]] = {}
        for i, task in enumerate(tasks):
            if id(task) not in checked:
                checked[id(task)] = self._check_task(f"task {i}", task)
        self._tasks = [checked[id(task)] for task in tasks]
        self.engine.set_parameters(self._tasks)

    def get_tasks(self) -> List[Task]:
        return [{name: values.copy() for name, values in task.items()} for task in self._tasks]

    def _rewards(self, before: State, actions: np.ndarray, after: State, rows: Rows) -> Tuple[np.ndarray, Infos]:
        return self._run_rewards(self._forward_velocity(before, after), actions, after)

    def _scaled(self, name: str, rng: np.random.Generator) -> np.ndarray:
        values = self.engine.get_parameter(name)
        return values * SCALE_BASES[name] ** rng.uniform(-self.log_scale_limit, self.log_scale_limit, values.shape)

    def _check_task(self, name: str, task: Task) -> Dict[str, np.ndarray]:
        if not isinstance(task, Mapping):
            raise TypeError(f"{name}: expected a dict of parameter arrays, got {task!r}")
        checked = {}
        for parameter, values in task.items():
            check_choice(f"{name}: parameter", parameter, SCALE_BASES)
            values = np.array(values, dtype=np.float64)
            shape = self.engine.get_parameter(parameter).shape
            if values.shape != shape:
                raise ValueError(f"{name}: {parameter}: expected shape {shape}, got {values.shape}")
            if not (np.isfinite(values) & (values >= 0.0)).all():
                raise ValueError(f"{name}: {parameter}: expected finite numbers of at least 0, got {values.tolist()}")
            checked[parameter] = values
        return checked


class RandomEnv(MujocoMetaEnv):
    """Base of environments in which masses, inertias, damping and friction of a robot are what a task is.

    A subclass names its batched form, which names the robot; see `BatchedMujocoEnv` for what else that can state:

        class BatchedHopperEnv(BatchedRandomEnv):
            robot, frame_skip, start_noise = "hopper", 4, 0.005

        class HopperRandParamsEnv(RandomEnv):
            batched_class = BatchedHopperEnv

    Tasks:
        Dicts of parameter arrays, which are not observed. Each number of each array is that of the model times
        `base ** u`, with `u` uniform in [-`log_scale_limit`, `log_scale_limit`], drawn for each number alone:

        =============  ==================  ====  ==========================================================
        parameter      shape               base  meaning
        =============  ==================  ====  ==========================================================
        body_mass      `[bodies]`          1.5   masses of the bodies, kg; the first is the world's, zero
        dof_damping    `[nv]`              1.3   damping of the joints, N s/m or N m s/rad
        body_inertia   `[bodies, 3]`       1.5   principal moments of inertia, kg m^2
        geom_friction  `[geometries, 3]`   1.5   friction: sliding (no unit), torsional (m), rolling (m)
        =============  ==================  ====  ==========================================================

        What MuJoCo derives from masses and inertias is recomputed for each task (public code leaves it as it was in
        the unchanged model). Moments of inertia are scaled one by one, so they need not be those of any solid body; the
        equations of motion are well defined all the same.

    Args:
        log_scale_limit: half width of the exponents' distribution, dimensionless, at least zero; 3.0 by default, as
            published, which scales masses by factors between 0.30 and 3.4.
        rand_params: which of `RAND_PARAMS` a task changes; all by default. What a task does not hold is as in the
            model.

    Raises:
        TypeError, ValueError: an argument is none of the above; `set_task`: the task has an unknown parameter, or one
            of the wrong shape, negative or not finite.
        ImportError: the engine or `gymnasium` is not installed; says what to run.
    """

    RAND_PARAMS = tuple(SCALE_BASES)
    batched_class = BatchedRandomEnv

    def __init__(self, log_scale_limit: float = 3.0, rand_params: Sequence[str] = RAND_PARAMS,
                 **robot: Unpack[RobotArguments]) -> None:
        super().__init__(log_scale_limit=log_scale_limit, rand_params=rand_params, **robot)
