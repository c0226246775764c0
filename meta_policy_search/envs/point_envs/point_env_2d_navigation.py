"""2D navigation: the first reinforcement-learning experiment of MAML (arXiv:1703.03400, section 5.3).

The environment follows the authors' released code. Its reward is the negative distance to the goal; the paper uses the
negative squared distance. The other point environments are subclasses with other rules. In all of them, actions move a
point in the plane, and the goal is not observed: the agent can find it only from rewards, so a policy has to adapt.
Lengths have no unit.
"""
from typing import Any, List, Tuple

import numpy as np

from meta_policy_search.envs.interface import Rngs, WorldMetaEnv
from meta_policy_search.envs.scenery import Scenery, draw
from meta_policy_search.envs.spaces import as_point
from meta_policy_search.types import RenderMode, Task
from meta_policy_search.utils.checks import check_positive
from meta_policy_search.utils.gym_import import gym

CORNERS = np.array([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]])  # [4, 2], of the square [-1, 1]^2


class MetaPointEnvNavigation(WorldMetaEnv):
    """A point starts at the center of a square and moves to a task-specific goal in it.

    ===============  ============================================================================
    observation      float64 `[2]`: position `(x, y)`
    action           float64 `[2]`: displacement `(dx, dy)`, each clipped to [-0.1, 0.1]
    task             goal `(x, y)`, uniform in `[-0.5, 0.5]^2`; `set_task` accepts any finite goal;
                     default (0.5, 0.5)
    start            the origin
    reward           the negative distance between the new position and the goal
    end of episode   terminates when both coordinates are within 0.01 of the goal
    ===============  ============================================================================

    The goal is at most five full steps away; the usual horizon is 100 steps. Staying at the origin earns -0.38 per step
    on average over tasks.

    Args:
        render_mode: `"rgb_array"` to enable `render`; default None.

    Attributes:
        max_push: bound of the absolute value of each action coordinate; larger actions are clipped.
        goal_range: goals are in `[-goal_range, goal_range]^2`.
        only_corners: whether the goals are the corners of this square, with equal probability, instead of uniform.
        goal_tolerance: a path terminates when both coordinates are closer to the goal than this value; 0 disables
            termination.
        start_range: start positions are uniform in `[-start_range, start_range]^2`; 0 means the origin.
        state_size: length of a state, at least 2; the first two entries are x and y.

    References:
        Finn, Abbeel, Levine: Model-Agnostic Meta-Learning, 2017 (arXiv:1703.03400), and its released environment
        `PointEnvRandGoal`.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    first_task: Task = (0.5, 0.5)
    max_push = 0.1
    goal_range = 0.5
    only_corners = False
    goal_tolerance = 0.01
    start_range = 0.0
    state_size = 2
    least_half_width = 0.0  # of pictures; recordings set it, so that all pictures have equal limits

    def __init__(self, *, render_mode: RenderMode = None) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (self.state_size,), np.float64)
        self.action_space = gym.spaces.Box(-self.max_push, self.max_push, (2,), np.float64)
        super().__init__(render_mode=render_mode)

    @property
    def task_ranges(self) -> Any:
        """Ranges of the coordinates of the goal; empty if `only_corners`."""
        return () if self.only_corners else ((-self.goal_range, self.goal_range),) * 2

    @property
    def position(self) -> np.ndarray:
        """Current position of the point, float64 `[2]`."""
        return self._batched.states[0, :2].copy()

    def scenery(self) -> Scenery:
        """Returns what drawings show in addition to the point, such as the goal."""
        half_width = max(self.goal_range, self.start_range, self.least_half_width)
        return Scenery(half_width=half_width, goal=self._batched.task_rows[0, 0],
                       other_goals=self.goal_range * CORNERS if self.only_corners else ())

    def _draw(self) -> np.ndarray:
        if not self._batched.trail:
            raise RuntimeError("render: call reset() first")
        return draw(np.array(self._batched.trail)[:, :2], self.scenery())

    def _draw_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws `n_tasks` tasks; by default goals, float64 `[2]`, in the square of goals."""
        if self.only_corners:
            return list(self.goal_range * CORNERS[rng.integers(len(CORNERS), size=n_tasks)])
        return super()._draw_tasks(n_tasks, rng)

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
        terminated = (np.abs(after[:, :2] - goals) < self.goal_tolerance).all(axis=1)
        return after, self._rewards(states[:, :2], moved[:, :2], goals), terminated

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


def distances(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Returns the Euclidean distances `[k]` between the rows of two `[k, 2]` arrays."""
    dx, dy = points[:, 0] - others[:, 0], points[:, 1] - others[:, 1]
    return np.sqrt(dx * dx + dy * dy)


class MetaPointEnvSemicircle(MetaPointEnvNavigation):
    """A point explores a semicircle to find its goal; the reward is zero away from the goal.

    ===============  ============================================================================
    observation      float64 `[2]`: position `(x, y)`
    action           float64 `[2]`: displacement `(dx, dy)`, each clipped to [-0.1, 0.1]
    task             goal `(cos(a), sin(a))`, with the angle `a` uniform in [0, pi); `set_task`
                     accepts any finite goal; default (0, 1)
    start            the origin
    reward           `1 - d` if `d`, the distance between the new position and the goal, is at
                     most `goal_radius`; otherwise 0
    end of episode   never; the sampler ends a path after `max_path_length` steps (20 in PEARL)
    ===============  ============================================================================

    With the default radius, the first reward is at least six full steps away from the start, and it limits the goal to
    an eighth of the semicircle.

    Args:
        goal_radius: largest distance to the goal with a reward, above 0; default 0.2.
        render_mode: `"rgb_array"` to enable `render`; default None.

    References:
        Rakelly, Zhou, Quillen, Finn, Levine: Efficient Off-Policy Meta-Reinforcement Learning via Probabilistic Context
        Variables, 2019 (arXiv:1903.08254), and `SparsePointEnv` in its public code. The public code draws the goals
        from a grid of angles, and trains with the dense reward `-d`.
    """

    first_task = (0.0, 1.0)
    goal_range = 1.0
    task_dimensions = 1
    goal_tolerance = 0.0

    def __init__(self, goal_radius: float = 0.2, *, render_mode: RenderMode = None) -> None:
        self.goal_radius = check_positive("goal_radius", goal_radius)
        super().__init__(render_mode=render_mode)

    def tasks_at(self, points: np.ndarray) -> List[Task]:
        """Returns the goals at points of the unit interval, `[n, 1]`, which are fractions of the semicircle."""
        angles = np.pi * points[:, 0]
        return list(np.stack((np.cos(angles), np.sin(angles)), axis=1))

    def _rewards(self, before: np.ndarray, after: np.ndarray, goals: np.ndarray) -> np.ndarray:
        distance = distances(after, goals)
        return np.where(distance <= self.goal_radius, 1.0 - distance, 0.0)
