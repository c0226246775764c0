"""Meta-World's benchmarks ML1, ML10, ML25 and ML45: a robot arm that reaches, pushes, opens doors, and so on.

Simulation, rewards and tasks are those of the package `metaworld` (version 3), which the extra `[metaworld]` installs.
Here, simulators are built when a task needs one, and copies with the same task share the model of its scene, some 20
MB. The package works here with any MuJoCo from 3.3 on; motions differ slightly from one MuJoCo to the next.

References:
    Yu et al. 2019, "Meta-World: A Benchmark and Evaluation for Multi-Task and Meta Reinforcement Learning",
    arXiv:1910.10897. McLean et al. 2025, "Meta-World+: An Improved, Standardized, RL Benchmark", arXiv:2505.11289.
"""
import ctypes
import functools
import pickle
import weakref
from types import ModuleType
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from meta_policy_search.envs.interface import MetaEnv, PhysicsError
from meta_policy_search.envs.mujoco_envs.engines.camera import Camera
from meta_policy_search.envs.mujoco_envs.engines.mujoco import write_no_warnings
from meta_policy_search.envs.spaces import as_array
from meta_policy_search.types import Task
from meta_policy_search.utils.checks import check_choice, check_int_at_least, check_positive_int, did_you_mean
from meta_policy_search.utils.gym_import import gym

__all__ = ["MetaWorldML1", "MetaWorldML10", "MetaWorldML25", "MetaWorldML45", "MetaWorldTask"]

SPLITS = ("train", "test")
NUM_VARIATIONS = 50  # tasks of each kind in a split


class MetaWorldTask(NamedTuple):
    """A task of Meta-World."""

    env_name: str  # its kind, such as "reach-v3"
    rand_vec: Tuple[float, ...]  # where object and goal are, m; how many numbers depends on the kind


class _MetaWorldEnv(MetaEnv):
    """The base class of the benchmarks: the robot arm in the scene of its task.

    A copy (by pickling or `copy.deepcopy`) has the same task, and has to be reset before the first step.
    """

    _benchmark: str
    metadata = {"render_modes": ["rgb_array"], "render_fps": 80}

    def __init__(self, split: str = "train", seed: int = 0, reward_function_version: str = "v2",
                 render_mode: Optional[str] = None) -> None:
        check_choice("split", split, SPLITS)
        check_int_at_least("seed", seed, 0)
        self._reward_function_version = check_choice("reward_function_version", reward_function_version, ("v1", "v2"))
        self.render_mode = check_choice("render_mode", render_mode, (None, *self.metadata["render_modes"]))
        self._kinds, self._seed = self._kinds_and_seed(split, seed)
        self._simulator: Any = None  # built by the first reset
        self._camera: Optional[Camera] = None
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (39,), np.float64)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (4,), np.float64)

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_simulator": None, "_camera": None}

    def _kinds_and_seed(self, split: str, seed: int) -> Tuple[Tuple[str, ...], int]:
        """Returns the arguments of `draw_tasks` for a split."""
        return tuple(vars(import_metaworld().env_dict)[f"{self._benchmark}_V3"][split]), seed

    @property
    def env_names(self) -> List[str]:
        """The kinds of tasks in this split, in the benchmark's order."""
        return list(self._kinds)

    @property
    def tasks(self) -> List[MetaWorldTask]:
        """All tasks of this split, 50 of each kind, in the benchmark's order."""
        return [task for tasks in draw_tasks(self._kinds, self._seed).values() for task in tasks]

    @functools.cached_property
    def _task(self) -> MetaWorldTask:
        return self.tasks[0]

    def sample_tasks(self, n_tasks: int, rng: Optional[np.random.Generator] = None) -> List[MetaWorldTask]:
        """See `MetaEnv.sample_tasks`; draws from `rng`, by default from this environment's generator."""
        rng, tasks = self.np_random if rng is None else rng, draw_tasks(self._kinds, self._seed)
        return [tasks[self._kinds[rng.integers(len(self._kinds))]][rng.integers(NUM_VARIATIONS)]
                for _ in range(check_positive_int("n_tasks", n_tasks))]

    def set_task(self, task: Task) -> None:
        """Sets the task, a `MetaWorldTask` of any kind; it takes effect with the next reset."""
        self._task = _checked_task(task)

    def get_task(self) -> MetaWorldTask:
        """Returns the task; by default the first one of the split."""
        return self._task

    def reset(self, *, seed: Optional[int] = None, options: Optional[dict] = None) -> Tuple[np.ndarray, Dict[str, Any]]:
        """Starts a new path; returns `(observation [39], {})`."""
        super().reset(seed=None if seed is None else int(seed))  # gym's seeding wants a Python integer
        task = self._task
        if self._simulator is None or self._simulator.shared_as != task:
            self._simulator = None  # delete one model before the next is built
            self._simulator = scene_class(task.env_name)(task, reward_function_version=self._reward_function_version)
            self._simulator.set_task(package_task(task))
        return np.array(self._simulator.reset()[0], dtype=np.float64), {}

    def step(self, action: np.ndarray) -> Tuple[np.ndarray, float, bool, bool, Dict[str, Any]]:
        """Takes one step; returns `(observation [39], reward, terminated, truncated, env_info)`."""
        action = np.clip(as_array("action", action, self.action_space.shape), -1.0, 1.0)
        simulator = self._started_simulator("step")
        observation, reward, terminated, truncated, info = simulator.step(action)
        if warned := simulator.warned():
            raise PhysicsError(f"the simulation of {simulator.shared_as} diverged ({', '.join(warned)})", [0])
        info = {name: bool(value) if name == "success" else float(value) for name, value in info.items()}
        return np.array(observation, dtype=np.float64), float(reward), bool(terminated), bool(truncated), info

    def close(self) -> None:
        """Ends the process that renders images. The environment can still be used, and rendered."""
        self._camera = None

    def _draw(self) -> np.ndarray:
        simulator = self._started_simulator("render")
        for site in simulator._target_site_config:  # only a step would set them
            simulator._set_pos_site(*site)
        self._camera = self._camera or Camera(simulator.model)
        return self._camera.picture(simulator.model, simulator.data.qpos)

    def _started_simulator(self, method: str) -> Any:
        if self._simulator is None:
            raise RuntimeError(f"{method}: call reset() first")
        return self._simulator


class MetaWorldML1(_MetaWorldEnv):
    """Meta-World's ML1: tasks of one kind, such as reaching a place, that differ in where object and goal are.

    The goal is not observed: an agent learns it from rewards alone.

    Observation, float64 `[39]`:

    ========  ==============================================================================================
    entries   meaning
    ========  ==============================================================================================
    0 to 2    position of the hand, m
    3         how far the gripper is open, from 0 to 1
    4 to 10   position of the first object, m, and its orientation, a quaternion
    11 to 17  the same of the second object; zeros where there is none, as is what other kinds of objects lack
    18 to 35  entries 0 to 17 one step before; at the start of a path, those of the start
    36 to 38  zeros, in the place of the goal
    ========  ==============================================================================================

    Action, float64 `[4]` in [-1, 1]: how far to move the hand along x, y and z, cm, and the effort of the gripper,
    which closes where that is positive. A step takes 12.5 ms.

    Reward per step: the package's dense reward of the kind of task, from 0 to 10 (version `v2`). `env_infos` holds
    `success`, bool, whether the goal is reached in this step, and what the package tells of the reward, floats.

    Start: as the task says, nothing is random. End: after 500 steps, by truncation; success does not end a path.

    Tasks: uniform among the 50 of the split, which are the `train_tasks` or `test_tasks` of `metaworld.ML1(env_name,
    seed)`. `set_task` takes a `MetaWorldTask` of any kind; it takes effect with the next reset.

    Args:
        env_name: the kind of tasks, one of the 50 of Meta-World; `"reach-v3"` by default.
        split: `"train"` (default) or `"test"`, tasks with other places than those for training.
        seed: of the tasks; 0 by default. Runs with the same one train, and test, on the same tasks.
        reward_function_version: `"v2"` (default) or `"v1"`, of the package's rewards.
        render_mode: `"rgb_array"` to draw pictures by `render`; None (default) for none.

    Raises:
        ImportError: `metaworld` is not installed.
        ValueError: there is no such kind of task (names the most similar one).
    """

    def __init__(self, env_name: str = "reach-v3", split: str = "train", seed: int = 0,
                 reward_function_version: str = "v2", render_mode: Optional[str] = None) -> None:
        find_kind("env_name", env_name)
        self._env_name = env_name
        super().__init__(split, seed, reward_function_version, render_mode)

    def _kinds_and_seed(self, split: str, seed: int) -> Tuple[Tuple[str, ...], int]:
        return (self._env_name,), seed + (split == "test")


class MetaWorldML10(_MetaWorldEnv):
    """Meta-World's ML10: tasks of 10 kinds for training, and of 5 others for testing.

    A task is drawn uniformly by its kind, then uniformly among the 50 of that kind, which are the `train_tasks` or
    `test_tasks` of `metaworld.ML10(seed)`; to draw these takes a second, once per process (ML45: 5 seconds). Else as
    `MetaWorldML1`.

    Args:
        split: `"train"` (default) or `"test"`, tasks with kinds that are not among those for training.
        seed: of the tasks; 0 by default. Runs with the same one train, and test, on the same tasks.
        reward_function_version: `"v2"` (default) or `"v1"`, of the package's rewards.
        render_mode: `"rgb_array"` to draw pictures by `render`; None (default) for none.

    Raises:
        ImportError: `metaworld` is not installed.
    """

    _benchmark = "ML10"


class MetaWorldML25(_MetaWorldEnv):
    """Meta-World's ML25: 25 kinds for training, 5 for testing, all but `basketball-v3` others; as `MetaWorldML10`.

    Args:
        split: `"train"` (default) or `"test"`, tasks with other kinds than those for training.
        seed: of the tasks; 0 by default. Runs with the same one train, and test, on the same tasks.
        reward_function_version: `"v2"` (default) or `"v1"`, of the package's rewards.
        render_mode: `"rgb_array"` to draw pictures by `render`; None (default) for none.
    """

    _benchmark = "ML25"


class MetaWorldML45(_MetaWorldEnv):
    """Meta-World's ML45: 45 kinds for training, and 5 others for testing; else as `MetaWorldML10`.

    Args:
        split: `"train"` (default) or `"test"`, tasks with kinds that are not among those for training.
        seed: of the tasks; 0 by default. Runs with the same one train, and test, on the same tasks.
        reward_function_version: `"v2"` (default) or `"v1"`, of the package's rewards.
        render_mode: `"rgb_array"` to draw pictures by `render`; None (default) for none.
    """

    _benchmark = "ML45"


def import_metaworld() -> ModuleType:
    """Returns the package; raises `ImportError` with the command that installs it."""
    try:
        import metaworld
        from metaworld.env_dict import ALL_V3_ENVIRONMENTS  # noqa: F401 - what version 3 has
    except ImportError as error:
        raise ImportError("the Meta-World environments need the package metaworld, version 3: run "
                          '`pip install "meta_policy_search[metaworld]"`') from error
    return metaworld


def find_kind(name: str, value: Any) -> type:
    """Returns the simulator's class of the kind of task `value`; errors call it `name`."""
    kinds = import_metaworld().env_dict.ALL_V3_ENVIRONMENTS
    if not isinstance(value, str) or value not in kinds:
        raise ValueError(f"{name}: expected one of Meta-World's {', '.join(kinds)}, got {value!r}"
                         + did_you_mean(value, kinds))
    return kinds[value]


def package_task(task: MetaWorldTask) -> Any:
    """Returns a task as the package has it."""
    return import_metaworld().Task(task.env_name, pickle.dumps({
        "env_cls": find_kind("task", task.env_name), "rand_vec": np.array(task.rand_vec),
        "partially_observable": True}))


@functools.lru_cache(maxsize=None)
def draw_tasks(kinds: Tuple[str, ...], seed: int) -> Dict[str, List[MetaWorldTask]]:
    """Returns the tasks that the package's benchmarks draw with a seed, from NumPy's global generator."""
    global_state = np.random.get_state()
    np.random.seed(seed)
    try:
        return {kind: _draw_tasks_of(kind) for kind in kinds}
    finally:
        np.random.set_state(global_state)


def _draw_tasks_of(kind: str) -> List[MetaWorldTask]:
    simulator = scene_class(kind)(None)
    simulator._freeze_rand_vec, simulator._set_task_called = False, True
    tasks = []
    for _ in range(NUM_VARIATIONS):
        simulator.reset_model()
        simulator.reset_model()  # the package resets twice, and keeps the second draw
        tasks.append(MetaWorldTask(kind, tuple(simulator._last_rand_vec.tolist())))
    return tasks


def _checked_task(task: Any) -> MetaWorldTask:
    """Returns a task given as any pair of a kind and numbers."""
    try:
        env_name, rand_vec = task
    except (TypeError, ValueError):
        raise ValueError(f"task: expected a MetaWorldTask (env_name, rand_vec), got {task!r}") from None
    find_kind("task", env_name)
    return MetaWorldTask(env_name, tuple(as_array("task: rand_vec", rand_vec, (_num_places(env_name),)).tolist()))


@functools.lru_cache(maxsize=None)
def _num_places(kind: str) -> int:
    """Returns how many numbers say where things are in a kind's tasks."""
    return scene_class(kind)(None)._random_reset_space.low.size


_models: "weakref.WeakValueDictionary[Optional[MetaWorldTask], Any]" = weakref.WeakValueDictionary()
"""The models that simulators work on, by task. A simulator only moves things in its model."""


@functools.lru_cache(maxsize=None)
def scene_class(kind: str) -> type:
    """Returns the class of a kind's simulators, changed to share models and to start with every MuJoCo."""
    import mujoco

    write_no_warnings()
    base = find_kind("kind", kind)

    class Scene(base):  # type: ignore[misc, valid-type]
        """A simulator; those of the same task share a model. One without a task draws tasks, and takes no steps."""

        def __init__(self, task: Optional[MetaWorldTask], **arguments: Any) -> None:
            self.shared_as = task
            super().__init__(**arguments)

        def _initialize_simulation(self) -> Tuple[Any, Any]:
            model = _models.get(self.shared_as)
            if model is not None:
                return model, mujoco.MjData(model)
            if hasattr(ctypes.CDLL(None), "malloc_trim"):  # else a process grows by hundreds of MB with new tasks
                ctypes.CDLL(None).malloc_trim(0)
            model, data = super()._initialize_simulation()
            if self.shared_as is not None:
                _models[self.shared_as] = model
            return model, data

        def _reset_hand(self, *arguments: Any, **named: Any) -> None:
            if self.shared_as is not None:
                return super()._reset_hand(*arguments, **named)
            self.init_tcp = self.tcp_center  # the hand may be anywhere; moving it takes long

        def warned(self) -> List[str]:
            """Returns the names of MuJoCo's warnings that the state is not finite or huge."""
            kind = mujoco.mjtWarning
            kinds = (kind.mjWARN_BADQPOS, kind.mjWARN_BADQVEL, kind.mjWARN_BADQACC)
            return [kind.name for kind in kinds if self.data.warning[kind].number > 0]

        def reset_mocap_welds(self) -> None:
            """Has the hand follow its target at the same place and angle, and weighs angles five times."""
            weld = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 5.0]  # MuJoCo 3.17 has added a twelfth number
            self.model.eq_data[self.model.eq_type == mujoco.mjtEq.mjEQ_WELD, :len(weld)] = weld

    Scene.__name__ = Scene.__qualname__ = base.__name__
    return Scene
