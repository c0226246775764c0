"""Interface of physics engines, which simulate many robots of one kind together.

The next state of a robot depends only on its position, velocity and controls, because the constraint solver starts each
control step without a warm start. Therefore the result for a robot is bit-identical for any number of other robots, for
any number of threads, and after pickling.
"""
import abc
import contextlib
import importlib.util
import math
import os
import reprlib
import threading
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.interface import PhysicsError
from meta_policy_search.envs.mujoco_envs.engines.camera import Camera
from meta_policy_search.envs.spaces import as_array
from meta_policy_search.types import NumThreads
from meta_policy_search.utils.checks import check_choice, check_positive_int
from meta_policy_search.utils.threads import available_cores

ROBOTS = ("ant", "half_cheetah", "hopper", "humanoid", "reacher", "swimmer", "walker2d")
"""Robots that can be simulated; the names match Gymnasium's model files."""

ROBOTS_PER_THREAD = 16
"""Minimum number of robots per native thread. For fewer robots, waking a thread takes longer than it saves."""

INERTIALS = ("mujoco210", "modern")
"""Sources of masses and inertias: MuJoCo 2.1.0 or the installed `mujoco` package."""

INERTIAL_ARRAYS = ("body_mass", "body_inertia", "body_ipos", "body_iquat")
"""Arrays of a model that depend on the source of masses and inertias."""

DERIVED = ("cfrc_ext", "cinert", "cvel", "qfrc_actuator", "subtree_com")
"""Optional quantities in states, in addition to positions and velocities, with MuJoCo's names; shapes are per robot:

=================  ===============  ================================================================================
name               shape            meaning
=================  ===============  ================================================================================
`cfrc_ext`         `[bodies, 6]`    contact torque (N m) and contact force (N) on each body
`cinert`           `[bodies, 10]`   inertia of each body: moments (kg m^2), mass times offset (kg m), mass (kg)
`cvel`             `[bodies, 6]`    angular velocity (rad/s) and velocity (m/s) of each body
`qfrc_actuator`    `[nv]`           force (N) or torque (N m) of the actuators on each velocity coordinate
`subtree_com`      `[bodies, 3]`    center of mass of each body and its descendants, m
=================  ===============  ================================================================================

The first body is the world, the second body is the root of the robot. The first three quantities are expressed in world
axes, relative to the center of mass of the robot.
"""

START_TIME = -1000.0
"""Clock at the start of every control step, s. It differs from zero, the clock after MuJoCo resets a diverged robot."""

_LARGEST = 1e10  # positions and velocities above this bound count as diverged; the same bound as MuJoCo's mjMAXVAL


class State(NamedTuple):
    """Positions, velocities and requested derived quantities of `k` robots."""

    qpos: np.ndarray  # float64 [k, nq], m and rad; unit quaternions for free joints
    qvel: np.ndarray  # float64 [k, nv], m/s and rad/s
    derived: Dict[str, np.ndarray]  # each float64 [k, ...], see `DERIVED`


class Engine(abc.ABC):
    """Simulates `num_envs` robots of one kind; a control step holds the controls for `frame_skip` simulation steps.

    Copies and pickles contain the states and the changed parameters. A copy rebuilds its model, buffers and threads.
    Each subclass uses one Python binding of MuJoCo.

    Args:
        robot: one of `ROBOTS`.
        num_envs: number of robots, at least 1.
        frame_skip: simulation steps per control step, at least 1.
        inertials: one of `INERTIALS`; default `"mujoco210"`.
        num_threads: number of native threads, at least 1 and effectively at most `num_envs`. None (default): all cores
            available to the process. Engines without native threads ignore it. It does not affect the results.
        derived: names of the quantities of `DERIVED` that states contain; default none. They are computed with the
            controls of the last step (zero after `set_state`).

    Attributes:
        model: the compiled model, an object of the binding with MuJoCo's attribute names. All engines of the process
            with the same robot and inertials share it, so it must not be modified; `set_parameters` changes the
            physics.
        dt: duration of a control step, s.
        nq, nv, nu: numbers of position coordinates, velocity coordinates and controls.
        control_low, control_high: float64 `[nu]`, bounds of the controls.
        init_qpos: float64 `[nq]`, the positions in the model file.
        num_threads: the argument; a new value takes effect at the first step.

    Raises:
        ImportError: the package of the engine or `gymnasium` is missing or too old.
        FileNotFoundError: the installed Gymnasium has no model file of the robot.
    """

    def __init__(self, robot: str, num_envs: int, frame_skip: int, inertials: str = "mujoco210",
                 num_threads: NumThreads = None, derived: Sequence[str] = ()) -> None:
        self.robot = check_choice("robot", robot, ROBOTS)
        self.num_envs = check_positive_int("num_envs", num_envs)
        self.frame_skip = check_positive_int("frame_skip", frame_skip)
        self.inertials = check_choice("inertials", inertials, INERTIALS)
        self.num_threads = None if num_threads is None else check_positive_int("num_threads", num_threads)
        self.derived = tuple(check_choice("derived", name, DERIVED) for name in derived)

        self.model, self._model, self._functions = self._compiled()
        self.nq, self.nv, self.nu = self.model.nq, self.model.nv, self.model.nu
        self.dt = self.frame_skip * self.model.opt.timestep
        self.control_low, self.control_high = self.model.actuator_ctrlrange.T.copy()
        self.init_qpos = self.model.qpos0.copy()

        self._states = np.zeros((self.num_envs, 1 + self.nq + self.nv))  # MuJoCo's row format: time, qpos, qvel
        self._states[:, 0] = START_TIME
        self._states[:, 1:1 + self.nq] = self.init_qpos
        self._controls = np.zeros((self.num_envs, self.nu))  # controls of the last step
        self._parameters: List[Mapping[str, np.ndarray]] = [{}] * self.num_envs
        self._models = [self._model] * self.num_envs
        self._callers: Tuple[int, ...] = ()  # threads of the last calls of `step`
        self._idle_simulators: Dict[Tuple[int, int], List[Any]] = {}  # by process and number of threads
        self._idle_memory: List[Any] = []
        self._camera: Optional[Camera] = None
        self._derived = {name: np.zeros((self.num_envs, *values.shape))
                         for name, values in arrays_of(self._new_memory(), self.derived).items()}
        self._derive(None)

    @abc.abstractmethod
    def _compiled(self) -> Tuple[Any, Any, Any]:
        """Returns `(model, simulated_model, functions)`.

        The model is the same object for the same robot and inertials. The simulated model is used by `_simulate` and
        may be a modified copy. `functions` is the module with MuJoCo's functions.
        """

    @abc.abstractmethod
    def _copy_of_model(self) -> Any:
        """Returns a copy of the simulated model."""

    @abc.abstractmethod
    def _new_memory(self) -> Any:
        """Returns a new `mjData`, MuJoCo's memory for the simulation of one robot."""

    def _new_simulator(self, num_threads: int) -> Any:
        """Returns the threads and memory for `_simulate`. Only one caller may use them at a time."""
        return self._new_memory()

    @abc.abstractmethod
    def _simulate(self, simulator: Any, models: List[Any], states: np.ndarray, controls: np.ndarray) -> np.ndarray:
        """Returns the states of `k` robots after one control step as a new array; see also `_check_converged`.

        Args:
            simulator: a result of `_new_simulator`.
            models: the model of each robot.
            states: float64 `[k, 1 + nq + nv]`, clocks, positions and velocities.
            controls: float64 `[k, nu]`, held for the whole step.
        """

    def _model_to_draw(self, env_id: int) -> Any:
        """Returns the `mujoco.MjModel` for images of a robot."""
        return self._models[env_id]

    def get_state(self, env_ids: Optional[np.ndarray] = None) -> State:
        """Returns copies of the states of the robots `env_ids` (int `[k]`; default all)."""
        rows = slice(None) if env_ids is None else env_ids
        states = self._states[rows]
        derived = {name: values[rows].copy() for name, values in self._derived.items()}
        return State(states[:, 1:1 + self.nq].copy(), states[:, 1 + self.nq:].copy(), derived)

    def set_state(self, qpos: np.ndarray, qvel: np.ndarray, env_ids: Optional[np.ndarray] = None) -> None:
        """Sets the states of robots.

        Args:
            qpos: `[k, nq]`, finite positions. The quaternion of a free joint must not be zero and is normalized.
            qvel: `[k, nv]`, finite velocities.
            env_ids: int `[k]`, indices of the robots; default all.

        Raises:
            ValueError: an array has another shape or is not finite.
        """
        rows, count = (slice(None), self.num_envs) if env_ids is None else (env_ids, len(env_ids))
        qpos = as_array("qpos", qpos, (count, self.nq))
        qvel = as_array("qvel", qvel, (count, self.nv))
        states = np.concatenate((qpos, qvel), axis=1)
        if self.nq != self.nv:
            normalize_quaternions(states[:, 3:7])
        self._states[rows, 1:] = states
        self._controls[rows] = 0.0
        self._derive(env_ids)

    def step(self, controls: np.ndarray, env_ids: Optional[np.ndarray] = None) -> None:
        """Advances robots by one control step of `dt` seconds.

        Several Python threads may call this method concurrently for different robots.

        Args:
            controls: float64 `[k, nu]`, finite, within the bounds of the controls.
            env_ids: int `[k]`, indices of the robots, without duplicates; default all.

        Raises:
            PhysicsError: the simulation diverged for the robots in its attribute `env_ids`. No state was changed.
        """
        rows = slice(None) if env_ids is None else env_ids
        states = self._states[rows]
        count = len(states)
        if count == 0:
            return
        # Concurrent callers share the native threads. A caller whose share is at most one thread simulates in its own
        # thread. A larger share is doubled, because the threads of the other callers idle part of the time.
        self._callers = (*self._callers[-15:], threading.get_ident())
        share = self.threads() / len(set(self._callers))
        num_threads = min(self.threads(), 1 if share <= 1 else math.ceil(2 * share), max(1, count // ROBOTS_PER_THREAD))
        idle = self._idle_simulators.setdefault((os.getpid(), num_threads), [])  # threads do not survive a fork
        with _borrowed(idle, lambda: self._new_simulator(num_threads)) as simulator:
            final = self._simulate(simulator, self._models_of(env_ids), states, controls)
        self._check_converged(final, env_ids)
        self._states[rows, 1:] = final[:, 1:]
        self._controls[rows] = controls
        self._derive(env_ids)

    def threads(self) -> int:
        """Returns the maximum number of native threads."""
        return min(self.num_threads or available_cores(), self.num_envs)

    def get_parameter(self, name: str) -> np.ndarray:
        """Returns a copy of a physical parameter, such as `body_mass`, of the unmodified robot."""
        return arrays_of(self.model, [name])[name].copy()

    def set_parameters(self, parameters: Sequence[Mapping[str, np.ndarray]]) -> None:
        """Sets the physical parameters of each robot and recomputes the constants derived from masses and inertias.

        Args:
            parameters: one mapping per robot, from parameter names to values in the shape that `get_parameter` returns.
                Missing parameters have the values of the model. Robots with the same mapping object share a model.
        """
        new = {id(p): {name: np.array(values) for name, values in p.items()} for p in parameters}
        models: Dict[int, Any] = {}
        for key, old, model in zip(map(id, parameters), self._parameters, self._models, strict=True):
            if key not in models:  # a robot whose parameters do not change keeps its model
                models[key] = model if _equal(old, new[key]) else self._changed_model(new[key])
        self._parameters, self._models = [new[id(p)] for p in parameters], [models[id(p)] for p in parameters]
        self._derive(None)

    def render(self, env_id: int = 0) -> np.ndarray:
        """Renders the robot `env_id` with a camera that follows it.

        Returns:
            RGB image, uint8 `[480, 480, 3]`.

        Raises:
            ImportError: the `mujoco` package, which renders images for all engines, is missing or too old.
            RuntimeError: OpenGL is missing; the message names the packages to install.
        """
        if self._camera is None:
            self._camera = Camera(self._model_to_draw(env_id))
        return self._camera.picture(self._model_to_draw(env_id), self._states[env_id, 1:1 + self.nq])

    def close_camera(self) -> None:
        """Ends the rendering process. The next call of `render` starts a new one."""
        self._camera = None

    def _models_of(self, env_ids: Optional[np.ndarray]) -> List[Any]:
        return self._models if env_ids is None else [self._models[i] for i in env_ids]

    def _derive(self, env_ids: Optional[np.ndarray]) -> None:
        """Computes the derived quantities of the robots `env_ids` (default all)."""
        if not self.derived:
            return
        ids = range(self.num_envs) if env_ids is None else env_ids
        functions = self._functions
        with _borrowed(self._idle_memory, self._new_memory) as data:
            qpos, qvel, ctrl = data.qpos, data.qvel, data.ctrl  # writing to these views changes `data`
            results = [(self._derived[name], view) for name, view in arrays_of(data, self.derived).items()]
            for i, model in zip(ids, self._models_of(env_ids)):
                qpos[:] = self._states[i, 1:1 + self.nq]
                qvel[:] = self._states[i, 1 + self.nq:]
                ctrl[:] = self._controls[i]
                if "cfrc_ext" in self.derived:
                    data.qacc_warmstart[:] = 0.0  # removes the influence of previously computed robots
                    functions.mj_forward(model, data)
                    functions.mj_rnePostConstraint(model, data)
                else:
                    functions.mj_kinematics(model, data)
                    functions.mj_comPos(model, data)
                    functions.mj_comVel(model, data)
                    functions.mj_transmission(model, data)
                    functions.mj_fwdActuation(model, data)
                for rows, view in results:
                    rows[i] = view

    def _changed_model(self, parameters: Mapping[str, np.ndarray]) -> Any:
        model = self._copy_of_model()
        set_arrays(model, parameters)
        self._functions.mj_setConst(model, self._new_memory())  # recomputes constants that depend on masses, inertias
        return model

    def _check_converged(self, final: np.ndarray, env_ids: Optional[np.ndarray]) -> None:
        """Raises `PhysicsError` if the simulation of a robot diverged or ended with a warning.

        If a number is not finite or too large, MuJoCo resets the robot, including its clock, to the initial state.
        After any other warning, the rollout stops the robot. Both cases leave a wrong clock, except for a warning
        without a reset in the last simulation step. Therefore the numbers are also checked. A warning with valid
        numbers in the last simulation step (a full contact buffer) occurs again in the next control step. Robots with a
        free joint are an exception: their clock is checked after every simulation step, so such a warning has no
        effect.

        Args:
            final: float64 `[k, 1 + nq + nv]`, clocks, positions and velocities after the step.
            env_ids: int `[k]`, indices of the robots; None: all.
        """
        in_time = np.abs(final[:, 0] - (START_TIME + self.dt)) < 0.5 * self.model.opt.timestep
        in_bounds = (np.abs(final[:, 1:]) <= _LARGEST).all(axis=1)  # false for NaN
        failed = np.flatnonzero(~(in_time & in_bounds))
        if len(failed):
            ids = [int(i) for i in (failed if env_ids is None else np.asarray(env_ids)[failed])]
            raise PhysicsError(f"the simulation of the {self.robot} diverged in environments {reprlib.repr(ids)}: "
                               f"positions or velocities are not finite or exceed {_LARGEST:g}, or MuJoCo issued a "
                               "warning", ids)

    def __getstate__(self) -> Dict[str, Any]:
        arguments = self.robot, self.num_envs, self.frame_skip, self.inertials, self.num_threads, self.derived
        return {"arguments": arguments, "states": self._states, "controls": self._controls,
                "parameters": self._parameters}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        type(self).__init__(self, *state["arguments"])
        self._states[:] = state["states"]
        self._controls[:] = state["controls"]
        self.set_parameters(state["parameters"])


def model_file(robot: str) -> Path:
    """Returns the path of a robot's model file in the installed Gymnasium, without importing Gymnasium."""
    package: Any = importlib.util.find_spec("gymnasium")
    return Path(package.submodule_search_locations[0]) / "envs" / "mujoco" / "assets" / f"{robot}.xml"


def arrays_of(source: Any, names: Sequence[str]) -> Dict[str, np.ndarray]:
    """Returns views of the arrays `names` of a model or its data."""
    return {name: getattr(source, name) for name in names}


def _equal(arrays: Mapping[str, np.ndarray], others: Mapping[str, np.ndarray]) -> bool:
    return arrays.keys() == others.keys() and all(np.array_equal(arrays[name], others[name]) for name in arrays)


def set_arrays(model: Any, arrays: Mapping[str, np.ndarray]) -> None:
    """Copies `arrays` into the arrays of a model with the same names."""
    for name, array in arrays_of(model, list(arrays)).items():
        array[:] = arrays[name]


def normalize_quaternions(quaternions: np.ndarray) -> None:
    """Normalizes quaternions `[k, 4]` in place. Quaternions with a length of one (up to rounding) are not changed."""
    w, x, y, z = quaternions.T
    length = np.sqrt(w * w + x * x + y * y + z * z)
    length[np.abs(length - 1.0) <= 1e-15] = 1.0
    quaternions /= length[:, None]


@contextlib.contextmanager
def _borrowed(idle: List[Any], make: Callable[[], Any]) -> Iterator[Any]:
    """Yields an idle item, or a new one if `idle` is empty. Returns the item to `idle` unless an error occurs."""
    try:
        item = idle.pop()
    except IndexError:
        item = make()
    yield item
    idle.append(item)
