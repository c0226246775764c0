"""Choice of the tasks of each iteration: from the task distribution, or more often those with the lowest returns."""
import math
from typing import Any, List, Mapping, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.compat import layers, name_of_env, owner_of_tasks
from meta_policy_search.types import Task
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import (
    check_arguments,
    check_choice,
    check_fraction,
    check_positive_int,
    check_type,
)
from meta_policy_search.utils.serializable import Configurable, constructor_signature

__all__ = ["RoML", "TaskSampler", "WorstTaskSampler"]

_EDGE = 0.02  # smallest distance of the mean of a coordinate from 0 and 1, as in the public code of RoML


class TaskSampler(Configurable):
    """Samples the tasks of each iteration from the task distribution of the environment.

    A subclass chooses other tasks. Only training uses it: evaluations sample tasks from the environment.

    Attributes:
        env: the environment, from `bind`.
    """

    env: Any = None

    def bind(self, env: Any) -> None:
        """Sets the environment; `MetaSampler` calls it before the first call of `sample`."""
        self.env = env

    def sample(self, n: int, rng: np.random.Generator) -> List[Task]:
        """Returns the `n` tasks of the next iteration.

        Args:
            n: number of tasks.
            rng: generator of the iteration, derived from the root seed.
        """
        return self.env.sample_tasks(n, rng)

    def update(self, tasks: Sequence[Task], returns: np.ndarray) -> None:
        """Observes the results of an iteration; the trainer calls it after sampling. Default: does nothing.

        Args:
            tasks: the tasks that `sample` returned.
            returns: float64 `[n]`, mean undiscounted return in each task after adaptation.
        """

    def get_state(self) -> Any:
        """Returns what determines future tasks, except the generators, for a snapshot. Default: None."""
        return None

    def set_state(self, state: Any) -> None:
        """Restores a state returned by `get_state`."""


class WorstTaskSampler(TaskSampler):
    """Repeats recent tasks with low returns, a simple form of distributionally robust training.

    An iteration has `int(repeated * n)` tasks drawn uniformly from the `fraction` of recent tasks with the lowest
    returns, and new tasks from the environment. Returns increase during training, so the return of a new task counts
    relative to the mean of the new tasks of its iteration. With a single new task per iteration, this difference is
    zero, and no task is the worst. Compared with the task distribution, a task of that fraction is drawn
    `1 - repeated + repeated / fraction` times as often, any other task `1 - repeated` times. Works for tasks of any
    type. Assigning an environment (`trainer.env`) removes the recent tasks, because they may be invalid there.

    Args:
        fraction (float): fraction of the recent tasks that is repeated, in (0, 1]. Default: 0.25.
        repeated (float): fraction of the tasks of an iteration that are repetitions, in [0, 1). Default: 0.5.
        memory (int): number of recent tasks. Repeated tasks are not added again. Default: 200.

    Raises:
        TypeError, ValueError: an argument is invalid.
    """

    def __init__(self, fraction: float = 0.25, repeated: float = 0.5, memory: int = 200) -> None:
        self.fraction = check_fraction("fraction", fraction)
        self.repeated = check_fraction("repeated", repeated, low_open=False, high_open=True)
        self.memory = check_positive_int("memory", memory)
        self._recent: List[Tuple[Task, float]] = []
        self._num_repeated = 0

    def bind(self, env: Any) -> None:
        """See `TaskSampler.bind`; removes the recent tasks."""
        super().bind(env)
        self._recent = []

    def sample(self, n: int, rng: np.random.Generator) -> List[Task]:
        """See `TaskSampler.sample`; the repeated tasks come first."""
        self._num_repeated = int(self.repeated * n) if self._recent else 0
        worst = sorted(self._recent, key=lambda pair: pair[1])[:math.ceil(self.fraction * len(self._recent))]
        chosen = [worst[i][0] for i in rng.integers(len(worst), size=self._num_repeated)] if worst else []
        return chosen + self.env.sample_tasks(n - self._num_repeated, rng)

    def update(self, tasks: Sequence[Task], returns: np.ndarray) -> None:
        """See `TaskSampler.update`; stores the new tasks."""
        new = np.asarray(returns)[self._num_repeated:]
        differences = (new - new.mean()).tolist()
        pairs = zip(tasks[self._num_repeated:], differences, strict=True)
        self._recent = [*self._recent, *pairs][-self.memory:]

    def get_state(self) -> Any:
        """Returns the recent tasks with their relative returns."""
        return self._recent, self._num_repeated

    def set_state(self, state: Any) -> None:
        """Restores a state returned by `get_state`."""
        self._recent, self._num_repeated = state


class RoML(TaskSampler):
    """Samples tasks with low returns more often, by the cross-entropy method of robust meta-RL.

    The environment maps the unit cube to its tasks (`tasks_at`). Each coordinate has a power distribution with the
    mean `m`: for `m >= 0.5` the beta distribution with the parameters `m / (1 - m)` and 1, for smaller `m` its mirror
    image. It is uniform for `m = 0.5`, the initial value. After every `batch_size` tasks, `m` moves towards the
    weighted mean of the tasks with the lowest returns. These are the fraction `alpha` of the task distribution, but at
    least the fraction `min_fraction` of the sampled tasks. The weight of a task is the ratio of its density under the
    task distribution to that under the sampled mixture of both. The meta-update has no such weights: it increases the
    mean return in the sampled tasks.

    The distribution of a coordinate changes only if the tasks with low returns have mostly large or mostly small
    values. It remains about uniform if these tasks are in the middle or at both ends.

    Logs the means, `TaskMean-0`, `TaskMean-1`, ....

    Args:
        alpha (float): fraction of the tasks with the lowest returns to train for, in (0, 1]. Default: 0.05.
        batch_size (int): number of tasks, over all iterations, between two updates of the means. Default: 128.
        original_fraction (float): fraction of the tasks of an iteration that is sampled from the task distribution, in
            [0, 1]. Default: 0.2.
        min_fraction (float): smallest fraction of the tasks that an update uses, in (0, 1]. Default: 0.2.
        soft_update (float): weight of the previous means in an update, in [0, 1). Default: 0.5.

    Raises:
        TypeError, ValueError: an argument is invalid. `bind` raises `ValueError` if the environment has no `tasks_at`
            or overrides only `sample_tasks`.

    References:
        Greenberg, Mannor, Chechik, Meirom: Train Hard, Fight Easy: Robust Meta Reinforcement Learning, 2023
        (arXiv:2301.11147), Algorithm 1. The defaults are those of the public code (github.com/ido90/RobustMetaRL). Its
        beta distributions, with the parameters `2 m` and `2 - 2 m`, are unbounded at the edges. If the worst 5% of the
        tasks are at an edge, a third of the sampled points would be within 1e-8 of this edge.
    """

    def __init__(self, alpha: float = 0.05, batch_size: int = 128, original_fraction: float = 0.2,
                 min_fraction: float = 0.2, soft_update: float = 0.5) -> None:
        self.alpha = check_fraction("alpha", alpha)
        self.batch_size = check_positive_int("batch_size", batch_size)
        self.original_fraction = check_fraction("original_fraction", original_fraction, low_open=False)
        self.min_fraction = check_fraction("min_fraction", min_fraction)
        self.soft_update = check_fraction("soft_update", soft_update, low_open=False, high_open=True)
        self._means = np.empty(0)  # [d], from the first call of `sample` on
        self._drawn = np.empty((0, 0))  # [n, d + 1]: points and weights of the tasks of the current iteration
        self._batch: List[np.ndarray] = []  # [d + 2]: point, weight and return of each task since the last update

    def bind(self, env: Any) -> None:
        """See `TaskSampler.bind`; removes the means if the number of coordinates changes."""
        owner = owner_of_tasks(env, "tasks_at")
        if not getattr(owner, "task_dimensions", 0):
            raise ValueError("task_sampler: RoML requires an environment with task_dimensions and tasks_at, got "
                             f"{name_of_env(env)}; WorstTaskSampler works for any tasks")
        layer = next((layer for layer in layers(owner) if hasattr(type(layer), "tasks_at")), owner)
        definitions = [names for names in map(vars, type(layer).__mro__) if {"tasks_at", "sample_tasks"} & set(names)]
        if definitions and "tasks_at" not in definitions[0]:
            raise ValueError(f"task_sampler: RoML uses tasks_at, but {name_of_env(env)} overrides only sample_tasks; "
                             "override tasks_at, too")
        super().bind(owner)
        if len(self._means) != owner.task_dimensions:
            self._means, self._batch = np.empty(0), []

    def sample(self, n: int, rng: np.random.Generator) -> List[Task]:
        """See `TaskSampler.sample`; the tasks from the task distribution come first."""
        size = self.env.task_dimensions
        means = self._means if len(self._means) else np.full(size, 0.5)
        num_original = round(self.original_fraction * n)
        powers = np.maximum(means, 1.0 - means) / np.minimum(means, 1.0 - means)
        mirror = means < 0.5
        points = rng.random((n, size))
        chosen = (1.0 - points[num_original:]) ** (1.0 / powers)
        points[num_original:] = np.minimum(np.where(mirror, 1.0 - chosen, chosen), 1.0 - 1e-9)  # below 1
        densities = np.prod(powers * np.where(mirror, 1.0 - points, points) ** (powers - 1.0), axis=1)
        weights = n / (num_original + (n - num_original) * densities)
        self._means, self._drawn = means, np.column_stack([points, weights])
        return self.env.tasks_at(points)

    def update(self, tasks: Sequence[Task], returns: np.ndarray) -> None:
        """See `TaskSampler.update`."""
        self._batch += list(np.column_stack([self._drawn, returns]))
        if len(self._batch) >= self.batch_size:
            points, weights, results = np.split(np.array(self._batch), [-2, -1], axis=1)
            order = np.argsort(results[:, 0], kind="stable")
            cumulative = np.cumsum(weights[order, 0])
            num_worst = max(math.ceil(self.min_fraction * len(order)),
                            int(np.searchsorted(cumulative, self.alpha * cumulative[-1])) + 1)
            worst = order[:num_worst]
            means = np.clip(np.average(points[worst], axis=0, weights=weights[worst, 0]), _EDGE, 1.0 - _EDGE)
            self._means, self._batch = self.soft_update * self._means + (1.0 - self.soft_update) * means, []
        logger.logkvs({f"TaskMean-{i}": float(mean) for i, mean in enumerate(self._means)})

    def get_state(self) -> Any:
        """Returns the means and the tasks since the last update."""
        return self._means, self._drawn, list(self._batch)

    def set_state(self, state: Any) -> None:
        """Restores a state returned by `get_state`."""
        self._means, self._drawn, batch = state
        self._batch = list(batch)


TASK_SAMPLERS = {"uniform": TaskSampler, "worst": WorstTaskSampler, "roml": RoML}


def make_task_sampler(value: Any) -> Any:
    """Returns the task sampler that a name, a mapping such as `{"name": "roml", "alpha": 0.1}` or an object specifies.

    Raises:
        TypeError: the object is not a `TaskSampler`, or an argument in the mapping has the wrong type.
        ValueError: there is no task sampler or argument of this name, or an argument is invalid.
    """
    if isinstance(value, (str, Mapping)):
        arguments = {"name": value} if isinstance(value, str) else dict(value)
        cls = TASK_SAMPLERS[check_choice("task_sampler", arguments.pop("name", None), TASK_SAMPLERS)]
        names = list(constructor_signature(cls).parameters)
        return cls(**{check_choice("task_sampler", name, names): given for name, given in arguments.items()})
    check_type("task_sampler", value, TaskSampler, f"one of {', '.join(TASK_SAMPLERS)}, or a TaskSampler")
    check_arguments(f"{type(value).__name__}.sample", value.sample, "(n, rng)", 1, None)
    return value
