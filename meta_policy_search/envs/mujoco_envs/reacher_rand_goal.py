"""Arm that reaches for a task-specific goal position."""
from typing import Optional, Sequence

from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv
from meta_policy_search.envs.mujoco_envs.robots import REACHER
from meta_policy_search.envs.mujoco_envs.tasks import Goals
from meta_policy_search.types import NumThreads, RenderMode


class ReacherRandGoalEnv(MujocoMetaEnv):
    """An arm with two links moves its fingertip to a task-specific goal position.

    The goal is not observed: the policy can find it only from rewards. Apart from that, and from the format of the
    observation, this is Gymnasium's `Reacher-v5` if `inertials="modern"`.

    Observation:
        float64 `[8]`.

        =====  ===================================================  =====
        index  observation                                          unit
        =====  ===================================================  =====
        0-1    cosine of the angles of the first and second joint   1
        2-3    sine of the angles of the first and second joint     1
        4-5    angular velocity of the first and second joint       rad/s
        6-7    position of the fingertip along x and y              m
        =====  ===================================================  =====

    Action:
        float64 `[2]`, clipped to [-1, 1], held for 2 simulation steps of 0.01 s: torques on the first and the second
        joint, in units of 200 N m.

    Reward:
        `-|p' - goal| - |action|^2` per step. `p'` is the position of the fingertip after the step, m; `action` is the
        clipped action. `env_infos` contain both terms, `reward_dist` and `reward_ctrl`.

    Tasks:
        Goal position `(x, y)`, float64 `[2]`, m, uniform in the disc of radius 0.2 m around the first joint. The arm
        reaches 0.21 m. `set_task` accepts any finite position.

    Start:
        The angles of both joints are uniform in [-0.1, 0.1] rad, their velocities in [-0.005, 0.005] rad/s. Angle zero
        is the direction of the x axis.

    End:
        Never. The sampler ends a path after `max_path_length` steps; `Reacher-v5` uses 50.

    Args:
        goal: task before the first call of `set_task`, a position `(x, y)`, m; default (0.1, -0.1).
        engine, inertials, num_threads, render_mode: see `MujocoMetaEnv`.

    References:
        `Reacher-v5` of Gymnasium. `ReacherPosEnv` in the public code of arXiv:2501.11039 (github.com/thu-rllab/MPTS)
        has the same tasks in the square [-0.2, 0.2]^2, observes the goal, and computes the distance before the step.
    """

    def __init__(self, goal: Sequence[float] = (0.1, -0.1), *, engine: Optional[str] = None,
                 inertials: str = "mujoco210", num_threads: NumThreads = None, render_mode: RenderMode = None) -> None:
        super().__init__(REACHER, Goals(goal, radius=0.2, marker=4, euclidean=True), engine=engine,
                         inertials=inertials, num_threads=num_threads, render_mode=render_mode)
