"""Families of tasks: directions, velocities, goal positions and randomized physical parameters."""
import abc
import math
from typing import Collection, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.engines.base import Engine
from meta_policy_search.envs.scenery import Scenery
from meta_policy_search.envs.spaces import as_array, as_point
from meta_policy_search.types import Infos, Task
from meta_policy_search.utils.checks import check_choice, check_finite, check_non_negative, check_type

DIRECTIONS = (-1.0, 1.0)
"""Directions along x: backward and forward."""

SCALE_BASES = {"body_mass": 1.5, "dof_damping": 1.3, "body_inertia": 1.5, "geom_friction": 1.5}
"""Physical parameters that tasks can change, and the base of the random multipliers of each."""


HEAD_GEOMETRY = 2  # index of the head among the geometries of the half cheetah


class TaskFamily(abc.ABC):
    """Task distribution and task-dependent reward of a robot.

    A family has no mutable state, so environments can share it.

    Attributes:
        first: the task of an environment before the first call of `set_task`.
        dimensions: number of coordinates of `tasks_at`; 0 (default) without `tasks_at`.
    """

    first: Task
    dimensions: int = 0

    def first_task(self, engine: Engine) -> Task:
        """Returns the task of an environment before the first call of `set_task`."""
        return self.first

    def tasks_at(self, points: np.ndarray) -> List[Task]:
        """Returns the tasks at points of the unit cube; see `MetaEnv`."""
        raise NotImplementedError

    def sample(self, n_tasks: int, rng: np.random.Generator, engine: Engine) -> List[Task]:
        """Draws `n_tasks` tasks; by default those at uniform points.

        Args:
            n_tasks: number of tasks.
            rng: generator to draw from.
            engine: engine that simulates the robot; used by families that depend on physical parameters.
        """
        return self.tasks_at(rng.random((n_tasks, self.dimensions)))

    @abc.abstractmethod
    def check(self, name: str, task: Task, engine: Engine) -> Task:
        """Checks a task and returns a copy in the format of `sample`.

        Raises:
            TypeError, ValueError: `task` is invalid; `name` is its name in the message.
        """

    def parameters(self, task: Task, engine: Engine) -> Optional[Mapping[str, np.ndarray]]:
        """Returns the parameters of the model that a checked task changes; by default None: tasks change none."""
        return None

    @abc.abstractmethod
    def progress(self, velocity: np.ndarray, position: np.ndarray, goals: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Returns the reward for the motion during a step.

        Args:
            velocity: float64 `[k, 1]` (along x) or `[k, 2]`, mean velocity during the step, m/s.
            position: float64 `[k, 1]` or `[k, 2]`, position after the step, m.
            goals: `[k, ...]`, array of the tasks of the robots.

        Returns:
            `(progress [k], env_infos)`.
        """

    def scenery(self, task: Task) -> Scenery:
        """Returns what drawings from above show in addition to the robot, such as the goal."""
        return Scenery()


class Directions(TaskFamily):
    """Tasks are directions along x: -1.0 or 1.0, with equal probability.

    The reward is the velocity in this direction, m/s.

    Args:
        goal_direction: task before the first call of `set_task`, -1.0 (backward) or 1.0 (forward, default).
    """

    def __init__(self, goal_direction: float = 1.0) -> None:
        self.first = check_choice("goal_direction", goal_direction, DIRECTIONS)

    def sample(self, n_tasks: int, rng: np.random.Generator, engine: Engine) -> List[Task]:
        return rng.choice(DIRECTIONS, n_tasks).tolist()

    def check(self, name: str, task: Task, engine: Engine) -> float:
        return check_choice(name, task, DIRECTIONS)

    def progress(self, velocity: np.ndarray, position: np.ndarray, goals: np.ndarray) -> Tuple[np.ndarray, Infos]:
        return goals * velocity[:, 0], {}

    def scenery(self, task: Task) -> Scenery:
        return Scenery(direction=np.array([task, 0.0]))


class PlanarDirections(TaskFamily):
    """Tasks are unit vectors `(x, y)` with uniform angle.

    The reward is the velocity in this direction, m/s.

    Args:
        goal_direction: task before the first call of `set_task`; default (1, 0).
    """

    dimensions = 1

    def __init__(self, goal_direction: Sequence[float] = (1.0, 0.0)) -> None:
        self.first = _unit_vector("goal_direction", goal_direction)

    def tasks_at(self, points: np.ndarray) -> List[Task]:
        angles = 2.0 * np.pi * points[:, 0]
        return list(np.stack((np.cos(angles), np.sin(angles)), axis=1))

    def sample(self, n_tasks: int, rng: np.random.Generator, engine: Engine) -> List[Task]:
        vectors = rng.standard_normal((n_tasks, 2))
        return list(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    def check(self, name: str, task: Task, engine: Engine) -> np.ndarray:
        return _unit_vector(name, task)

    def progress(self, velocity: np.ndarray, position: np.ndarray, goals: np.ndarray) -> Tuple[np.ndarray, Infos]:
        return goals[:, 0] * velocity[:, 0] + goals[:, 1] * velocity[:, 1], {}

    def scenery(self, task: Task) -> Scenery:
        return Scenery(direction=task)


class Velocities(TaskFamily):
    """Tasks are target velocities along x, m/s, uniform in [`min_velocity`, `max_velocity`).

    The reward is the negative absolute difference between the robot's velocity and the target. The task before the
    first call of `set_task` is the middle of the range. `env_infos` contain `forward_vel`, the velocity along x, m/s.

    Args:
        min_velocity: lower bound of the range, m/s.
        max_velocity: upper bound of the range, m/s; above `min_velocity`.
    """

    dimensions = 1

    def __init__(self, min_velocity: float, max_velocity: float) -> None:
        self.min_velocity = check_finite("min_velocity", min_velocity)
        self.max_velocity = check_finite("max_velocity", max_velocity)
        if not self.min_velocity < self.max_velocity:
            raise ValueError(f"max_velocity: expected a number above {self.min_velocity}, got {max_velocity!r}")
        self.first = (self.min_velocity + self.max_velocity) / 2.0

    def tasks_at(self, points: np.ndarray) -> List[Task]:
        return (self.min_velocity + (self.max_velocity - self.min_velocity) * points[:, 0]).tolist()

    def check(self, name: str, task: Task, engine: Engine) -> float:
        return check_finite(name, task)

    def progress(self, velocity: np.ndarray, position: np.ndarray, goals: np.ndarray) -> Tuple[np.ndarray, Infos]:
        return -np.abs(velocity[:, 0] - goals), {"forward_vel": velocity[:, 0]}


class Goals(TaskFamily):
    """Tasks are goal positions `(x, y)`, m, uniform in a disc around the origin.

    The reward is the negative distance between the robot and the goal after the step, m.

    Args:
        goal: task before the first call of `set_task`, any finite position.
        radius: radius of the disc, m.
        marker: index of a body of the model that is placed at the goal; default None. It must not touch the robot.
        euclidean: whether the distance is Euclidean; default False (L1 distance).
    """

    dimensions = 2

    def __init__(self, goal: Sequence[float], radius: float, marker: Optional[int] = None,
                 euclidean: bool = False) -> None:
        self.first, self.radius, self.marker, self.euclidean = as_point("goal", goal), radius, marker, euclidean

    def sample(self, n_tasks: int, rng: np.random.Generator, engine: Engine) -> List[Task]:
        return self.tasks_at(rng.random((2, n_tasks)).T)  # all angles are drawn first

    def tasks_at(self, points: np.ndarray) -> List[Task]:
        angles, distances = 2.0 * np.pi * points[:, 0], self.radius * np.sqrt(points[:, 1])
        return list(distances[:, None] * np.stack((np.cos(angles), np.sin(angles)), axis=1))

    def check(self, name: str, task: Task, engine: Engine) -> np.ndarray:
        return as_point(name, task)

    def parameters(self, task: Task, engine: Engine) -> Optional[Mapping[str, np.ndarray]]:
        if self.marker is None:
            return None
        places = engine.get_parameter("body_pos")
        places[self.marker, :2] = task
        return {"body_pos": places}

    def progress(self, velocity: np.ndarray, position: np.ndarray, goals: np.ndarray) -> Tuple[np.ndarray, Infos]:
        away = np.abs(position - goals)
        if self.euclidean:
            return -np.sqrt(away[:, 0] * away[:, 0] + away[:, 1] * away[:, 1]), {}
        return -(away[:, 0] + away[:, 1]), {}

    def scenery(self, task: Task) -> Scenery:
        return Scenery(half_width=self.radius, goal=task)


class RandomParameters(TaskFamily):
    """Tasks are dicts of physical parameters (see `RandomEnv`); the reward is the velocity along x, m/s.

    Args:
        log_scale_limit: half-width of the uniform distribution of the exponents, at least 0.
        rand_params: names of the parameters that a task changes, one or more of `SCALE_BASES`; default all.
    """

    def __init__(self, log_scale_limit: float, rand_params: Sequence[str] = tuple(SCALE_BASES)) -> None:
        self.log_scale_limit = check_non_negative("log_scale_limit", log_scale_limit)
        if isinstance(rand_params, str) or not isinstance(rand_params, Collection) or not rand_params:
            raise ValueError(f"rand_params: expected one or more of {list(SCALE_BASES)}, got {rand_params!r}")
        names = {check_choice("rand_params", name, SCALE_BASES) for name in rand_params}
        self.rand_params = tuple(name for name in SCALE_BASES if name in names)

    def first_task(self, engine: Engine) -> Task:
        """Returns the parameters of the model."""
        return {name: engine.get_parameter(name) for name in self.rand_params}

    def sample(self, n_tasks: int, rng: np.random.Generator, engine: Engine) -> List[Task]:
        limit, model = self.log_scale_limit, self.first_task(engine)
        return [{name: values * SCALE_BASES[name] ** rng.uniform(-limit, limit, values.shape)
                 for name, values in model.items()} for _ in range(n_tasks)]

    def check(self, name: str, task: Task, engine: Engine) -> Dict[str, np.ndarray]:
        checked = {}
        for parameter, values in check_type(name, task, Mapping, "a dict of parameter arrays").items():
            check_choice(f"{name}: parameter", parameter, SCALE_BASES)
            shape = engine.get_parameter(parameter).shape
            checked[parameter] = as_array(f"{name}: {parameter}", values, shape, f"finite numbers of at least 0 of "
                                          f"shape {shape}", lambda numbers: numbers >= 0.0)
        return checked

    def parameters(self, task: Task, engine: Engine) -> Mapping[str, np.ndarray]:
        return task

    def progress(self, velocity: np.ndarray, position: np.ndarray, goals: np.ndarray) -> Tuple[np.ndarray, Infos]:
        return velocity[:, 0], {}


class ScaledParameters(TaskFamily):
    """Tasks scale the masses of a half cheetah or walker and, optionally, its damping and shape.

    A task is an array of factors with one entry per key of `ranges`. `mass` scales the mass of each body, `damping` the
    damping of each joint, and `head` the length of the head of the half cheetah. The moments of inertia do not change,
    as in the public code of the references. The reward is the velocity along x, m/s. If the last entry is `velocity`,
    it is a target velocity, m/s, and the reward is that of `Velocities`.

    Args:
        ranges: lowest and highest value of each entry, in this order: `mass`, then any of the others.
        thickness: whether `mass` also scales the radius of each part of the body; default False.
        logarithmic: whether the logarithm of an entry is uniform instead of the entry; default False.
    """

    def __init__(self, ranges: Mapping[str, Tuple[float, float]], thickness: bool = False,
                 logarithmic: bool = False) -> None:
        self.ranges, self.thickness, self.logarithmic = dict(ranges), thickness, logarithmic
        self.first = np.array([1.0 if name != "velocity" else sum(ranges[name]) / 2.0 for name in ranges])
        self.dimensions = len(self.ranges)

    def tasks_at(self, points: np.ndarray) -> List[Task]:
        low, high = np.transpose(list(self.ranges.values()))
        if self.logarithmic:
            return list(np.exp(np.log(low) + (np.log(high) - np.log(low)) * points))
        return list(low + (high - low) * points)

    def check(self, name: str, task: Task, engine: Engine) -> np.ndarray:
        num_factors = self.dimensions - ("velocity" in self.ranges)
        return as_array(name, task, (self.dimensions,), f"finite numbers ({', '.join(self.ranges)}), factors above 0",
                        lambda values: values[:num_factors] > 0.0)

    def parameters(self, task: Task, engine: Engine) -> Mapping[str, np.ndarray]:
        factors = dict(zip(self.ranges, task, strict=True))
        changed = {"body_mass": engine.get_parameter("body_mass") * factors["mass"]}
        if "damping" in factors:
            changed["dof_damping"] = engine.get_parameter("dof_damping") * factors["damping"]
        if self.thickness:
            sizes, radii = engine.get_parameter("geom_size"), engine.get_parameter("geom_rbound")
            sizes[1:, 0] *= factors["mass"]  # capsules: radius, half length; the first geometry is the ground
            sizes[HEAD_GEOMETRY, 1] *= factors.get("head", 1.0)
            radii[1:] = sizes[1:, 0] + sizes[1:, 1]
            changed.update(geom_size=sizes, geom_rbound=radii)
        return changed

    def progress(self, velocity: np.ndarray, position: np.ndarray, goals: np.ndarray) -> Tuple[np.ndarray, Infos]:
        if "velocity" not in self.ranges:
            return velocity[:, 0], {}
        return -np.abs(velocity[:, 0] - goals[:, -1]), {"forward_vel": velocity[:, 0]}


def _unit_vector(name: str, value: Sequence[float]) -> np.ndarray:
    return as_array(name, value, (2,), "a unit vector (x, y)", lambda vector: abs(math.hypot(*vector) - 1.0) <= 1e-6)
