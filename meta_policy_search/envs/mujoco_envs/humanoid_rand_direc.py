"""Humanoid, walking forward or backward."""
from typing import Optional, Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv, Rows
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.envs.mujoco_envs.humanoid import BatchedHumanoidEnv
from meta_policy_search.envs.mujoco_envs.tasks import DirectionTasks
from meta_policy_search.types import Infos

__all__ = ["BatchedHumanoidRandDirecEnv", "HumanoidRandDirecEnv"]


class BatchedHumanoidRandDirecEnv(DirectionTasks, BatchedHumanoidEnv):
    """`num_envs` copies of `HumanoidRandDirecEnv`, which says everything about them."""

    def _rewards(self, before: State, actions: np.ndarray, after: State, rows: Rows) -> Tuple[np.ndarray, Infos]:
        return self._reward_terms(self.goals[rows] * self._plane_velocity(before, after)[:, 0], actions, after)


class HumanoidRandDirecEnv(MujocoMetaEnv):
    """A humanoid that is to walk forward, along x, in one half of the tasks and backward in the other.

    The direction is not observed: an agent learns it from rewards alone. One of the tasks of ProMP
    (arXiv:1810.06784).

    Observation, float64 `[376]`: `qpos[2:]`, `qvel`, `cinert`, `cvel`, `qfrc_actuator`, then `cfrc_ext`.

    =======  =====================================================================  ============
    index    observation                                                            unit
    =======  =====================================================================  ============
    0        height of the torso                                                    m
    1-4      orientation of the torso, a quaternion                                 1
    5-21     angles of the joints: abdomen z, y, x; right hip x, z, y, right knee;  rad
             the same on the left; right shoulder 1, 2, right elbow; the same on
             the left
    22-24    velocity of the torso along x, y and z                                 m/s
    25-27    angular velocity of the torso around its own axes                      rad/s
    28-44    angular velocities of the joints                                       rad/s
    45-184   inertia of each of 14 bodies (the world, torso, lower waist, pelvis;   kg m^2, kg m
             right thigh, shin, foot; the same on the left; right upper and lower   and kg
             arm; the same on the left): 6 moments, 3 offsets from the centre of
             mass times mass, mass
    185-268  angular velocity, then velocity, of each body                          rad/s, m/s
    269-291  force of the actuators on the torso (6 zeros) and the joints           N m
    292-375  torque, then force, of contacts on each body; zero unless              N m and N
             `contact_forces`
    =======  =====================================================================  ============

    Inertias, velocities and contacts of bodies are in the directions of the world's axes, around the centre of mass of
    the robot.

    Action, float64 `[17]` in [-0.4, 0.4], dimensionless; clipped to it. Held for 5 simulation steps of 0.003 s.

    =====  ==============================================================================
    index  action
    =====  ==============================================================================
    0-2    share of the torque on abdomen y, z, x: 100 N m each
    3-6    the same on right hip x, z, y and right knee: 100, 100, 300 and 200 N m
    7-10   the same on the left
    11-13  the same on right shoulder 1, 2 and right elbow: 25 N m each
    14-16  the same on the left
    =====  ==============================================================================

    Reward per step: `1.25 * direction * v - 0.1 * |action|^2 - min(5e-7 * |c|^2, 10) + 5`, with the mean velocity
    `v = (x' - x) / 0.015 s`, where `x` and `x'` are the positions of the centre of mass before and after the step in m,
    the action as clipped, and `c` the contact torques and forces after the step. `env_infos` holds `forward_vel`
    (`direction * v`, m/s) and the terms: `reward_linvel`, `reward_quadctrl`, `reward_impact` and `reward_alive`.

    Tasks: -1.0 (backward) or 1.0 (forward), with equal probability.

    Start: positions of the model (upright, 1.4 m) and zero velocities, plus noise uniform in [-0.01, 0.01] (m, rad,
    m/s, rad/s) in every coordinate, the quaternion scaled to length one.

    End: when the torso is not between 1 m and 2 m high.

    `log_diagnostics` logs `AvgForwardVel` and `AvgFinalForwardVel`, the velocity in the direction asked for over all
    steps and over the last steps of the paths, m/s, and `AvgCtrlCost`.

    Args:
        goal_direction: -1.0 or 1.0, the task until `set_task` is called; forward by default.
        contact_forces: whether contact forces are computed. False by default, and then they count as zero, as they do
            under mujoco-py 2.1, which never computes them; with them each step takes longer, and is the environment as
            it was with engines up to 1.5.
        engine: `"mujoco"`, the official package, or `"mujoco-py"`, MuJoCo 2.1.0; by default what the environment
            variable `META_POLICY_SEARCH_ENGINE` names, or else `"mujoco"`. The environment is the same with either.
        inertials: `"mujoco210"` (default), the robot's masses and inertias as the engine of the papers has them, or
            `"modern"`, as the installed MuJoCo computes them.
        num_threads: native threads that step the copies of `make_batched`; by default all cores that the process may
            use. Results do not depend on it.
        render_mode: `"rgb_array"` to draw pictures by `render`; None (default) for none.

    Raises:
        TypeError, ValueError: an argument is none of the above; so raises `set_task`.
        ImportError: the engine or `gymnasium` is not installed; says what to run.

    References:
        The public code of ProMP, Rothfuss et al. 2018 (arXiv:1810.06784), in which it is `HumanoidRandDirecEnv`.
    """

    batched_class = BatchedHumanoidRandDirecEnv

    def __init__(
        self,
        goal_direction: float = 1.0,
        *,
        contact_forces: bool = False,
        engine: Optional[str] = None,
        inertials: str = "mujoco210",
        num_threads: Optional[int] = None,
        render_mode: Optional[str] = None,
    ) -> None:
        super().__init__(
            goal_direction=goal_direction, contact_forces=contact_forces, engine=engine, inertials=inertials,
            num_threads=num_threads, render_mode=render_mode,
        )
