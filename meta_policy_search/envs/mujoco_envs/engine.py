"""The physics of the MuJoCo environments: many robots of one kind, advanced together by native threads.

This file alone knows a physics binding, the official `mujoco` package; environments see names, arrays and
`PhysicsError`. A robot's future depends on its position, velocity and controls and on nothing else: the constraint
solver starts each control step cold (no warm start is carried over), so the row of one robot is the same bit for bit
alone or among others, for any number of threads, and after pickling.

By default robots have the masses and inertias that MuJoCo 2.1.0, the engine of the field's papers, computes from
the same model files; it integrated the end caps of capsules with `pi r^3` in place of `4/3 pi r^3`. With them the
engine agrees with MuJoCo 2.1.0 to a few 1e-12 over ten control steps of the half cheetah.
"""
import copy
import functools
import importlib.util
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

import numpy as np

from meta_policy_search.envs.base import PhysicsError
from meta_policy_search.utils.checks import check_choice, check_positive_int
from meta_policy_search.utils.cores import available_cores

__all__ = ["INERTIALS", "ROBOTS", "MujocoEngine", "PhysicsError", "State"]

ROBOTS = ("ant", "half_cheetah", "hopper", "humanoid", "swimmer", "walker2d")
"""Robots that can be simulated, by the names of Gymnasium's model files."""

INERTIALS = ("mujoco210", "modern")
"""Whose masses and inertias a robot can have, those of MuJoCo 2.1.0 or those that the installed MuJoCo computes."""

_INERTIALS_FILE = Path(__file__).parent / "data" / "mujoco210_inertials.npz"
_LARGEST = 1e10  # a position or velocity beyond it counts as diverged; MuJoCo's own bound (mjMAXVAL)
_START_TIME = -1000.0  # s, the clock at the start of every control step: far from zero, where MuJoCo resets it to


class State(NamedTuple):
    """Positions and velocities of `k` robots: all that their future depends on, apart from the controls."""

    qpos: np.ndarray  # float64 [k, nq], m and rad (unit quaternions for free joints)
    qvel: np.ndarray  # float64 [k, nv], m/s and rad/s


class MujocoEngine:
    """`num_envs` robots of one kind, whose controls are held for `frame_skip` simulation steps at a time.

    Copies and pickles hold the states and the changed parameters; the copy builds its model, buffers and threads
    anew. Nothing but the compiled model, which is constant, is shared between engines of a process. Threads start
    with the first step and end when the engine is garbage.

    Args:
        robot: one of `ROBOTS`.
        num_envs: number of robots, at least one.
        frame_skip: simulation steps per control step, at least one.
        inertials: one of `INERTIALS`.
        num_threads: native threads that share the robots, at least one; by default all cores that the process
            may use. Never more than `num_envs`. Results do not depend on it.

    Attributes:
        model: the compiled `mujoco.MjModel`, shared by all engines of the process with the same robot and
            inertials: to be read, not written (`set_parameters` changes physics).
        dt: duration of a control step, s.
        nq, nv, nu: numbers of position coordinates, velocity coordinates and controls.
        control_low, control_high: float64 `[nu]`, bounds of the controls.
        init_qpos: float64 `[nq]`, the position that the model file describes.
        num_threads: as given; takes effect with the first step.

    Raises:
        ImportError: the `mujoco` or `gymnasium` package is missing or too old; says what to run.
        FileNotFoundError: the installed Gymnasium has no model of the robot; says what to run.
        TypeError, ValueError: an argument is none of the above.
    """

    def __init__(
        self,
        robot: str,
        num_envs: int,
        frame_skip: int,
        inertials: str = "mujoco210",
        num_threads: Optional[int] = None,
    ) -> None:
        self.robot = check_choice("robot", robot, ROBOTS)
        self.num_envs = check_positive_int("num_envs", num_envs)
        self.frame_skip = check_positive_int("frame_skip", frame_skip)
        self.inertials = check_choice("inertials", inertials, INERTIALS)
        self.num_threads = None if num_threads is None else check_positive_int("num_threads", num_threads)

        mujoco = _import_mujoco()
        self.model = _compile(robot, inertials)
        self.nq, self.nv, self.nu = self.model.nq, self.model.nv, self.model.nu
        self.dt = self.frame_skip * self.model.opt.timestep
        self.control_low, self.control_high = self.model.actuator_ctrlrange.T.copy()
        self.init_qpos = self.model.qpos0.copy()

        size = mujoco.mj_stateSize(self.model, mujoco.mjtState.mjSTATE_FULLPHYSICS.value)
        assert size == 1 + self.nq + self.nv, "the state of a robot is time, position and velocity"
        self._states = np.zeros((self.num_envs, size))  # rows as MuJoCo has them: time, qpos, qvel
        self._states[:, 0] = _START_TIME
        self._states[:, 1:1 + self.nq] = self.init_qpos
        self._parameters: Optional[List[Mapping[str, np.ndarray]]] = None
        self._models: Optional[List[Any]] = None
        self._idle_crews: Dict[int, List[_Crew]] = {}  # by their number of threads

    def get_state(self, env_ids: Optional[np.ndarray] = None) -> State:
        """Returns copies of the states of the robots `env_ids` (int `[k]`), by default of all."""
        states = self._states if env_ids is None else self._states[env_ids]
        return State(states[:, 1:1 + self.nq].copy(), states[:, 1 + self.nq:].copy())

    def set_state(self, qpos: np.ndarray, qvel: np.ndarray, env_ids: Optional[np.ndarray] = None) -> None:
        """Puts robots into a state.

        Args:
            qpos: `[k, nq]`, positions, finite.
            qvel: `[k, nv]`, velocities, finite.
            env_ids: int `[k]`, which robots; all of them by default.

        Raises:
            ValueError: names the argument that has the wrong shape or is not finite.
        """
        count = self.num_envs if env_ids is None else len(env_ids)
        rows = slice(None) if env_ids is None else env_ids
        qpos = _check_finite("qpos", qpos, (count, self.nq))
        qvel = _check_finite("qvel", qvel, (count, self.nv))
        self._states[rows, 1:] = np.concatenate((qpos, qvel), axis=1)

    def step(self, controls: np.ndarray, env_ids: Optional[np.ndarray] = None) -> None:
        """Advances robots by one control step of `dt` seconds.

        May be called by several Python threads at a time, for different robots; Python goes on meanwhile.

        Args:
            controls: float64 `[k, nu]`, finite, within the bounds of the controls.
            env_ids: int `[k]`, which robots, without duplicates; all of them by default.

        Raises:
            PhysicsError: names the robots whose simulation diverged; then no robot has moved.
        """
        rows = slice(None) if env_ids is None else env_ids
        states = self._states[rows]
        count = len(states)
        if count == 0:
            return
        if self._models is None:
            models = [self.model] * count
        else:
            models = self._models if env_ids is None else [self._models[i] for i in env_ids]
        idle = self._idle_crews.setdefault(self._num_threads_for(count), [])
        try:
            crew = idle.pop()
        except IndexError:
            crew = _Crew(self, self._num_threads_for(count))
        final = crew.simulate(models, states, controls)
        idle.append(crew)
        self._check_converged(final, env_ids)
        self._states[rows, 1:] = final[:, 1:]

    def _num_threads_for(self, count: int) -> int:
        """Returns how many native threads step `count` robots.

        For a share of the robots it is twice that share of the threads: one caller's threads have nothing to do while
        it is busy with something else, and another's may use the cores.
        """
        num_threads = self.threads()
        return min(num_threads, -(-2 * num_threads * count // self.num_envs))

    def threads(self) -> int:
        """Returns how many native threads there are at most."""
        return min(self.num_threads or available_cores(), self.num_envs)

    def get_parameter(self, name: str) -> np.ndarray:
        """Returns a copy of a physical parameter of the unchanged robot, such as `body_mass`."""
        return getattr(self.model, name).copy()

    def set_parameters(self, parameters: Optional[Sequence[Mapping[str, np.ndarray]]]) -> None:
        """Gives every robot physical parameters of its own.

        What follows from masses and inertias (subtree masses, inverse weights of the constraints) is recomputed.

        Args:
            parameters: one mapping per robot, of a parameter's name to its values, in the shape that
                `get_parameter` returns; what a mapping lacks is as in the unchanged robot. Robots that are given the
                same mapping object share a model. None: all robots unchanged.
        """
        if parameters is None:
            self._parameters = self._models = None
            return
        assert len(parameters) == self.num_envs, "one mapping per robot"
        models = {key: self._changed_model(values) for key, values in {id(p): p for p in parameters}.items()}
        self._parameters = list(parameters)
        self._models = [models[id(p)] for p in parameters]

    def _changed_model(self, parameters: Mapping[str, np.ndarray]) -> Any:
        model = copy.copy(self.model)
        for name, values in parameters.items():
            getattr(model, name)[:] = values
        _update_constants(model)
        return model

    def _check_converged(self, final: np.ndarray, env_ids: Optional[np.ndarray]) -> None:
        """Raises `PhysicsError` for the rows of `final` (`[k, S]`) that no simulation without a warning can reach.

        Where MuJoCo meets a number that is not finite or huge it resets the robot to its initial state, clock
        included, and after any warning the rollout stops that robot. Either way its clock is wrong at the end, unless
        the last simulation step gave a warning and no reset: the numbers that it leaves are looked at here, and what
        leaves sound numbers (a full contact buffer) recurs in the next control step, where it shows.
        """
        in_time = np.abs(final[:, 0] - (_START_TIME + self.dt)) < 0.5 * self.model.opt.timestep
        in_bounds = np.abs(final[:, 1:]) <= _LARGEST  # false for NaN
        if not (in_time.all() and in_bounds.all()):
            sound = in_time & in_bounds.all(axis=1)
            failed = np.flatnonzero(~sound)
            failed = [int(i) for i in (failed if env_ids is None else np.asarray(env_ids)[failed])]
            named = ", ".join(map(str, failed[:5])) + (f" and {len(failed) - 5} more" if len(failed) > 5 else "")
            raise PhysicsError(
                f"the simulation of the {self.robot} diverged in environment {named}: "
                f"positions or velocities are not finite or beyond {_LARGEST:g}, or MuJoCo gave a warning", failed)

    def __getstate__(self) -> Dict[str, Any]:
        names = ("robot", "num_envs", "frame_skip", "inertials", "num_threads")
        arguments = {name: getattr(self, name) for name in names}
        return {"arguments": arguments, "states": self._states, "parameters": self._parameters}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        MujocoEngine.__init__(self, **state["arguments"])
        self._states[:] = state["states"]
        self.set_parameters(state["parameters"])


class _Crew:
    """Native threads and their memory, which serve one caller at a time."""

    def __init__(self, engine: MujocoEngine, num_threads: int) -> None:
        mujoco = _import_mujoco()
        self._pool = mujoco.rollout.Rollout(nthread=num_threads if num_threads > 1 else 0)  # 0: on the calling thread
        self._scratch = [mujoco.MjData(engine.model) for _ in range(num_threads)]
        self._controls = np.empty((engine.num_envs, engine.frame_skip, engine.nu))
        self._reached = np.empty((engine.num_envs, engine.frame_skip, 1 + engine.nq + engine.nv))

    def simulate(self, models: List[Any], states: np.ndarray, controls: np.ndarray) -> np.ndarray:
        """Holds `controls` `[k, nu]` in `states` `[k, S]`; returns the states that follow, to be read at once."""
        count = len(states)
        self._controls[:count] = controls[:, None]
        reached = self._reached[:count]
        self._pool.rollout(models, self._scratch, states, self._controls[:count], nstep=reached.shape[1],
                           state=reached, skip_checks=True)
        return reached[:, -1].copy()


def _check_finite(name: str, value: np.ndarray, shape: tuple) -> np.ndarray:
    value = np.asarray(value, dtype=np.float64)
    if value.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {value.shape}")
    if not np.isfinite(value).all():
        raise ValueError(f"{name}: expected finite numbers, got {value[~np.isfinite(value).all(axis=1)][0]}")
    return value


def _import_mujoco() -> ModuleType:
    try:
        import mujoco
        from mujoco.rollout import Rollout  # noqa: F401  (since 3.3)
    except ImportError as error:
        raise ImportError(
            'the MuJoCo environments need the package mujoco, version 3.3 or newer: run `pip install "mujoco>=3.3"`'
        ) from error
    return mujoco


def _model_file(robot: str) -> Path:
    """Returns the model file of a robot among the assets of the installed Gymnasium, without importing it."""
    package = importlib.util.find_spec("gymnasium")
    if package is None:
        raise ImportError("the models of the MuJoCo robots come with Gymnasium: run `pip install gymnasium`")
    path = Path(package.submodule_search_locations[0]) / "envs" / "mujoco" / "assets" / f"{robot}.xml"
    if not path.is_file():
        raise FileNotFoundError(
            f"the installed Gymnasium has no model {path}: run `pip install --force-reinstall gymnasium`"
        )
    return path


@functools.lru_cache(maxsize=None)
def _compile(robot: str, inertials: str) -> Any:
    """Returns the compiled model of a robot, the same object for the same arguments.

    The half cheetah's file gives its total mass in a compiler attribute that MuJoCo 4 warns of and is to drop, so the
    attribute is taken out and applied afterwards, with the same result.
    """
    mujoco = _import_mujoco()
    root = ElementTree.parse(_model_file(robot)).getroot()
    total_mass = None
    for compiler in root.iter("compiler"):
        total_mass = compiler.attrib.pop("settotalmass", total_mass)
    model = mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))
    if total_mass is not None:
        mujoco.mj_setTotalmass(model, float(total_mass))
    if inertials == "mujoco210":
        with np.load(_INERTIALS_FILE) as file:
            for name in ("body_mass", "body_inertia", "body_ipos", "body_iquat"):
                getattr(model, name)[:] = file[f"{robot}/{name}"]
    _update_constants(model)
    return model


def _update_constants(model: Any) -> None:
    """Recomputes what the engine derives from masses and inertias when it compiles a model."""
    mujoco = _import_mujoco()
    mujoco.mj_setConst(model, mujoco.MjData(model))
