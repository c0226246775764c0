"""What a policy did in some tasks before and after adaptation, to look at: positions in the plane, and pictures."""
import copy
import dataclasses
from typing import Any, Iterator, List, Sequence

import numpy as np

from meta_policy_search.envs.gym_compat import reset_env, set_rng, step_env
from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.envs.scenery import check_is_planar
from meta_policy_search.plotting import TaskTrajectories, describe_task, plot_trajectories
from meta_policy_search.samplers.executors.base import MetaEnvExecutor
from meta_policy_search.samplers.executors.local import make_local_executor
from meta_policy_search.types import PathsMetaBatch, Task
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.files import PathLike
from meta_policy_search.utils.statistics import task_returns


class RecordingExecutor:
    """The fastest executor within this process, which also keeps what its paths start from.

    Args:
        env, meta_batch_size, envs_per_task, max_path_length: see `MetaEnvExecutor`; there are as many environments per
            task as paths, so that all paths of a round start together.
        starts: list that the generators of each round are appended to, in the order of tasks and paths, as they are
            before the environments draw from them.
    """

    def __init__(
        self,
        env: MetaEnv,
        meta_batch_size: int,
        envs_per_task: int,
        max_path_length: int,
        starts: List[List[np.random.Generator]],
    ) -> None:
        self._executor: MetaEnvExecutor = make_local_executor(env, meta_batch_size, envs_per_task, max_path_length)
        self._starts = starts
        self.max_threads = 1  # or the parts of a round would come in any order

    def __getattr__(self, name: str) -> Any:
        """Returns what the executor has."""
        return getattr(self._executor, name)

    def reset_envs(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        """See `MetaEnvExecutor.reset_envs`."""
        self._starts.append(copy.deepcopy(list(rngs)))
        return self._executor.reset_envs(env_ids, rngs)


@dataclasses.dataclass(frozen=True)
class Recording:
    """Paths in `M` tasks before and after each adaptation step; each of the `P` paths of a task can be repeated.

    Args:
        name: of the policy.
        env: the environment; `replay` uses copies of it.
        tasks: the `M` tasks.
        rounds: the paths after 0, 1, ..., `K` adaptation steps.
        start_rngs: of each round, the generators `[M * P]` that the environments drew from, in the order of tasks and
            paths, as they were at the start.
    """

    name: str
    env: Any
    tasks: Sequence[Task]
    rounds: Sequence[PathsMetaBatch]
    start_rngs: Sequence[Sequence[np.random.Generator]]

    @property
    def returns(self) -> np.ndarray:
        """The mean undiscounted return of a path in each task after each number of steps, float64 `[M, K + 1]`."""
        return np.stack([task_returns(paths) for paths in self.rounds], axis=-1)

    def replay(self, step: int, task: int, path: int = 0, env: Any = None) -> Iterator[Any]:
        """Repeats a path, with the actions and random numbers of the first time.

        Args:
            step: adaptation steps before the path.
            task: index of the task.
            path: which path of the task.
            env: environment to do it in, which is changed; default None, a copy.

        Returns:
            An iterator that gives the environment at the start of the path and after each of its steps.

        Raises:
            RuntimeError: a reward is not that of the first time, as the environment has random numbers that are not
                from its own generator.
        """
        env = copy.deepcopy(self.env) if env is None else env
        paths = self.rounds[step][task]
        env.set_task(self.tasks[task])
        set_rng(env, copy.deepcopy(self.start_rngs[step][task * len(paths) + path]))
        reset_env(env)
        yield env
        for t, (action, reward) in enumerate(zip(paths[path]["actions"], paths[path]["rewards"], strict=True)):
            again = step_env(env, action)[1]
            if not np.isclose(again, reward, rtol=1e-6, atol=1e-9):
                raise RuntimeError(f"replay: expected the reward {reward} of the first time in step {t}, got {again}: "
                                   f"{type(env.unwrapped).__name__} does not repeat itself")
            yield env

    def trajectories(self, step: int, task: int, num_paths: int = 5) -> List[np.ndarray]:
        """Returns the positions along a task's first paths, at most `num_paths`, each float64 `[T + 1, 2]`.

        Raises:
            ValueError: the environment is not in the plane.
        """
        check_is_planar(self.env)
        env = copy.deepcopy(self.env)
        count = min(num_paths, len(self.rounds[step][task]))
        return [np.array([moved.unwrapped.position for moved in self.replay(step, task, path, env)])
                for path in range(count)]

    def plot_trajectories(self, path: PathLike, title: str = "", num_paths: int = 5) -> str:
        """Draws the paths in each task before and after each adaptation step, as a PNG file; returns its path.

        Args:
            path: file to write.
            title: title of the picture; by default, that it shows this policy.
            num_paths: paths of each task after each number of steps, at most, at least 1.

        Raises:
            ValueError: the environment is not in the plane (it has no `position`), or `num_paths` is below 1.
            OSError: the picture cannot be written.
        """
        num_paths, env, tasks = check_positive_int("num_paths", num_paths), copy.deepcopy(self.env), []
        for index, task in enumerate(self.tasks):
            trajectories = [self.trajectories(step, index, num_paths) for step in range(len(self.rounds))]
            env.set_task(task)
            tasks.append(TaskTrajectories(env.unwrapped.scenery(), trajectories, self.returns[index]))
        names = [f"task {number}: {describe_task(task)}" for number, task in enumerate(self.tasks, 1)]
        return plot_trajectories(tasks, path, title or f"Paths of {self.name}", names)
