"""Collects the paths of some tasks, wherever their environments are stepped."""
import functools
import itertools
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Protocol, Sequence, Tuple, Union

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.samplers.errors import EnvWorkerError
from meta_policy_search.samplers.paths import split_paths
from meta_policy_search.types import BatchedStep, Infos, Path, Rows
from meta_policy_search.utils.threads import divide, run_in_threads

Steps = Union[int, np.ndarray]
"""Which step of each of these paths."""

MANY_STEPS = 4096
"""There is room for so many steps of a path at first, and twice as many each time that one takes more."""


def draw_path_noise(actor: Actor, rng: np.random.Generator, max_path_length: int, out: np.ndarray) -> None:
    """Draws the policy's noise of the first steps of a path; all else is to be drawn from `rng` afterwards.

    Where paths may take more than `MANY_STEPS`, most are expected to end before. The noise then comes from a stream of
    its own, so that `rng` need not go through that of steps which are never taken; otherwise it comes from `rng`.

    Args:
        actor: draws it.
        rng: the path's random numbers.
        max_path_length: most steps of a path.
        out: float32 `[T, noise_dim]`, is filled; `T` is `max_path_length`, or any number if that is above `MANY_STEPS`.
    """
    if max_path_length > MANY_STEPS:
        rng = np.random.Generator(rng.bit_generator.jumped())  # type: ignore[attr-defined]  # the default one has it
    actor.draw_noise(rng, out)


PathRng = Callable[[int, int], np.random.Generator]
"""Returns the generator that path `rollout` of task `task` draws everything from, in any process; can be pickled."""


class Environments(Protocol):
    """What the loop asks of an executor; see `MetaEnvExecutor`."""

    envs_per_task: int
    max_path_length: int
    observation_shape: Tuple[int, ...]
    action_shape: Tuple[int, ...]
    first_task: int
    max_threads: int

    def reset_envs(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        """Starts a new path in some of the environments."""

    def step_envs(self, actions: np.ndarray, env_ids: np.ndarray) -> BatchedStep:
        """Takes one step in some of the environments."""


class Share(NamedTuple):
    """The paths of some tasks, task after task, with the steps of all paths concatenated; `P` counts all paths."""

    num_rollouts: int  # paths of each task
    lengths: np.ndarray  # int [P]
    path: Infos  # observations [N, O], actions [N, A], rewards [N]
    env_infos: Infos  # each [N, ...]
    agent_infos: Infos  # each [N, ...]
    last_observations: np.ndarray  # float64 [P, O]
    terminated: np.ndarray  # bool [P]
    policy_time: float  # seconds
    env_time: float  # seconds


class Collection(NamedTuple):
    """The paths of a round of sampling."""

    paths: Dict[int, List[Path]]  # by task index; arrays are writable and belong to the caller
    policy_time: float  # seconds that the policy took, mean over threads or workers
    env_time: float  # seconds that the environments took, likewise
    num_steps: int  # of all paths


def join_shares(shares: Sequence[Share]) -> Collection:
    """Makes the path dicts of a round from the shares of threads or workers, in the order of their tasks.

    An info that only some shares have is NaN in the others (None if it is not numeric), and has the same type in all.
    """
    num_steps = [int(share.lengths.sum()) for share in shares]
    env_infos = _in_agreement([share.env_infos for share in shares], num_steps)
    agent_infos = _in_agreement([share.agent_infos for share in shares], num_steps)
    paths: Dict[int, List[Path]] = {}
    for share, of_envs, of_agents in zip(shares, env_infos, agent_infos):
        split = split_paths(share.lengths, share.path, of_envs, of_agents, share.last_observations, share.terminated)
        for start in range(0, len(split), share.num_rollouts):
            paths[len(paths)] = split[start:start + share.num_rollouts]
    return Collection(paths, sum(share.policy_time for share in shares) / len(shares),
                      sum(share.env_time for share in shares) / len(shares),
                      sum(num_steps))


def _in_agreement(shares: Sequence[Infos], num_steps: Sequence[int]) -> List[Infos]:
    """Returns the infos of each share, with the keys and types that all shares have together."""
    infos: List[Infos] = [{} for _ in shares]
    for key in dict.fromkeys(key for share in shares for key in share):
        given = [share[key] for share in shares if key in share]
        shapes = sorted({values.shape[1:] for values in given})
        if len(shapes) > 1:
            raise ValueError(f"{key}: expected an info of the same shape in all tasks, got {shapes}")
        dtypes = [values.dtype for values in given] + [np.dtype(np.float64)] * (len(given) < len(shares))
        dtype = functools.reduce(np.promote_types, dtypes)
        for share, steps, agreeing in zip(shares, num_steps, infos):
            agreeing[key] = share[key].astype(dtype, copy=False) if key in share else np.full(
                (steps, *shapes[0]), missing_value(dtype), dtype)
    return infos


def missing_value(dtype: np.dtype) -> Optional[float]:
    """Returns the value of an info at steps that lack it."""
    return None if dtype.kind == "O" else np.nan


def collect_shares(executor: Environments, num_rollouts: int, path_rng: PathRng, actor: Actor, tasks: range
                   ) -> List[Share]:
    """Collects the paths of tasks, divided among as many threads as the executor wants.

    Args:
        executor: has environments for these tasks; the first one is its `first_task`.
        num_rollouts: paths of each task.
        path_rng: makes the generator of each path.
        actor: acts in all of these tasks; in one thread, unless it can be divided.
        tasks: numbers of the tasks.

    Raises:
        ValueError: an observation, reward or action is not finite; names task, path and step.
        EnvWorkerError: the environment failed, or a worker process died; names task, path and step.
    """
    if actor.can_divide:
        divided = [(actor.for_tasks(share.start - tasks.start, share.stop - tasks.start), share)
                   for share in divide(tasks, executor.max_threads)]
    else:
        divided = [(actor, tasks)]
    loops = [RolloutLoop(executor, num_rollouts, path_rng, *part) for part in divided]

    def stop() -> None:
        for loop in loops:
            loop.stop()

    return run_in_threads([loop.run for loop in loops], stop, "sampling")


class RolloutLoop:
    """Steps policy and environments of some tasks until all their paths are collected.

    Each of the tasks has `P` paths to collect and `E <= P` environments (`executor.envs_per_task`). An environment
    begins with one path; when that ends, it takes the next one of its task that waits. A step of the loop

    1. lets the policy act on the present observation of every path. It computes all rows, whichever paths are under
       way: the numbers that a matrix product gives for a row may depend on the number of rows.
    2. steps the environments under way with their paths' actions,
    3. stores observations, actions, rewards and infos at `[path, step]` of the buffers.

    Within the loop, path `p = i * P + rollout` and environment `e = i * E + j` belong to the `i`th of the tasks.
    """

    def __init__(self, executor: Environments, num_rollouts: int, path_rng: PathRng, actor: Actor, tasks: range
                 ) -> None:
        self._executor, self._actor, self._path_rng = executor, actor, path_rng
        self._tasks, self._num_tasks, self._num_rollouts = tasks, len(tasks), num_rollouts
        self._first_env = tasks.start * executor.envs_per_task
        self._max_path_length = executor.max_path_length
        self._room = min(self._max_path_length, MANY_STEPS)  # steps of a path that buffers hold
        self._is_stopped = False
        self._action_shape = executor.action_shape
        num_paths = self._num_tasks * self._num_rollouts
        self._noise = np.empty((num_paths, self._room, actor.noise_dim), np.float32)
        self._last_observations = np.zeros((num_paths, *executor.observation_shape))  # also: what the policy sees now
        self._noise_now = np.zeros((num_paths, actor.noise_dim), np.float32)
        self._buffers: Dict[str, Infos] = {"path": {}, "env_infos": {}, "agent_infos": {}}
        self._lengths = np.zeros(num_paths, int)
        self._terminated = np.zeros(num_paths, bool)
        self._num_steps = 0
        self.policy_time = self.env_time = 0.0

    def stop(self) -> None:
        """Makes `run`, in another thread, return after the current step, or at once if it has not begun."""
        self._is_stopped = True

    def run(self) -> Share:
        """Collects all paths."""
        tasks, envs_per_task = np.arange(self._num_tasks), self._executor.envs_per_task
        env_ids = np.arange(self._num_tasks * envs_per_task)
        path_of = (tasks[:, None] * self._num_rollouts + np.arange(envs_per_task)).ravel()  # by environment
        waiting = [iter(range(m * self._num_rollouts + envs_per_task, (m + 1) * self._num_rollouts)) for m in tasks]
        if not self._is_stopped:
            self._start(env_ids, path_of)
        while len(env_ids) and not self._is_stopped:
            ended = self._step(env_ids, path_of[env_ids])
            if ended.any():
                following = {e: p for e in env_ids[ended] for p in itertools.islice(waiting[e // envs_per_task], 1)}
                restarted = np.array(list(following), int)
                if following:
                    path_of[restarted] = list(following.values())
                    self._start(restarted, path_of[restarted])
                env_ids = np.sort(np.concatenate([env_ids[~ended], restarted]))
        return self._share()

    def _start(self, env_ids: np.ndarray, paths: np.ndarray) -> None:
        """Starts paths; the policy's noise is drawn first, all else comes from the same generator afterwards."""
        rngs = [self._start_noise(p) for p in paths]
        is_starting = np.zeros(len(self._lengths), bool)
        is_starting[paths] = True
        self._actor.start_paths(is_starting.reshape(self._num_tasks, self._num_rollouts))
        started = time.perf_counter()
        observations = self._in_env(lambda ids: self._executor.reset_envs(ids, rngs), env_ids, paths)
        self.env_time += time.perf_counter() - started
        self._check_finite("observation", observations, paths)
        self._last_observations[paths] = observations

    def _start_noise(self, path: int) -> np.random.Generator:
        """Draws the noise of a path, of as many steps as there is room for; returns the generator for all else."""
        task, rollout = divmod(int(path), self._num_rollouts)
        rng = self._path_rng(self._tasks[task], rollout)
        draw_path_noise(self._actor, rng, self._max_path_length, self._noise[path])
        return rng

    def _make_room(self, paths: np.ndarray) -> None:
        """Makes room for twice as many steps; the paths under way get the noise of these."""
        self._room = min(2 * self._room, self._max_path_length)
        self._noise = np.empty((len(self._lengths), self._room, self._actor.noise_dim), np.float32)
        for p in paths:
            self._start_noise(p)
        for buffers in self._buffers.values():
            for key, buffer in buffers.items():
                buffers[key] = np.empty((len(buffer), self._room, *buffer.shape[2:]), buffer.dtype)
                buffers[key][:, :buffer.shape[1]] = buffer

    def _step(self, env_ids: np.ndarray, paths: np.ndarray) -> np.ndarray:
        """Takes one step of each path under way; returns which of them ended."""
        lengths = self._lengths[paths]
        if self._room < self._max_path_length and lengths.max() == self._room:
            self._make_room(paths)
        rows: Rows = paths
        steps: Steps = lengths
        if len(paths) == len(self._lengths):  # all are under way, and so in step: slices are faster than index arrays
            rows, steps = slice(None), int(lengths[0])
        observations = self._last_observations[rows]
        actions, agent_infos = self._act(paths, rows, steps)
        started = time.perf_counter()
        answer = self._in_env(lambda ids: self._executor.step_envs(actions, ids), env_ids, paths)
        self.env_time += time.perf_counter() - started
        self._check_finite("observation", answer.observations, paths)
        self._check_finite("reward", answer.rewards, paths)
        self._store("path", {"observations": observations, "actions": actions, "rewards": answer.rewards}, rows, steps)
        for kind, infos in (("env_infos", answer.env_infos), ("agent_infos", agent_infos)):
            self._check_infos(kind, infos, paths)
            self._store(kind, infos, rows, steps)
        self._last_observations[rows] = answer.observations
        self._lengths[rows] += 1
        self._terminated[rows] = answer.terminated
        self._num_steps += len(paths)
        return answer.terminated | answer.truncated | (self._lengths[rows] >= self._max_path_length)

    def _act(self, paths: np.ndarray, rows: Rows, steps: Steps) -> Tuple[np.ndarray, Infos]:
        started = time.perf_counter()
        self._noise_now[rows] = self._noise[rows, steps]
        shape = (self._num_tasks, self._num_rollouts, -1)
        actions, infos = self._actor.act(self._last_observations.reshape(shape), self._noise_now.reshape(shape))
        num_paths = len(self._lengths)
        if actions.shape[2:] != self._action_shape:
            raise ValueError(f"policy: expected actions of shape {self._action_shape}, got {actions.shape[2:]}")
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
        lacking = {key: missing_value(buffer.dtype) for key, buffer in buffers.items() if key not in values}
        for key, value in {**values, **lacking}.items():
            value = np.asarray(value)
            if key not in buffers:
                buffers[key] = self._new_buffer(value)
            elif not np.can_cast(value.dtype, buffers[key].dtype):
                buffers[key] = buffers[key].astype(np.promote_types(buffers[key].dtype, value.dtype))
            buffers[key][rows, steps] = value

    def _new_buffer(self, value: np.ndarray) -> np.ndarray:
        """Returns a buffer for rows like those of `value`, which the steps taken so far lack."""
        is_late = self._num_steps > 0
        dtype = np.promote_types(value.dtype, np.float64) if is_late else value.dtype
        buffer = np.empty((len(self._lengths), self._room, *value.shape[1:]), dtype)
        if is_late:
            buffer[:] = missing_value(dtype)
        return buffer

    def _in_env(self, call: Callable[[np.ndarray], Any], env_ids: np.ndarray, paths: np.ndarray) -> Any:
        """Calls the executor with its own numbers of the environments; an error then also names path and step."""
        env_ids = self._first_env + env_ids  # among those of all tasks, as errors have them
        try:
            return call(env_ids - self._executor.first_task * self._executor.envs_per_task)
        except EnvWorkerError as error:
            blamed = paths[np.isin(env_ids, error.env_ids)]
            places = [self._place(p) for p in (blamed if len(blamed) else paths)]
            where = places[0] if len(places) == 1 else f"{len(places)} paths, the first one {places[0]}"
            raise type(error)(f"{error} [while sampling {where}]", error.env_ids) from error

    def _place(self, path: int) -> str:
        """Says where something happened, for error messages."""
        task, rollout = divmod(int(path), self._num_rollouts)
        return f"task {self._tasks[task]}, path {rollout}, step {self._lengths[path]}"

    def _check_infos(self, kind: str, infos: Infos, paths: np.ndarray) -> None:
        """Raises `ValueError` unless each info has a row for each path, of the same shape as in earlier steps."""
        for key, value in infos.items():
            shape, before = np.shape(value), self._buffers[kind].get(key)
            expected = (len(paths), *(shape[1:] if before is None else before.shape[2:]))
            if shape != expected:
                raise ValueError(f"{self._place(paths[0])}: {kind}[{key!r}]: expected shape {expected}, a row for each "
                                 f"path as in earlier steps, got {shape}; an info that changes its size may be given "
                                 "in a dict")

    def _check_finite(self, what: str, values: np.ndarray, paths: np.ndarray) -> None:
        finite = np.isfinite(values)
        if not finite.all():
            row = int(np.argwhere(~finite)[0, 0])
            raise ValueError(f"{what}: expected finite numbers, got {values[row]} in {self._place(paths[row])}")

    def _share(self) -> Share:
        """Returns the paths; frees each buffer once its steps are copied."""
        longest = int(self._lengths.max(initial=0))
        mask = np.arange(longest) < self._lengths[:, None]
        is_full = bool(mask.all())
        for buffers in self._buffers.values():
            for key, buffer in buffers.items():
                steps = buffer[:, :longest]
                buffers[key] = steps.reshape(-1, *buffer.shape[2:]) if is_full else steps[mask]
        return Share(self._num_rollouts, self._lengths, self._buffers["path"], self._buffers["env_infos"],
                     self._buffers["agent_infos"], self._last_observations, self._terminated, self.policy_time,
                     self.env_time)
