"""What follows from the state of a robot, besides positions and velocities."""
from typing import Any, List, Mapping, Sequence

import numpy as np

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


class DerivedState:
    """Memory in which what an engine's `derived` names is computed, for one caller at a time."""

    def __init__(self, engine: Any) -> None:
        self._functions = engine._functions
        self._data = data = engine._new_memory()
        self._compute = self._compute_forces if "cfrc_ext" in engine.derived else self._compute_motion
        self._inputs = data.qpos, data.qvel, data.ctrl  # views of the memory, as are the results
        self._results = {name: getattr(data, name) for name in engine.derived}

    def compute(self, models: List[Any], ids: Sequence[int], states: np.ndarray, controls: np.ndarray,
                derived: Mapping[str, np.ndarray]) -> None:
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
        functions, data = self._functions, self._data
        functions.mj_kinematics(model, data)
        functions.mj_comPos(model, data)
        functions.mj_comVel(model, data)
        functions.mj_transmission(model, data)
        functions.mj_fwdActuation(model, data)

    def _compute_forces(self, model: Any) -> None:
        self._data.qacc_warmstart[:] = 0.0  # so that robots computed before have no influence
        self._functions.mj_forward(model, self._data)
        self._functions.mj_rnePostConstraint(model, self._data)
