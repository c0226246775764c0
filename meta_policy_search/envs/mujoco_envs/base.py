"""Base classes of MuJoCo environments, which combine a robot, a family of tasks and a physics engine.

Robots are defined in `robots.py`, families of tasks in `tasks.py`, physics engines in `engines`.
"""
import copy
from typing import Dict, List, Optional, Sequence

import numpy as np

from meta_policy_search.envs.interface import BatchableMetaEnv, BatchedEnv
from meta_policy_search.envs.mujoco_envs.engines import chosen_engine, make_engine
from meta_policy_search.envs.mujoco_envs.robots import Robot
from meta_policy_search.envs.mujoco_envs.tasks import SCALE_BASES, RandomParameters, TaskFamily
from meta_policy_search.envs.scenery import Scenery
from meta_policy_search.types import BatchedStep, NumThreads, Path, RenderMode, Task
from meta_policy_search.utils.gym_import import gym

MAX_THREADS = 4
"""Maximum number of Python threads that step one multithreaded engine. Additional threads cost more Python time than
they save."""


class BatchedMujocoEnv(BatchedEnv):
    """Vectorized environment of `num_envs` copies of a MuJoCo environment.

    A step clips the actions to the action space and holds them for `robot.frame_skip` simulation steps. The
    observation, reward and end of each copy depend only on its states before and after the step.

    Args:
        num_envs: number of copies, at least 1.
        robot: a `Robot`: the model, observations and the task-independent terms of the reward.
        tasks: the family of tasks.
        engine, inertials, num_threads: see `MujocoMetaEnv`.

    Attributes:
        engine: the `Engine` that stores and simulates the states.
        dt: duration of an environment step, s.
    """

    def __init__(self, num_envs: int, robot: Robot, tasks: TaskFamily, *, engine: Optional[str] = None,
                 inertials: str = "mujoco210", num_threads: NumThreads = None) -> None:
        super().__init__(num_envs)
        self.robot, self.tasks = robot, tasks
        self.engine = make_engine(engine, robot.model, self.num_envs, robot.frame_skip, inertials, num_threads,
                                  robot.derived)
        self.max_threads = min(MAX_THREADS, self.engine.threads())
        self.dt = self.engine.dt
        size = robot.observations(self.engine.get_state(np.array([0]))).shape[1]
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (size,), np.float64)
        self.action_space = gym.spaces.Box(self.engine.control_low, self.engine.control_high, dtype=np.float64)
        self._keep_tasks([tasks.first_task(self.engine)] * self.num_envs)

    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        return self.tasks.sample(n_tasks, rng, self.engine)

    def set_tasks(self, tasks: Sequence[Task]) -> None:
        """Sets the task of each copy. A task object that occurs several times is checked only once."""
        self._check_count(tasks)
        tasks = list(tasks)
        checked: Dict[int, Task] = {}
        for i, task in enumerate(tasks):
            if id(task) not in checked:
                checked[id(task)] = self.tasks.check(f"task {i}", task, self.engine)
        parameters = {key: self.tasks.parameters(task, self.engine) for key, task in checked.items()}
        if None not in parameters.values():
            self.engine.set_parameters([parameters[id(task)] for task in tasks])  # type: ignore[misc]
        self._keep_tasks([checked[id(task)] for task in tasks])

    def get_tasks(self) -> List[Task]:
        return copy.deepcopy(self._tasks)

    def reset(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        qpos, qvel = np.empty((len(rngs), self.engine.nq)), np.empty((len(rngs), self.engine.nv))
        for i, rng in enumerate(rngs):
            qpos[i], qvel[i] = self.robot.start_state(self.engine.init_qpos, self.engine.nv, rng)
        self.engine.set_state(qpos, qvel, env_ids)
        return self.robot.observations(self.engine.get_state(env_ids))

    def step(self, actions: np.ndarray, env_ids: Optional[np.ndarray] = None) -> BatchedStep:
        """Takes one step in the selected copies; see `BatchedEnv.step`.

        Raises:
            PhysicsError: the simulation diverged.
        """
        actions, _ = self._rows(actions, env_ids)
        actions = np.clip(actions, self.action_space.low, self.action_space.high)
        before = self.engine.get_state(env_ids)
        self.engine.step(actions, env_ids)
        after = self.engine.get_state(env_ids)
        position = self.robot.position(after)
        velocity = (position - self.robot.position(before)) / self.dt
        goals = self._goals if env_ids is None else self._goals[env_ids]
        progress, task_infos = self.tasks.progress(velocity, position, goals)
        rewards, infos = self.robot.rewards(progress, actions, after)
        return BatchedStep(self.robot.observations(after), rewards, self.robot.terminated(after),
                           np.zeros(len(actions), dtype=bool), {**task_infos, **infos})

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        self.robot.log_diagnostics(paths, prefix)

    def _keep_tasks(self, tasks: List[Task]) -> None:
        self._tasks, self._goals = tasks, np.array(tasks)  # `step` needs an array with one row per copy


class MujocoMetaEnv(BatchableMetaEnv):
    """A MuJoCo meta-environment: a `BatchedMujocoEnv` with `num_envs=1`.

    Args:
        robot: a `Robot`: the model, observations and the task-independent terms of the reward.
        tasks: the family of tasks.
        engine: physics engine, `"mujoco"` (the official package) or `"mujoco-py"` (MuJoCo 2.1.0). None (default): the
            value of the environment variable `META_POLICY_SEARCH_ENGINE`, or `"mujoco"` if it is not set.
        inertials: source of the robot's masses and inertias: `"mujoco210"` (default; MuJoCo 2.1.0) or `"modern"`
            (computed by the installed MuJoCo).
        num_threads: number of native threads that step a vectorized environment. None (default): all cores available
            to the process. It does not affect the results. The engine `"mujoco-py"` always uses one thread.
        render_mode: `"rgb_array"` to enable `render`; default None.

    Raises:
        TypeError, ValueError: an argument is invalid; also raised by `set_task` for an invalid task.
        ImportError: the engine or `gymnasium`, which contains the model files, is not installed.
    """

    batched_class = BatchedMujocoEnv
    _batched: BatchedMujocoEnv
    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, robot: Robot, tasks: TaskFamily, *, engine: Optional[str] = None, inertials: str = "mujoco210",
                 num_threads: NumThreads = None, render_mode: RenderMode = None) -> None:
        super().__init__(render_mode=render_mode, robot=robot, tasks=tasks, engine=chosen_engine(engine),
                         inertials=inertials, num_threads=num_threads)
        self.metadata = {**self.metadata, "render_fps": round(1.0 / self.dt)}

    @property
    def dt(self) -> float:
        """Duration of an environment step, s."""
        return self._batched.dt

    @property
    def task_dimensions(self) -> int:
        """Number of coordinates of `tasks_at`; 0 for environments without `tasks_at`."""
        return self._batched.tasks.dimensions

    def tasks_at(self, points: np.ndarray) -> List[Task]:
        """Returns the tasks at points of the unit cube; see `MetaEnv`."""
        return self._batched.tasks.tasks_at(points)

    @property
    def position(self) -> Optional[np.ndarray]:
        """Position `(x, y)` of the robot on the ground, float64 `[2]`, m; None for robots that move along a line."""
        return self._batched.engine.get_state().qpos[0, :2] if self._batched.robot.moves_in_plane else None

    def scenery(self) -> Scenery:
        """Returns what drawings from above show in addition to the robot, such as the goal."""
        return self._batched.tasks.scenery(self.get_task())

    def close(self) -> None:
        """Ends the rendering process. The environment, including `render`, can still be used."""
        self._batched.engine.close_camera()

    def _draw(self) -> np.ndarray:
        return self._batched.engine.render()


class RandomEnv(MujocoMetaEnv):
    """Base class of environments whose tasks are masses, inertias, damping and friction of a robot.

    The robot is rewarded for its velocity along x. A subclass passes a robot of `envs.mujoco_envs.robots`, or a custom
    `Robot`, to the constructor::

        class HopperRandParamsEnv(RandomEnv):
            def __init__(self, log_scale_limit=3.0):
                super().__init__(HOPPER, log_scale_limit)

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

        Parameters that a task does not contain keep the values of the model. Constants that MuJoCo derives from masses
        and inertias are recomputed for each task (the public code does not recompute them). The three moments of
        inertia of a body are scaled independently. They may be impossible for a solid body, but the equations of
        motion are still well defined.

    Args:
        robot: a `Robot`: the model, observations and the task-independent terms of the reward.
        log_scale_limit: half-width of the distribution of the exponents `u`, at least 0. The default, 3.0, is the
            published value and scales masses by factors between 0.30 and 3.4.
        rand_params: names of the parameters that a task changes; default all.
        engine, inertials, num_threads, render_mode: see `MujocoMetaEnv`.

    Raises:
        TypeError, ValueError: an argument is invalid. `set_task`: the task has an unknown parameter, or a parameter has
            the wrong shape, is negative or is not finite.
        ImportError: the engine or `gymnasium`, which contains the model files, is not installed.

    Attributes:
        RAND_PARAMS: names of all parameters that a task can change.
    """

    RAND_PARAMS = tuple(SCALE_BASES)

    def __init__(self, robot: Robot, log_scale_limit: float = 3.0, rand_params: Sequence[str] = RAND_PARAMS, *,
                 engine: Optional[str] = None, inertials: str = "mujoco210", num_threads: NumThreads = None,
                 render_mode: RenderMode = None) -> None:
        super().__init__(robot, RandomParameters(log_scale_limit, rand_params), engine=engine, inertials=inertials,
                         num_threads=num_threads, render_mode=render_mode)
