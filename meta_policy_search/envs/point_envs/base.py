"""What the 2D point environments share: a point in the plane, pushed by its actions, that does not see its goal.

The goal can only be found from rewards: a policy has to adapt to it. Lengths have no unit.
"""
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.interface import BatchableMetaEnv, BatchedEnv
from meta_policy_search.envs.scenery import Scenery, draw
from meta_policy_search.envs.spaces import as_array
from meta_policy_search.types import BatchedStep, Task
from meta_policy_search.utils.checks import check_choice, check_positive
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.gym_import import gym

CORNERS = np.array([[-2.0, -2.0], [2.0, -2.0], [-2.0, 2.0], [2.0, 2.0]])  # [4, 2]
CORNERS.setflags(write=False)

REWARD_TYPES = ("dense", "dense_squared", "sparse")


class BatchedPointEnv(BatchedEnv):
    """`num_envs` points, pushed by their actions; what is observed is the whole state.

    Args:
        num_envs: number of points, at least one.
        world: the environment whose rules the points follow, a `PointMetaEnv`.
    """

    def __init__(self, num_envs: int, world: "PointMetaEnv") -> None:
        super().__init__(num_envs)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (world.state_size,), np.float64)
        self.action_space = gym.spaces.Box(-world.max_push, world.max_push, (2,), np.float64)
        self._world = world
        self._states = np.zeros((self.num_envs, world.state_size))
        self.set_tasks([world.first_task] * self.num_envs)

    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        return self._world._draw_tasks(n_tasks, rng)

    def set_tasks(self, tasks: Sequence[Task]) -> None:
        self._check_count(tasks)
        points = [self._world._check_task(f"task {i}", task) for i, task in enumerate(tasks)]
        self._points = np.array(points)  # [num_envs, k, 2], those of each task, the goal first

    def get_tasks(self) -> List[Task]:
        return [self._world._as_task(points) for points in self._points.copy()]

    def reset(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        for env_id, rng in zip(env_ids, rngs, strict=True):
            self._states[env_id] = self._world._start(rng)
        return self._states[env_ids]

    def step(self, actions: np.ndarray, env_ids: Optional[np.ndarray] = None) -> BatchedStep:
        """See `BatchedEnv.step`; each coordinate of an action is clipped to `[-max_push, max_push]`."""
        actions, ids = self._rows(actions, env_ids)
        world, points, before = self._world, self._points[ids], self._states[ids]
        goals = points[:, 0]
        moved = world._push(before, np.clip(actions, -world.max_push, world.max_push))
        after = world._stop(before, moved, points)
        self._states[ids] = after
        rewards = world._rewards(before[:, :2], moved[:, :2], goals)
        never = np.zeros(len(ids), dtype=bool)
        return BatchedStep(after, rewards, world._terminated(after[:, :2], goals), never, {})

    def position(self) -> np.ndarray:
        """Returns where the first point is, a new array float64 `[2]`."""
        return self._states[0, :2].copy()

    def scenery(self) -> Scenery:
        """Returns what is to be drawn of the world around the first point."""
        return self._world._scenery(self._points[0])


class PointMetaEnv(BatchableMetaEnv):
    """One point, and the rules of its world. Pictures by `render` show the point, its path and its goal.

    A subclass states its rules by the attributes and the protected methods. These work on the rows of `k` points, with
    element-wise arithmetic only, so that no row depends on others. By default a point starts at the origin, a push
    moves it, the task is a goal in a square, and the reward minus the distance to it.

    Args:
        render_mode: `"rgb_array"` to draw pictures by `render`; None (default) for none.

    Attributes:
        max_push: largest absolute value of each coordinate of a push; actions beyond are clipped to it.
        first_task: the task until `set_task` is called.
        goal_range: goals are in `[-goal_range, goal_range]^2`.
        goal_tolerance: a path ends when both coordinates are closer to the goal than this; 0 for never.
        start_range: paths start in `[-start_range, start_range]^2`, uniformly.
        state_size: length of a state, which begins with the coordinates x and y.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    batched_class = BatchedPointEnv
    max_push: float
    first_task: Task
    goal_range: float
    goal_tolerance: float = 0.0
    start_range: float = 0.0
    state_size: int = 2
    _batched: BatchedPointEnv

    def __init__(self, *, render_mode: Optional[str] = None) -> None:
        super().__init__(render_mode=render_mode, world=self)
        self._trail: List[np.ndarray] = []  # positions since the last reset, if there is a render mode

    def reset(self, *, seed: Optional[int] = None, options: Optional[dict] = None) -> Tuple[np.ndarray, Dict[str, Any]]:
        observation, info = super().reset(seed=seed, options=options)
        if self.render_mode is not None:
            self._trail = [observation[:2].copy()]
        return observation, info

    def step(self, action: np.ndarray) -> Tuple[np.ndarray, float, bool, bool, Dict[str, Any]]:
        answer = super().step(action)
        if self.render_mode is not None:
            self._trail.append(answer[0][:2].copy())
        return answer

    @replaces("reset", "step", "set_task")
    def make_batched(self, num_envs: int) -> BatchedEnv:
        """See `BatchableMetaEnv.make_batched`."""
        return super().make_batched(num_envs)

    @property
    def position(self) -> np.ndarray:
        """Where the point is, float64 `[2]`."""
        return self._batched.position()

    def scenery(self) -> Scenery:
        """Returns what is to be drawn of the world besides the point."""
        return self._batched.scenery()

    def _draw(self) -> np.ndarray:
        if not self._trail:
            raise RuntimeError("render: call reset() first")
        return draw(np.array(self._trail), self.scenery())

    def _draw_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws `n_tasks` tasks; by default goals, each a float64 `[2]`, uniform in their square."""
        return list(rng.uniform(-self.goal_range, self.goal_range, size=(n_tasks, 2)))

    def _check_task(self, name: str, task: Task) -> np.ndarray:
        """Returns the points of a task, float64 `[k, 2]`, the goal first; raises `ValueError` if it is none."""
        return as_point(name, task)[None]

    def _as_task(self, points: np.ndarray) -> Task:
        """Returns the task with these points, `[k, 2]`; the inverse of `_check_task`."""
        return points[0]

    def _start(self, rng: np.random.Generator) -> np.ndarray:
        """Returns the state `[state_size]` that a path starts in."""
        return rng.uniform(-self.start_range, self.start_range, size=2) if self.start_range else np.zeros(2)

    def _push(self, states: np.ndarray, pushes: np.ndarray) -> np.ndarray:
        """Returns the states `[k, state_size]` that pushes `[k, 2]` lead to, a new array."""
        return states + pushes

    def _stop(self, states: np.ndarray, moved: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Returns where walls let pushes lead that would move `states` to `moved`; by default there is no wall."""
        return moved

    def _rewards(self, before: np.ndarray, after: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """Returns the rewards `[k]` of moves from `before` to `after`, without walls (positions, each `[k, 2]`)."""
        return -distances(after, goals)

    def _terminated(self, positions: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """Returns which paths end here, bool `[k]`."""
        apart = np.abs(positions - goals)
        return (apart[:, 0] < self.goal_tolerance) & (apart[:, 1] < self.goal_tolerance)

    def _scenery(self, points: np.ndarray) -> Scenery:
        """Returns what is to be drawn of the world in the task with these points, `[k, 2]`."""
        return Scenery(half_width=max(self.goal_range, self.start_range), goal=points[0])


class CornerTaskEnv(PointMetaEnv):
    """Point environments whose goal is one of the four corners (+-2, +-2), each as likely as the others.

    Args:
        reward_type: `"dense"`: minus the distance to the goal; `"dense_squared"`: minus its square;
            `"sparse"`: what the subclass says.
        sparse_reward_radius: length that the sparse reward depends on, above 0.
        render_mode: see `PointMetaEnv`.
    """

    first_task: Task = (2.0, 2.0)
    goal_range = 2.0
    start_range = 0.2

    def __init__(self, reward_type: str, sparse_reward_radius: float, *, render_mode: Optional[str]) -> None:
        self.reward_type = check_choice("reward_type", reward_type, REWARD_TYPES)
        self.sparse_reward_radius = check_positive("sparse_reward_radius", sparse_reward_radius)
        super().__init__(render_mode=render_mode)

    def _draw_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws `n_tasks` of the four corners, with replacement; each task is a float64 `[2]`."""
        return list(CORNERS[rng.integers(len(CORNERS), size=n_tasks)])

    def _check_task(self, name: str, task: Task) -> np.ndarray:
        point = as_point(name, task)
        if not (CORNERS == point).all(axis=1).any():
            raise ValueError(f"{name}: expected one of the corners {CORNERS.tolist()}, got {task!r}")
        return point[None]

    def _rewards(self, before: np.ndarray, after: np.ndarray, goals: np.ndarray) -> np.ndarray:
        if self.reward_type == "sparse":
            return self._sparse_rewards(before, after, goals)
        distance = distances(after, goals)
        return -distance if self.reward_type == "dense" else -distance * distance

    def _sparse_rewards(self, before: np.ndarray, after: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """Returns the rewards `[k]` of `reward_type="sparse"`."""
        raise NotImplementedError

    def _scenery(self, points: np.ndarray) -> Scenery:
        return super()._scenery(points)._replace(other_goals=CORNERS)


def distances(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Returns the Euclidean distances `[k]` between the rows of two `[k, 2]` arrays."""
    dx, dy = points[:, 0] - others[:, 0], points[:, 1] - others[:, 1]
    return np.sqrt(dx * dx + dy * dy)


def as_point(name: str, value: Any) -> np.ndarray:
    """Returns `value` as a new float64 `[2]`; raises `ValueError` unless it is two finite numbers."""
    return as_array(name, value, (2,), "two finite numbers (x, y)")
