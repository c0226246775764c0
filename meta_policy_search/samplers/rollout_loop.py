"""Collects the paths of some tasks with any executor."""
import itertools
import threading
import time
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple, Union

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.envs.compat import copied
from meta_policy_search.samplers.errors import EnvWorkerError, NotFiniteError
from meta_policy_search.samplers.paths import split_paths
from meta_policy_search.types import Infos, Path, Rows

Steps = Union[int, np.ndarray]
"""Current step of each path: an int if all paths are at the same step, otherwise int `[k]`."""

FLOAT32_MAX = float(np.finfo(np.float32).max)

INITIAL_BUFFER_STEPS = 4096
"""Initial number of steps per path with noise. The number doubles when a path exceeds it."""


def draw_path_noise(actor: Actor, rng: np.random.Generator, max_path_length: int, out: np.ndarray) -> None:
    """Draws the policy's noise for the first steps of a path.

    All other random numbers of the path must be drawn from `rng` afterwards. If paths may be longer than
    `INITIAL_BUFFER_STEPS`, most paths are expected to end earlier. Then the noise comes from a separate stream, so that
    noise of unused steps is not drawn from `rng`. Otherwise it comes from `rng`.

    Args:
        actor: actor that draws the noise.
        rng: generator of the path.
        max_path_length: maximum number of steps of a path.
        out: float32 `[T, noise_dim]`, filled with the noise. `T` is `max_path_length`; above `INITIAL_BUFFER_STEPS`, it
            may be any number.
    """
    if max_path_length > INITIAL_BUFFER_STEPS:
        rng = np.random.Generator(rng.bit_generator.jumped())  # type: ignore[attr-defined]  # NumPy's default has it
    actor.draw_noise(rng, out)


PathRng = Callable[[int, int], np.random.Generator]
"""Function `(task, rollout) -> numpy.random.Generator` with the generator of each path. It can be pickled."""


LoopStep = Tuple[np.ndarray, np.ndarray, List[Infos]]
"""A step of `k` active paths: their indices, int `[k]`, the index of the step in each path, int `[k]`, and three dicts
of arrays `[k, ...]`: observations, actions and rewards; env infos; agent infos."""


class TaskRollouts(NamedTuple):
    """Paths of some tasks, ordered by task; `P` is the total number of paths."""

    num_rollouts: int  # paths per task
    lengths: np.ndarray  # int [P]
    steps: List[LoopStep]
    last_observations: np.ndarray  # float64 [P, O]
    terminated: np.ndarray  # bool [P]
    policy_time: float  # seconds
    env_time: float  # seconds


def join_rollouts(parts: Sequence[TaskRollouts]) -> Dict[int, List[Path]]:
    """Returns the path dicts of the rollouts of threads or workers, ordered by task, by task index.

    An info has the same type in all paths. An info that any step of any path lacks is an array of objects, with None in
    these steps.
    """
    lengths, num_rollouts = np.concatenate([part.lengths for part in parts]), parts[0].num_rollouts
    starts = np.split(np.cumsum(lengths) - lengths, np.cumsum([len(part.lengths) for part in parts])[:-1])
    rows = [first[paths] + steps for first, part in zip(starts, parts) for paths, steps, _ in part.steps]
    kinds = zip(*(values for part in parts for *_, values in part.steps))
    arrays, env_infos, agent_infos = (_join_steps(steps, rows) for steps in kinds)
    split = split_paths(lengths, arrays, env_infos, agent_infos,
                        np.concatenate([part.last_observations for part in parts]),
                        np.concatenate([part.terminated for part in parts]))
    return {m: split[m * num_rollouts:(m + 1) * num_rollouts] for m in range(len(split) // num_rollouts)}


def _join_steps(steps: Sequence[Infos], rows: Sequence[np.ndarray]) -> Infos:
    """Joins the arrays `[k, ...]` of steps to arrays `[N, ...]`; see `join_rollouts`. Each step fills its `rows`."""
    joined: Infos = {}
    for key in dict.fromkeys(key for values in steps for key in values):
        shapes = sorted({values[key].shape[1:] for values in steps if key in values})
        if len(shapes) > 1:
            raise ValueError(f"{key}: expected an info with the same shape in all tasks, got {shapes}")
        dtype = np.result_type(*{values[key].dtype if key in values else np.dtype(object) for values in steps})
        joined[key] = np.empty((sum(map(len, rows)), *shapes[0]), dtype)
        for values, of_step in zip(steps, rows):
            joined[key][of_step] = values.pop(key, None)  # frees memory
    return joined


class RolloutLoop:
    """Steps the policy and the environments of some tasks until all their paths are collected.

    Each task has `P` paths to collect and `E <= P` environments (`executor.envs_per_task`). When the path of an
    environment ends, the environment starts the next waiting path of its task. Each step of the loop

    1. computes the policy's actions for the current observations of all paths, including paths that are not active. The
       policy always gets observations of the same number of paths, on which the rounding of its matrix products may
       depend.
    2. steps the active environments with the actions of their paths.
    3. appends observations, actions, rewards and infos to the list of steps.

    In the loop, path `p = i * P + rollout` and environment `e = i * E + j` belong to task `tasks[i]`.
    """

    def __init__(self, executor: Any, num_rollouts: int, path_rng: PathRng, actor: Actor, tasks: range,
                 stop: threading.Event) -> None:
        self._executor, self._actor, self._path_rng = executor, actor, path_rng
        self._tasks, self._num_tasks, self._num_rollouts = tasks, len(tasks), num_rollouts
        self._first_env = tasks.start * executor.envs_per_task
        self._max_path_length = executor.max_path_length
        self._capacity = min(self._max_path_length, INITIAL_BUFFER_STEPS)  # steps per path with noise
        self._stop = stop  # ends `run` after the current step, or immediately if it has not started
        self._action_shape = executor.action_shape
        num_paths = self._num_tasks * self._num_rollouts
        self._noise = np.empty((num_paths, self._capacity, actor.noise_dim), np.float32)
        self._last_observations = np.zeros((num_paths, *executor.observation_shape))  # the policy's current input
        self._noise_now = np.zeros((num_paths, actor.noise_dim), np.float32)
        self._steps: List[LoopStep] = []
        self._shapes: Dict[Tuple[str, str], Tuple[int, ...]] = {}  # of the rows, by kind and key
        self._lengths = np.zeros(num_paths, int)
        self._terminated = np.zeros(num_paths, bool)
        self.policy_time = self.env_time = 0.0

    def run(self) -> TaskRollouts:
        """Collects all paths."""
        tasks, envs_per_task = np.arange(self._num_tasks), self._executor.envs_per_task
        env_ids = np.arange(self._num_tasks * envs_per_task)
        path_of = (tasks[:, None] * self._num_rollouts + np.arange(envs_per_task)).ravel()  # by environment
        waiting = [iter(range(m * self._num_rollouts + envs_per_task, (m + 1) * self._num_rollouts)) for m in tasks]
        if not self._stop.is_set():
            self._start(env_ids, path_of)
        while len(env_ids) and not self._stop.is_set() and not self._executor.is_interrupted():
            ended = self._step(env_ids, path_of[env_ids])
            if ended.any():
                following = {e: p for e in env_ids[ended] for p in itertools.islice(waiting[e // envs_per_task], 1)}
                restarted = np.array(list(following), int)
                if following:
                    path_of[restarted] = list(following.values())
                    self._start(restarted, path_of[restarted])
                env_ids = np.sort(np.concatenate([env_ids[~ended], restarted]))
        return TaskRollouts(self._num_rollouts, self._lengths, self._steps, self._last_observations, self._terminated,
                            self.policy_time, self.env_time)

    def _start(self, env_ids: np.ndarray, paths: np.ndarray) -> None:
        """Starts paths. The policy's noise is drawn first; the environment continues with the same generator."""
        rngs = [self._start_noise(p) for p in paths]
        is_starting = np.zeros(len(self._lengths), bool)
        is_starting[paths] = True
        self._actor.start_paths(is_starting.reshape(self._num_tasks, self._num_rollouts))
        started = time.perf_counter()
        observations = self._in_env(lambda ids: self._executor.reset_envs(ids, rngs), env_ids, paths)
        self.env_time += time.perf_counter() - started
        self._check_observations(observations, paths)
        self._last_observations[paths] = observations

    def _start_noise(self, path: int) -> np.random.Generator:
        """Draws the noise of a path; returns the generator for the environment."""
        task, rollout = divmod(int(path), self._num_rollouts)
        rng = self._path_rng(self._tasks[task], rollout)
        draw_path_noise(self._actor, rng, self._max_path_length, self._noise[path])
        return rng

    def _step(self, env_ids: np.ndarray, paths: np.ndarray) -> np.ndarray:
        """Takes one step in each active path; returns which of them ended, bool `[k]`."""
        lengths = self._lengths[paths]
        if self._capacity < self._max_path_length and lengths.max() == self._capacity:  # draws longer noise
            self._capacity = min(2 * self._capacity, self._max_path_length)
            self._noise = np.empty((len(self._lengths), self._capacity, self._actor.noise_dim), np.float32)
            for p in paths:
                self._start_noise(p)
        rows: Rows = paths
        steps: Steps = lengths
        if len(paths) == len(self._lengths):  # all paths are at the same step, and slices are faster than index arrays
            rows, steps = slice(None), int(lengths[0])
        observations = self._last_observations[rows]
        actions, agent_infos = self._act(paths, rows, steps)
        started = time.perf_counter()
        result = self._in_env(lambda ids: self._executor.step_envs(actions, ids), env_ids, paths)
        self.env_time += time.perf_counter() - started
        self._check_observations(result.observations, paths)
        self._check("reward", result.rewards, np.isfinite(result.rewards), paths, "finite numbers")
        arrays = {"observations": observations, "actions": actions, "rewards": result.rewards}
        kinds = {"path": arrays, "env_infos": result.env_infos, "agent_infos": agent_infos}
        self._steps.append((paths, lengths, [self._copied(kind, values, paths) for kind, values in kinds.items()]))
        self._last_observations[rows] = result.observations
        self._lengths[rows] += 1
        self._terminated[rows] = result.terminated
        return result.terminated | result.truncated | (self._lengths[rows] >= self._max_path_length)

    def _act(self, paths: np.ndarray, rows: Rows, steps: Steps) -> Tuple[np.ndarray, Infos]:
        started = time.perf_counter()
        self._noise_now[rows] = self._noise[rows, steps]
        shape = (self._num_tasks, self._num_rollouts, -1)
        with np.errstate(over="ignore", invalid="ignore"):  # actions are checked
            actions, infos = self._actor.act(self._last_observations.reshape(shape), self._noise_now.reshape(shape))
        num_paths = len(self._lengths)
        if actions.shape[2:] != self._action_shape:
            raise ValueError(f"policy: expected actions of shape {self._action_shape}, got {actions.shape[2:]}")
        actions = actions.reshape(num_paths, *self._action_shape)[rows]
        infos = {key: value.reshape(num_paths, *value.shape[2:])[rows] for key, value in infos.items()}
        self._check("policy", actions, np.isfinite(actions), paths, "finite actions",
                    ". Its parameters may be too large: lower inner_lr, learning_rate or the scale of the rewards")
        self.policy_time += time.perf_counter() - started
        return actions, infos

    def _in_env(self, call: Callable[[np.ndarray], Any], env_ids: np.ndarray, paths: np.ndarray) -> Any:
        """Calls the executor with its own indices of the environments, and adds path and step to its errors."""
        env_ids = self._first_env + env_ids  # indices among the environments of all tasks, as in errors
        try:
            return call(env_ids - self._executor.first_task * self._executor.envs_per_task)
        except EnvWorkerError as error:
            blamed = paths[np.isin(env_ids, error.env_ids)]
            places = [self._place(p) for p in (blamed if len(blamed) else paths)]
            where = places[0] if len(places) == 1 else f"{len(places)} paths, the first one {places[0]}"
            raise type(error)(f"{error} [while sampling {where}]", error.env_ids) from error

    def _place(self, path: int) -> str:
        """Returns task, path and step of a path as text for error messages."""
        task, rollout = divmod(int(path), self._num_rollouts)
        return f"task {self._tasks[task]}, path {rollout}, step {self._lengths[path]}"

    def _copied(self, kind: str, infos: Infos, paths: np.ndarray) -> Infos:
        """Returns copies of arrays.

        Raises `ValueError` unless each has a row for each path, with the same shape as in earlier steps.
        """
        copies = {key: copied(np.asarray(value)) for key, value in infos.items()}
        for key, value in copies.items():
            shape, expected = value.shape, (len(paths), *self._shapes.setdefault((kind, key), value.shape[1:]))
            if shape != expected:
                raise ValueError(f"{self._place(paths[0])}: {kind}[{key!r}]: expected shape {expected}, a row for each "
                                 f"path as in earlier steps, got {shape}; put an info of variable size into a dict")
        return copies

    def _check(self, what: str, values: np.ndarray, is_valid: np.ndarray, paths: np.ndarray, expected: str,
               hint: str = "") -> None:
        """Raises `NotFiniteError` unless all values are valid."""
        if not is_valid.all():
            row = int(np.argwhere(~is_valid)[0, 0])
            raise NotFiniteError(f"{what}: expected {expected}, got {values[row]} in {self._place(paths[row])}{hint}")

    def _check_observations(self, observations: np.ndarray, paths: np.ndarray) -> None:
        """Raises `NotFiniteError` unless observations are finite in float32, which policies compute in."""
        self._check("observation", observations, np.abs(observations) <= FLOAT32_MAX, paths, "finite float32 numbers")
