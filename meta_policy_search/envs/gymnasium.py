"""Registers all built-in environments with Gymnasium, as environments that have one task per episode.

    import gymnasium
    import meta_policy_search.envs.gymnasium

    env = gymnasium.make("meta_policy_search/HalfCheetahRandVel-v0")
    observation, info = env.reset(seed=1)                 # draws a task, info["task"]
    observation, info = env.reset(options={"task": 1.5})  # sets a task

An id consists of the name of the class without `Env` and the version `-v0`. The import loads neither TensorFlow nor a
physics engine. It is necessary because Gymnasium searches no entry points for environments. Gymnasium does the import
if the id starts with the name of this module: `"meta_policy_search.envs.gymnasium:meta_policy_search/MetaPointV2-v0"`.
"""
from typing import Any, Dict, List, Optional, Sequence, Sized, Tuple, Union

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from meta_policy_search.envs.compat import adapt_env, attribute, copied
from meta_policy_search.envs.normalized_env import task_numbers
from meta_policy_search.envs.registry import BUILT_IN, get_env_class, load_tasks, make_env
from meta_policy_search.envs.spaces import as_array, extended_bounds, is_box, is_discrete
from meta_policy_search.envs.trial_env import extend_observations, num_added
from meta_policy_search.types import RenderMode, Task
from meta_policy_search.utils.checks import check_bool, check_choice, check_positive_int

Tasks = Union[None, str, Sequence[Task]]
Options = Optional[Dict[str, Any]]

TIME_LIMITS = {
    **{name: 100 if "Point" in name else 200 for name, env in BUILT_IN.items() if env.__name__ == name},
    "KhazadDumEnv": 32, "MetaBernoulliBanditEnv": 10, "MetaPointEnvSemicircle": 20, "MetaTabularMDPEnv": 10,
    "MetaWorldML1": 500, "MetaWorldML10": 500, "MetaWorldML25": 500, "MetaWorldML45": 500, "ReacherRandGoalEnv": 50,
}
"""Number of steps of an episode of each environment, by class name; mostly as in its references."""


def env_id(name: str) -> str:
    """Returns the Gymnasium id of a built-in environment, such as `"HalfCheetahRandVelEnv"`."""
    return f"meta_policy_search/{name.removesuffix('Env').replace('PointEnv', 'Point')}-v0"


class TaskEnv(gymnasium.Env):
    """A meta-environment as a Gymnasium environment: every reset draws a task or sets a given task.

    - `reset(seed=...)` seeds all random numbers and draws a task. `reset()` draws the next task.
    - `reset(options={"task": task})` sets a task. It can be combined with a seed. The start state depends only on the
      seed, whether the task is drawn or given.
    - `info["task"]` of `reset` and `step` is the task.

    Observations, rewards and ends are those of the meta-environment. `gymnasium.make` adds the time limit.

    Args:
        name: name of the environment, see `envs.make_env`.
        tasks: the tasks that `reset` draws from: `"train"` or `"test"` for the fixed tasks of `load_tasks` (without
            `kwargs`), or a sequence of tasks. None (default): the task distribution of the environment.
        observe_task: whether to append the numbers of the task to the observations; default False.
        render_mode: `"rgb_array"` to enable `render`; default None.
        **kwargs: arguments of the environment.

    Raises:
        TypeError: `observe_task` is True and tasks are not numbers, arrays or dicts of them.
        ValueError: an argument is invalid.

    Attributes:
        meta_env: the meta-environment, a `MetaEnv`.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}

    def __init__(self, name: str, *, tasks: Tasks = None, observe_task: bool = False, render_mode: RenderMode = None,
                 **kwargs: Any) -> None:
        modes = (None, *attribute(get_env_class(name), "metadata", {}).get("render_modes", ()))
        if isinstance(tasks, str) and kwargs:
            raise ValueError(f"tasks: expected None or a list of tasks, because the fixed tasks belong to the default "
                             f"arguments of the environment, got {tasks!r} with {', '.join(kwargs)}")
        if check_choice("render_mode", render_mode, modes) is not None:
            kwargs["render_mode"] = render_mode
        self.meta_env: Any = adapt_env(make_env(name, **kwargs))
        self.metadata, self.render_mode = {"render_fps": 20, **self.meta_env.metadata}, render_mode
        self._tasks = load_tasks(name, tasks) if isinstance(tasks, str) else None if tasks is None else list(tasks)
        if self._tasks == []:
            raise ValueError(f"tasks: expected at least one task, got {tasks!r}")
        self._observe_task = check_bool("observe_task", observe_task)
        self._task_rng: Optional[np.random.Generator] = None
        space, actions = self.meta_env.observation_space, self.meta_env.action_space
        bounds = space.low, space.high
        if observe_task:
            size = len(task_numbers(self.draw_task(np.random.default_rng(0))))
            bounds = extended_bounds("observe_task", space, size)
        self.observation_space = gymnasium.spaces.Box(*bounds, dtype=np.float64)
        self.action_space = (gymnasium.spaces.Discrete(int(actions.n)) if is_discrete(actions)
                             else gymnasium.spaces.Box(actions.low, actions.high, dtype=np.float64))

    def draw_task(self, rng: np.random.Generator) -> Task:
        """Draws a task."""
        tasks = self._tasks
        return self.meta_env.sample_tasks(1, rng)[0] if tasks is None else tasks[rng.integers(len(tasks))]

    def shown(self, observations: np.ndarray, tasks: Sequence[Task]) -> np.ndarray:
        """Returns observations `[k, O]`; with `observe_task=True`, with the `k` tasks appended."""
        if not self._observe_task:
            return observations
        return np.concatenate((observations, [task_numbers(task) for task in tasks]), axis=1)

    def reset(self, *, seed: Optional[int] = None, options: Options = None) -> Tuple[np.ndarray, Dict[str, Any]]:
        """Starts an episode; returns `(observation [O], info)`."""
        super().reset(seed=seed)
        if seed is not None or self._task_rng is None:
            self._task_rng = self.np_random.spawn(1)[0]
        given = _checked(options, ("task",))
        self.meta_env.set_task(given["task"] if "task" in given else self.draw_task(self._task_rng))
        self._task = self.meta_env.get_task()
        self.meta_env.np_random = self.np_random
        observation, info = self.meta_env.reset()
        return self.shown(observation[None], [self._task])[0], {**info, "task": copied(self._task)}

    def step(self, action: Any) -> Tuple[np.ndarray, float, bool, bool, Dict[str, Any]]:
        """Takes one step; returns `(observation [O], reward, terminated, truncated, info)`."""
        observation, reward, terminated, truncated, info = self.meta_env.step(action)
        return (self.shown(observation[None], [self._task])[0], reward, terminated, truncated,
                {**info, "task": copied(self._task)})

    def render(self) -> Optional[np.ndarray]:
        """Returns an image, uint8 `[H, W, 3]`. Without a render mode, warns and returns None, as in Gymnasium."""
        if self.render_mode is None:
            gymnasium.logger.warn('render: expected an environment created with render_mode="rgb_array"')
            return None
        return self.meta_env.render()

    def close(self) -> None:
        """Closes the meta-environment."""
        self.meta_env.close()


class TrialWrapper(gymnasium.Wrapper):
    """Joins several episodes of one task into a trial of RL^2 (arXiv:1611.02779, section 2.2).

    `reset` starts a trial, with a drawn or given task. When an episode of the trial ends, the next one starts in the
    same task. The trial terminates with its last episode. Observations are those of `envs.TrialEnv`: the observation,
    the previous action (discrete: one-hot), the previous reward, and whether the previous step ended an episode. With
    a recurrent policy, other libraries train RL^2 on this environment::

        env = TrialWrapper(gymnasium.make("meta_policy_search/HalfCheetahRandDirec-v0"), episodes_per_trial=2)

    Args:
        env: environment with a time limit, whose `reset` returns `info["task"]` and accepts `options={"task": task}`,
            such as a `TaskEnv`. Its observations are vectors.
        episodes_per_trial: number of episodes per trial, at least 1; default 2.

    Raises:
        ValueError: `episodes_per_trial` is less than 1, observations are not vectors, or `reset` returns no task.
    """

    def __init__(self, env: gymnasium.Env, episodes_per_trial: int = 2) -> None:
        super().__init__(env)
        self._episodes_per_trial = check_positive_int("episodes_per_trial", episodes_per_trial)
        self._num_ended = 0  # episodes of this trial that have ended
        bounds = extended_bounds("env", env.observation_space, num_added(env.action_space))
        self.observation_space = gymnasium.spaces.Box(*bounds, dtype=np.float64)

    def reset(self, *, seed: Optional[int] = None, options: Options = None) -> Tuple[np.ndarray, Dict[str, Any]]:
        """Starts a trial; returns `(observation, info)`."""
        observation, info = self.env.reset(seed=seed, options=options)
        if "task" not in info:
            raise ValueError(f"env: expected an environment whose reset returns info['task'], got {self.env}")
        self._task, self._num_ended = info["task"], 0
        return np.append(observation, np.zeros(num_added(self.action_space))), info

    def step(self, action: Any) -> Tuple[np.ndarray, float, bool, bool, Dict[str, Any]]:
        """Takes one step; returns `(observation, reward, terminated, truncated, info)`."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        ended = terminated or truncated
        self._num_ended += ended
        is_last = self._num_ended >= self._episodes_per_trial
        if ended and not is_last:
            observation, _ = self.env.reset(options={"task": self._task})
        shown = extend_observations(self.action_space, observation[None], np.asarray(action)[None],
                                    np.array([reward]), np.array([ended]))
        return shown[0], float(reward), is_last, False, info


class VectorTaskEnv(gymnasium.vector.VectorEnv):
    """Vectorized `TaskEnv`: all copies are stepped together by the vectorized environment of this library.

    Results equal those of `gymnasium.vector.SyncVectorEnv`, bit for bit. `reset` also accepts
    `options={"tasks": tasks}`, with one task per copy, and `"reset_mask"`. A given task applies until the copy is
    reset; automatic resets draw tasks.

    Args:
        name: name of the environment, see `envs.make_env`. It must support vectorization, as all built-in environments
            do.
        num_envs: number of copies, at least 1; default 1.
        max_episode_steps: time limit of an episode; None (default): no limit.
        autoreset_mode: a `gymnasium.vector.AutoresetMode` or its value: `"NextStep"` (default), `"SameStep"` or
            `"Disabled"`.
        tasks, observe_task: see `TaskEnv`.
        render_mode: must be None; images require `vectorization_mode="sync"`.
        **kwargs: arguments of the environment.

    Raises:
        TypeError, ValueError: an argument is invalid.
    """

    def __init__(self, name: str, num_envs: int = 1, *, max_episode_steps: Optional[int] = None,
                 autoreset_mode: Union[str, AutoresetMode] = AutoresetMode.NEXT_STEP, tasks: Tasks = None,
                 observe_task: bool = False, render_mode: None = None, **kwargs: Any) -> None:
        if render_mode is not None:
            raise ValueError(f'render_mode: expected None, or vectorization_mode="sync", got {render_mode!r}')
        if not isinstance(autoreset_mode, AutoresetMode):
            check_choice("autoreset_mode", autoreset_mode, [mode.value for mode in AutoresetMode])
        self._mode = AutoresetMode(autoreset_mode)
        self.num_envs = check_positive_int("num_envs", num_envs)
        self._limit = None if max_episode_steps is None else check_positive_int("max_episode_steps", max_episode_steps)
        self._single = TaskEnv(name, tasks=tasks, observe_task=observe_task, **kwargs)
        self._batched: Any = self._single.meta_env.make_batched(self.num_envs)
        if self._batched is None:
            raise ValueError('name: expected an environment with make_batched, or vectorization_mode="sync", got '
                             f"{name!r}")
        self.metadata = {**self._single.metadata, "autoreset_mode": self._mode}
        self.single_observation_space = self._single.observation_space
        self.single_action_space = self._single.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._rngs: List[Any] = [None] * self.num_envs
        self._task_rngs: List[Any] = [None] * self.num_envs
        self._tasks = self._batched.get_tasks()
        self._task_infos: Dict[str, Any] = {}
        self._observations = np.zeros((self.num_envs, *self._batched.observation_space.shape))
        self._num_steps = np.zeros(self.num_envs, dtype=int)
        self._ended = np.zeros(self.num_envs, dtype=bool)

    def reset(self, *, seed: Union[None, int, Sequence[Optional[int]]] = None,
              options: Options = None) -> Tuple[np.ndarray, Dict[str, Any]]:
        """Starts an episode in all copies, or in those of `options["reset_mask"]`; returns `(observations, infos)`.

        Args:
            seed: copy `i` is seeded with `seed + i`, or with entry `i` of a sequence. None (default): the copies draw
                further numbers.
            options: a dict with `"task"` (for all copies) or `"tasks"` (one per copy), and `"reset_mask"` (bool
                `[num_envs]`); each entry is optional. Default None.
        """
        given = _checked(options, ("task", "tasks", "reset_mask"))
        if "task" in given and "tasks" in given:
            raise ValueError(f"options: expected task or tasks, got both: {options}")
        tasks = given.get("tasks", [given["task"]] * self.num_envs if "task" in given else None)
        seeds = [None if seed is None else int(seed) + i for i in range(self.num_envs)] if (
            seed is None or isinstance(seed, (int, np.integer))) else list(seed)
        mask = np.asarray(given.get("reset_mask", np.ones(self.num_envs, dtype=bool)))
        for name, values in (("seed", seeds), ("options: tasks", tasks), ("options: reset_mask", mask)):
            if values is not None and (not isinstance(values, Sized) or len(values) != self.num_envs):
                raise ValueError(f"{name}: expected {self.num_envs} entries, one per copy, got {values!r}")
        ids = np.flatnonzero(mask).tolist()
        for i in ids:
            if seeds[i] is not None or self._rngs[i] is None:
                self._rngs[i] = seeding.np_random(seeds[i])[0]
                self._task_rngs[i] = self._rngs[i].spawn(1)[0]
        self._start(ids, tasks)
        infos: Dict[str, Any] = {}
        for i in ids:
            self._add_info(infos, {"task": self._tasks[i]}, i)
        return self._shown(), infos

    def step(self, actions: np.ndarray) -> Tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Dict[str, Any]]:
        """Takes one step in all copies; see `gymnasium.vector.VectorEnv.step`.

        Raises:
            RuntimeError: `reset` was not called, or a copy has ended and `autoreset_mode` is `"Disabled"`.
            ValueError: `actions` has the wrong shape, or an action of a box is not finite.
        """
        if None in self._rngs:
            raise RuntimeError("step: call reset() first, with all copies")
        if len(actions) != self.num_envs:
            raise ValueError(f"actions: expected {self.num_envs} rows, one per copy, got {len(actions)}")
        if is_box(self.action_space):
            actions = as_array("actions", actions, (self.num_envs, *self._batched.action_space.shape))
        waiting = self._ended
        if self._mode == AutoresetMode.DISABLED and waiting.any():
            raise RuntimeError(f"step: expected running episodes; first reset the copies {np.flatnonzero(waiting)}")
        rewards, terminated, truncated = np.zeros(self.num_envs), np.zeros_like(waiting), np.zeros_like(waiting)
        infos: Dict[str, Any] = {}
        ids = np.flatnonzero(~waiting)
        if len(ids):
            answer = self._batched.step(np.asarray(actions)[ids], None if len(ids) == self.num_envs else ids)
            self._num_steps[ids] += 1
            rewards[ids], terminated[ids] = answer.rewards, answer.terminated
            truncated[ids] = answer.truncated | (self._limit is not None and self._num_steps[ids] >= self._limit)
            for key, values in answer.env_infos.items():
                infos[key] = np.zeros((self.num_envs, *values.shape[1:]), dtype=values.dtype)
                infos[key][ids], infos["_" + key] = values, ~waiting
            self._observations[ids] = answer.observations
        if waiting.any():
            self._start(np.flatnonzero(waiting).tolist())
        self._ended = terminated | truncated
        if self._mode == AutoresetMode.SAME_STEP and self._ended.any():
            infos = self._restart(infos)
        return self._shown(), rewards, terminated, truncated, {**infos, **copied(self._task_infos)}

    def _restart(self, infos: Dict[str, Any]) -> Dict[str, Any]:
        """Resets the copies that have just ended; returns infos with their final observations and infos."""
        final = self._shown()
        names = [key for key in infos if f"_{key}" in infos]
        ended, is_running = np.flatnonzero(self._ended).tolist(), not self._ended.all()
        added: Dict[str, Any] = {}
        for i in ended:
            info = {**{key: infos[key][i] for key in names}, "task": self._tasks[i]}
            added = self._add_info(added, {"final_obs": final[i], "final_info": info}, i)
        self._start(ended)
        for values in infos.values():
            values[ended] = 0
        return {**(infos if is_running else {}), **added}

    def _start(self, ids: List[int], tasks: Optional[Sequence[Task]] = None) -> None:
        """Starts episodes in the copies `ids` with drawn or given tasks."""
        new = list(self._tasks)
        for i in ids:
            new[i] = self._single.draw_task(self._task_rngs[i]) if tasks is None else tasks[i]
        self._batched.set_tasks(new)
        self._tasks = new if tasks is None else self._batched.get_tasks()
        self._observations[ids] = self._batched.reset(np.asarray(ids, int), [self._rngs[i] for i in ids])
        self._num_steps[ids], self._ended[ids] = 0, False
        for i in ids:
            self._add_info(self._task_infos, {"task": self._tasks[i]}, i)

    def _shown(self) -> np.ndarray:
        return self._single.shown(self._observations.copy(), self._tasks)


def _checked(options: Options, names: Sequence[str]) -> Dict[str, Any]:
    """Returns the options of a reset; raises `ValueError` if there are others than `names`."""
    if unknown := set(options or {}) - set(names):
        raise ValueError(f"options: expected the keys {', '.join(names)}, got {', '.join(sorted(unknown))}")
    return dict(options or {})


for _name, _limit in TIME_LIMITS.items():
    gymnasium.register(env_id(_name), f"{__name__}:TaskEnv", max_episode_steps=_limit, kwargs={"name": _name},
                       vector_entry_point=f"{__name__}:VectorTaskEnv")
