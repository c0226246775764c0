"""The physics engine `mujoco-py`: MuJoCo 2.1.0, the version of published experiments, on one thread.

MuJoCo 2.1.0 compiles the same model files as the engine `mujoco`. Derived quantities (`base.DERIVED`) are computed on
request, as in the engine `mujoco`. `build.py` builds the engine. An existing installation that follows mujoco-py's
own instructions is used unchanged.
"""
import functools
import os
import sys
import threading
import warnings
from types import ModuleType
from typing import Any, List, Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.engines.base import (
    INERTIAL_ARRAYS,
    START_TIME,
    Engine,
    arrays_of,
    model_file,
    set_arrays,
)
from meta_policy_search.envs.mujoco_envs.engines.build import engine_folder

_PATH_VARIABLE = "MUJOCO_PY_MUJOCO_PATH"  # path of MuJoCo 2.1.0; if not set, mujoco-py searches the home folder
_one_at_a_time = threading.Lock()  # mujoco-py stores warnings in a global variable


class MujocoPyEngine(Engine):
    """Simulates robots sequentially with mujoco-py; see `Engine` for arguments, attributes and methods.

    mujoco-py holds Python's global interpreter lock, so `num_threads` has no effect. For parallel simulation, use
    worker processes (`MetaSampler(parallel=True)`). `inertials="modern"` and images also require the package `mujoco`.
    """

    def threads(self) -> int:
        """Returns 1."""
        return 1

    def _compiled(self) -> Tuple[Any, Any, Any]:
        model = _compile(self.robot, self.inertials)
        return model, model, import_mujoco_py().functions

    def _copy_of_model(self) -> Any:
        mujoco_py = import_mujoco_py()
        return mujoco_py.functions.mj_copyModel(mujoco_py.cymj.PyMjModel(), self._model)  # allocates a new model

    def _new_memory(self) -> Any:
        return import_mujoco_py().MjSim(self.model).data

    def _model_to_draw(self, env_id: int) -> Any:
        from meta_policy_search.envs.mujoco_envs.engines.mujoco import compile_model  # imports the package `mujoco`

        return compile_model(self.robot, self.inertials)  # the parameters that tasks change are not visible

    def _simulate(self, simulator: Any, models: List[Any], states: np.ndarray, controls: np.ndarray) -> np.ndarray:
        # writing to these views changes `simulator`
        qpos, qvel, ctrl, warmstart = simulator.qpos, simulator.qvel, simulator.ctrl, simulator.qacc_warmstart
        final = np.empty_like(states)
        with _one_at_a_time:
            for row, model in enumerate(models):
                simulator.time = START_TIME
                qpos[:] = states[row, 1:1 + self.nq]
                qvel[:] = states[row, 1 + self.nq:]
                ctrl[:] = controls[row]
                warmstart[:] = 0.0
                final[row, 0] = self._advance(model, simulator)
                final[row, 1:1 + self.nq] = qpos
                final[row, 1 + self.nq:] = qvel
        return final

    def _advance(self, model: Any, data: Any) -> float:
        """Takes one control step; returns the clock, or zero after a warning."""
        mujoco_py = import_mujoco_py()
        try:
            with mujoco_py.cymj.wrap_mujoco_warning():
                for _ in range(self.frame_skip):
                    self._functions.mj_step(model, data)
        except mujoco_py.MujocoException:
            self._functions.mj_resetData(model, data)  # before a reset, MuJoCo does not repeat a warning
            return 0.0
        return data.time


@functools.lru_cache(maxsize=None)
def _compile(robot: str, inertials: str) -> Any:
    mujoco_py = import_mujoco_py()
    model = mujoco_py.load_model_from_xml(model_file(robot).read_text(encoding="utf-8"))
    if inertials == "modern":
        from meta_policy_search.envs.mujoco_envs.engines.mujoco import compile_model  # imports the package `mujoco`

        set_arrays(model, arrays_of(compile_model(robot, inertials), INERTIAL_ARRAYS))
        mujoco_py.MjSim(model).set_constants()
    return model


def import_mujoco_py() -> ModuleType:
    """Imports and returns the module `mujoco_py`, with the engine of `build.py` if it exists.

    Raises:
        ImportError: mujoco-py or its engine is not installed; the message contains the command to run.
    """
    if sys.modules.get("mujoco_py") is not None:
        return sys.modules["mujoco_py"]
    try:
        _set_variables()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # outdated dependencies warn
            import mujoco_py
    except Exception as error:  # mujoco-py raises a plain `Exception` if the engine is missing
        reason = (str(error).strip() or repr(error)).splitlines()[0]
        raise ImportError(
            f"the physics engine mujoco-py is not installed ({reason}): run `make mujoco-py` or, without make, `pip "
            'install "meta_policy_search[mujoco-py]"` and then `python -m '
            "meta_policy_search.envs.mujoco_envs.engines.build`") from error
    return mujoco_py


def _set_variables() -> None:
    """Sets the environment variables that mujoco-py reads at import, unless the user has set them."""
    folder = engine_folder()
    if not os.environ.get(_PATH_VARIABLE) and folder is not None:
        libraries = os.pathsep.join([str(folder / "bin"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
        os.environ.update({_PATH_VARIABLE: str(folder), "LD_LIBRARY_PATH": libraries, "MUJOCO_PY_FORCE_CPU": "1"})
