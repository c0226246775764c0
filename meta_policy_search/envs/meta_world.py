"""Meta-World's benchmarks ML1, ML10, ML25 and ML45: manipulation tasks of a robot arm, such as opening a door.

The package `metaworld` (version 3, extra `[metaworld]`) provides simulation, rewards and tasks. This module builds a
simulator only when a task needs it. Simulators of the same task share the model of the scene (about 20 MB). All
versions of MuJoCo from 3.3 are supported; motions differ slightly between versions.

References:
    Yu et al. 2019, "Meta-World: A Benchmark and Evaluation for Multi-Task and Meta Reinforcement Learning",
    arXiv:1910.10897. McLean et al. 2025, "Meta-World+: An Improved, Standardized, RL Benchmark", arXiv:2505.11289.
"""
import contextlib
import copy
import ctypes
import functools
import pickle
import weakref
from types import ModuleType
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.interface import BatchedEnv, MetaEnv, PhysicsError
from meta_policy_search.envs.mujoco_envs.engines.camera import Camera
from meta_policy_search.envs.spaces import as_array
from meta_policy_search.types import BatchedStep, RenderMode, Task
from meta_policy_search.utils.checks import check_choice, check_int_at_least, check_positive_int, did_you_mean
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.gym_import import gym

__all__ = ["MetaWorldML1", "MetaWorldML10", "MetaWorldML25", "MetaWorldML45", "MetaWorldTask"]

SPLITS = ("train", "test")
NUM_VARIATIONS = 50  # tasks per kind in a split


class MetaWorldTask(NamedTuple):
    """A task of Meta-World."""

    env_name: str  # kind of task, such as "reach-v3"
    rand_vec: Tuple[float, ...]  # positions of object and goal, m; the length depends on the kind


class _MetaWorldEnv(MetaEnv):
    """Base class of the benchmarks.

    A copy (by pickling or `copy.deepcopy`) has the same task. It must be reset before its first step.
    """

    _benchmark: str
    metadata = {"render_modes": ["rgb_array"], "render_fps": 80}

    def __init__(self, split: str = "train", seed: int = 0, reward_function_version: str = "v2",
                 render_mode: RenderMode = None) -> None:
        check_choice("split", split, SPLITS)
        self._seed = check_int_at_least("seed", seed, 0)
        self._reward_function_version = check_choice("reward_function_version", reward_function_version, ("v1", "v2"))
        self.render_mode = check_choice("render_mode", render_mode, (None, *self.metadata["render_modes"]))
        self._kinds = tuple(vars(import_metaworld().env_dict)[f"{self._benchmark}_V3"][split])
        self._simulator: Any = None  # built by the first reset
        self._camera: Optional[Camera] = None
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (39,), np.float64)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (4,), np.float64)

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_simulator": None, "_camera": None}

    @property
    def env_names(self) -> List[str]:
        """Names of the kinds of tasks in this split, in the order of the benchmark."""
        return list(self._kinds)

    @property
    def tasks(self) -> List[MetaWorldTask]:
        """All tasks of this split, 50 per kind, in the order of the benchmark."""
        return [task for tasks in draw_tasks(self._kinds, self._seed).values() for task in tasks]

    @functools.cached_property
    def _task(self) -> MetaWorldTask:
        return self.tasks[0]

    def sample_tasks(self, n_tasks: int, rng: Optional[np.random.Generator] = None) -> List[MetaWorldTask]:
        """Returns a list of `n_tasks` tasks drawn from `rng`, by default from `np_random`."""
        rng, tasks = self.np_random if rng is None else rng, draw_tasks(self._kinds, self._seed)
        return [tasks[self._kinds[rng.integers(len(self._kinds))]][rng.integers(NUM_VARIATIONS)]
                for _ in range(check_positive_int("n_tasks", n_tasks))]

    def set_task(self, task: Task) -> None:
        """Sets the task, a `MetaWorldTask` or `metaworld.Task` of any kind. It takes effect at the next reset.

        Raises:
            ValueError: the kind is unknown, or `rand_vec` has the wrong length.
        """
        self._task = _checked_task("task", task)

    def get_task(self) -> MetaWorldTask:
        """Returns the current task; by default the first task of the split."""
        return self._task

    def reset(self, *, seed: Optional[int] = None, options: Optional[dict] = None) -> Tuple[np.ndarray, Dict[str, Any]]:
        """Starts a new path; returns `(observation [39], {})`."""
        super().reset(seed=None if seed is None else check_int_at_least("seed", seed, 0))
        task = self._task
        if self._simulator is None or self._simulator.shared_as != task:
            self._simulator = None  # frees the old model before the new one is built
            self._simulator = scene_class(task.env_name)(task, reward_function_version=self._reward_function_version)
            self._simulator.set_task(package_task(task))
        return np.array(self._simulator.reset()[0], dtype=np.float64), {}

    def step(self, action: np.ndarray) -> Tuple[np.ndarray, float, bool, bool, Dict[str, Any]]:
        """Takes one step; returns `(observation [39], reward, terminated, truncated, env_info)`.

        Raises:
            RuntimeError: `reset` was not called.
            PhysicsError: the simulation diverged.
        """
        return self.simulate(np.clip(as_array("action", action, self.action_space.shape), -1.0, 1.0), 0)

    def simulate(self, action: np.ndarray, env_id: int) -> Tuple[np.ndarray, float, bool, bool, Dict[str, Any]]:
        """Takes one step with a valid action; `env_id` is the index of this copy in errors."""
        simulator = self._started_simulator("step")
        observation, reward, terminated, truncated, info = simulator.step(action)
        if simulator.data.warning.number.any() and (warned := simulator.warned()):
            raise PhysicsError(f"the simulation of {simulator.shared_as} diverged ({', '.join(warned)})", [env_id])
        info = {name: bool(value) if name == "success" else float(value) for name, value in info.items()}
        return np.array(observation, dtype=np.float64), float(reward), bool(terminated), bool(truncated), info

    @replaces("reset", "step", "set_task")
    def make_batched(self, num_envs: int) -> BatchedEnv:
        """Returns a vectorized environment of `num_envs` copies."""
        return _BatchedMetaWorld(self, num_envs)

    def close(self) -> None:
        """Ends the rendering process. The environment, including `render`, can still be used."""
        self._camera = None

    def _draw(self) -> np.ndarray:
        simulator = self._started_simulator("render")
        for site in simulator._target_site_config:  # the goal markers; otherwise only a step would place them
            simulator._set_pos_site(*site)
        self._camera = self._camera or Camera(simulator.model)
        return self._camera.picture(simulator.model, simulator.data.qpos)

    def _started_simulator(self, method: str) -> Any:
        if self._simulator is None:
            raise RuntimeError(f"{method}: call reset() first")
        return self._simulator


class _BatchedMetaWorld(BatchedEnv):
    """Vectorized environment of copies with separate simulators, which are stepped sequentially."""

    def __init__(self, env: _MetaWorldEnv, num_envs: int) -> None:
        super().__init__(num_envs)
        self._envs = [copy.deepcopy(env) for _ in range(num_envs)]
        self.observation_space, self.action_space = env.observation_space, env.action_space

    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        return list(self._envs[0].sample_tasks(n_tasks, rng))

    def set_tasks(self, tasks: Sequence[Task]) -> None:
        self._check_count(tasks)
        for env, task in zip(self._envs, [_checked_task(f"task {i}", task) for i, task in enumerate(tasks)]):
            env.set_task(task)

    def get_tasks(self) -> List[Task]:
        return [env.get_task() for env in self._envs]

    def reset(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        """Starts new paths in the selected copies; the tasks determine the starts, so `rngs` are not used."""
        return np.array([self._envs[e].reset()[0] for e in env_ids]).reshape(-1, *self.observation_space.shape)

    def step(self, actions: np.ndarray, env_ids: Optional[np.ndarray] = None) -> BatchedStep:
        """Takes one step in the selected copies, which must have been reset; see `BatchedEnv.step`.

        Raises:
            RuntimeError: `reset` was not called.
            PhysicsError: a simulation diverged.
        """
        actions, ids = self._rows(actions, env_ids)
        steps = [self._envs[e].simulate(action, e) for e, action in zip(ids.tolist(), np.clip(actions, -1.0, 1.0))]
        infos = {name: np.array([step[4][name] for step in steps]) for name in (steps[0][4] if steps else ())}
        return BatchedStep(np.array([step[0] for step in steps]).reshape(-1, *self.observation_space.shape),
                           np.array([step[1] for step in steps], np.float64),
                           np.array([step[2] for step in steps], bool),
                           np.array([step[3] for step in steps], bool), infos)


class MetaWorldML1(_MetaWorldEnv):
    """Meta-World's ML1: tasks of one kind, such as reaching, with different positions of the object and the goal.

    The goal is not observed. The agent can find it only from rewards.

    Observation, float64 `[39]`:

    =======  ==============================================================================  =========
    index    observation                                                                     unit
    =======  ==============================================================================  =========
    0-2      position of the hand                                                            m
    3        opening of the gripper, from 0 to 1                                             1
    4-10     position and orientation (quaternion) of the first object                       m and 1
    11-17    position and orientation (quaternion) of the second object                      m and 1
    18-35    entries 0-17 of the previous observation; the first observation of a path
             repeats its own entries 0-17
    36-38    zeros (the goal is hidden)
    =======  ==============================================================================  =========

    Entries 4-17 are zero where the kind of task has no such object or the object has no such property.

    Action, float64 `[4]`, clipped to [-1, 1]; a step takes 12.5 ms:

    =======  ==============================================================================
    index    action
    =======  ==============================================================================
    0-2      displacement of the hand along x, y and z, cm
    3        effort of the gripper; a positive effort closes it
    =======  ==============================================================================

    Reward: dense reward of the `metaworld` package per step; from 0 to 10 with `reward_function_version="v2"`.
    `env_infos` contain `success` (bool, whether the goal is reached in this step) and the reward terms of the package
    (floats).

    Tasks: uniform over the 50 tasks of the split. They are the `train_tasks` or `test_tasks` of
    `metaworld.ML1(env_name, seed)`. `set_task` accepts a `MetaWorldTask` or `metaworld.Task` of any kind, which takes
    effect at the next reset.

    Start: given by the task, without further randomness.

    End of episode: truncation after 500 steps. Success does not end a path.

    Args:
        env_name: kind of task, one of Meta-World's 50; default `"reach-v3"`.
        split: `"train"` (default) or `"test"`. The positions in test tasks differ from those in training tasks.
        seed: seed of the tasks; default 0. Runs with the same seed use the same training and test tasks.
        reward_function_version: version of the package's rewards, `"v2"` (default) or `"v1"`.
        render_mode: `"rgb_array"` to enable `render`; default None.

    Raises:
        ImportError: `metaworld` is not installed.
        ValueError: `env_name` is unknown; the message suggests the most similar name.
    """

    _benchmark = "ML1"  # contains all kinds

    def __init__(self, env_name: str = "reach-v3", split: str = "train", seed: int = 0,
                 reward_function_version: str = "v2", render_mode: RenderMode = None) -> None:
        find_kind("env_name", env_name)
        super().__init__(split, seed, reward_function_version, render_mode)
        self._kinds, self._seed = (env_name,), self._seed + (split == "test")


class MetaWorldML10(_MetaWorldEnv):
    """Meta-World's ML10: 10 kinds of tasks for training, and 5 other kinds for testing.

    `sample_tasks` draws a kind uniformly, then one of the 50 tasks of this kind. The tasks are the `train_tasks` or
    `test_tasks` of `metaworld.ML10(seed)`. The first access in a process draws all of them, which takes about 1 second
    (ML45: 5 seconds). Observation, action, reward, start and end of episode: see `MetaWorldML1`.

    Args:
        split: `"train"` (default) or `"test"`. The kinds of test tasks do not occur in training.
        seed: seed of the tasks; default 0. Runs with the same seed use the same training and test tasks.
        reward_function_version: version of the package's rewards, `"v2"` (default) or `"v1"`.
        render_mode: `"rgb_array"` to enable `render`; default None.

    Raises:
        ImportError: `metaworld` is not installed.
    """

    _benchmark = "ML10"


class MetaWorldML25(_MetaWorldEnv):
    """Meta-World's ML25: 25 kinds of tasks for training, and 5 kinds for testing.

    Only `basketball-v3` occurs both in training and in testing. Everything else is described in `MetaWorldML10` and
    `MetaWorldML1`.

    Args:
        split: `"train"` (default) or `"test"`.
        seed: seed of the tasks; default 0. Runs with the same seed use the same training and test tasks.
        reward_function_version: version of the package's rewards, `"v2"` (default) or `"v1"`.
        render_mode: `"rgb_array"` to enable `render`; default None.

    Raises:
        ImportError: `metaworld` is not installed.
    """

    _benchmark = "ML25"


class MetaWorldML45(_MetaWorldEnv):
    """Meta-World's ML45: 45 kinds of tasks for training, and 5 other kinds for testing.

    Everything else is described in `MetaWorldML10` and `MetaWorldML1`.

    Args:
        split: `"train"` (default) or `"test"`. The kinds of test tasks do not occur in training.
        seed: seed of the tasks; default 0. Runs with the same seed use the same training and test tasks.
        reward_function_version: version of the package's rewards, `"v2"` (default) or `"v1"`.
        render_mode: `"rgb_array"` to enable `render`; default None.

    Raises:
        ImportError: `metaworld` is not installed.
    """

    _benchmark = "ML45"


def import_metaworld() -> ModuleType:
    """Imports and returns the package `metaworld`.

    Raises:
        ImportError: version 3 is not installed; the message contains the command that installs it.
    """
    try:
        import metaworld
        from metaworld.env_dict import ALL_V3_ENVIRONMENTS  # noqa: F401 - exists since version 3
    except ImportError as error:
        raise ImportError("the Meta-World environments require the package metaworld, version 3: run "
                          '`pip install "metaworld>=3.0,<3.1"`') from error
    return metaworld


def find_kind(name: str, value: Any) -> type:
    """Returns the simulator class of the kind of task `value`.

    Raises:
        ValueError: the kind is unknown; `name` is its name in the message.
    """
    kinds = import_metaworld().env_dict.ALL_V3_ENVIRONMENTS
    if not isinstance(value, str) or value not in kinds:
        raise ValueError(f"{name}: expected a kind of task of Meta-World ({', '.join(kinds)}), got {value!r}"
                         + did_you_mean(value, kinds))
    return kinds[value]


def package_task(task: MetaWorldTask) -> Any:
    """Converts a task to the format of the `metaworld` package."""
    return import_metaworld().Task(task.env_name, pickle.dumps({
        "env_cls": find_kind("task", task.env_name), "rand_vec": np.array(task.rand_vec),
        "partially_observable": True}))


@functools.lru_cache(maxsize=None)
def draw_tasks(kinds: Tuple[str, ...], seed: int) -> Dict[str, List[MetaWorldTask]]:
    """Returns 50 tasks of each kind: the tasks that the package's benchmarks draw with `seed % 2**32`.

    The package draws from NumPy's global generator. Its state is restored afterwards.
    """
    global_state = np.random.get_state()
    np.random.seed(seed % 2**32)
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
        simulator.reset_model()  # the package also resets twice and keeps the second draw
        tasks.append(MetaWorldTask(kind, tuple(simulator._last_rand_vec.tolist())))
    return tasks


def _checked_task(name: str, task: Any) -> MetaWorldTask:
    """Converts a pair of a kind and numbers, or a `metaworld.Task`, to a `MetaWorldTask`.

    Raises:
        ValueError: the task is invalid; `name` is its name in the message.
    """
    try:
        env_name, rand_vec = task
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected a MetaWorldTask (env_name, rand_vec), got {task!r}") from None
    find_kind(name, env_name)
    if isinstance(rand_vec, bytes):  # a `metaworld.Task`
        rand_vec = pickle.loads(rand_vec)["rand_vec"]
    return MetaWorldTask(env_name, tuple(as_array(f"{name}: rand_vec", rand_vec, (_num_places(env_name),)).tolist()))


@functools.lru_cache(maxsize=None)
def _num_places(kind: str) -> int:
    """Returns the length of `rand_vec` in the tasks of a kind."""
    return scene_class(kind)(None)._random_reset_space.low.size


_models: "weakref.WeakValueDictionary[Optional[MetaWorldTask], Any]" = weakref.WeakValueDictionary()
"""The model of each task that a simulator uses. Simulators never change the masses or shapes in a model."""


@functools.lru_cache(maxsize=None)
def scene_class(kind: str) -> type:
    """Returns the simulator class of a kind of task, adapted to share models and to support all MuJoCo versions."""
    import mujoco

    from meta_policy_search.envs.mujoco_envs.engines.mujoco import write_no_warnings

    write_no_warnings()
    base = find_kind("kind", kind)

    class Scene(base):  # type: ignore[misc, valid-type]
        """Simulator of a kind of task; simulators of the same task share a model.

        A simulator without a task (None) only draws tasks. It takes no steps.
        """

        def __init__(self, task: Optional[MetaWorldTask], **arguments: Any) -> None:
            self.shared_as = task
            super().__init__(**arguments)

        def _initialize_simulation(self) -> Tuple[Any, Any]:
            model = _models.get(self.shared_as)
            if model is not None:
                return model, mujoco.MjData(model)
            with contextlib.suppress(AttributeError):  # not every system has it
                ctypes.CDLL(None).malloc_trim(0)  # otherwise, new tasks grow the process by hundreds of MB
            model, data = super()._initialize_simulation()
            if self.shared_as is not None:
                _models[self.shared_as] = model
            return model, data

        def _reset_hand(self, *arguments: Any, **named: Any) -> None:
            if self.shared_as is not None:
                return super()._reset_hand(*arguments, **named)
            self.init_tcp = self.tcp_center  # moving the hand is slow and not needed to draw tasks

        def warned(self) -> List[str]:
            """Returns the names of MuJoCo's warnings about non-finite or huge states; empty without a warning."""
            kind = mujoco.mjtWarning
            kinds = (kind.mjWARN_BADQPOS, kind.mjWARN_BADQVEL, kind.mjWARN_BADQACC)
            return [kind.name for kind in kinds if self.data.warning[kind].number > 0]

        def reset_mocap_welds(self) -> None:
            """Makes the hand follow its target without offset or rotation, with a torque scale of 5."""
            weld = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 5.0]  # MuJoCo 3.17 added a twelfth number
            self.model.eq_data[self.model.eq_type == mujoco.mjtEq.mjEQ_WELD, :len(weld)] = weld

    Scene.__name__ = Scene.__qualname__ = base.__name__
    return Scene
