"""Single paths of a single environment, for looking at what a policy does."""
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
        env: environment, with its task already set.
        agent: policy; a meta-policy acts with the parameters of its first task. Where it has a method `reset`, as those
            that explore have, it is told that a path begins.
        max_path_length: steps after which the path is cut off; default 1000.
        animated: whether to call `env.render()` after every step.
        speedup: when animated, and in the video, how many times faster than real time (`env.dt`, 0.05 s if it has none)
            to show.
        ignore_done: whether to go on after the environment ends the path.
        save_video: whether to write a video, with a picture of the start and one after each step; takes the extra
            `video`, and an environment made with `render_mode="rgb_array"`.
        video_filename: its file, which is replaced if there is one; default `sim_out.mp4`.

    Returns:
        A path dict, see `types.Path`.

    Raises:
        ValueError: a number out of range, a video of an environment that gives no pictures, or an info whose shape
            changes; names the step.
        ImportError: a video without the extra `video`; says what to run.
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
    """Gives a function that appends a picture to the video, or does nothing where there is to be none."""
    if not is_on:
        yield lambda: None
        return
    render_mode = getattr(env, "render_mode", None)
    if render_mode != "rgb_array":
        raise ValueError('save_video: expected an environment made with render_mode="rgb_array", as pictures are what '
                         f"a video is made of, got one with render_mode={render_mode!r}")
    with mp4_file("sim_out.mp4" if filename is None else filename, speedup / _duration(env)) as append:
        yield lambda: append(env.render())


def _duration(env: Any) -> float:
    """Returns how long a step takes in real time, s."""
    return getattr(env, "dt", 0.05)


def _copied(value: Any) -> Any:
    """Returns a value with copies of the arrays in it: environments and agents may write to theirs later."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return value.copy() if isinstance(value, np.ndarray) else value
