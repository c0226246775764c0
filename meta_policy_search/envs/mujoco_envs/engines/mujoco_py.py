"""The physics engine `mujoco-py`: MuJoCo 2.1.0, with which the field's papers were computed, on one thread.

Models are compiled by MuJoCo 2.1.0 itself, from the model files that the official package compiles, too. Body frames
and contact forces (`derived.DERIVED`) are computed when they are asked for, as with the official package.

`build.py` builds it. Where mujoco-py has been installed by its own instructions, it is used as it is.
"""
import contextlib
import functools
import io
import os
import sys
import threading
import warnings
from types import ModuleType
from typing import Any, Iterator, List

import numpy as np

from meta_policy_search.envs.mujoco_envs.engines.base import START_TIME, Engine, Simulator
from meta_policy_search.envs.mujoco_envs.engines.build import engine_folder
from meta_policy_search.envs.mujoco_envs.engines.models import INERTIAL_ARRAYS, model_file
from meta_policy_search.envs.mujoco_envs.engines.mujoco import compile_model

_PATH_VARIABLE = "MUJOCO_PY_MUJOCO_PATH"  # where mujoco-py looks for MuJoCo 2.1.0 before it looks in the home folder
_one_at_a_time = threading.Lock()  # mujoco-py keeps warnings in a global variable


class MujocoPyEngine(Engine):
    """Robots simulated by mujoco-py, one after the other; see `Engine` for arguments, attributes and methods.

    mujoco-py holds on to Python's interpreter lock, so `num_threads` has no effect; processes share the work
    (`MetaSampler(parallel=True)`). `inertials="modern"` and pictures need the package `mujoco`, too.
    """

    name = "mujoco-py"

    def threads(self) -> int:
        """Returns one."""
        return 1

    def _compiled(self) -> Any:
        return _compile(self.robot, self.inertials)

    def _copy_of_model(self) -> Any:
        mujoco_py = import_mujoco_py()
        return mujoco_py.functions.mj_copyModel(mujoco_py.cymj.PyMjModel(), self._model)  # into an empty one: a new one

    def _update_constants(self, model: Any) -> None:
        self._functions.mj_setConst(model, self._new_memory())

    def _new_memory(self) -> Any:
        return import_mujoco_py().MjSim(self.model).data

    @property
    def _functions(self) -> Any:
        return import_mujoco_py().functions

    def _new_simulator(self, num_threads: int) -> "_Simulator":
        return _Simulator(self)

    def _model_to_draw(self, env_id: int) -> Any:
        return compile_model(self.robot, self.inertials)  # what a task changes cannot be seen


class _Simulator(Simulator):
    """The memory in which robots are simulated one after the other."""

    def __init__(self, engine: MujocoPyEngine) -> None:
        mujoco_py = import_mujoco_py()
        self._raised_warnings, self._warning = mujoco_py.cymj.wrap_mujoco_warning, mujoco_py.MujocoException
        self._functions, self._frame_skip, self._nq = mujoco_py.functions, engine.frame_skip, engine.nq
        self._data = data = engine._new_memory()
        self._views = data.qpos, data.qvel, data.ctrl, data.qacc_warmstart

    def simulate(self, models: List[Any], states: np.ndarray, controls: np.ndarray) -> np.ndarray:
        qpos, qvel, ctrl, warmstart = self._views
        final = np.empty_like(states)
        with _one_at_a_time:
            for row, model in enumerate(models):
                self._data.time = START_TIME
                qpos[:] = states[row, 1:1 + self._nq]
                qvel[:] = states[row, 1 + self._nq:]
                ctrl[:] = controls[row]
                warmstart[:] = 0.0
                final[row, 0] = self._advance(model)
                final[row, 1:1 + self._nq] = qpos
                final[row, 1 + self._nq:] = qvel
        return final

    def _advance(self, model: Any) -> float:
        """Takes one control step; returns the clock, and after a warning zero."""
        step, data = self._functions.mj_step, self._data
        try:
            with self._raised_warnings():
                for _ in range(self._frame_skip):
                    step(model, data)
        except self._warning:
            self._functions.mj_resetData(model, data)  # MuJoCo gives no second warning of the kind before that
            return 0.0
        return data.time


@functools.lru_cache(maxsize=None)
def _compile(robot: str, inertials: str) -> Any:
    mujoco_py = import_mujoco_py()
    model = mujoco_py.load_model_from_xml(model_file(robot).read_text(encoding="utf-8"))
    if inertials == "modern":
        modern = compile_model(robot, inertials)
        for name in INERTIAL_ARRAYS:
            getattr(model, name)[:] = getattr(modern, name)
        mujoco_py.MjSim(model).set_constants()
    return model


def import_mujoco_py() -> ModuleType:
    """Returns the module `mujoco_py`, loaded with the engine that `build.py` has built, if it has.

    Raises:
        ImportError: mujoco-py or its engine is not installed; says what to run.
    """
    if sys.modules.get("mujoco_py") is not None:
        return sys.modules["mujoco_py"]
    try:
        with _where_to_find_the_engine(), _quiet():
            import mujoco_py
    except Exception as error:  # mujoco-py raises a plain `Exception` where the engine is missing
        reason = (str(error).strip() or repr(error)).splitlines()[0]
        raise ImportError(
            f"the physics engine mujoco-py is not installed ({reason}): run `make mujoco-py`, or without make `pip "
            'install "meta_policy_search[mujoco-py]"` and then `python -m '
            "meta_policy_search.envs.mujoco_envs.engines.build`") from error
    return mujoco_py


@contextlib.contextmanager
def _where_to_find_the_engine() -> Iterator[None]:
    """Sets the environment variables that mujoco-py looks for while it is imported, and undoes all changes to them."""
    before = dict(os.environ)
    folder = engine_folder()
    if not before.get(_PATH_VARIABLE) and folder is not None:  # else it is the user's own, or missing
        libraries = os.pathsep.join([str(folder / "bin"), *filter(None, [before.get("LD_LIBRARY_PATH")])])
        os.environ.update({_PATH_VARIABLE: str(folder), "LD_LIBRARY_PATH": libraries, "MUJOCO_PY_FORCE_CPU": "1"})
    try:
        yield
    finally:  # the package glfw, which is imported too, leaves a variable behind
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps warnings of old packages and mujoco-py's own notices from the user's terminal."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()), \
            warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
