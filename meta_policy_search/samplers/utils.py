"""Runs single paths, to inspect a policy (`rollout`) or an environment (`check_env`)."""
import contextlib
import itertools
import reprlib
import time
from typing import Any, Callable, Dict, Iterator, List, Optional

import cloudpickle
import numpy as np

from meta_policy_search.envs.compat import adapt_env, check_meta_env, copied, copy_env, frame_rate, innermost, layers
from meta_policy_search.envs.spaces import as_numbers, is_box, is_discrete
from meta_policy_search.envs.varied_env import walk
from meta_policy_search.samplers.errors import EnvValueError
from meta_policy_search.samplers.vectorized_env_executor.base import MetaEnvExecutor, stack_infos
from meta_policy_search.samplers.vectorized_env_executor.local import MetaIterativeEnvExecutor, make_local_executor
from meta_policy_search.types import Path
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_bool, check_int_at_least, check_positive, check_positive_int
from meta_policy_search.utils.video import mp4_file


def rollout(env: Any, agent: Any, max_path_length: int = 1000, animated: bool = False, speedup: float = 1.0,
            ignore_done: bool = False, save_video: bool = False, video_filename: Optional[str] = None) -> Path:
    """Runs one path with `agent.get_action`.

    Args:
        env: environment; its task must be set.
        agent: policy. A meta-policy acts with the parameters of its first task. If the agent has a method `reset`, as
            exploration policies have, it is called at the start of the path.
        max_path_length: maximum number of steps; default 1000.
        animated: whether to call `env.render()` after every step; default False.
        speedup: playback speed of the animation and the video, relative to real time (`metadata["render_fps"]` of the
            environment, by default 30 steps per second); default 1.
        ignore_done: whether to continue after the environment ends the path; default False.
        save_video: whether to write a video with an image of the start and of each step; default False. Requires the
            extra `video` and an environment created with `render_mode="rgb_array"`.
        video_filename: file of the video; an existing file is replaced. Default: `sim_out.mp4`.

    Returns:
        A path dict, see `types.Path`.

    Raises:
        ValueError: a number is out of range; `save_video` is set and the environment has another render mode; or the
            shape of an info changes between steps (the message names the step).
        ImportError: the extra `video` is required and not installed; the message contains the command that installs it.
        OSError: the video cannot be written.
    """
    max_path_length = check_positive_int("max_path_length", max_path_length)
    speedup, ignore_done = check_positive("speedup", speedup), check_bool("ignore_done", ignore_done)
    env = adapt_env(env, needs_tasks=False)
    columns: dict = {"observations": [], "actions": [], "rewards": [], "env_infos": [], "agent_infos": []}
    with _camera(env, check_bool("save_video", save_video), video_filename, speedup) as film:
        observation, terminated, truncated = copied(env.reset()[0]), False, False
        if hasattr(agent, "reset"):
            agent.reset()
        film()
        while len(columns["rewards"]) < max_path_length and (ignore_done or not (terminated or truncated)):
            action, agent_info = map(copied, agent.get_action(observation))
            agent_info = agent_info or {}
            next_observation, reward, terminated, truncated, env_info = map(copied, env.step(copied(action)))
            for column, value in zip(columns.values(), (observation, action, reward, env_info, agent_info)):
                column.append(value)
            observation = next_observation
            film()
            if animated:
                env.render()
                time.sleep(1.0 / (speedup * frame_rate(env)))
    path: Any = {key: np.asarray(columns[key]) for key in ("observations", "actions", "rewards")}
    for kind in ("env_infos", "agent_infos"):
        try:
            path[kind] = stack_infos(columns[kind])
        except EnvValueError as error:
            raise ValueError(f"step {error.env_ids[0]}: {kind}: {error}") from None
    path["last_observation"], path["terminated"] = np.asarray(observation), terminated
    return path


@contextlib.contextmanager
def _camera(env: Any, is_on: bool, filename: Optional[str], speedup: float) -> Iterator[Callable[[], None]]:
    """Yields a function that appends an image to the video, or does nothing if `is_on` is False."""
    if not is_on:
        yield lambda: None
        return
    if env.render_mode != "rgb_array":
        raise ValueError('save_video: expected an environment created with render_mode="rgb_array", got '
                         f"render_mode={env.render_mode!r}")
    from meta_policy_search.envs.mujoco_envs.engines.camera import renderer_of

    with mp4_file("sim_out.mp4" if filename is None else filename, speedup * frame_rate(env)) as append:
        render = renderer_of(env)
        yield lambda: append(render())


OTHER_PATHS = 20
"""Number of paths between a path and its repetition: some environments change only after several paths."""


def check_env(env: Any, num_steps: int = 50, seed: int = 0) -> None:
    """Checks that a path depends only on the task, the random numbers of its generator and the actions.

    Also checks that observations and rewards are finite, that observations lie in their space and have its type,
    that tasks have an effect, and that equal seeds give equal tasks. A Gymnasium environment is also checked by
    `gymnasium.utils.env_checker.check_env`, which may print warnings about the spaces. `meta_policy_search.train` also
    needs finite bounds of actions, because it normalizes them.

    Samplers step several copies of an environment, and each copy runs its paths sequentially. If the environment draws
    all random numbers from the generator that samplers set (`self.np_random`) and `reset` initializes all other state,
    samples do not depend on the number of copies or processes, and a resumed run equals an uninterrupted one.

    The check runs a path with random actions several times: in another copy, after other paths, together with other
    copies and, if the environment has `make_batched`, also without this method. All runs must give the same
    observations, rewards, ends and env_infos.

    Args:
        env: meta-environment; it is copied.
        num_steps: maximum number of steps of a path, at least 1; default 50.
        seed: seed of tasks, generators and actions, at least 0; default 0.

    Raises:
        ValueError: the path differed in a run. The message names the setting, the step, the value and the remedy. Or
            another check failed. If only skilled actions show the task, the check for an effect fails without a fault.
        EnvWorkerError: values of the environment do not fit its spaces, or it raised an error, which may also be raised
            unchanged.
    """
    check_meta_env(env)
    adapted = adapt_env(copy_env(env))
    num_steps, seed = check_positive_int("num_steps", num_steps), check_int_at_least("seed", seed, 0)
    rng = np.random.default_rng(seed)
    with seeding.evaluation_seed(seed):
        tasks = adapted.sample_tasks(2, rng)
    with seeding.evaluation_seed(seed):  # the same random numbers
        again = adapted.sample_tasks(2, np.random.default_rng(seed))
    if cloudpickle.dumps(tasks) != cloudpickle.dumps(again):  # tasks may be objects without a comparison
        raise ValueError(f"{type(innermost(env)).__name__}.sample_tasks: expected the same tasks from generators with "
                         f"the same seed, got {reprlib.repr(tasks)} and {reprlib.repr(again)}. Draw tasks from rng: "
                         "sample_tasks(self, n_tasks, rng)")
    adapted.set_task(tasks[0])
    _check_values(adapted, num_steps, rng)
    _check_with_gymnasium(adapted)

    def play(executor: MetaEnvExecutor, *env_ids: int, first_seed: int = 0) -> List[Dict[str, Any]]:
        """Runs one path in each environment; returns the values of the first one at the start and after each step."""
        ids, space, seeds = np.array(env_ids), env.action_space, [(seed, first_seed + i) for i in range(len(env_ids))]
        rngs = dict(zip(env_ids, [np.random.default_rng((*seed, 1)) for seed in seeds]))  # generators of the actions
        observations = executor.reset_envs(ids, [np.random.default_rng((*seed, 0)) for seed in seeds])
        steps = [{"observation": observations[0].copy()}]
        while len(ids) and ids[0] == env_ids[0] and len(steps) <= num_steps:
            actions = [rngs[e].integers(space.n) if is_discrete(space) else
                       np.clip(rngs[e].standard_normal(space.shape), space.low, space.high) for e in ids.tolist()]
            answer = executor.step_envs(np.array(actions), ids)
            steps.append({"observation": answer.observations[0].copy(), "reward": answer.rewards[0],
                          "terminated": answer.terminated[0], "truncated": answer.truncated[0],
                          **{f"env_infos[{key!r}]": values[0] for key, values in answer.env_infos.items()}})
            ids = ids[~(answer.terminated | answer.truncated)]
        return steps

    with make_local_executor(env, 2, 2, num_steps) as executor:
        executor.set_tasks(tasks)
        expected = play(executor, 0)
        _compare(env, expected, play(executor, 1), "in another copy")
        for i in range(1, OTHER_PATHS + 1):
            play(executor, 0, first_seed=i)
        _compare(env, expected, play(executor, 0), "after other paths")
        executor.set_tasks(tasks[::-1])
        play(executor, 0)
        executor.set_tasks(tasks)
        _compare(env, expected, play(executor, 0), "after a path in another task")
        _compare(env, expected, play(executor, 0, 1, 2, 3), "together with other copies")
    if adapted.make_batched(1) is not None:
        with MetaIterativeEnvExecutor(env, 2, 1, num_steps) as executor:
            executor.set_tasks(tasks)
            _compare(env, expected, play(executor, 0), "without make_batched")
    others = [task for task in (tasks[1], *(adapted.sample_tasks(1, rng)[0] for _ in range(8)))
              if repr(task) != repr(tasks[0])]
    if others and all(np.array_equal(*values) for task in others for values in itertools.zip_longest(
            walk(adapt_env(copy_env(env)), tasks[0]), walk(adapt_env(copy_env(env)), task), fillvalue=())):
        raise ValueError(f"{type(env).__name__}.set_task: expected an effect of the task, got equal observations and "
                         f"rewards in {len(others) + 1} tasks, for the same random numbers and actions. If random "
                         "actions never show the task, as with sparse rewards, the environment can be correct")


def _check_with_gymnasium(env: Any) -> None:
    """Runs the check of Gymnasium, if it applies; raises `ValueError` with its message."""
    import gymnasium
    from gymnasium.utils.env_checker import check_env as check

    if isinstance(inner := innermost(list(layers(env))[-1]), gymnasium.Env):
        try:
            check(inner, skip_render_check=True, skip_close_check=True)
        except Exception as error:
            counts = " (reset returns 2 values, step 5)" * ("to unpack" in str(error))
            raise ValueError(f"{type(inner).__name__}: the check of Gymnasium found: {error}{counts}") from error


def _check_values(env: Any, num_steps: int, rng: np.random.Generator) -> None:
    """Raises `ValueError` if an observation or reward of a path is not finite, or an observation not in its space."""
    space, name = env.observation_space, type(env.unwrapped).__name__
    (observation, _), reward, is_over = env.reset(), 0.0, False
    for step in range(num_steps + 1):
        array = as_numbers(f"{name}: observation", observation)
        where = f"after {step} steps" if step else "at the start"
        if not np.isfinite(reward) or array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name}: expected finite observations and rewards, got {observation} and {reward} "
                             f"{where}")
        if is_box(space) and (not np.can_cast(array.dtype, space.dtype) or array.shape == space.shape and not (
                (space.low <= array) & (array <= space.high)).all()):
            raise ValueError(f"{name}: expected observations in {space}, got {array.dtype} {observation} {where}. "
                             "Change the observation_space, or the type and range of observations")
        if is_over:
            break
        action = rng.integers(env.action_space.n) if is_discrete(env.action_space) else np.clip(
            rng.standard_normal(env.action_space.shape), env.action_space.low, env.action_space.high)
        observation, reward, terminated, truncated, _ = env.step(action)
        is_over = terminated or truncated


def _compare(env: Any, expected: List[Dict[str, Any]], steps: List[Dict[str, Any]], where: str) -> None:
    for step, (before, now) in enumerate(zip(expected, steps)):
        for key in {**before, **now}:
            value = now.get(key)
            try:
                np.testing.assert_equal(value, before.get(key))
            except AssertionError:
                raise ValueError(
                    f"{type(env).__name__}: expected identical paths for the same task, random numbers and actions, "
                    f"got a different path: {f'after {step} steps' if step else 'at the start'} the {key} is "
                    f"{value} {where}, but was {before.get(key)} in the first run. Draw all random numbers from "
                    "self.np_random (vectorized: from the generators passed to reset), and initialize all other "
                    "state in reset") from None
