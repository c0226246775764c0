"""Runs single paths of a single environment, to inspect the behavior of a policy."""
import contextlib
import time
from typing import Any, Callable, Iterator, Optional

import numpy as np

from meta_policy_search.envs.compat import SingleTaskEnv, adapt_env, copied, has_tasks
from meta_policy_search.samplers.errors import EnvValueError
from meta_policy_search.samplers.vectorized_env_executor.base import stack_infos
from meta_policy_search.types import Path
from meta_policy_search.utils.checks import check_bool, check_positive, check_positive_int
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
        speedup: playback speed of the animation and the video, relative to real time (`env.dt` per step; 0.05 s if the
            environment has no `dt`); default 1.
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
    env = adapt_env(env) if has_tasks(env) else SingleTaskEnv(env)
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
                time.sleep(env.dt / speedup)
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
    with mp4_file("sim_out.mp4" if filename is None else filename, speedup / env.dt) as append:
        yield lambda: append(env.render())
