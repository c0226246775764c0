"""Single paths of a single environment, for looking at what a policy does."""
import time
from typing import Any, Optional

import numpy as np

from meta_policy_search.envs.gym_forms import reset_env, step_env
from meta_policy_search.samplers.vectorized_env_executor import stack_infos
from meta_policy_search.types import Path
from meta_policy_search.utils.checks import check_bool, check_positive, check_positive_int


def rollout(
    env: Any,
    agent: Any,
    max_path_length: int = 1000,
    animated: bool = False,
    speedup: float = 1.0,
    ignore_done: bool = False,
    save_video: bool = False,
    video_filename: Optional[str] = None,
) -> Path:
    """Runs one path with `agent.get_action`.

    Args:
        env: environment, with its task already set.
        agent: policy; a meta-policy acts with the parameters of its first task.
        max_path_length: steps after which the path is cut off; default 1000.
        animated: whether to call `env.render()` after every step.
        speedup: when animated, how many times faster than real time (`env.dt`, 0.05 s if it has none) to show.
        ignore_done: whether to go on after the environment ends the path.
        save_video: accepted for old scripts; videos are not available in this version.
        video_filename: the file that a video would have.

    Returns:
        A path dict, see `types.Path`.

    Raises:
        ValueError: a number out of range, or `save_video`.
    """
    if check_bool("save_video", save_video):
        name = "" if video_filename is None else f", so {video_filename} cannot be made"
        raise ValueError(f"save_video: videos are not available in this version{name}")
    max_path_length = check_positive_int("max_path_length", max_path_length)
    speedup, ignore_done = check_positive("speedup", speedup), check_bool("ignore_done", ignore_done)
    columns: dict = {"observations": [], "actions": [], "rewards": [], "env_infos": [], "agent_infos": []}
    observation, terminated, truncated = _copied(reset_env(env)), False, False
    while len(columns["rewards"]) < max_path_length and (ignore_done or not (terminated or truncated)):
        action, agent_info = map(_copied, agent.get_action(observation))
        next_observation, reward, terminated, truncated, env_info = map(_copied, step_env(env, _copied(action)))
        for column, value in zip(columns.values(), (observation, action, reward, env_info, agent_info)):
            column.append(value)
        observation = next_observation
        if animated:
            env.render()
            time.sleep(getattr(env, "dt", 0.05) / speedup)
    path: Path = {key: np.asarray(columns[key]) for key in ("observations", "actions", "rewards")}
    for kind in ("env_infos", "agent_infos"):
        path[kind] = stack_infos(columns[kind])
    path["last_observation"], path["terminated"] = np.asarray(observation), terminated
    return path


def _copied(value: Any) -> Any:
    """Returns a value with copies of the arrays in it: environments and agents may write to theirs later."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return value.copy() if isinstance(value, np.ndarray) else value
