"""Sampler that collects paths in all tasks of a meta-batch at once."""
import functools
from typing import Any, Dict, List, Optional, Sequence, Union

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.actors.flat_policy import check_spaces, num_tasks_of
from meta_policy_search.actors.from_policy import actor_from_policy
from meta_policy_search.envs.compat import adapt_env, add_spaces, close_env, copy_env, has_spaces
from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.envs.normalized_env import check_wrapped_like, update_averages
from meta_policy_search.samplers.base import Sampler
from meta_policy_search.samplers.errors import EnvWorkerError
from meta_policy_search.samplers.ray_executor import Parallel, RayExecutor, RayOptions, check_parallel
from meta_policy_search.samplers.rollout_loop import INITIAL_BUFFER_STEPS, PathRng
from meta_policy_search.samplers.task_samplers import TaskSampler, make_task_sampler
from meta_policy_search.samplers.vectorized_env_executor.base import MetaEnvExecutor
from meta_policy_search.samplers.vectorized_env_executor.local import make_local_executor
from meta_policy_search.samplers.vectorized_env_executor.parallel import MetaParallelEnvExecutor
from meta_policy_search.types import PathsMetaBatch, Task, WithoutEffect
from meta_policy_search.utils import logger, seeding
from meta_policy_search.utils.checks import check_agrees, check_int_at_least, check_positive_int
from meta_policy_search.utils.fast_paths import fast_path
from meta_policy_search.utils.serializable import replaced_arguments
from meta_policy_search.utils.threads import total_memory


class MetaSampler(Sampler):
    """Collects `rollouts_per_meta_task` paths for each of `meta_batch_size` tasks.

    `update_tasks` starts an iteration. Each following call of `obtain_samples` collects the paths of the next
    adaptation step. Every started path is finished and returned, so early ends do not bias the samples.

    Each path has a separate generator, derived from the root seed (`set_seed`), the iteration, the adaptation step, the
    task and the rollout. Therefore the paths do not depend on `parallel` or `envs_per_task`. Exception: a policy
    without `make_actor` is sampled through `get_actions` and draws its noise itself, so its paths depend on
    `envs_per_task`.

    An environment may keep state across resets, for example a running mean or a curriculum. In this case, paths depend
    on `envs_per_task`, and a resumed run differs from an uninterrupted run. The sampler does not detect this;
    `check_env` does.

    Args:
        env (MetaEnv): environment to sample. It is copied here, so later changes have no effect until `sampler.env` is
            assigned. If it has no spaces, a copy is reset, and `policy.get_actions` is called once; the first
            observation and action give the sizes.
        policy (MetaPolicy): policy with current parameters for each task, or any object with the `get_actions` method
            of a `MetaPolicy`. `get_actions` may return None as agent infos.
        rollouts_per_meta_task (int): number of paths per task, `P`.
        meta_batch_size (int): number of tasks, `M`; must equal `policy.meta_batch_size`.
        max_path_length (int): maximum number of steps of a path.
        envs_per_task (int or None): number of paths of a task that are sampled concurrently. A smaller number needs
            less memory and more time. Default and maximum: `rollouts_per_meta_task`.
        parallel (bool, str, dict or RayOptions): False (default): environments run in this process, vectorized if they
            have `make_batched`, otherwise sequentially. True: worker processes collect the paths. `'ray'`, `RayOptions`
            or a dict of its arguments: workers on a Ray cluster collect the paths. Worker processes also support
            policies without a vectorized actor; these act in this process. They import the user's modules again, so
            assignments to variables of these modules have no effect in them.
        task_sampler (str, dict or TaskSampler): chooses the tasks of each iteration: `'uniform'` (default), the task
            distribution of the environment; `'worst'` or `'roml'`, more often tasks with low returns
            (`WorstTaskSampler`, `RoML`); a dict such as `{"name": "roml", "alpha": 0.1}`; or a `TaskSampler`.

    Attributes:
        total_timesteps_sampled (int): number of sampled environment steps.
        tasks (list or None): tasks of the current iteration, set by `update_tasks` or `vec_env.set_tasks`; None before
            the first call.

    Raises:
        TypeError: `env` is not a meta-environment, the policy supports only one task, or a method of one of them was
            replaced on the object.
        ValueError: the policy does not match `meta_batch_size` or the spaces of the environment.
    """

    _env: Any
    _executor: Optional[MetaEnvExecutor] = None  # None if the sampler is closed
    _tasks: Optional[List[Task]] = None  # if the sampler is closed

    def __init__(self, env: MetaEnv, policy: Any, rollouts_per_meta_task: int, meta_batch_size: int,
                 max_path_length: int, envs_per_task: WithoutEffect[Optional[int]] = None,
                 parallel: WithoutEffect[Parallel] = False,
                 task_sampler: Union[str, Dict[str, Any], TaskSampler] = "uniform") -> None:
        self.task_sampler = make_task_sampler(task_sampler)
        self.meta_batch_size = check_positive_int("meta_batch_size", meta_batch_size)
        of_policy = num_tasks_of(policy)
        if of_policy is not None:
            check_agrees("meta_batch_size", self.meta_batch_size, "policy.meta_batch_size", of_policy)
        elif any(fast_path(policy, name) is not None for name in ("make_actor", "make_actors")):
            raise TypeError(f"policy: expected a policy for several tasks (e.g. MetaGaussianMLPPolicy), got {policy!r}")
        super().__init__(env, policy, check_positive_int("rollouts_per_meta_task", rollouts_per_meta_task),
                         max_path_length)
        self.rollouts_per_meta_task = self.batch_size
        self.envs_per_task = self.batch_size if envs_per_task is None else min(
            self.batch_size, check_positive_int("envs_per_task", envs_per_task))
        self._itr, self._step = -1, 0
        self._is_begun = False  # whether an iteration has started
        self._mean_before = np.nan  # mean return before adaptation
        self._check_memory()
        self._given = replaced_arguments(self, {"env": self.sampled_env})  # for snapshots
        check_parallel(parallel)
        self.parallel = parallel

    @property
    def env(self) -> Any:
        """The environment, of which the sampler samples a copy. Assign it to sample a copy of its current state."""
        return self._env

    @env.setter
    def env(self, env: Any) -> None:
        if has_spaces(env):
            check_spaces(self.policy, adapt_env(env))
        else:
            env = add_spaces(env, self._choose_action)
        if "_env" in vars(self):
            check_wrapped_like(env, self._env, "the previous environment")
        sampled = copy_env(env)
        self.task_sampler.bind(adapt_env(sampled))
        self._env, self.sampled_env = env, sampled
        self.close()

    def _choose_action(self, observation: np.ndarray) -> np.ndarray:
        actions, _ = self.policy.get_actions([observation[None]] * self.meta_batch_size)
        return np.asarray(actions[0][0])

    def _check_memory(self) -> None:
        """Raises `ValueError` if the paths of one `obtain_samples` call need more memory than this machine has."""
        numbers = sum(int(np.prod(space.shape)) for space in (self.env.observation_space, self.env.action_space)) + 1
        num_steps = self.meta_batch_size * self.batch_size * min(self.max_path_length, INITIAL_BUFFER_STEPS)
        num_bytes = 8 * numbers * num_steps
        if num_bytes > total_memory():
            raise ValueError(f"meta_batch_size={self.meta_batch_size}, rollouts_per_meta_task={self.batch_size}, "
                             f"max_path_length={self.max_path_length}: the paths of one adaptation step need "
                             f"{num_bytes / 1e9:,.0f} GB, and this machine has {total_memory() / 1e9:,.0f} GB; lower "
                             "one of these settings")

    def _make_executor(self) -> MetaEnvExecutor:
        return make_executor(self.sampled_env, self.meta_batch_size, self.envs_per_task, self.max_path_length,
                             self.parallel)

    @property
    def vec_env(self) -> MetaEnvExecutor:
        """The executor that collects paths. The first use opens it and starts its worker processes."""
        if self._executor is None:
            self._executor = self._make_executor()
            if self._tasks is not None:
                self._executor.set_tasks(self._tasks)
        return self._executor

    @property
    def tasks(self) -> Optional[List[Task]]:
        """Tasks of the current iteration; None before the first call of `update_tasks` or `vec_env.set_tasks`."""
        return self._tasks if self._executor is None else self._executor.tasks

    def update_tasks(self, tasks: Optional[Sequence[Task]] = None) -> None:
        """Starts an iteration: samples a new task for each index of the meta-batch.

        If no iteration has started, `obtain_samples` starts one, with the tasks of `vec_env.set_tasks` or with new
        tasks.

        Args:
            tasks: `meta_batch_size` tasks; None (default): tasks of the `task_sampler`.

        Raises:
            ValueError: the number of tasks is not `meta_batch_size`.
            EnvWorkerError: the environment rejects a task (subclass `EnvValueError` if it raises `ValueError`; with
                Ray, `obtain_samples` raises these errors), or its `sample_tasks` calls `sys.exit`.
        """
        itr = self._itr + 1
        if tasks is None:
            rng = seeding.rng_for(seeding.Stream.TASKS, itr)
            try:
                tasks = self.task_sampler.sample(self.meta_batch_size, rng)
            except SystemExit as error:  # would otherwise end training without an error message
                raise EnvWorkerError(f"sample_tasks called sys.exit({error})") from error
        self._tasks = None  # those of the previous iteration
        self.vec_env.set_tasks(list(tasks))
        self._itr, self._step, self._is_begun = itr, 0, True

    def obtain_samples(self, log: bool = False, log_prefix: str = "") -> PathsMetaBatch:
        """Collects `rollouts_per_meta_task` paths of each task with the current policy.

        Args:
            log: whether to log `PolicyExecTime` and `EnvExecTime`, in seconds, averaged over the sampling threads. With
                Ray, also logs the maximum, mean and minimum return of the paths under RLlib's names. Default: False.
            log_prefix: prefix of the keys `PolicyExecTime` and `EnvExecTime`.

        Returns:
            A dict from task index (0 to `M - 1`) to a list of `P` path dicts, see `types.Path`. The sampler does not
            reuse the arrays.

        Raises:
            ValueError: an observation, reward or action is not finite; the message names task, path and step.
            EnvWorkerError: the environment raised an error, or a worker process died; the message names task, path and
                step.
        """
        if not self._is_begun or self.tasks is None:
            self.update_tasks(self.tasks)
        paths, rollouts = self.vec_env.collect(self.batch_size, self.path_rng, self.make_actor())
        update_averages(self.sampled_env, self.env, [path for of_task in paths.values() for path in of_task])
        if log:
            logger.logkv(log_prefix + "PolicyExecTime", np.mean([part.policy_time for part in rollouts]))
            logger.logkv(log_prefix + "EnvExecTime", np.mean([part.env_time for part in rollouts]))
            if self.vec_env.logs_rllib_names:
                self._log_as_rllib(paths)
        self._step += 1
        self.total_timesteps_sampled += sum(int(part.lengths.sum()) for part in rollouts)
        return paths

    def _log_as_rllib(self, paths: PathsMetaBatch) -> None:
        """Logs statistics of the returns under the names that RLlib's MAML uses."""
        returns = np.array([np.sum(path["rewards"]) for task_paths in paths.values() for path in task_paths])
        suffix = f"_adapt_{self._step}" if self._step else ""
        logger.logkvs({f"episode_reward_max{suffix}": returns.max(), f"episode_reward_mean{suffix}": returns.mean(),
                       f"episode_reward_min{suffix}": returns.min()})
        if self._step == 0:
            self._mean_before = returns.mean()
        else:  # with several adaptation steps, the last step overwrites the value
            logger.logkv("adaptation_delta", returns.mean() - self._mean_before)

    def make_actor(self) -> Actor:
        """Returns an actor for all tasks with the current parameters of the policy."""
        return actor_from_policy(self.policy, tuple(self.env.action_space.shape))

    def observe_returns(self, returns: np.ndarray) -> None:
        """Passes tasks and returns of the iteration to the task sampler."""
        self.task_sampler.update(self.tasks, returns)

    @property
    def path_rng(self) -> PathRng:
        """Function `(task, rollout) -> numpy.random.Generator` for the paths of the next `obtain_samples`."""
        return functools.partial(seeding.rng_for, seeding.Stream.ROLLOUT, self._itr, self._step,
                                 root=seeding.get_root())

    def close(self) -> None:
        """Closes environments and worker processes; `update_tasks` and `obtain_samples` open them again."""
        if self._executor is not None:
            self._tasks = self._executor.tasks
            self._executor.close()
            self._executor = None

    def __enter__(self) -> "MetaSampler":
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.close()
        close_env(self.sampled_env)

    def get_state(self) -> Dict[str, Any]:
        """Returns everything that determines future samples, except the policy and the root seed, for a snapshot."""
        return {"itr": self._itr, "step": self._step, "tasks": self.tasks if self._is_begun else None,
                "num_steps": self.total_timesteps_sampled, "task_sampler": self.task_sampler.get_state()}

    def set_state(self, state: Dict[str, Any]) -> None:
        """Restores a state returned by `get_state`."""
        self.total_timesteps_sampled = state["num_steps"]
        self.task_sampler.set_state(state["task_sampler"])
        self.start_at(state["itr"] + 1)
        if state["tasks"] is not None:
            self.close()
            self._itr, self._step, self._tasks, self._is_begun = state["itr"], state["step"], state["tasks"], True

    def start_at(self, itr: int) -> None:
        """Sets the number of the iteration that the next `update_tasks` starts."""
        self._itr, self._step, self._is_begun, self._tasks = check_int_at_least("itr", itr, 0) - 1, 0, False, None
        if self._executor is not None:
            self._executor.tasks = None


def make_executor(env: MetaEnv, meta_batch_size: int, envs_per_task: int, max_path_length: int,
                  parallel: Parallel) -> MetaEnvExecutor:
    """Creates the executor that collects paths; for the arguments, see `MetaSampler`."""
    parallel = check_parallel(parallel)
    if isinstance(parallel, RayOptions):
        return RayExecutor(env, meta_batch_size, envs_per_task, max_path_length, options=parallel)
    executor = MetaParallelEnvExecutor if parallel else make_local_executor
    return executor(env, meta_batch_size, envs_per_task, max_path_length)
