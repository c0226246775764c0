"""Base classes of the 2D point environments: actions move a point in the plane, and the goal is not observed.

The agent can find the goal only from rewards, so a policy has to adapt. Lengths have no unit.
"""
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from meta_policy_search.envs.interface import BatchedEnv
from meta_policy_search.envs.scenery import Scenery, draw
from meta_policy_search.envs.spaces import as_array
from meta_policy_search.envs.worlds import Rngs, WorldMetaEnv
from meta_policy_search.types import RenderMode, Task
from meta_policy_search.utils.checks import check_choice, check_positive
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.gym_import import gym

CORNERS = np.array([[-2.0, -2.0], [2.0, -2.0], [-2.0, 2.0], [2.0, 2.0]])  # [4, 2]
CORNERS.setflags(write=False)

REWARD_TYPES = ("dense", "dense_squared", "sparse")


class PointMetaEnv(WorldMetaEnv):
    """Base class of point environments. Images by `render` show the point, its path and the goal.

    Subclasses change the rules with attributes and protected methods (see `WorldMetaEnv`). By default, a point starts
    at the origin and moves by the action, the observation is the whole state, the task is a goal in a square, and the
    reward is the negative distance to the goal.

    Args:
        render_mode: `"rgb_array"` to enable `render`; default None.

    Attributes:
        max_push: bound of the absolute value of each action coordinate; larger actions are clipped.
        goal_range: goals are in `[-goal_range, goal_range]^2`.
        goal_tolerance: a path terminates when both coordinates are closer to the goal than this value; 0 disables
            termination.
        start_range: start positions are uniform in `[-start_range, start_range]^2`.
        state_size: length of a state, at least 2; the first two entries are x and y.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    max_push: float
    goal_range: float
    goal_tolerance: float = 0.0
    start_range: float = 0.0
    state_size = 2

    def __init__(self, *, render_mode: RenderMode = None) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (self.state_size,), np.float64)
        self.action_space = gym.spaces.Box(-self.max_push, self.max_push, (2,), np.float64)
        super().__init__(render_mode=render_mode)
        self._trail: List[np.ndarray] = []  # positions since the last reset, if `render_mode` is set

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
        """Returns a vectorized environment of `num_envs` copies.

        The current task is not copied; call `set_tasks` of the vectorized environment.
        """
        return super().make_batched(num_envs)

    @property
    def position(self) -> np.ndarray:
        """Current position of the point, float64 `[2]`."""
        return self._batched.states[0, :2].copy()

    def scenery(self) -> Scenery:
        """Returns what drawings show in addition to the point, such as the goal."""
        return Scenery(half_width=max(self.goal_range, self.start_range), goal=self._batched.task_rows[0, 0])

    def _draw(self) -> np.ndarray:
        if not self._trail:
            raise RuntimeError("render: call reset() first")
        return draw(np.array(self._trail), self.scenery())

    def _draw_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws `n_tasks` tasks; by default goals, float64 `[2]`, uniform in the square of goals."""
        return list(rng.uniform(-self.goal_range, self.goal_range, size=(n_tasks, 2)))

    def _check_task(self, name: str, task: Task) -> np.ndarray:
        """Returns the points of a task, float64 `[n, 2]`, the goal first; see `WorldMetaEnv._check_task`."""
        return as_point(name, task)[None]

    def _as_task(self, row: np.ndarray) -> Task:
        return row[0]

    def _start(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-self.start_range, self.start_range, size=2) if self.start_range else np.zeros(2)

    def _move(self, states: np.ndarray, actions: np.ndarray, ids: np.ndarray, tasks: np.ndarray,
              rngs: Rngs) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        points = tasks[ids]
        goals = points[:, 0]
        moved = self._push(states, np.clip(actions, -self.max_push, self.max_push))
        after = self._stop(states, moved, points)
        return after, self._rewards(states[:, :2], moved[:, :2], goals), self._terminated(after[:, :2], goals)

    def _push(self, states: np.ndarray, pushes: np.ndarray) -> np.ndarray:
        """Returns the states `[k, state_size]` after the pushes `[k, 2]` as a new array."""
        return states + pushes

    def _stop(self, states: np.ndarray, moved: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Returns the states after a move from `states` to `moved`, limited by walls; by default `moved`.

        `points` `[k, n, 2]` are the points of the tasks.
        """
        return moved

    def _rewards(self, before: np.ndarray, after: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """Returns the rewards `[k]` of moves from `before` to `after`, positions `[k, 2]` as if there were no walls."""
        return -distances(after, goals)

    def _terminated(self, positions: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """Returns whether each path terminates at its position, bool `[k]`."""
        if not self.goal_tolerance:
            return np.zeros(len(positions), dtype=bool)
        apart = np.abs(positions - goals)
        return (apart[:, 0] < self.goal_tolerance) & (apart[:, 1] < self.goal_tolerance)


class CornerTaskEnv(PointMetaEnv):
    """Base class of point environments whose goal is one of the corners (+-2, +-2), with equal probability.

    Args:
        reward_type: `"dense"`: the negative distance to the goal; `"dense_squared"`: the negative squared distance;
            `"sparse"`: defined by the subclass.
        sparse_reward_radius: length used by the sparse reward, above 0.
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
        """Returns the rewards `[k]` for `reward_type="sparse"`."""
        raise NotImplementedError

    def scenery(self) -> Scenery:
        return super().scenery()._replace(other_goals=CORNERS)


def distances(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Returns the Euclidean distances `[k]` between the rows of two `[k, 2]` arrays."""
    dx, dy = points[:, 0] - others[:, 0], points[:, 1] - others[:, 1]
    return np.sqrt(dx * dx + dy * dy)


def as_point(name: str, value: Any) -> np.ndarray:
    """Converts `value` to a new float64 `[2]`; raises `ValueError` unless it is two finite numbers."""
    return as_array(name, value, (2,), "two finite numbers (x, y)")
