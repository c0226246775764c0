"""Runs single paths of a single environment, to inspect the behavior of a policy."""
import contextlib
import time
from typing import Any, Callable, Iterator, Optional

import numpy as np

from meta_policy_search.envs.gym_compat import reset_env, step_env
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
    columns: dict = {"observations": [], "actions": [], "rewards": [], "env_infos": [], "agent_infos": []}
    with _camera(env, check_bool("save_video", save_video), video_filename, speedup) as film:
        observation, terminated, truncated = _copied(reset_env(env)), False, False
        if hasattr(agent, "reset"):
            agent.reset()
        film()
        while len(columns["rewards"]) < max_path_length and (ignore_done or not (terminated or truncated)):
            action, agent_info = map(_copied, agent.get_action(observation))
            agent_info = agent_info or {}
            next_observation, reward, terminated, truncated, env_info = map(_copied, step_env(env, _copied(action)))
            for column, value in zip(columns.values(), (observation, action, reward, env_info, agent_info)):
                column.append(value)
            observation = next_observation
            film()
            if animated:
                env.render()
                time.sleep(_duration(env) / speedup)
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
    render_mode = getattr(env, "render_mode", None)
    if render_mode != "rgb_array":
        raise ValueError('save_video: expected an environment created with render_mode="rgb_array", got '
                         f"render_mode={render_mode!r}")
    with mp4_file("sim_out.mp4" if filename is None else filename, speedup / _duration(env)) as append:
        yield lambda: append(env.render())


def _duration(env: Any) -> float:
    """Returns the duration of a step in real time, s."""
    return getattr(env, "dt", 0.05)


def _copied(value: Any) -> Any:
    """Returns `value` with copies of its arrays, because environments and agents may overwrite their arrays later."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return value.copy() if isinstance(value, np.ndarray) else value
