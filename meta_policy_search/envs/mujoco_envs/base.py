"""What all MuJoCo meta-environments share; each robot and each task has a file of its own."""
import abc
import math
from typing import Any, List, Optional, Sequence, Tuple, TypedDict, Union

import numpy as np

from meta_policy_search.envs.interface import BatchableMetaEnv, BatchedEnv
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.envs.mujoco_envs.engines.factory import chosen_engine, make_engine
from meta_policy_search.envs.scenery import Scenery
from meta_policy_search.types import BatchedStep, Infos, Path, Rows, Task
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import check_bool
from meta_policy_search.utils.gym_import import gym

_FREE_ROBOTS = ("ant", "humanoid", "swimmer")  # positions begin with x and y on the ground

MAX_THREADS = 4
"""Callers that take turns in the engine when it has several threads. More leave the threads fewer moments without
work, and cost Python more time."""


class BatchedMujocoEnv(BatchedEnv):
    """`num_envs` copies of a MuJoCo environment; subclasses say which robot it has and what that is rewarded for.

    A step clips the actions to the action space and holds them for `frame_skip` simulation steps. Observation, reward
    and end depend on the states before and after it, row by row.

    Logs:
        `AvgForwardVel` and `AvgFinalForwardVel`, the velocity, m/s, over all steps and over the last steps of the paths
        (in the direction asked for, where the task is one), and `AvgCtrlCost`.

    Args:
        num_envs: number of copies, at least one.
        engine: `"mujoco"`, the official package, or `"mujoco-py"`, MuJoCo 2.1.0; by default what the environment
            variable `META_POLICY_SEARCH_ENGINE` names, or else `"mujoco"`. The environment is the same with either.
        inertials: `"mujoco210"` (default), the robot's masses and inertias as the engine of the papers has them, or
            `"modern"`, as the installed MuJoCo computes them (a half cheetah weighs 14 kg with either, distributed
            otherwise).
        num_threads: native threads that step the copies of `make_batched`; by default all cores that the process may
            use. Results do not depend on it. The engine `"mujoco-py"` has one thread, whatever is asked for.

    Raises:
        TypeError, ValueError: an argument is none of the above; so raises `set_task`.
        ImportError: the engine or `gymnasium` is not installed; says what to run.

    Attributes:
        frame_skip: simulation steps per step of the environment.
        start_noise: half width of the start positions around those of the model (m, rad), and of the start velocities
            around zero (m/s, rad/s), all uniform.
        has_normal_start: whether start velocities are normal instead, with `start_noise` as standard deviation.
        first_observed: first coordinate of the position that is observed.
        largest_observed_velocity: bound to which observed velocities are clipped, m/s and rad/s.
        control_cost: reward lost per squared unit of action, per step.
        survival_reward: reward per step, whatever the robot does.
        derived: what states come with, names of `engines.derived.DERIVED`.
        run_reward: name of the reward for moving as asked among the `env_infos`.
        logged_infos: the `env_infos` with velocity and control reward, which are logged where both exist.
        engine: the `Engine` that holds the states.
        dt: duration of a step, s.
    """

    frame_skip: int
    start_noise: float = 0.0
    has_normal_start: bool = False
    first_observed: int = 1
    largest_observed_velocity: float = np.inf
    control_cost: float = 0.0
    survival_reward: float = 0.0
    derived: Tuple[str, ...] = ()
    run_reward: str = "reward_run"
    logged_infos: Tuple[str, str] = ("reward_run", "reward_ctrl")

    def __init__(self, num_envs: int, *, engine: Optional[str] = None, inertials: str = "mujoco210",
                 num_threads: Optional[int] = None) -> None:
        super().__init__(num_envs)
        self.engine = make_engine(engine, self.robot, self.num_envs, self.frame_skip, inertials, num_threads,
                                  self.derived)
        self.max_threads = MAX_THREADS if self.engine.threads() > 1 else 1
        self.dt = self.engine.dt
        size = self._observations(self.engine.get_state(np.array([0]))).shape[1]
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (size,), np.float64)
        self.action_space = gym.spaces.Box(self.engine.control_low, self.engine.control_high, dtype=np.float64)

    def _start_state(self, rng: np.random.Generator) -> Tuple[np.ndarray, np.ndarray]:
        """Draws the state in which a path starts: `(qpos [nq], qvel [nv])`."""
        noise = self.start_noise
        qpos = self.engine.init_qpos + rng.uniform(-noise, noise, self.engine.nq)
        if self.has_normal_start:
            return qpos, noise * rng.standard_normal(self.engine.nv)
        return qpos, rng.uniform(-noise, noise, self.engine.nv)

    def _observations(self, state: State) -> np.ndarray:
        """Returns what the agent sees of `k` states, a new array float64 `[k, O]`."""
        bound = self.largest_observed_velocity
        return np.concatenate((state.qpos[:, self.first_observed:], np.clip(state.qvel, -bound, bound)), axis=1)

    @property
    @abc.abstractmethod
    def robot(self) -> str:
        """Name of the robot's model, one of `engines.models.ROBOTS`; subclasses set it as an attribute."""

    @abc.abstractmethod
    def _rewards(self, before: State, actions: np.ndarray, after: State, rows: Rows) -> Tuple[np.ndarray, Infos]:
        """Returns the rewards `[k]` of a step, and its `env_infos`, each `[k, ...]`.

        Args:
            before: states before the step.
            actions: float64 `[k, A]`, clipped to the action space.
            after: states after the step.
            rows: which of the tasks that `set_tasks` keeps.
        """

    def _terminated(self, state: State) -> np.ndarray:
        """Returns whether the task has ended in `k` states, bool `[k]`; by default it never does."""
        return np.zeros(len(state.qpos), dtype=bool)

    def reset(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        qpos, qvel = np.empty((len(rngs), self.engine.nq)), np.empty((len(rngs), self.engine.nv))
        for i, rng in enumerate(rngs):
            qpos[i], qvel[i] = self._start_state(rng)
        self.engine.set_state(qpos, qvel, env_ids)
        return self._observations(self.engine.get_state(env_ids))

    def step(self, actions: np.ndarray, env_ids: Optional[np.ndarray] = None) -> BatchedStep:
        """See `BatchedEnv.step`.

        Raises:
            PhysicsError: the simulation diverged.
        """
        actions, _ = self._rows(actions, env_ids)
        actions = np.clip(actions, self.action_space.low, self.action_space.high)
        before = self.engine.get_state(env_ids)
        self.engine.step(actions, env_ids)
        after = self.engine.get_state(env_ids)
        rewards, infos = self._rewards(before, actions, after, slice(None) if env_ids is None else env_ids)
        truncated = np.zeros(len(actions), dtype=bool)
        return BatchedStep(self._observations(after), rewards, self._terminated(after), truncated, infos)

    def scenery(self, env_id: int) -> Scenery:
        """Returns what is to be drawn of the world of one environment, seen from above, besides the robot."""
        return Scenery()

    def _forward_velocity(self, before: State, after: State) -> np.ndarray:
        """Returns the mean velocity of the robot's root along x during the step, m/s, float64 `[k]`."""
        return (after.qpos[:, 0] - before.qpos[:, 0]) / self.dt

    def _control_reward(self, actions: np.ndarray) -> np.ndarray:
        """Returns minus the control cost of clipped actions, float64 `[k]`."""
        return -self.control_cost * np.square(actions).sum(axis=1)

    def _run_rewards(self, reward_run: np.ndarray, actions: np.ndarray, after: State,
                     **infos: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Returns rewards and infos, given the rewards `[k]` for moving as asked and further infos."""
        reward_ctrl = self._control_reward(actions)
        infos = {**infos, self.run_reward: reward_run, "reward_ctrl": reward_ctrl}
        return reward_run + reward_ctrl + self.survival_reward, infos

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """Logs means of velocity and control cost, see `logged_infos`."""
        if not set(self.logged_infos) <= set(paths[0]["env_infos"]):
            return
        velocities, costs = ([path["env_infos"][key] for path in paths] for key in self.logged_infos)
        logger.logkv(prefix + "AvgForwardVel", np.mean(np.concatenate(velocities)))
        logger.logkv(prefix + "AvgFinalForwardVel", np.mean([velocity[-1] for velocity in velocities]))
        logger.logkv(prefix + "AvgCtrlCost", np.mean(-np.concatenate(costs)))


class BatchedContactEnv(BatchedMujocoEnv):
    """A robot that walks in the plane, falls over, and can look at the forces of contacts.

    Args:
        contact_forces: whether contact forces are computed. False by default, and then they count as zero, as they do
            under mujoco-py 2.1, which never computes them; with them each step takes longer, and is the environment as
            it was with engines up to 1.5.

    Attributes:
        heights: between which the torso has to stay, m.
    """

    heights: Tuple[float, float]

    def __init__(self, num_envs: int, *, contact_forces: bool = False, **engine: Any) -> None:
        self.contact_forces = check_bool("contact_forces", contact_forces)
        self.derived += ("cfrc_ext",) * self.contact_forces
        super().__init__(num_envs, **engine)

    def _contacts(self, state: State) -> np.ndarray:
        """Returns the contact torques and forces of all bodies, float64 `[k, 6 * bodies]`; zero if not computed."""
        if not self.contact_forces:
            return np.zeros((len(state.qpos), 6 * self.engine.model.nbody))
        return flattened(state.derived["cfrc_ext"])

    def _plane_velocity(self, before: State, after: State) -> np.ndarray:
        """Returns the mean velocity along x and y during the step, m/s, float64 `[k, 2]`; by default the torso's."""
        return (after.qpos[:, :2] - before.qpos[:, :2]) / self.dt

    def _forward_velocity(self, before: State, after: State) -> np.ndarray:
        return self._plane_velocity(before, after)[:, 0]

    def _terminated(self, state: State) -> np.ndarray:
        height = state.qpos[:, 2]
        return (height < self.heights[0]) | (height > self.heights[1])


class BatchedGoalEnv(BatchedMujocoEnv):
    """A MuJoCo environment whose task is a number or a few, such as a direction or a velocity.

    Args:
        task: the task of every copy until `set_tasks` is called.

    Attributes:
        goals: float64 `[num_envs]` or `[num_envs, d]`, the task of each copy.
    """

    def __init__(self, num_envs: int, *, task: Task, **engine: Any) -> None:
        super().__init__(num_envs, **engine)
        self.set_tasks([task] * self.num_envs)

    @abc.abstractmethod
    def _check_task(self, name: str, task: Task) -> Union[float, np.ndarray]:
        """Returns the task as a number or float64 `[d]`; raises `ValueError`, which calls it `name`, if it is none."""

    def set_tasks(self, tasks: Sequence[Task]) -> None:
        self._check_count(tasks)
        self.goals = np.array([self._check_task(f"task {i}", task) for i, task in enumerate(tasks)], dtype=np.float64)

    def get_tasks(self) -> List[Task]:
        return self.goals.tolist() if self.goals.ndim == 1 else list(self.goals.copy())


def flattened(values: np.ndarray) -> np.ndarray:
    """Returns `values`, `[k, ...]`, as `[k, n]`, also where there are none (`k = 0`)."""
    return values.reshape(len(values), math.prod(values.shape[1:]))


class RobotArguments(TypedDict, total=False):
    """Arguments that all robots' environments share, by name."""

    engine: Optional[str]
    inertials: str
    num_threads: Optional[int]
    render_mode: Optional[str]


class ContactArguments(RobotArguments, total=False):
    """The same, where contact forces can be looked at."""

    contact_forces: bool


class MujocoMetaEnv(BatchableMetaEnv):
    """One environment with a robot: a `BatchedMujocoEnv` with one robot in it.

    Args:
        render_mode: `"rgb_array"` to draw pictures by `render`; None (default) for none.
        **kwargs: further arguments of `batched_class`.
    """

    batched_class: type = BatchedMujocoEnv
    _batched: BatchedMujocoEnv
    shared_sections = ("Observation", "Action", "Reward", "Tasks", "Start", "End", "Logs", "Args", "Raises",
                       "References")
    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, *, engine: Optional[str] = None, **kwargs: Any) -> None:
        super().__init__(engine=chosen_engine(engine), **kwargs)
        self.metadata = {**self.metadata, "render_fps": round(1.0 / self.dt)}

    @property
    def dt(self) -> float:
        """Duration of a step, s."""
        return self._batched.dt

    @property
    def position(self) -> Optional[np.ndarray]:
        """Where the robot is on the ground, `(x, y)`, float64 `[2]`, m; None for those that move along a line only."""
        is_free = self._batched.robot in _FREE_ROBOTS
        return self._batched.engine.get_state().qpos[0, :2] if is_free else None

    def scenery(self) -> Scenery:
        """Returns what is to be drawn of the world, seen from above, besides the robot."""
        return self._batched.scenery(0)

    def close(self) -> None:
        """Ends the process that draws, if there is one; the environment can still be used, and drawn."""
        self._batched.engine.close_camera()

    def _draw(self) -> np.ndarray:
        return self._batched.engine.render()
