"""Tests robots with scaled masses, damping and shape, and the reacher, against models that MuJoCo compiles."""
import warnings

import gymnasium
import mujoco
import numpy as np
import pytest

from meta_policy_search.envs import make_env
from meta_policy_search.envs.mujoco_envs.engines.base import model_file
from tests.helpers.robots import engine_of

CASES = [  # environment, task, factors of mass, damping, thickness and head, reward for the velocity, for the height
    ("HalfCheetahRandMassEnv", [1.8], (1.8, 1.0, 1.8, 1.0), lambda v: v, 1.0),
    ("HalfCheetahRandBodyEnv", [0.6, 1.7, 1.9], (0.6, 1.7, 0.6, 1.9), lambda v: v, 1.0),
    ("HalfCheetahRandMassVelEnv", [1.2, 1.5], (1.2, 1.0, 1.0, 1.0), lambda v: -abs(v - 1.5), 0.0),
    ("Walker2DRandMassVelEnv", [0.8, 0.5], (0.8, 1.0, 1.0, 1.0), lambda v: 1.0 - abs(v - 0.5), 0.0),
]


def scaled_model(robot, mass, damping, thickness, head):
    """Compiles a robot with scaled shape; its masses and inertias are those of the original shape, scaled."""
    with warnings.catch_warnings():  # about an attribute of the model file
        warnings.simplefilter("ignore")
        spec = mujoco.MjSpec.from_file(str(model_file(robot)))
        original = spec.compile()
    for geom in spec.geoms[1:]:
        size = original.geom(geom.name).size * (thickness, 1.0, 1.0)
        if robot == "half_cheetah" and geom.name == "head":
            size[1] *= head
        geom.fromto, geom.pos, geom.quat, geom.size = np.full(6, np.nan), *(
            getattr(original.geom(geom.name), name) for name in ("pos", "quat")), size
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = spec.compile()
    for name, factor in (("body_mass", mass), ("body_inertia", 1.0), ("body_ipos", 1.0), ("body_iquat", 1.0),
                         ("dof_damping", damping)):
        getattr(model, name)[:] = factor * getattr(original, name)
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


@pytest.mark.parametrize("pitch", [0.1, 3.0])  # on the feet, on the head
@pytest.mark.parametrize("name, task, factors, run, height_reward", CASES, ids=[case[0] for case in CASES])
def test_scaled_robot_equals_a_compiled_model(name, task, factors, run, height_reward, pitch):
    env = make_env(name, inertials="modern")
    np.testing.assert_array_equal(env.get_task(), np.ones(len(task)))
    env.set_task(task)
    env.reset(seed=0)
    engine = engine_of(env)
    model = scaled_model(engine.robot, *factors)
    data = mujoco.MjData(model)
    qpos = engine.init_qpos.copy()
    qpos[1:3] += (-0.05 if pitch < 1.0 else -1.1 if "Walker" in name else -0.35), pitch
    engine.set_state(qpos[None], np.zeros((1, engine.nv)))
    data.qpos[:] = qpos
    action = np.array([0.9, -0.5, 0.3, -0.2, 0.7, -2.0])
    clipped = np.clip(action, -1.0, 1.0)
    touched = False
    for _ in range(8):
        before = data.qpos[0]
        data.ctrl[:], data.qacc_warmstart[:] = clipped, 0.0
        for _ in range(engine.frame_skip):
            mujoco.mj_step(model, data)
            touched |= data.ncon > 0
        observation, reward, terminated, truncated, info = env.step(action)
        velocity = (data.qpos[0] - before) / env.dt
        rewards = (run(velocity), -0.05 * (clipped**2).sum(), height_reward * data.qpos[1])
        assert reward == pytest.approx(sum(rewards), abs=1e-6) and not terminated and not truncated
        mujoco.mj_kinematics(model, data)
        np.testing.assert_allclose(observation, np.concatenate(
            (data.qpos[1:], np.clip(data.qvel, -10.0, 10.0) if "Walker" in name else data.qvel,
             data.body("torso").xpos)), rtol=0, atol=1e-6)
    assert touched and info["reward_ctrl"] == pytest.approx(rewards[1])
    assert info.get("reward_height", 0.0) == pytest.approx(rewards[2], abs=1e-6)


@pytest.mark.thorough
def test_scaled_head_touches_the_ground_in_the_same_poses_as_that_of_a_compiled_model():
    env = make_env("HalfCheetahRandBodyEnv", inertials="modern")
    env.set_task([2.0, 1.0, 2.0])
    models = engine_of(env)._models[0], scaled_model("half_cheetah", 2.0, 1.0, 2.0, 2.0)
    models[1].opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_MIDPHASE.value  # inexact before MuJoCo 4.0
    rng, counts = np.random.default_rng(0), []
    for _ in range(300):
        qpos = engine_of(env).init_qpos.copy()
        qpos[1:3] += rng.uniform((-0.7, -3.2), (0.3, 3.2))
        counts.append([])
        for model in models:
            data = mujoco.MjData(model)
            data.qpos[:] = qpos
            mujoco.mj_forward(model, data)
            counts[-1].append(data.ncon)
    ours, expected = np.transpose(counts)
    np.testing.assert_array_equal(ours, expected)
    assert expected.max() > 5


def test_reacher_equals_that_of_gymnasium_except_for_the_hidden_goal():
    """Gymnasium's fingertip has the position of the last stage of the last Runge-Kutta step."""
    env, theirs = make_env("ReacherRandGoalEnv", inertials="modern"), gymnasium.make("Reacher-v5")
    goal = np.array([-0.05, 0.12])
    env.set_task(goal)
    env.reset(seed=0)
    theirs.reset(seed=0)
    state = engine_of(env).get_state()
    assert np.abs(state.qpos[0, :2]).max() < 0.1 and np.abs(state.qvel[0]).max() < 0.005
    theirs.unwrapped.set_state(np.append(state.qpos[0, :2], goal), state.qvel[0])
    for action in np.random.default_rng(0).uniform(-1.0, 1.0, (10, 2)):
        theirs.unwrapped.data.qacc_warmstart[:] = 0.0
        observation, reward, terminated, truncated, info = env.step(action)
        expected, expected_reward, _, _, expected_info = theirs.step(action)
        np.testing.assert_allclose(observation[:4], expected[:4], rtol=0, atol=1e-8)
        np.testing.assert_allclose(observation[4:6], expected[6:8], rtol=0, atol=1e-6)
        np.testing.assert_allclose(observation[6:] - goal, expected[8:], rtol=0, atol=1e-5)
        assert reward == pytest.approx(expected_reward, abs=1e-5) and not terminated and not truncated
        assert info == pytest.approx(expected_info, abs=1e-5)
    theirs.close()


def test_goals_of_the_reacher_are_shown_by_the_model():
    env = make_env("ReacherRandGoalEnv")
    tasks = env.sample_tasks(2, np.random.default_rng(0))
    goals = np.array(tasks)
    batched = env.make_batched(3)
    batched.set_tasks([tasks[0], tasks[1], tasks[0]])
    models = batched.engine._models
    assert models[0] is models[2]
    np.testing.assert_array_equal([model.body("target").pos[:2] for model in models], goals[[0, 1, 0]])
