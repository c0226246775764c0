"""Simulated robots: model, start state, observation, termination, and the task-independent terms of the reward."""
import dataclasses
import math
from typing import Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.types import Infos, Path
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import check_bool

NUM_BODIES = 14  # number of bodies of the ant and of the humanoid, including the world
TORSO = 1  # index of the torso among the bodies


@dataclasses.dataclass(frozen=True)
class Robot:
    """A robot and all parts of an environment that do not depend on the task.

    The default methods describe a planar robot. It receives a reward for progress, pays a cost for its actions, and
    terminates a path when it leaves its limits, which are infinite by default. Subclasses override what differs. A
    robot has no mutable state, so environments can share it. In all methods, `k` is the number of simulated copies.

    Args:
        model: name of the model, one of `engines.base.ROBOTS`.
        frame_skip: simulation steps per environment step.
        moves_in_plane: whether positions start with x and y on the ground; default False (x only).
        first_observed: index of the first observed position coordinate; default 1.
        velocity_limit: observed velocities are clipped to +-`velocity_limit` (m/s, rad/s); default infinity.
        start_noise: half-width of the uniform noise of start positions (m, rad) and start velocities (m/s, rad/s);
            default 0.
        normal_start_velocity: whether start velocities are normal instead of uniform, with standard deviation
            `start_noise`; default False.
        control_cost: cost per squared unit of action and step; default 0.
        survival_reward: constant reward per step; default 0.
        progress_info: key in `env_infos` of the reward for progress; default `"reward_run"`.
        heights: range of the height of the torso, m; a path terminates outside it. Default unbounded.
        pitches: range of the pitch of the torso, rad; a path terminates outside it. Default unbounded.
        state_limit: a path terminates when a coordinate other than the position leaves +-`state_limit` (rad, m/s,
            rad/s); default infinity.
        height_reward: reward per meter of `qpos[1]`, the height of the torso, and step; default 0.
        frame_height: if not None, observations end with the position `(x, 0, z)` of the torso, m, where `z` is
            `qpos[1] + frame_height`. Default None.
        contact_forces: whether to compute contact forces, which the ant and the humanoid observe; otherwise they are
            zero. Default False.
    """

    model: str
    frame_skip: int
    moves_in_plane: bool = False
    first_observed: int = 1
    velocity_limit: float = np.inf
    start_noise: float = 0.0
    normal_start_velocity: bool = False
    control_cost: float = 0.0
    survival_reward: float = 0.0
    progress_info: str = "reward_run"
    heights: Tuple[float, float] = (-np.inf, np.inf)
    pitches: Tuple[float, float] = (-np.inf, np.inf)
    state_limit: float = np.inf
    height_reward: float = 0.0
    frame_height: Optional[float] = None
    contact_forces: bool = False

    def __post_init__(self) -> None:
        check_bool("contact_forces", self.contact_forces)

    @property
    def derived(self) -> Tuple[str, ...]:
        """Names of the quantities of `engines.base.DERIVED` that the robot's states contain."""
        return ("cfrc_ext",) if self.contact_forces else ()

    def start_state(self, init_qpos: np.ndarray, num_velocities: int,
                    rng: np.random.Generator) -> Tuple[np.ndarray, np.ndarray]:
        """Draws the start state of a path.

        Args:
            init_qpos: float64 `[nq]`, the positions in the model file.
            num_velocities: number of velocity coordinates, `nv`.
            rng: generator to draw from.

        Returns:
            `(qpos [nq], qvel [nv])`.
        """
        noise = self.start_noise
        qpos = init_qpos + rng.uniform(-noise, noise, len(init_qpos))
        if self.normal_start_velocity:
            return qpos, noise * rng.standard_normal(num_velocities)
        return qpos, rng.uniform(-noise, noise, num_velocities)

    def observations(self, state: State) -> np.ndarray:
        """Returns the observations as a new array, float64 `[k, O]`."""
        velocities = np.clip(state.qvel, -self.velocity_limit, self.velocity_limit)
        observations = np.concatenate((state.qpos[:, self.first_observed:], velocities), axis=1)
        if self.frame_height is None:
            return observations
        x, z = state.qpos[:, 0], state.qpos[:, 1] + self.frame_height
        return np.concatenate((observations, np.stack((x, np.zeros(len(x)), z), axis=1)), axis=1)

    def position(self, state: State) -> np.ndarray:
        """Returns the position that defines the robot's motion, float64 `[k, 1]` (x) or `[k, 2]` (x, y), m."""
        return state.qpos[:, :2 if self.moves_in_plane else 1]

    def terminated(self, state: State) -> np.ndarray:
        """Returns whether each state terminates its path, bool `[k]`."""
        height, pitch = state.qpos[:, 1], state.qpos[:, 2]
        is_up = (self.heights[0] < height) & (height < self.heights[1])
        is_up &= (self.pitches[0] < pitch) & (pitch < self.pitches[1])
        in_bounds = (np.abs(state.qpos[:, 2:]) < self.state_limit).all(axis=1)
        in_bounds &= (np.abs(state.qvel) < self.state_limit).all(axis=1)
        return ~(is_up & in_bounds)

    def control_reward(self, actions: np.ndarray) -> np.ndarray:
        """Returns the negative cost of the clipped actions `[k, A]`, float64 `[k]`."""
        return -self.control_cost * np.square(actions).sum(axis=1)

    def rewards(self, progress: np.ndarray, actions: np.ndarray, after: State) -> Tuple[np.ndarray, Infos]:
        """Returns the rewards of a step and its `env_infos`.

        Args:
            progress: float64 `[k]`, task-dependent reward for the motion during the step.
            actions: float64 `[k, A]`, clipped to the action space.
            after: states after the step.

        Returns:
            `(rewards [k], env_infos)`; each entry of `env_infos` is float64 `[k]`.
        """
        control = self.control_reward(actions)
        rewards, infos = progress + control + self.survival_reward, {self.progress_info: progress,
                                                                     "reward_ctrl": control}
        if self.height_reward:
            infos["reward_height"] = self.height_reward * after.qpos[:, 1]
            rewards = rewards + infos["reward_height"]
        return rewards, infos

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """Logs mean velocity (m/s) and mean control cost, if the `env_infos` contain both."""
        infos = paths[0]["env_infos"]
        velocity_info = "forward_vel" if "forward_vel" in infos else "reward_run"
        control_info = "reward_ctrl" if "reward_ctrl" in infos else "reward_quadctrl"
        if not {velocity_info, control_info} <= set(infos):
            return
        velocities, costs = ([path["env_infos"][key] for path in paths] for key in (velocity_info, control_info))
        logger.logkv(prefix + "AvgForwardVel", np.mean(np.concatenate(velocities)))
        logger.logkv(prefix + "AvgFinalForwardVel", np.mean([velocity[-1] for velocity in velocities]))
        logger.logkv(prefix + "AvgCtrlCost", np.mean(-np.concatenate(costs)))


HALF_CHEETAH = Robot("half_cheetah", frame_skip=5, start_noise=0.1, normal_start_velocity=True, control_cost=0.05)
"""A planar two-legged runner (Wawrzynski 2009, doi:10.1109/ISIE.2009.5214007). A step takes 5 * 0.01 s = 0.05 s."""

HALF_CHEETAH_TRACKED = dataclasses.replace(HALF_CHEETAH, frame_height=0.7)
"""`HALF_CHEETAH` that also observes the position of its torso."""

HALF_CHEETAH_UPRIGHT = dataclasses.replace(HALF_CHEETAH_TRACKED, height_reward=1.0)
"""`HALF_CHEETAH_TRACKED` with a reward for the height of its torso."""

SWIMMER = Robot("swimmer", frame_skip=4, moves_in_plane=True, first_observed=2, start_noise=0.1, control_cost=1e-4,
                progress_info="reward_fwd")
"""A chain of three links in a viscous fluid (Coulom 2002). A step takes 4 * 0.01 s = 0.04 s."""


WALKER2D = Robot("walker2d", frame_skip=8, velocity_limit=10.0, start_noise=0.005, control_cost=1e-3,
                 survival_reward=1.0, heights=(0.8, 2.0), pitches=(-1.0, 1.0))
"""A planar robot with a torso and two legs (Levine and Koltun 2013, "Guided policy search").

A step takes 8 * 0.002 s = 0.016 s.
"""

WALKER2D_THAT_FALLS = dataclasses.replace(
    WALKER2D, frame_skip=4, control_cost=0.05, heights=(-np.inf, np.inf), pitches=(-np.inf, np.inf), frame_height=0.0)
"""`WALKER2D` with steps of 4 * 0.002 s = 0.008 s. A fall does not terminate a path."""

HOPPER = Robot("hopper", frame_skip=4, velocity_limit=10.0, start_noise=0.005, control_cost=1e-3, survival_reward=1.0,
               heights=(0.7, np.inf), pitches=(-0.2, 0.2), state_limit=100.0)
"""A planar robot with one leg (Erez, Tassa and Todorov 2011). A step takes 4 * 0.002 s = 0.008 s."""


class Reacher(Robot):
    """An arm with two links of 0.1 m that turns on a table, as in Gymnasium's `Reacher-v5`.

    A step takes 2 * 0.01 s = 0.02 s. The position of the robot is the position of its fingertip, 0.11 m from the
    second joint. The arm starts near the direction of the x axis. The goal of the model moves with the task and is not
    part of the state. The arguments are those of `Robot`.
    """

    def start_state(self, init_qpos: np.ndarray, num_velocities: int,
                    rng: np.random.Generator) -> Tuple[np.ndarray, np.ndarray]:
        qpos, qvel = init_qpos.copy(), np.zeros(num_velocities)
        qpos[:2] += rng.uniform(-0.1, 0.1, 2)
        qvel[:2] = rng.uniform(-0.005, 0.005, 2)
        return qpos, qvel

    def observations(self, state: State) -> np.ndarray:
        angles = state.qpos[:, :2]
        return np.concatenate((np.cos(angles), np.sin(angles), state.qvel[:, :2], self.position(state)), axis=1)

    def position(self, state: State) -> np.ndarray:
        first, second = state.qpos[:, 0], state.qpos[:, 0] + state.qpos[:, 1]
        return np.stack((0.1 * np.cos(first) + 0.11 * np.cos(second), 0.1 * np.sin(first) + 0.11 * np.sin(second)),
                        axis=1)


REACHER = Reacher("reacher", frame_skip=2, control_cost=1.0, progress_info="reward_dist")
"""The arm of `Reacher`."""


@dataclasses.dataclass(frozen=True)
class Ant(Robot):
    """A torso on four legs (Schulman et al. 2015, arXiv:1506.02438). A step takes 5 * 0.01 s = 0.05 s.

    The velocity of a step is the mean velocity of the frame of the torso. The public code uses the frame of the last
    stage of the last Runge-Kutta step. This frame differs from the frame after the step only in the fourth order of the
    time step.

    The other arguments are documented in `Robot`.

    Args:
        contact_cost: cost per squared unit of clipped contact force and torque, per step; default 0.0005.
        contact_limit: contact forces (N) and torques (N m) are clipped to +-`contact_limit`; default 1.
    """

    contact_cost: float = 0.5e-3
    contact_limit: float = 1.0

    def observations(self, state: State) -> np.ndarray:
        return np.concatenate((super().observations(state), self._contacts(state)), axis=1)

    def terminated(self, state: State) -> np.ndarray:
        return _outside(state.qpos[:, 2], self.heights)

    def rewards(self, progress: np.ndarray, actions: np.ndarray, after: State) -> Tuple[np.ndarray, Infos]:
        contact = np.zeros(len(actions))
        if self.contact_forces:
            contact = -self.contact_cost * np.square(self._contacts(after)).sum(axis=1)
        infos = {"reward_forward": progress, "reward_ctrl": self.control_reward(actions), "reward_contact": contact,
                 "reward_survive": np.full(len(actions), self.survival_reward)}
        return sum(infos.values(), np.zeros(len(actions))), infos

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """Logs statistics of `reward_forward` and the mean control cost, both per step."""
        means = [np.mean(path["env_infos"]["reward_forward"]) for path in paths]
        for name, statistic in (("Average", np.mean), ("Max", np.max), ("Min", np.min), ("Std", np.std)):
            logger.logkv(f"{prefix}{name}ForwardReturn", statistic(means))
        costs = [-np.mean(path["env_infos"]["reward_ctrl"]) for path in paths]
        logger.logkv(prefix + "AverageCtrlCost", np.mean(costs))

    def _contacts(self, state: State) -> np.ndarray:
        return np.clip(_contact_forces(state), -self.contact_limit, self.contact_limit)


ANT = Ant("ant", frame_skip=5, moves_in_plane=True, first_observed=2, start_noise=0.1, normal_start_velocity=True,
          control_cost=0.5, survival_reward=1.0, heights=(0.0, 1.0))
"""The four-legged robot of `Ant`. A path terminates when the height of its torso is outside [0, 1] m."""


@dataclasses.dataclass(frozen=True)
class Humanoid(Robot):
    """A torso with legs and arms (Tassa, Erez and Todorov 2012, doi:10.1109/IROS.2012.6386025).

    A step takes 5 * 0.003 s = 0.015 s. The position of the robot is the position of its center of mass. All observed
    quantities are computed from the state after the step. The public code takes quantities other than positions and
    velocities from the last stage of the last Runge-Kutta step. They differ from those after the step only in the
    fourth order of the time step.

    The other arguments are documented in `Robot`.

    Args:
        velocity_reward: reward per m/s; default 1.25. The public code defines it as 0.25 times the distance moved in a
            step, divided by the duration of a simulation step.
        impact_cost: cost per squared unit of contact force and torque, per step; default 5e-7.
        max_impact_cost: upper bound of the impact cost per step; default 10.
    """

    velocity_reward: float = 1.25
    impact_cost: float = 0.5e-6
    max_impact_cost: float = 10.0

    @property
    def derived(self) -> Tuple[str, ...]:
        return ("cinert", "cvel", "qfrc_actuator", "subtree_com", *super().derived)

    def observations(self, state: State) -> np.ndarray:
        derived = state.derived
        parts = (state.qpos[:, self.first_observed:], state.qvel, _flattened(derived["cinert"]),
                 _flattened(derived["cvel"]), derived["qfrc_actuator"], _contact_forces(state))
        return np.concatenate(parts, axis=1)

    def position(self, state: State) -> np.ndarray:
        return state.derived["subtree_com"][:, TORSO, :2]

    def terminated(self, state: State) -> np.ndarray:
        return _outside(state.qpos[:, 2], self.heights)

    def rewards(self, progress: np.ndarray, actions: np.ndarray, after: State) -> Tuple[np.ndarray, Infos]:
        impact = self.impact_cost * np.square(_contact_forces(after)).sum(axis=1)
        rewards = {"reward_linvel": self.velocity_reward * progress, "reward_quadctrl": self.control_reward(actions),
                   "reward_alive": np.full(len(actions), self.survival_reward),
                   "reward_impact": -np.minimum(impact, self.max_impact_cost)}
        return sum(rewards.values(), np.zeros(len(actions))), {"forward_vel": progress, **rewards}


HUMANOID = Humanoid("humanoid", frame_skip=5, moves_in_plane=True, first_observed=2, start_noise=0.01, control_cost=0.1,
                    survival_reward=5.0, heights=(1.0, 2.0))
"""The two-legged robot of `Humanoid`. A path terminates when the height of its torso is outside [1, 2] m."""


def _contact_forces(state: State) -> np.ndarray:
    """Returns contact torques and forces on all bodies, float64 `[k, 6 * bodies]`; zero if not computed."""
    if "cfrc_ext" in state.derived:
        return _flattened(state.derived["cfrc_ext"])
    return np.zeros((len(state.qpos), 6 * NUM_BODIES))


def _flattened(values: np.ndarray) -> np.ndarray:
    """Returns `values` `[k, ...]` with shape `[k, n]`, also for `k = 0`."""
    return values.reshape(len(values), math.prod(values.shape[1:]))


def _outside(values: np.ndarray, bounds: Tuple[float, float]) -> np.ndarray:
    return (values < bounds[0]) | (values > bounds[1])
