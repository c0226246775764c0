"""Physics engines, the only place that knows their Python bindings.

`mujoco`, the default, is the official package with the installed version of MuJoCo, on native threads. `mujoco-py` is
MuJoCo 2.1.0 through the bindings that published experiments used; `make mujoco-py` builds it. The environments are the
same with both.
"""
import os
from typing import Any, Optional

from meta_policy_search.envs.mujoco_envs.engines.base import Engine
from meta_policy_search.utils.checks import check_choice

ENGINES = ("mujoco", "mujoco-py")

ENGINE_VARIABLE = "META_POLICY_SEARCH_ENGINE"
"""The environment variable that names the default engine."""


def chosen_engine(engine: Optional[str] = None) -> str:
    """Returns `engine`, or if it is None the value of `META_POLICY_SEARCH_ENGINE`, or else `"mujoco"`.

    Raises:
        ValueError: the name is not in `ENGINES`.
    """
    if engine is not None:
        return check_choice("engine", engine, ENGINES)
    return check_choice(f"environment variable {ENGINE_VARIABLE}", os.environ.get(ENGINE_VARIABLE) or "mujoco", ENGINES)


def make_engine(engine: Optional[str], *args: Any, **kwargs: Any) -> Engine:
    """Makes an engine by its name (see `chosen_engine`); the other arguments are those of `Engine`."""
    if chosen_engine(engine) == "mujoco":
        from meta_policy_search.envs.mujoco_envs.engines.mujoco import MujocoEngine

        return MujocoEngine(*args, **kwargs)
    from meta_policy_search.envs.mujoco_envs.engines.mujoco_py import MujocoPyEngine

    return MujocoPyEngine(*args, **kwargs)
