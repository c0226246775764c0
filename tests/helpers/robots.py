"""Helpers of the tests of robots."""
from pathlib import Path

import numpy as np

from meta_policy_search.envs.mujoco_envs.engines import make_engine

REFERENCE = Path(__file__).parents[1] / "data" / "mujoco210.npz"  # generated with MuJoCo 2.1.0


def reference_of(robot):
    """Returns the frame skip, actions [5, 10, nu], start states [5, nq] and [5, nv], and the states after each step."""
    with np.load(REFERENCE) as file:
        return {name: file[f"{robot}/{name}"] for name in ("frame_skip", "actions", "qpos0", "qvel0", "qpos", "qvel")}


def moving(robot, num_envs, name="mujoco", **kwargs):
    """Returns robots in different, moving states near the ground."""
    engine = make_engine(name, robot, num_envs, 5, **kwargs)
    rng = np.random.default_rng(0)
    qpos = engine.init_qpos + rng.uniform(-0.1, 0.1, (num_envs, engine.nq))
    engine.set_state(qpos, rng.normal(0.0, 1.0, (num_envs, engine.nv)))
    return engine


def cheetahs(num_envs, name="mujoco", **kwargs):
    return moving("half_cheetah", num_envs, name, **kwargs)


def engine_of(env):
    """Returns the physics engine of an environment that is stepped as a single copy."""
    return env._batched.engine
