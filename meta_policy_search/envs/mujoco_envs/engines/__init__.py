"""Physics engines: the only modules of the robots that import Python bindings of MuJoCo.

`mujoco`, the default, uses the official package, the installed version of MuJoCo and native threads. `mujoco-py` uses
MuJoCo 2.1.0 and the bindings of published experiments; `make mujoco-py` builds it. Both engines provide the same
environments.
"""
import os
from typing import Any, Optional

from meta_policy_search.envs.mujoco_envs.engines.base import Engine
from meta_policy_search.utils.checks import check_choice

ENGINES = ("mujoco", "mujoco-py")

ENGINE_VARIABLE = "META_POLICY_SEARCH_ENGINE"
"""Environment variable with the name of the default engine."""


def chosen_engine(engine: Optional[str] = None) -> str:
    """Returns `engine` or, if it is None, the default engine.

    The default is the value of the environment variable `META_POLICY_SEARCH_ENGINE`, or `"mujoco"` if it is not set.

    Raises:
        ValueError: the name is not in `ENGINES`.
    """
    if engine is not None:
        return check_choice("engine", engine, ENGINES)
    return check_choice(f"environment variable {ENGINE_VARIABLE}", os.environ.get(ENGINE_VARIABLE) or "mujoco", ENGINES)


def make_engine(engine: Optional[str], *args: Any, **kwargs: Any) -> Engine:
    """Creates an engine by its name (see `chosen_engine`). The other arguments are passed to `Engine`."""
    if chosen_engine(engine) == "mujoco":
        from meta_policy_search.envs.mujoco_envs.engines.mujoco import MujocoEngine

        return MujocoEngine(*args, **kwargs)
    from meta_policy_search.envs.mujoco_envs.engines.mujoco_py import MujocoPyEngine

    return MujocoPyEngine(*args, **kwargs)
