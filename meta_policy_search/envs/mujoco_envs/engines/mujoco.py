"""The physics engine `mujoco`: the official bindings of the installed MuJoCo, with native threads.

For every supported version of MuJoCo, the engine reproduces MuJoCo 2.1.0, the version of published experiments:

* By default, masses and inertias have the values of MuJoCo 2.1.0, which integrated the end caps of capsules with
  `pi r^3` instead of `4/3 pi r^3`.
* Since MuJoCo 3.5, the contact margin of two geometries is the sum of their margins. Earlier versions used the larger
  of both margins. The engine halves the margins in newer versions.
* Since MuJoCo 4.0, the Runge-Kutta method combines the angular velocities of free joints differently. The engine
  integrates robots with a free joint itself, with accelerations that MuJoCo computes.

Over ten control steps, the engine agrees with MuJoCo 2.1.0 to about 1e-12. For the humanoid, whose contact solver stops
before it converges, it agrees to 1e-5.
"""
import copy
import functools
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any, Callable, List, Mapping, Optional, Tuple

import mujoco.rollout
import numpy as np

from meta_policy_search.envs.mujoco_envs.engines.base import (
    INERTIAL_ARRAYS,
    START_TIME,
    Engine,
    model_file,
    normalize_quaternions,
    set_arrays,
)

__all__ = ["MujocoEngine", "compile_model", "recompute_constants", "write_no_warnings"]

_INERTIALS_FILE = Path(__file__).parent / "data" / "mujoco210_inertials.npz"


class MujocoEngine(Engine):
    """Simulates robots with the `mujoco` package; see `Engine` for arguments, attributes and methods."""

    def _compiled(self) -> Tuple[Any, Any, Any]:
        model = compile_model(self.robot, self.inertials)
        return model, model if model.nq == model.nv else _acceleration_model(model), mujoco

    def _copy_of_model(self) -> Any:
        return copy.copy(self._model)

    def _changed_model(self, parameters: Mapping[str, np.ndarray]) -> Any:
        model = super()._changed_model(parameters)
        if "geom_size" in parameters:  # older versions do not update bounding boxes, used only in this search
            model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_MIDPHASE.value
        return model

    def _new_memory(self) -> Any:
        return mujoco.MjData(self.model)

    def _new_simulator(self, num_threads: int) -> Any:
        """Returns MuJoCo's thread pool and one `MjData` per thread."""
        pool = mujoco.rollout.Rollout(nthread=num_threads if num_threads > 1 else 0)  # 0: uses the calling thread
        return pool, [mujoco.MjData(self.model) for _ in range(num_threads)]

    def _simulate(self, simulator: Any, models: List[Any], states: np.ndarray, controls: np.ndarray) -> np.ndarray:
        pool, memory = simulator
        num_steps = self.frame_skip if self.nq == self.nv else 1  # else: a free joint, whose orientation is qpos[3:7]
        held = np.repeat(controls[:, None], num_steps, axis=1)
        reached = np.empty((len(states), num_steps, states.shape[1]))

        def roll_out(states: np.ndarray, warmstart: Optional[np.ndarray] = None) -> np.ndarray:
            """Returns the final states `[k, S]`. The solver starts from the accelerations `warmstart` `[k, nv]`."""
            pool.rollout(models, memory, states, held, nstep=num_steps, initial_warmstart=warmstart, state=reached,
                         skip_checks=True)
            return reached[:, -1]

        return roll_out(states).copy() if self.nq == self.nv else self._integrate(roll_out, states)

    def _integrate(self, roll_out: Callable[..., np.ndarray], states: np.ndarray) -> np.ndarray:
        """Integrates robots with a free joint by the classical Runge-Kutta method, as MuJoCo did before version 4.0.

        MuJoCo computes the accelerations (see `_acceleration_model`). The velocities of the four stages, including
        angular velocities, are averaged as vectors, and the mean rotates the orientation. The constraint solver starts
        each stage from the solution of the previous stage, as in MuJoCo 2.1.0.
        """
        stage = states.copy()
        clocks = []

        def accelerations(qpos: np.ndarray, qvel: np.ndarray, warmstart: Optional[np.ndarray]) -> np.ndarray:
            stage[:, 1:1 + self.nq], stage[:, 1 + self.nq:] = qpos, qvel
            reached = roll_out(stage, warmstart)
            clocks.append(reached[:, 0].copy())
            return reached[:, 1 + self.nq:] - qvel

        h, qpos, qvel = self.model.opt.timestep, states[:, 1:1 + self.nq], states[:, 1 + self.nq:]
        half, a_4 = 0.5 * h, None
        with np.errstate(over="ignore", invalid="ignore"):  # diverging robots overflow
            for _ in range(self.frame_skip):
                a_1 = accelerations(qpos, qvel, a_4)
                v_2 = qvel + half * a_1
                a_2 = accelerations(moved(qpos, qvel, half), v_2, a_1)
                v_3 = qvel + half * a_2
                a_3 = accelerations(moved(qpos, v_2, half), v_3, a_2)
                v_4 = qvel + h * a_3
                a_4 = accelerations(moved(qpos, v_3, h), v_4, a_3)
                qpos = moved(qpos, qvel + 2.0 * (v_2 + v_3) + v_4, h / 6.0)
                qvel = qvel + (h / 6.0) * (a_1 + 2.0 * (a_2 + a_3) + a_4)
            normalize_quaternions(qpos[:, 3:7])
        in_time = (np.abs(np.array(clocks) - (START_TIME + 1.0)) < 0.5).all(axis=0)
        clock = np.where(in_time, START_TIME + self.frame_skip * h, 0.0)
        return np.concatenate((clock[:, None], qpos, qvel), axis=1)


def _acceleration_model(model: Any) -> Any:
    """Returns a copy of `model` for which one simulation step adds exactly the acceleration to the velocity.

    The copy takes explicit Euler steps of one second. MuJoCo also uses the time step as a lower limit on the time
    constants of constraints. This limit is disabled; none of the robots reaches it with the original time step.
    """
    model = copy.copy(model)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    model.opt.timestep = 1.0
    disable = mujoco.mjtDisableBit
    model.opt.disableflags |= disable.mjDSBL_EULERDAMP.value | disable.mjDSBL_REFSAFE.value
    return model


_FACTOR = np.array([[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]])
_SIGN = np.array([[1.0, -1.0, -1.0, -1.0], [1.0, 1.0, 1.0, -1.0], [1.0, -1.0, 1.0, 1.0], [1.0, 1.0, -1.0, 1.0]])
"""Entry `i` of the product of quaternions `q` and `r` is `sum_j q[j] * _SIGN[i, j] * r[_FACTOR[i, j]]`."""


def moved(qpos: np.ndarray, qvel: np.ndarray, duration: float) -> np.ndarray:
    """Returns the positions `[k, nq]` of robots with a free joint after `duration` seconds at constant velocity.

    The orientation `q` is rotated by the rotation vector `w = qvel[3:6] * duration` in body axes, to
    `q * (cos(|w|/2), sin(|w|/2) w/|w|)`. All operations are elementwise, so that a row does not depend on the number of
    rows.
    """
    moved = np.empty_like(qpos)
    moved[:, :3] = qpos[:, :3] + duration * qvel[:, :3]
    moved[:, 7:] = qpos[:, 7:] + duration * qvel[:, 6:]
    rates = qvel[:, 3:6].T
    squares = rates * rates
    rate = np.sqrt(squares[0] + squares[1] + squares[2]) + 1e-300  # rad/s; positive to avoid division by zero
    half = (0.5 * duration) * rate
    turn = np.empty((4, len(qpos)))
    turn[0] = np.cos(half)
    turn[1:] = rates * (np.sin(half) / rate)
    terms = qpos[:, 3:7].T * (_SIGN[:, :, None] * turn[_FACTOR])  # [4, 4, k]
    moved[:, 3:7] = (terms[:, 0] + terms[:, 1] + terms[:, 2] + terms[:, 3]).T
    return moved


def write_no_warnings() -> None:
    """Stops MuJoCo from writing warnings to the terminal and to `MUJOCO_LOG.TXT` in the working directory.

    `Engine.step` detects diverged simulations and raises an error. A warning handler set by the user is kept.
    """
    if mujoco.get_mju_user_warning() is None:
        mujoco.set_mju_user_warning(lambda message: None)


@functools.lru_cache(maxsize=None)
def compile_model(robot: str, inertials: str) -> Any:
    """Returns the compiled model of a robot. The same arguments return the same object.

    The model file of the half cheetah sets the total mass by a compiler attribute that MuJoCo 4 deprecates. This
    function removes the attribute and sets the total mass after compilation, with the same result. It also disables
    MuJoCo's search for islands (groups of bodies that do not touch each other): a robot is a single island, so the
    search only takes time. The reacher, whose model file has no camera, gets one above the table.
    """
    write_no_warnings()
    root = ElementTree.parse(model_file(robot)).getroot()
    total_mass = None
    for compiler in root.iter("compiler"):
        total_mass = compiler.attrib.pop("settotalmass", total_mass)
    if root.find(".//camera") is None:
        ElementTree.SubElement(root.find("worldbody"), "camera", name="track", pos="0 0 0.6")  # type: ignore[arg-type]
    model = mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))
    if total_mass is not None:
        mujoco.mj_setTotalmass(model, float(total_mass))
    if inertials == "mujoco210":
        with np.load(_INERTIALS_FILE) as file:
            set_arrays(model, {name: file[f"{robot}/{name}"] for name in INERTIAL_ARRAYS})
    if tuple(map(int, mujoco.__version__.split(".")[:2])) >= (3, 5):
        model.geom_margin[:] *= 0.5
    if "mjDSBL_ISLAND" in mujoco.mjtDisableBit.__members__:  # older versions do not search for islands
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ISLAND.value
    recompute_constants(model)
    return model


def recompute_constants(model: Any) -> None:
    """Recomputes the constants of a model that depend on masses and inertias, such as the masses of subtrees."""
    mujoco.mj_setConst(model, mujoco.MjData(model))
