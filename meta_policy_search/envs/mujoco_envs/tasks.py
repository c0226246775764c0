"""Kinds of tasks that several robots share: a direction along a line, one in the plane, and a velocity.

Each is a mix-in: the environment of a robot and a task derives from the kind of task first, then from the robot.
"""
import math
import numbers
from typing import Any, Callable, List, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.base import BatchedGoalEnv
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.envs.point_envs.base import as_point
from meta_policy_search.envs.scenery import Scenery
from meta_policy_search.types import Infos, Rows, Task
from meta_policy_search.utils.checks import check_choice, check_finite

DIRECTIONS = (-1.0, 1.0)  # backward, forward


class DirectionTasks(BatchedGoalEnv):
    """The task is a direction along x, and by default the reward the velocity in that direction.

    Tasks:
        -1.0 (backward) or 1.0 (forward), with equal probability.

    Args:
        goal_direction: -1.0 or 1.0, the task until `set_task` is called; forward by default.
    """

    def __init__(self, num_envs: int, *, goal_direction: float = 1.0, **settings: Any) -> None:
        super().__init__(num_envs, task=check_choice("goal_direction", goal_direction, DIRECTIONS), **settings)

    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws directions, each with equal probability."""
        return rng.choice(DIRECTIONS, n_tasks).tolist()

    def scenery(self, env_id: int) -> Scenery:
        return Scenery(direction=np.array([self.goals[env_id], 0.0]))

    def _rewards(self, before: State, actions: np.ndarray, after: State, rows: Rows) -> Tuple[np.ndarray, Infos]:
        return self._run_rewards(self.goals[rows] * self._forward_velocity(before, after), actions, after)

    def _check_task(self, name: str, task: Task) -> float:
        return check_choice(name, task, DIRECTIONS)


class PlanarDirectionTasks(BatchedGoalEnv):
    """The task is a direction in the plane, and the reward for a `BatchedContactEnv` the velocity in that direction.

    Tasks:
        Unit vectors `(x, y)`, float64 `[2]`, all directions equally likely.

    Args:
        goal_direction: the task until `set_task` is called, two numbers `(x, y)`, a vector of length one.
    """

    _plane_velocity: Callable[[State, State], np.ndarray]  # of `BatchedContactEnv`

    def __init__(self, num_envs: int, *, goal_direction: Sequence[float] = (1.0, 0.0), **settings: Any) -> None:
        super().__init__(num_envs, task=self._check_task("goal_direction", goal_direction), **settings)

    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws directions, each a float64 `[2]` of length one."""
        vectors = rng.standard_normal((n_tasks, 2))
        return list(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    def scenery(self, env_id: int) -> Scenery:
        return Scenery(direction=self.goals[env_id])

    def _check_task(self, name: str, task: Task) -> np.ndarray:
        direction = as_point(name, task)
        if abs(math.hypot(*direction) - 1.0) > 1e-6:
            raise ValueError(f"{name}: expected a vector (x, y) of length one, got {task!r}")
        return direction

    def _rewards(self, before: State, actions: np.ndarray, after: State, rows: Rows) -> Tuple[np.ndarray, Infos]:
        goals, velocities = self.goals[rows], self._plane_velocity(before, after)
        along_goal = goals[:, 0] * velocities[:, 0] + goals[:, 1] * velocities[:, 1]
        return self._run_rewards(along_goal, actions, after)


class VelocityTasks(BatchedGoalEnv):
    """The task is a velocity along x, and by default the reward minus how far the robot is from it.

    Tasks:
        The velocity asked for, m/s, uniform in [`min_velocity`, `max_velocity`), where `min_velocity` is zero unless it
        is an argument. `set_task` takes any finite number.

    Args:
        min_velocity: lower end of the task distribution, m/s.
        max_velocity: upper end of the task distribution, m/s, above the lower one. The mean of both is the task until
            `set_task` is called.
    """

    logged_infos = ("forward_vel", "reward_ctrl")

    def __init__(self, num_envs: int, *, min_velocity: float = 0.0, max_velocity: float, **settings: Any) -> None:
        self.min_velocity = check_finite("min_velocity", min_velocity)
        self.max_velocity = check_finite("max_velocity", max_velocity)
        if not self.min_velocity < self.max_velocity:
            raise ValueError(f"max_velocity: expected a number above {self.min_velocity}, got {max_velocity!r}")
        super().__init__(num_envs, task=(self.min_velocity + self.max_velocity) / 2.0, **settings)

    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws velocities, m/s."""
        return rng.uniform(self.min_velocity, self.max_velocity, n_tasks).tolist()

    def _rewards(self, before: State, actions: np.ndarray, after: State, rows: Rows) -> Tuple[np.ndarray, Infos]:
        forward_vel = self._forward_velocity(before, after)
        return self._run_rewards(-np.abs(forward_vel - self.goals[rows]), actions, after, forward_vel=forward_vel)

    def _check_task(self, name: str, task: Task) -> float:
        if isinstance(task, bool) or not isinstance(task, numbers.Real) or not math.isfinite(task):
            raise ValueError(f"{name}: expected a finite number (m/s), got {task!r}")
        return float(task)
