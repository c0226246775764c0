"""The physics of the MuJoCo environments: many robots of one kind, advanced together by native threads.

This file alone knows a physics binding, the official `mujoco` package (`camera.py` draws with it); environments see
names, arrays and `PhysicsError`. A robot's future depends on its position, velocity and controls and on nothing else:
the constraint solver starts each control step cold (no warm start is carried over), so the row of one robot is the same
bit for bit alone or among others, for any number of threads, and after pickling.

By default robots have the masses and inertias that MuJoCo 2.1.0, the engine of the field's papers, computes from
the same model files; it integrated the end caps of capsules with `pi r^3` in place of `4/3 pi r^3`. Two more things
have changed since, and are here as they were then, whichever MuJoCo is installed:

* From MuJoCo 3.5 on the contact margins of two geometries are added up, where the larger one counted: they are halved.
* From MuJoCo 4.0 on the Runge-Kutta method combines the angular velocities of free joints otherwise: robots with a
  free joint are integrated here, from accelerations that MuJoCo computes.

With these the engine agrees with MuJoCo 2.1.0 over ten control steps to about 1e-12, and to 1e-5 for the humanoid,
whose solver of contact forces stops before it has converged.
"""
import contextlib
import copy
import functools
import importlib.util
import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence

import numpy as np

from meta_policy_search.envs.base import PhysicsError
from meta_policy_search.envs.mujoco_envs.camera import Camera
from meta_policy_search.utils.checks import check_choice, check_positive_int
from meta_policy_search.utils.cores import available_cores

__all__ = ["DERIVED", "INERTIALS", "ROBOTS", "MujocoEngine", "PhysicsError", "State"]

ROBOTS = ("ant", "half_cheetah", "hopper", "humanoid", "swimmer", "walker2d")
"""Robots that can be simulated, by the names of Gymnasium's model files."""

INERTIALS = ("mujoco210", "modern")
"""Whose masses and inertias a robot can have, those of MuJoCo 2.1.0 or those that the installed MuJoCo computes."""

DERIVED = ("cfrc_ext", "cinert", "cvel", "qfrc_actuator", "subtree_com")
"""What a state can come with besides positions and velocities, by MuJoCo's names, each for one robot:

=================  ===============  ================================================================================
name               shape            meaning
=================  ===============  ================================================================================
`cfrc_ext`         `[bodies, 6]`    torque (N m) and force (N) of contacts on each body
`cinert`           `[bodies, 10]`   inertia of each body: moments (kg m^2), offset times mass (kg m), mass (kg)
`cvel`             `[bodies, 6]`    angular velocity (rad/s) and velocity (m/s) of each body
`qfrc_actuator`    `[nv]`           force (N) or torque (N m) of the actuators on each velocity coordinate
`subtree_com`      `[bodies, 3]`    centre of mass of each body and all that hangs on it, m
=================  ===============  ================================================================================

The first body is the world, the second the root of the robot. The first three are in the directions of the world's
axes, around the centre of mass of the robot.
"""

_INERTIALS_FILE = Path(__file__).parent / "data" / "mujoco210_inertials.npz"
_LARGEST = 1e10  # a position or velocity beyond it counts as diverged; MuJoCo's own bound (mjMAXVAL)
_START_TIME = -1000.0  # s, the clock at the start of every control step: far from zero, where MuJoCo resets it to


class State(NamedTuple):
    """Positions and velocities of `k` robots: all that their future depends on, apart from the controls.

    What else follows from them, and was asked for, comes with them.
    """

    qpos: np.ndarray  # float64 [k, nq], m and rad (unit quaternions for free joints)
    qvel: np.ndarray  # float64 [k, nv], m/s and rad/s
    derived: Dict[str, np.ndarray]  # float64 [k, ...] each, see `DERIVED`


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
        derived: those of `DERIVED` that states are to come with; none by default. They are those of the state itself,
            while the controls that led to it are still held (after `set_state`: none, zero).

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
        derived: Sequence[str] = (),
    ) -> None:
        self.robot = check_choice("robot", robot, ROBOTS)
        self.num_envs = check_positive_int("num_envs", num_envs)
        self.frame_skip = check_positive_int("frame_skip", frame_skip)
        self.inertials = check_choice("inertials", inertials, INERTIALS)
        self.num_threads = None if num_threads is None else check_positive_int("num_threads", num_threads)
        self.derived = tuple(check_choice("derived", name, DERIVED) for name in derived)

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
        self._controls = np.zeros((self.num_envs, self.nu))  # those held last
        self._parameters: Optional[List[Mapping[str, np.ndarray]]] = None
        self._crew_class = _Crew if self.nq == self.nv else _RungeKuttaCrew
        self._model = self._crew_class.model_for(self.model)
        self._models = [self._model] * self.num_envs
        self._idle_crews: Dict[int, List[_Crew]] = {}  # by their number of threads
        self._idle_probes: List[_Probe] = []
        self._camera: Optional[Camera] = None
        shapes = {name: getattr(mujoco.MjData(self.model), name).shape for name in self.derived}
        self._derived = {name: np.zeros((self.num_envs, *shape)) for name, shape in shapes.items()}
        self._derive(None)

    def get_state(self, env_ids: Optional[np.ndarray] = None) -> State:
        """Returns copies of the states of the robots `env_ids` (int `[k]`), by default of all."""
        rows = slice(None) if env_ids is None else env_ids
        states = self._states[rows]
        derived = {name: values[rows].copy() for name, values in self._derived.items()}
        return State(states[:, 1:1 + self.nq].copy(), states[:, 1 + self.nq:].copy(), derived)

    def set_state(self, qpos: np.ndarray, qvel: np.ndarray, env_ids: Optional[np.ndarray] = None) -> None:
        """Puts robots into a state.

        Args:
            qpos: `[k, nq]`, positions, finite; the quaternion of a free joint is scaled to length one.
            qvel: `[k, nv]`, velocities, finite.
            env_ids: int `[k]`, which robots; all of them by default.

        Raises:
            ValueError: names the argument that has the wrong shape or is not finite, or whose quaternion is zero.
        """
        count = self.num_envs if env_ids is None else len(env_ids)
        rows = slice(None) if env_ids is None else env_ids
        qpos = _check_finite("qpos", qpos, (count, self.nq))
        qvel = _check_finite("qvel", qvel, (count, self.nv))
        states = np.concatenate((qpos, qvel), axis=1)
        if self.nq != self.nv:
            if not states[:, 3:7].any(axis=1).all():
                raise ValueError("qpos: expected a quaternion qpos[3:7] other than zero")
            _normalize(states[:, 3:7])
        self._states[rows, 1:] = states
        self._controls[rows] = 0.0
        self._derive(env_ids)

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
        num_threads = self._num_threads_for(count)
        idle = self._idle_crews.setdefault(num_threads, [])
        with _borrowed(idle, lambda: self._crew_class(self, num_threads)) as crew:
            final = crew.simulate(self._models_of(env_ids), states, controls)
        self._check_converged(final, env_ids)
        self._states[rows, 1:] = final[:, 1:]
        self._controls[rows] = controls
        self._derive(env_ids)

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
            self._parameters, self._models = None, [self._model] * self.num_envs
        else:
            assert len(parameters) == self.num_envs, "one mapping per robot"
            models = {key: self._changed_model(values) for key, values in {id(p): p for p in parameters}.items()}
            self._parameters, self._models = list(parameters), [models[id(p)] for p in parameters]
        self._derive(None)

    def render(self, env_id: int = 0) -> np.ndarray:
        """Draws one robot, with a camera that follows it.

        Args:
            env_id: which robot.

        Returns:
            uint8 `[480, 480, 3]`, red, green and blue.

        Raises:
            RuntimeError: there is no OpenGL to draw with; says what to install.
        """
        if self._camera is None:
            self._camera = Camera(self.model)
        return self._camera.picture(self._models[env_id], self._states[env_id, 1:1 + self.nq])

    def close_camera(self) -> None:
        """Ends the process that `render` started; another picture starts one again."""
        if self._camera is not None:
            self._camera.close()
            self._camera = None

    def _models_of(self, env_ids: Optional[np.ndarray]) -> List[Any]:
        return self._models if env_ids is None else [self._models[i] for i in env_ids]

    def _derive(self, env_ids: Optional[np.ndarray]) -> None:
        """Brings what the states of some robots come with up to date."""
        if not self.derived:
            return
        ids = range(self.num_envs) if env_ids is None else env_ids
        with _borrowed(self._idle_probes, lambda: _Probe(self)) as probe:
            probe.measure(self._models_of(env_ids), ids, self._states, self._controls, self._derived)

    def _changed_model(self, parameters: Mapping[str, np.ndarray]) -> Any:
        model = copy.copy(self._model)
        for name, values in parameters.items():
            getattr(model, name)[:] = values
        _update_constants(model)
        return model

    def _check_converged(self, final: np.ndarray, env_ids: Optional[np.ndarray]) -> None:
        """Raises `PhysicsError` for the rows of `final` (`[k, S]`) that no simulation without a warning can reach.

        Where MuJoCo meets a number that is not finite or huge it resets the robot to its initial state, clock
        included, and after any warning the rollout stops that robot. Either way its clock is wrong at the end, unless
        the last simulation step gave a warning and no reset: the numbers that it leaves are looked at here, and what
        leaves sound numbers (a full contact buffer) recurs in the next control step, where it shows; but not where
        there is one simulation step between two looks at the clock, as for robots with a free joint.
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
        names = ("robot", "num_envs", "frame_skip", "inertials", "num_threads", "derived")
        arguments = {name: getattr(self, name) for name in names}
        return {"arguments": arguments, "states": self._states, "controls": self._controls,
                "parameters": self._parameters}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        MujocoEngine.__init__(self, **state["arguments"])
        self._states[:] = state["states"]
        self._controls[:] = state["controls"]
        self.set_parameters(state["parameters"])


class _Crew:
    """Native threads and their memory, which serve one caller at a time."""

    def __init__(self, engine: MujocoEngine, num_threads: int) -> None:
        mujoco = _import_mujoco()
        self._pool = mujoco.rollout.Rollout(nthread=num_threads if num_threads > 1 else 0)  # 0: on the calling thread
        self._scratch = [mujoco.MjData(engine.model) for _ in range(num_threads)]
        self._frame_skip, self._timestep, self._nq = engine.frame_skip, engine.model.opt.timestep, engine.nq
        num_steps = self._steps_at_once(engine.frame_skip)
        self._controls = np.empty((engine.num_envs, num_steps, engine.nu))
        self._reached = np.empty((engine.num_envs, num_steps, 1 + engine.nq + engine.nv))

    @staticmethod
    def model_for(model: Any) -> Any:
        """Returns the model with which the crew is to simulate what `model` describes."""
        return model

    @staticmethod
    def _steps_at_once(frame_skip: int) -> int:
        """Returns the number of simulation steps for which the threads work between two meetings."""
        return frame_skip

    def simulate(self, models: List[Any], states: np.ndarray, controls: np.ndarray) -> np.ndarray:
        """Holds `controls` `[k, nu]` in `states` `[k, S]`; returns the states that follow."""
        self._hold(controls)
        return self._roll_out(models, states)[:, -1].copy()

    def _hold(self, controls: np.ndarray) -> None:
        self._controls[:len(controls)] = controls[:, None]

    def _roll_out(self, models: List[Any], states: np.ndarray, warmstart: Optional[np.ndarray] = None) -> np.ndarray:
        """Simulates from `states` `[k, S]`; returns the states after each step, `[k, steps, S]`, to be read at once.

        `warmstart` `[k, nv]` are accelerations from which the solver of the constraints starts, by default zero.
        """
        reached = self._reached[:len(states)]
        self._pool.rollout(models, self._scratch, states, self._controls[:len(states)], nstep=reached.shape[1],
                           initial_warmstart=warmstart, state=reached, skip_checks=True)
        return reached


class _RungeKuttaCrew(_Crew):
    """The same for robots with a free joint at their root, whose orientation is a quaternion, `qpos[3:7]`.

    MuJoCo computes the accelerations, and the classical Runge-Kutta method is applied to them here as MuJoCo applied
    it before version 4.0: the rates of the stages, angular velocities among them, are averaged as vectors, and the
    orientation turns around the mean. Each solution of the constraints starts from the one before, as it did in 2.1.0.
    """

    @staticmethod
    def model_for(model: Any) -> Any:
        """Returns a model for which one simulation step adds the acceleration to the velocity, and no more.

        That is an explicit Euler step of one second. The time step has one other use in MuJoCo, a lower limit on the
        time constants of constraints, which none of the robots reaches; it is switched off.
        """
        mujoco = _import_mujoco()
        assert model.nq == model.nv + 1 and model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE, "a free joint at the root"
        assert model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
        model = copy.copy(model)
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
        model.opt.timestep = 1.0
        disable = mujoco.mjtDisableBit
        model.opt.disableflags |= disable.mjDSBL_EULERDAMP.value | disable.mjDSBL_REFSAFE.value
        return model

    @staticmethod
    def _steps_at_once(frame_skip: int) -> int:
        return 1

    def simulate(self, models: List[Any], states: np.ndarray, controls: np.ndarray) -> np.ndarray:
        """See `_Crew.simulate`."""
        self._hold(controls)
        stage = states.copy()
        clocks = []

        def accelerations(qpos: np.ndarray, qvel: np.ndarray, warmstart: Optional[np.ndarray]) -> np.ndarray:
            stage[:, 1:1 + self._nq], stage[:, 1 + self._nq:] = qpos, qvel
            reached = self._roll_out(models, stage, warmstart)[:, 0]
            clocks.append(reached[:, 0].copy())
            return reached[:, 1 + self._nq:] - qvel

        h, half, qpos, qvel = self._timestep, 0.5 * self._timestep, states[:, 1:1 + self._nq], states[:, 1 + self._nq:]
        a_4 = None
        with np.errstate(over="ignore", invalid="ignore"):  # of robots that diverge
            for _ in range(self._frame_skip):
                a_1 = accelerations(qpos, qvel, a_4)
                v_2 = qvel + half * a_1
                a_2 = accelerations(_moved(qpos, qvel, half), v_2, a_1)
                v_3 = qvel + half * a_2
                a_3 = accelerations(_moved(qpos, v_2, half), v_3, a_2)
                v_4 = qvel + h * a_3
                a_4 = accelerations(_moved(qpos, v_3, h), v_4, a_3)
                qpos = _moved(qpos, qvel + 2.0 * (v_2 + v_3) + v_4, h / 6.0)
                qvel = qvel + (h / 6.0) * (a_1 + 2.0 * (a_2 + a_3) + a_4)
            _normalize(qpos[:, 3:7])
        in_time = (np.abs(np.array(clocks) - (_START_TIME + 1.0)) < 0.5).all(axis=0)
        clock = np.where(in_time, _START_TIME + self._frame_skip * h, 0.0)
        return np.concatenate((clock[:, None], qpos, qvel), axis=1)


class _Probe:
    """Memory in which what follows from a state is computed, for one caller at a time."""

    def __init__(self, engine: MujocoEngine) -> None:
        self._mujoco = _import_mujoco()
        self._data = data = self._mujoco.MjData(engine.model)
        self._compute = self._compute_forces if "cfrc_ext" in engine.derived else self._compute_motion
        self._inputs = data.qpos, data.qvel, data.ctrl  # views of the memory, as are the results
        self._results = {name: getattr(data, name) for name in engine.derived}

    def measure(
        self, models: List[Any], ids: Sequence[int], states: np.ndarray, controls: np.ndarray,
        derived: Mapping[str, np.ndarray],
    ) -> None:
        """Computes the rows `ids` of `derived` from those of `states` and `controls`."""
        qpos, qvel, ctrl = self._inputs
        first_velocity = 1 + len(qpos)
        results = [(values, self._results[name]) for name, values in derived.items()]
        for i, model in zip(ids, models):
            qpos[:] = states[i, 1:first_velocity]
            qvel[:] = states[i, first_velocity:]
            ctrl[:] = controls[i]
            self._compute(model)
            for values, result in results:
                values[i] = result

    def _compute_motion(self, model: Any) -> None:
        mujoco, data = self._mujoco, self._data
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        mujoco.mj_transmission(model, data)
        mujoco.mj_fwdActuation(model, data)

    def _compute_forces(self, model: Any) -> None:
        self._data.qacc_warmstart = 0.0  # so that robots measured before have no influence
        self._mujoco.mj_forward(model, self._data)
        self._mujoco.mj_rnePostConstraint(model, self._data)


_FACTOR = np.array([[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]])
_SIGN = np.array([[1.0, -1.0, -1.0, -1.0], [1.0, 1.0, 1.0, -1.0], [1.0, -1.0, 1.0, 1.0], [1.0, 1.0, -1.0, 1.0]])
"""The product of quaternions `q` and `r` has the entries `sum_j q[j] * _SIGN[i, j] * r[_FACTOR[i, j]]`."""


def _moved(qpos: np.ndarray, qvel: np.ndarray, duration: float) -> np.ndarray:
    """Returns the positions `[k, nq]` of robots with a free joint that keep their velocities for `duration` seconds.

    The orientation `q` turns by the rotation vector `w = qvel[3:6] * duration` around axes of the body, to
    `q * (cos(|w|/2), sin(|w|/2) w/|w|)`. Entry by entry, so that a row does not depend on the number of rows.
    """
    moved = np.empty_like(qpos)
    moved[:, :3] = qpos[:, :3] + duration * qvel[:, :3]
    moved[:, 7:] = qpos[:, 7:] + duration * qvel[:, 6:]
    rates = qvel[:, 3:6].T
    squares = rates * rates
    rate = np.sqrt(squares[0] + squares[1] + squares[2]) + 1e-300  # s^-1; not zero
    half = (0.5 * duration) * rate
    turn = np.empty((4, len(qpos)))
    turn[0] = np.cos(half)
    turn[1:] = rates * (np.sin(half) / rate)
    terms = qpos[:, 3:7].T * (_SIGN[:, :, None] * turn[_FACTOR])  # [4, 4, k]
    moved[:, 3:7] = (terms[:, 0] + terms[:, 1] + terms[:, 2] + terms[:, 3]).T
    return moved


def _normalize(quaternions: np.ndarray) -> None:
    """Scales quaternions `[k, 4]` to length one, in place; those that have it up to rounding stay as they are."""
    w, x, y, z = quaternions.T
    length = np.sqrt(w * w + x * x + y * y + z * z)
    length[np.abs(length - 1.0) <= 1e-15] = 1.0
    quaternions /= length[:, None]


@contextlib.contextmanager
def _borrowed(idle: List[Any], make: Callable[[], Any]) -> Iterator[Any]:
    """Takes one of what is idle, or makes one where all are in use; puts it back unless there is an error."""
    try:
        item = idle.pop()
    except IndexError:
        item = make()
    yield item
    idle.append(item)


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
    except AttributeError as error:  # of PyOpenGL, which mujoco loads if MUJOCO_GL asks for it
        raise ImportError(
            f"mujoco finds no OpenGL library for the environment variable MUJOCO_GL={os.environ.get('MUJOCO_GL')} "
            f"({error}): unset it, or run `apt-get install libegl1 libgl1-mesa-dri` (egl) or `apt-get install "
            "libosmesa6` (osmesa)"
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
    if tuple(map(int, mujoco.__version__.split(".")[:2])) >= (3, 5):
        model.geom_margin[:] *= 0.5
    _update_constants(model)
    return model


def _update_constants(model: Any) -> None:
    """Recomputes what the engine derives from masses and inertias when it compiles a model."""
    mujoco = _import_mujoco()
    mujoco.mj_setConst(model, mujoco.MjData(model))
