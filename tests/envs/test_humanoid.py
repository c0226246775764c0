"""Tests the humanoid environments: hand-computed rewards, observation, start, termination, tasks."""
import dataclasses

import mujoco
import numpy as np
import pytest

from meta_policy_search.envs.mujoco_envs import HumanoidRandDirec2DEnv, HumanoidRandDirecEnv
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.utils import logger
from tests.helpers.robots import ends_of, engine_of

ENVS = [HumanoidRandDirecEnv, HumanoidRandDirec2DEnv]
ACTION = np.linspace(-0.4, 0.4, 17)


def computed(env, action):
    """Returns MuJoCo's values in the state of a single environment under `action`."""
    engine = engine_of(env)
    state = engine.get_state()
    data = mujoco.MjData(engine.model)
    data.qpos, data.qvel, data.ctrl = state.qpos[0], state.qvel[0], action
    mujoco.mj_forward(engine.model, data)
    mujoco.mj_rnePostConstraint(engine.model, data)
    return data


def centre_of_mass(env):
    """Returns the center of mass `(x, y)`: the mass-weighted mean of the bodies' centers, m."""
    mass = engine_of(env).model.body_mass
    return (mass[:, None] * computed(env, ACTION).xipos).sum(axis=0)[:2] / mass.sum()


def after_some_steps(env, steps=25):
    env.reset(seed=0)
    for _ in range(steps):
        answer = env.step(ACTION)
    return answer


@pytest.mark.parametrize("env_class", ENVS)
def test_step_equals_the_public_code(env_class):
    env = env_class()
    assert engine_of(env).model.opt.timestep == 0.003 and env.dt == pytest.approx(0.015)
    assert env.observation_space.shape == (376,) and env.action_space.shape == (17,)
    np.testing.assert_allclose(env.action_space.high, 0.4)
    np.testing.assert_allclose(env.action_space.low, -0.4)


@pytest.mark.parametrize("env_class, task, weights", [
    (HumanoidRandDirecEnv, 1.0, (1.0, 0.0)),
    (HumanoidRandDirecEnv, -1.0, (-1.0, 0.0)),
    (HumanoidRandDirec2DEnv, (0.6, -0.8), (0.6, -0.8)),
])
def test_reward_by_hand(env_class, task, weights):
    env = env_class()
    env.set_task(task)
    after_some_steps(env)
    before = centre_of_mass(env)
    _, reward, _, _, info = env.step(ACTION)
    moved = centre_of_mass(env) - before
    along = weights[0] * moved[0] + weights[1] * moved[1]  # m
    assert abs(along) > 1e-5
    squared = (ACTION**2).sum()
    assert info == pytest.approx({
        "forward_vel": along / 0.015, "reward_linvel": 0.25 * along / 0.003, "reward_quadctrl": -0.1 * squared,
        "reward_alive": 5.0, "reward_impact": 0.0}, abs=1e-12)
    assert reward == pytest.approx(0.25 * along / 0.003 - 0.1 * squared + 5.0, abs=1e-12)


@pytest.mark.parametrize("env_class", ENVS)
@pytest.mark.parametrize("contact_forces", [False, True])
def test_observation_equals_mujocos_values_for_the_state(env_class, contact_forces):
    env = env_class(contact_forces=contact_forces)
    observation = after_some_steps(env)[0]
    data = computed(env, ACTION)
    assert np.abs(data.cfrc_ext).max() > 1.0  # the humanoid touches the ground
    forces = data.cfrc_ext if contact_forces else np.zeros((14, 6))
    parts = [data.qpos[2:], data.qvel, data.cinert, data.cvel, data.qfrc_actuator, forces]
    np.testing.assert_array_equal(observation, np.concatenate([part.ravel() for part in parts]))
    assert [part.size for part in parts] == [22, 23, 140, 84, 23, 84]


def test_actuator_forces_are_zero_at_the_start():
    env = HumanoidRandDirecEnv()
    after_some_steps(env, steps=1)
    assert engine_of(env).get_state().derived["qfrc_actuator"].any()
    observation = env.reset(seed=0)[0]
    np.testing.assert_array_equal(observation[269:292], np.zeros(23))
    assert observation[45:269].any()


def test_impact_cost_is_limited():
    env = HumanoidRandDirecEnv(contact_forces=True)
    _, reward, _, _, info = after_some_steps(env)
    cost = 0.5e-6 * (computed(env, ACTION).cfrc_ext ** 2).sum()
    assert 0.0 < cost < 10.0
    assert info["reward_impact"] == pytest.approx(-cost)
    assert reward == pytest.approx(sum(value for key, value in info.items() if key.startswith("reward_")))
    batched = env._batched
    assert batched.robot.max_impact_cost == 10.0
    batched.robot = dataclasses.replace(batched.robot, max_impact_cost=cost / 2.0)
    assert after_some_steps(env)[4]["reward_impact"] == pytest.approx(-cost / 2.0)


@pytest.mark.parametrize("env_class", ENVS)
def test_path_ends_when_the_torso_is_too_low_or_too_high(env_class):
    qpos = np.zeros((5, 24))
    qpos[:, 2] = [1.0, 1.4, 2.0, 0.99, 2.01]
    ends = ends_of(env_class(), State(qpos, np.zeros((5, 23)), {}))
    assert ends.tolist() == [False, False, False, True, True]


def test_passive_humanoid_falls_over():
    env = HumanoidRandDirecEnv()
    env.reset(seed=0)
    ends = [env.step(np.zeros(17))[2] for _ in range(100)]
    assert not ends[0] and any(ends)


@pytest.mark.parametrize("env_class", ENVS)
def test_start_is_upright_with_uniform_noise(env_class):
    batched = env_class().make_batched(500)
    batched.reset(np.arange(500), [np.random.default_rng((0, i)) for i in range(500)])
    state = batched.engine.get_state()
    start = batched.engine.init_qpos
    assert start[2] == 1.4
    others = [0, 1, 2, *range(7, 24)]  # except the normalized quaternion
    noise = np.concatenate((state.qpos[:, others] - start[others], state.qvel), axis=1)
    assert 0.00999 < np.abs(noise).max() <= 0.01
    np.testing.assert_allclose(noise.std(axis=0), 0.02 / np.sqrt(12), rtol=0.12)
    np.testing.assert_allclose(np.linalg.norm(state.qpos[:, 3:7], axis=1), 1.0, atol=1e-14)


def test_directions():
    tasks = HumanoidRandDirecEnv().sample_tasks(10000, np.random.default_rng(0))
    assert set(tasks) == {-1.0, 1.0} and abs(np.mean(tasks)) < 0.04  # four standard errors
    tasks = np.array(HumanoidRandDirec2DEnv().sample_tasks(8000, np.random.default_rng(0)))
    np.testing.assert_allclose(np.linalg.norm(tasks, axis=1), 1.0)
    counts = np.histogram(np.arctan2(tasks[:, 1], tasks[:, 0]), bins=8, range=(-np.pi, np.pi))[0]
    np.testing.assert_allclose(counts, 1000, atol=150)  # five standard deviations


@pytest.mark.parametrize("env_class, first", [(HumanoidRandDirecEnv, -1.0), (HumanoidRandDirec2DEnv, [0.0, -1.0])])
def test_first_task_is_an_argument(env_class, first):
    np.testing.assert_array_equal(env_class(goal_direction=first).get_task(), first)
    with pytest.raises(ValueError, match="goal_direction: expected"):
        env_class(goal_direction=7.0)


@pytest.mark.parametrize("env_class", ENVS)
def test_diagnostics_are_means_over_steps_and_last_steps(monkeypatch, env_class):
    logged = {}
    monkeypatch.setattr(logger, "logkv", logged.__setitem__)
    paths = [
        {"env_infos": {"forward_vel": np.array([1.0, 2.0, 3.0]), "reward_quadctrl": np.array([-0.1, -0.1, -0.1])}},
        {"env_infos": {"forward_vel": np.array([6.0]), "reward_quadctrl": np.array([-0.5])}},
    ]
    env_class().log_diagnostics(paths, prefix="Step_1-")
    assert logged == pytest.approx(
        {"Step_1-AvgForwardVel": 3.0, "Step_1-AvgFinalForwardVel": 4.5, "Step_1-AvgCtrlCost": 0.2})
