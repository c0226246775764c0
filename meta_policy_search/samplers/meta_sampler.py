"""Collects paths of all tasks of a meta-batch at once."""
import reprlib
import time
from collections import OrderedDict
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from meta_policy_search.envs.base import MetaEnv
from meta_policy_search.envs.gym_forms import batched_form, check_meta_env, sample_tasks
from meta_policy_search.envs.spaces import is_discrete
from meta_policy_search.np.policies import StackedGaussianMLP
from meta_policy_search.samplers.base import Sampler
from meta_policy_search.samplers.vectorized_env_executor import (
    EnvWorkerError,
    MetaBatchedEnvExecutor,
    MetaEnvExecutor,
    MetaIterativeEnvExecutor,
    MetaParallelEnvExecutor,
)
from meta_policy_search.types import Infos, PathsMetaBatch, Task
from meta_policy_search.utils import logger, seeding
from meta_policy_search.utils.checks import check_choice, check_int_at_least, check_positive_int, check_same

EXECUTORS = {
    "iterative": MetaIterativeEnvExecutor,
    "batched": MetaBatchedEnvExecutor,
    "parallel": MetaParallelEnvExecutor,
}

ExecutorFactory = Callable[[MetaEnv, int, int, int], MetaEnvExecutor]


class MetaSampler(Sampler):
    """Collects `rollouts_per_meta_task` paths of each of `meta_batch_size` tasks.

    Every random number of a path belongs to that path: it comes from the generator of (iteration, adaptation step,
    task, rollout) under the root seed (`set_seed`). So the paths depend neither on the executor nor on
    `envs_per_task`. An iteration begins with `update_tasks`, and each `obtain_samples` is its next adaptation step.
    Every path that is started is finished and returned, so early ends do not bias the samples. (A policy without
    `numpy_copy` is asked through `get_actions` and draws its own noise: its paths do depend on `envs_per_task`.)

    Args:
        env (MetaEnv): environment to sample in; it is copied.
        policy (MetaPolicy): policy that acts, with the parameters it has for each task.
        rollouts_per_meta_task (int): paths per task `P`.
        meta_batch_size (int): number of tasks `M`, the policy's.
        max_path_length (int): a path is cut off after so many steps.
        envs_per_task (int or None): paths of a task that are under way at the same time, at most
            `rollouts_per_meta_task` (the default). Fewer need less memory and more time.
        parallel (bool): whether environments are stepped in worker processes. If not, they are stepped as arrays
            where the environment has such a form, else one after the other.
        executor (str, callable or None): forces an executor: `'iterative'`, `'batched'`, `'parallel'`, or a callable
            `(env, meta_batch_size, envs_per_task, max_path_length) -> MetaEnvExecutor`.

    Attributes:
        total_timesteps_sampled (int): environment steps taken so far.
        tasks (list or None): the tasks of the current iteration.

    Raises:
        ValueError: a size is out of range or differs from the policy's, or sizes of observation or action differ
            between environment and policy, or just one of them has discrete actions.
        TypeError: an argument of the wrong type, or an environment without `sample_tasks` or `set_task`.
    """

    def __init__(
        self,
        env: MetaEnv,
        policy: Any,
        rollouts_per_meta_task: int,
        meta_batch_size: int,
        max_path_length: int,
        envs_per_task: Optional[int] = None,
        parallel: bool = False,
        executor: Union[str, ExecutorFactory, None] = None,
    ) -> None:
        check_meta_env(env)
        super().__init__(env, policy, check_positive_int("rollouts_per_meta_task", rollouts_per_meta_task),
                         max_path_length)
        self.meta_batch_size = check_positive_int("meta_batch_size", meta_batch_size)
        check_same("meta_batch_size", self.meta_batch_size, "policy.meta_batch_size", policy.meta_batch_size)
        check_spaces(policy, env)
        self.rollouts_per_meta_task = self.batch_size
        self.envs_per_task = self.batch_size if envs_per_task is None else check_int_at_least(
            "envs_per_task", envs_per_task, 1)
        if self.envs_per_task > self.batch_size:
            raise ValueError(f"envs_per_task: expected at most rollouts_per_meta_task={self.batch_size}, "
                             f"got {envs_per_task}")
        self.total_timesteps_sampled = 0
        self.tasks: Optional[List[Task]] = None
        self._itr, self._step = -1, 0
        self.vec_env = self._make_executor(parallel, executor)

    def _make_executor(self, parallel: bool, executor: Union[str, ExecutorFactory, None]) -> MetaEnvExecutor:
        if executor is None:
            if parallel == "ray":
                raise ValueError("parallel: 'ray' is not available in this version; expected True or False")
            is_batched = batched_form(self.env) is not None
            serial = "batched" if is_batched else "iterative"
            executor = "parallel" if check_choice("parallel", parallel, (False, True)) else serial
        if isinstance(executor, str):
            executor = EXECUTORS[check_choice("executor", executor, EXECUTORS)]
        if not callable(executor):
            raise TypeError(f"executor: expected one of {sorted(EXECUTORS)}, a callable or None, got {executor!r}")
        return executor(self.env, self.meta_batch_size, self.envs_per_task, self.max_path_length)

    def update_tasks(self, tasks: Optional[Sequence[Task]] = None) -> None:
        """Begins an iteration: samples a new task for each place in the meta-batch.

        Args:
            tasks: `meta_batch_size` tasks, for an iteration with these instead.

        Raises:
            ValueError: there are not `meta_batch_size` of them.
            EnvWorkerError: the environment does not accept one; an `EnvValueError` if it says `ValueError`.
        """
        itr = self._itr + 1
        if tasks is None:
            tasks = sample_tasks(self.env, self.meta_batch_size, seeding.rng_for(seeding.Stream.TASKS, itr))
        self._set_iteration(itr, 0, list(tasks))

    def _set_iteration(self, itr: int, step: int, tasks: List[Task]) -> None:
        self.vec_env.set_tasks(tasks)
        self._itr, self._step, self.tasks = itr, step, tasks

    def obtain_samples(self, log: bool = False, log_prefix: str = "") -> PathsMetaBatch:
        """Collects `rollouts_per_meta_task` paths of each task with the policy as it is now.

        Args:
            log: whether to log `PolicyExecTime` and `EnvExecTime`, seconds; means over the threads that sample.
            log_prefix: put before these keys.

        Returns:
            Ordered dict of task index (0 to `M - 1`) to a list of `P` path dicts, see `types.Path`.

        Raises:
            ValueError: an observation, reward or action is not finite; names task, path and step.
            EnvWorkerError: the environment failed, or a worker process died; names task, path and step.
        """
        if self.tasks is None:
            self.update_tasks()
        collections = [_Collection(self, actor, tasks) for tasks, actor in self._shares()]
        paths = _run(collections)
        self._step += 1
        self.total_timesteps_sampled += sum(collection.num_steps for collection in collections)
        if log:
            for key in ("policy_time", "env_time"):
                times = [getattr(collection, key) for collection in collections]
                logger.logkv(log_prefix + _TIME_KEYS[key], sum(times) / len(times))
        return paths

    def _shares(self) -> List[Tuple[range, Any]]:
        """Divides the tasks among the threads that sample; returns the tasks of each with what acts in them."""
        copy = self.policy.numpy_copy() if hasattr(self.policy, "numpy_copy") else None
        if copy is None:
            copy = _GraphActor(self.policy, tuple(self.env.action_space.shape))
        if not hasattr(copy, "for_tasks"):
            return [(range(self.meta_batch_size), copy)]
        count = min(self.vec_env.max_callers, self.meta_batch_size)
        bounds = [i * self.meta_batch_size // count for i in range(count + 1)]
        return [(range(*ends), copy.for_tasks(*ends)) for ends in zip(bounds[:-1], bounds[1:], strict=True)]

    def path_rng(self, task: int, rollout: int) -> np.random.Generator:
        """Returns the generator that a path of the current iteration and adaptation step draws everything from."""
        return seeding.rng_for(seeding.Stream.ROLLOUT, self._itr, self._step, task, rollout)

    def close(self) -> None:
        """Closes environments and worker processes; a second call does nothing."""
        self.vec_env.close()

    def __enter__(self) -> "MetaSampler":
        """Returns the sampler, to be closed at the end of the `with` block."""
        return self

    def __exit__(self, *exc_info: Any) -> None:
        """Closes the sampler."""
        self.close()

    def get_state(self) -> Dict[str, Any]:
        """Returns what the next samples depend on beside policy and root seed, for a snapshot."""
        return {"itr": self._itr, "step": self._step, "tasks": self.tasks, "num_steps": self.total_timesteps_sampled}

    def set_state(self, state: Dict[str, Any]) -> None:
        """Restores what `get_state` returned."""
        self.total_timesteps_sampled = state["num_steps"]
        if state["tasks"] is None:
            self._itr, self._step, self.tasks = state["itr"], state["step"], None
        else:
            self._set_iteration(state["itr"], state["step"], state["tasks"])

    def start_at(self, itr: int) -> None:
        """Makes `itr` the number of the iteration that the next `update_tasks` begins."""
        self._itr, self.tasks = check_int_at_least("itr", itr, 0) - 1, None


def check_spaces(policy: Any, env: Any) -> None:
    """Raises `ValueError` unless the policy's observations and actions are the environment's (or `EnvSpec`'s)."""
    space, is_index = env.action_space, is_discrete(env.action_space)
    action_shape = getattr(getattr(policy, "distribution", policy), "action_shape", (policy.action_dim,))
    if is_index != (action_shape == ()):
        fitting = "CategoricalMLPPolicy" if is_index else "GaussianMLPPolicy"
        fitting = f"Meta{fitting}" if hasattr(policy, "meta_batch_size") else fitting
        given = "integers" if action_shape == () else f"arrays of shape {action_shape}"
        raise ValueError(f"policy: expected one for the environment's action space {space}, such as a {fitting}, got a "
                         f"{type(policy).__name__}, whose actions are {given}")
    if is_index and getattr(space, "start", 0) != 0:
        raise ValueError(f"env: expected discrete actions numbered from 0, got {space}")
    for name, size, shape in (("obs_dim", policy.obs_dim, env.observation_space.shape),
                              ("action_dim", policy.action_dim, (int(space.n),) if is_index else space.shape)):
        if tuple(shape) != (size,):
            raise ValueError(f"policy.{name}: expected {shape}, the size of the environment's space, got {size}")


_TIME_KEYS = {"policy_time": "PolicyExecTime", "env_time": "EnvExecTime"}


class _GraphActor:
    """Acts for all paths of all tasks with a policy that has no NumPy form, and draws its own noise."""

    def __init__(self, policy: Any, action_shape: Tuple[int, ...]) -> None:
        self._policy, self._action_shape = policy, action_shape

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Does what `StackedGaussianMLP.act` does.

        Raises:
            ValueError: `get_actions` returned something else than is documented.
        """
        actions, agent_infos = self._policy.get_actions(list(observations))
        num_tasks, num_paths = observations.shape[:2]
        shapes, expected = [np.shape(task_actions) for task_actions in actions], (num_paths, *self._action_shape)
        if shapes != [expected] * num_tasks:
            raise ValueError(f"policy.get_actions: expected actions of {num_tasks} tasks, each of shape {expected}, "
                             f"got the shapes {shapes}")
        if [len(task_infos) for task_infos in agent_infos] != [num_paths] * num_tasks:
            raise ValueError(f"policy.get_actions: expected agent infos of {num_tasks} tasks, each a list of "
                             f"{num_paths} dicts, got {reprlib.repr(agent_infos)}")
        rows = [info for task_infos in agent_infos for info in task_infos]
        for row in rows:
            if set(row) != set(rows[0]):
                raise ValueError(f"policy.get_actions: expected agent infos with the same keys everywhere, got "
                                 f"{sorted(rows[0])} and {sorted(row)}")
        infos = {key: np.stack([row[key] for row in rows]).reshape(num_tasks, num_paths, *np.shape(rows[0][key]))
                 for key in rows[0]}
        return np.asarray(actions), infos


Rows = Union[slice, np.ndarray]
"""Which paths: what an array with a row per path is indexed by."""

Steps = Union[int, np.ndarray]
"""Which step of each of these paths."""


class _Place(NamedTuple):
    """Where something happened, for error messages."""

    task: int
    path: int
    step: int

    def __str__(self) -> str:
        return f"task {self.task}, path {self.path}, step {self.step}"


class _Collection:
    """One round of sampling in some tasks: which path each environment is on, and what the paths hold so far.

    Path `p = i * P + rollout` and environment `e = i * E + j` belong to the `i`th of the tasks. The policy always
    computes all rows, whichever paths are under way: the numbers a matrix product gives for a row may depend on the
    number of rows.
    """

    def __init__(self, sampler: MetaSampler, actor: Any, tasks: range) -> None:
        self._executor, self._actor = sampler.vec_env, actor
        self._tasks, self._num_tasks, self._num_rollouts = tasks, len(tasks), sampler.batch_size
        self._first_env = tasks.start * sampler.envs_per_task
        self._max_path_length = sampler.max_path_length
        self._path_rng = sampler.path_rng
        self._is_stopped = False
        self._action_shape = tuple(sampler.env.action_space.shape)
        # what acts may say what noise it takes; by default it is that of a Gaussian policy
        noise_dim = getattr(actor, "noise_dim", sampler.policy.action_dim)
        self._draw_noise = getattr(actor, "draw_noise", StackedGaussianMLP.draw_noise)
        num_paths = self._num_tasks * self._num_rollouts
        self._noise = np.empty((num_paths, self._max_path_length, noise_dim), np.float32)
        self._last_observations = np.zeros((num_paths, sampler.policy.obs_dim))  # also: what the policy sees now
        self._noise_now = np.zeros((num_paths, noise_dim), np.float32)
        self._buffers: Dict[str, "OrderedDict[str, np.ndarray]"] = {
            "path": OrderedDict(), "env_infos": OrderedDict(), "agent_infos": OrderedDict()
        }
        self._lengths = np.zeros(num_paths, int)
        self._terminated = np.zeros(num_paths, bool)
        self.num_steps = 0
        self.policy_time = self.env_time = 0.0

    def stop(self) -> None:
        """Makes `run` return after the current step; it may run in another thread."""
        self._is_stopped = True

    def run(self) -> PathsMetaBatch:
        """Collects all paths."""
        tasks, envs_per_task = np.arange(self._num_tasks), self._executor.envs_per_task
        env_ids = np.arange(self._num_tasks * envs_per_task)
        path_of = (tasks[:, None] * self._num_rollouts + np.arange(envs_per_task)).ravel()  # by environment
        waiting = [list(range(m * self._num_rollouts + envs_per_task, (m + 1) * self._num_rollouts)) for m in tasks]
        self._start(env_ids, path_of)
        while len(env_ids) and not self._is_stopped:
            paths = path_of[env_ids]
            ended = self._step(env_ids, paths)
            if ended.any():
                restarted = []
                for e in env_ids[ended]:
                    task_waiting = waiting[e // envs_per_task]
                    if task_waiting:
                        path_of[e] = task_waiting.pop(0)
                        restarted.append(e)
                if restarted:
                    self._start(np.asarray(restarted), path_of[restarted])
                env_ids = np.sort(np.concatenate([env_ids[~ended], np.asarray(restarted, int)]))
        return self._collect()

    def _start(self, env_ids: np.ndarray, paths: np.ndarray) -> None:
        """Starts paths; the policy's noise is drawn first, all else comes from the same generator afterwards."""
        rngs = []
        for p in paths:
            task, rollout = divmod(int(p), self._num_rollouts)
            rng = self._path_rng(self._tasks[task], rollout)
            self._draw_noise(rng, self._noise[p])
            rngs.append(rng)
        started = time.perf_counter()
        observations = self._in_env(lambda ids: self._executor.reset_envs(ids, rngs), env_ids, paths)
        self.env_time += time.perf_counter() - started
        self._check_finite("observation", observations, paths)
        self._last_observations[paths] = observations

    def _step(self, env_ids: np.ndarray, paths: np.ndarray) -> np.ndarray:
        """Takes one step of each path under way; returns which of them ended."""
        rows: Rows = paths
        steps: Steps = self._lengths[paths]
        if len(paths) == len(self._lengths):  # all are under way, and so in step: slices are faster than index arrays
            rows, steps = slice(None), int(steps[0])
        observations = self._last_observations[rows]
        actions, agent_infos = self._act(paths, rows, steps)
        started = time.perf_counter()
        answer = self._in_env(lambda ids: self._executor.step_envs(actions, ids), env_ids, paths)
        self.env_time += time.perf_counter() - started
        self._check_finite("observation", answer.observations, paths)
        self._check_finite("reward", answer.rewards, paths)
        self._store("path", {"observations": observations, "actions": actions, "rewards": answer.rewards}, rows, steps)
        self._store("env_infos", answer.env_infos, rows, steps)
        self._store("agent_infos", agent_infos, rows, steps)
        self._last_observations[rows] = answer.observations
        self._lengths[rows] += 1
        self._terminated[rows] = answer.terminated
        self.num_steps += len(paths)
        return answer.terminated | answer.truncated | (self._lengths[rows] >= self._max_path_length)

    def _act(self, paths: np.ndarray, rows: Rows, steps: Steps) -> Tuple[np.ndarray, Infos]:
        started = time.perf_counter()
        self._noise_now[rows] = self._noise[rows, steps]
        shape = (self._num_tasks, self._num_rollouts, -1)
        actions, infos = self._actor.act(self._last_observations.reshape(shape), self._noise_now.reshape(shape))
        num_paths = len(self._lengths)
        actions = actions.reshape(num_paths, *self._action_shape)[rows]
        infos = {key: value.reshape(num_paths, *value.shape[2:])[rows] for key, value in infos.items()}
        self._check_finite("action", actions, paths)
        self.policy_time += time.perf_counter() - started
        return actions, infos

    def _store(self, kind: str, values: Dict[str, np.ndarray], rows: Rows, steps: Steps) -> None:
        """Writes one step of the paths under way.

        An info that any step lacks is NaN there (None, if it is not numeric), and of type float64 in all steps. So
        the data do not depend on which paths are under way together.
        """
        buffers = self._buffers[kind]
        lacking = {key: _missing(buffer.dtype) for key, buffer in buffers.items() if key not in values}
        for key, value in {**values, **lacking}.items():
            value = np.asarray(value)
            if key not in buffers:
                buffers[key] = self._new_buffer(value)
            elif not np.can_cast(value.dtype, buffers[key].dtype):
                buffers[key] = buffers[key].astype(np.promote_types(buffers[key].dtype, value.dtype))
            buffers[key][rows, steps] = value

    def _new_buffer(self, value: np.ndarray) -> np.ndarray:
        """Returns a buffer for rows like those of `value`, which the steps taken so far lack."""
        is_late = self.num_steps > 0
        dtype = np.promote_types(value.dtype, np.float64) if is_late else value.dtype
        buffer = np.empty((len(self._lengths), self._max_path_length, *value.shape[1:]), dtype)
        if is_late:
            buffer[:] = _missing(dtype)
        return buffer

    def _in_env(self, call: Callable[[np.ndarray], Any], env_ids: np.ndarray, paths: np.ndarray) -> Any:
        """Calls the executor with its own numbers of the environments; an error then also names path and step."""
        env_ids = self._first_env + env_ids
        try:
            return call(env_ids)
        except EnvWorkerError as error:
            blamed = paths[np.isin(env_ids, error.env_ids)]
            places = [self._place(p) for p in (blamed if len(blamed) else paths)]
            where = str(places[0]) if len(places) == 1 else f"{len(places)} paths, the first one {places[0]}"
            raise type(error)(f"{error} [while sampling {where}]", error.env_ids) from error

    def _place(self, path: int) -> _Place:
        task, rollout = divmod(int(path), self._num_rollouts)
        return _Place(self._tasks[task], rollout, int(self._lengths[path]))

    def _check_finite(self, what: str, values: np.ndarray, paths: np.ndarray) -> None:
        finite = np.isfinite(values)
        if not finite.all():
            row = int(np.argwhere(~finite)[0, 0])
            raise ValueError(f"{what}: expected finite numbers, got {values[row]} in {self._place(paths[row])}")

    def _collect(self) -> PathsMetaBatch:
        batch: PathsMetaBatch = OrderedDict()
        for p, length in enumerate(self._lengths):
            path = {key: buffer[p, :length] for key, buffer in self._buffers["path"].items()}
            for kind in ("env_infos", "agent_infos"):
                path[kind] = {key: buffer[p, :length] for key, buffer in self._buffers[kind].items()}
            path["last_observation"] = self._last_observations[p]
            path["terminated"] = bool(self._terminated[p])
            batch.setdefault(self._tasks[p // self._num_rollouts], []).append(path)
        return batch


def _run(collections: Sequence[_Collection]) -> PathsMetaBatch:
    """Runs collections, each in a thread of its own if there are several; returns the paths of all tasks."""
    if len(collections) == 1:
        return collections[0].run()
    with ThreadPoolExecutor(len(collections), "sampling") as threads:
        futures = [threads.submit(collection.run) for collection in collections]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:  # without effect unless one has failed, or Ctrl-C was pressed
            for collection in collections:
                collection.stop()
    batch: PathsMetaBatch = OrderedDict()
    for future in futures:
        batch.update(future.result())
    return batch


def _missing(dtype: np.dtype) -> Optional[float]:
    """Returns what stands for a value that was not given."""
    return None if dtype.kind == "O" else np.nan
