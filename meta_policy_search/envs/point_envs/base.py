"""What the 2D point environments share: a point in the plane, pushed by its actions, that does not see its goal.

The goal can only be found from rewards: a policy has to adapt to it. Lengths have no unit.
"""
import abc
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

    A subclass says where a path starts, what a push does, what is rewarded, when a path ends and what the tasks are.
    Its methods work on the environments `ids`, with element-wise arithmetic only, so that no row depends on others.

    Attributes:
        max_push: largest absolute value of each coordinate of a push; actions beyond are clipped to it.
        default_goal: the goal until `set_tasks` is called, `(x, y)`.
        state_size: length of a state, which begins with the coordinates x and y.
    """

    max_push: float
    default_goal: Tuple[float, float]
    state_size: int = 2

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (self.state_size,), np.float64)
        self.action_space = gym.spaces.Box(-self.max_push, self.max_push, (2,), np.float64)
        self._states = np.zeros((self.num_envs, self.state_size))
        self._goals = np.tile(np.array(self.default_goal), (self.num_envs, 1))

    def set_tasks(self, tasks: Sequence[Task]) -> None:
        """See `BatchedEnv.set_tasks`; a task is a goal `(x, y)`."""
        self._check_count(tasks)
        self._goals = np.array([self._check_goal(f"task {i}", task) for i, task in enumerate(tasks)])

    def get_tasks(self) -> List[Task]:
        return list(self._goals.copy())

    def reset(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        for env_id, rng in zip(env_ids, rngs, strict=True):
            self._states[env_id] = self._start(rng)
        return self._states[env_ids]

    def step(self, actions: np.ndarray, env_ids: Optional[np.ndarray] = None) -> BatchedStep:
        """See `BatchedEnv.step`; each coordinate of an action is clipped to `[-max_push, max_push]`."""
        actions, ids = self._rows(actions, env_ids)
        goals, before = self._goals[ids], self._states[ids]
        moved = self._push(before, np.clip(actions, -self.max_push, self.max_push), ids)
        after = self._stop(before, moved, ids)
        self._states[ids] = after
        rewards = self._rewards(before[:, :2], moved[:, :2], goals)
        return BatchedStep(after, rewards, self._terminated(after[:, :2], goals), np.zeros(len(ids), dtype=bool), {})

    @abc.abstractmethod
    def _start(self, rng: np.random.Generator) -> np.ndarray:
        """Returns the state `[state_size]` that a path starts in."""

    def _push(self, states: np.ndarray, pushes: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Returns the next states `[k, state_size]`, a new array; by default a push moves the point."""
        return states + pushes

    def _stop(self, states: np.ndarray, moved: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Returns where walls let pushes lead that would move `states` to `moved`; by default there is no wall."""
        return moved

    @abc.abstractmethod
    def _rewards(self, before: np.ndarray, after: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """Returns the rewards `[k]` of moves from `before` to `after`, without walls (positions, each `[k, 2]`)."""

    def _terminated(self, positions: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """Returns which paths end here, bool `[k]`; by default none ever does."""
        return np.zeros(len(positions), dtype=bool)

    def _check_goal(self, name: str, goal: Any) -> np.ndarray:
        return as_point(name, goal)

    def positions(self) -> np.ndarray:
        """Returns where the points are, a new array float64 `[num_envs, 2]`."""
        return self._states[:, :2].copy()

    def scenery(self, env_id: int) -> Scenery:
        """Returns what is to be drawn of the world of one environment."""
        return Scenery(half_width=max(self.default_goal), goal=self._goals[env_id])


class BatchedCornerTaskEnv(BatchedPointEnv):
    """Point environments whose goal is one of the four corners (+-2, +-2), each as likely as the others.

    Args:
        reward_type: `"dense"`: minus the distance to the goal; `"dense_squared"`: minus its square;
            `"sparse"`: what the subclass says.
        sparse_reward_radius: length that the sparse reward depends on, above 0.
    """

    default_goal = (2.0, 2.0)
    start_range = 0.2  # half width of the square that paths start in

    def __init__(self, num_envs: int, reward_type: str, sparse_reward_radius: float) -> None:
        super().__init__(num_envs)
        self.reward_type = check_choice("reward_type", reward_type, REWARD_TYPES)
        self.sparse_reward_radius = check_positive("sparse_reward_radius", sparse_reward_radius)

    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws `n_tasks` of the four corners, with replacement; each task is a float64 `[2]`."""
        return list(CORNERS[rng.integers(len(CORNERS), size=n_tasks)])

    def _start(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-self.start_range, self.start_range, size=2)

    def _rewards(self, before: np.ndarray, after: np.ndarray, goals: np.ndarray) -> np.ndarray:
        if self.reward_type == "sparse":
            return self._sparse_rewards(before, after, goals)
        distance = distances(after, goals)
        return -distance if self.reward_type == "dense" else -distance * distance

    @abc.abstractmethod
    def _sparse_rewards(self, before: np.ndarray, after: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """Returns the rewards `[k]` of `reward_type="sparse"`."""

    def scenery(self, env_id: int) -> Scenery:
        """See `BatchedPointEnv.scenery`; shows all four corners."""
        return super().scenery(env_id)._replace(other_goals=CORNERS)

    def _check_goal(self, name: str, goal: Any) -> np.ndarray:
        point = as_point(name, goal)
        if not (CORNERS == point).all(axis=1).any():
            raise ValueError(f"{name}: expected one of the corners {CORNERS.tolist()}, got {goal!r}")
        return point


class PointMetaEnv(BatchableMetaEnv):
    """One point. Pictures by `render` show the point, its path and its goal.

    Args:
        render_mode: `"rgb_array"` to draw pictures by `render`; None (default) for none.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    _batched: BatchedPointEnv

    def __init__(self, *, render_mode: Optional[str] = None, **kwargs: Any) -> None:
        super().__init__(render_mode=render_mode, **kwargs)
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
        return self._batched.positions()[0]

    def scenery(self) -> Scenery:
        """Returns what is to be drawn of the world besides the point."""
        return self._batched.scenery(0)

    def _draw(self) -> np.ndarray:
        if not self._trail:
            raise RuntimeError("render: call reset() first")
        return draw(np.array(self._trail), self.scenery())


def distances(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Returns the Euclidean distances `[k]` between the rows of two `[k, 2]` arrays."""
    dx, dy = points[:, 0] - others[:, 0], points[:, 1] - others[:, 1]
    return np.sqrt(dx * dx + dy * dy)


def as_point(name: str, value: Any) -> np.ndarray:
    """Returns `value` as a new float64 `[2]`; raises `ValueError` unless it is two finite numbers."""
    return as_array(name, value, (2,), "two finite numbers (x, y)")
