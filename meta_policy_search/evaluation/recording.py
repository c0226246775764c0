"""Recorded paths of a policy before and after adaptation, for trajectory plots and videos."""
import copy
import dataclasses
import itertools
from typing import Any, Iterator, List, Optional, Sequence

import numpy as np

from meta_policy_search.envs.compat import adapt_env, copy_env
from meta_policy_search.envs.scenery import check_is_planar
from meta_policy_search.plotting import TaskTrajectories, describe_task, plot_trajectories
from meta_policy_search.plotting.style import Figure
from meta_policy_search.samplers import MetaSampler
from meta_policy_search.samplers.rollout_loop import INITIAL_BUFFER_STEPS, draw_path_noise
from meta_policy_search.types import PathsMetaBatch, Task
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.files import PathLike
from meta_policy_search.utils.statistics import task_returns


def next_start_rngs(sampler: MetaSampler) -> List[List[np.random.Generator]]:
    """Returns the random generators `[M][P]` that environments will use in the next paths of `sampler`."""
    actor = sampler.make_actor()
    noise = np.empty((min(sampler.max_path_length, INITIAL_BUFFER_STEPS), actor.noise_dim), np.float32)
    rngs = [[sampler.path_rng(m, p) for p in range(sampler.batch_size)] for m in range(sampler.meta_batch_size)]
    for rng in itertools.chain(*rngs):
        draw_path_noise(actor, rng, sampler.max_path_length, noise)  # the policy's noise is drawn first
    return rngs


@dataclasses.dataclass(frozen=True, repr=False)
class Recording:
    """Paths of a policy in `M` tasks, before adaptation and after each adaptation step.

    Args:
        name: name of the policy.
        env: the environment; `replay` uses copies of it.
        tasks: the `M` tasks.
        rounds: the paths (`P` per task) after 0, 1, ..., `K` adaptation steps.
        start_rngs: for each element of `rounds`, the random generators `[M][P]` of the environments at the start of the
            paths.
    """

    name: str
    env: Any
    tasks: Sequence[Task]
    rounds: Sequence[PathsMetaBatch]
    start_rngs: Sequence[Sequence[Sequence[np.random.Generator]]]

    def __repr__(self) -> str:
        return f"<Recording of {self.name} in {len(self.tasks)} tasks, after 0 to {len(self.rounds) - 1} steps>"

    @property
    def returns(self) -> np.ndarray:
        """Mean undiscounted return in each task after 0, 1, ..., `K` adaptation steps, float64 `[M, K + 1]`."""
        return np.stack([task_returns(paths) for paths in self.rounds], axis=-1)

    def replay(self, step: int, task: int, path: int = 0, env: Any = None) -> Iterator[Any]:
        """Replays a recorded path; yields the environment at the start of the path and after each step.

        Args:
            step: number of adaptation steps before the path.
            task: index of the task.
            path: index of the path; default 0.
            env: environment to step, which is modified. Default None: a copy of `self.env`.

        Raises:
            RuntimeError: a reward differs from the recorded reward. This happens if the environment draws random
                numbers from a source other than the generator that the library sets.
        """
        env = adapt_env(copy_env(self.env) if env is None else env)
        recorded = self.rounds[step][task][path]
        env.set_task(self.tasks[task])
        env.np_random = copy.deepcopy(self.start_rngs[step][task][path])
        env.reset()
        yield env
        for t, (action, reward) in enumerate(zip(recorded["actions"], recorded["rewards"], strict=True)):
            again = env.step(action)[1]
            if not np.isclose(again, reward, rtol=1e-6, atol=1e-9):
                raise RuntimeError(f"replay: expected the recorded reward {reward} in step {t}, got {again}: "
                                   f"{type(env.unwrapped).__name__} is not deterministic for a given generator")
            yield env

    def trajectories(self, step: int, task: int, num_paths: int = 5) -> List[np.ndarray]:
        """Returns the positions along the first `num_paths` paths of a task, a list of float64 `[T + 1, 2]`.

        Args:
            step: number of adaptation steps before the paths.
            task: index of the task.
            num_paths: maximum number of paths; default 5.

        Raises:
            ValueError: the environment is not planar (it has no `position`).
        """
        check_is_planar(self.env)
        env = copy.deepcopy(self.env)
        count = min(num_paths, len(self.rounds[step][task]))
        return [np.array([moved.unwrapped.position for moved in self.replay(step, task, path, env)])
                for path in range(count)]

    def plot_trajectories(self, path: Optional[PathLike] = None, title: str = "", num_paths: int = 5,
                          ax: Any = None) -> Figure:
        """Plots the paths in each task, before adaptation and after each adaptation step.

        Args:
            path: file to write: SVG if the name ends with `.svg`, otherwise PNG. Default None: no file.
            title: title of the figure. Default: "Paths of" and the name of the policy.
            num_paths: maximum number of paths per panel; default 5.
            ax: see `plotting.plot_trajectories`.

        Returns:
            The figure.

        Raises:
            ValueError: the environment is not planar (it has no `position`).
        """
        num_paths, env, tasks = check_positive_int("num_paths", num_paths), copy.deepcopy(self.env), []
        for index, task in enumerate(self.tasks):
            trajectories = [self.trajectories(step, index, num_paths) for step in range(len(self.rounds))]
            env.set_task(task)
            tasks.append(TaskTrajectories(env.unwrapped.scenery(), trajectories, self.returns[index]))
        names = [f"task {number}: {describe_task(task, env=env)}" for number, task in enumerate(self.tasks, 1)]
        return plot_trajectories(tasks, path, title or f"Paths of {self.name}", names, ax)
