"""Tests the ant environments: hand-computed rewards, observation, contact forces, start, termination, tasks."""
import mujoco
import numpy as np
import pytest

from meta_policy_search.envs.mujoco_envs import AntRandDirec2DEnv, AntRandDirecEnv, AntRandGoalEnv
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.utils import logger
from tests.helpers.robots import ends_of, engine_of

ENVS = [AntRandDirecEnv, AntRandDirec2DEnv, AntRandGoalEnv]
ACTION = np.array([0.5, -0.5, 1.0, 0.0, 0.2, -1.0, 0.1, -0.1])
SQUARED = 0.25 + 0.25 + 1.0 + 0.0 + 0.04 + 1.0 + 0.01 + 0.01  # |ACTION|^2


def place(env):
    """Position `(x, y)` of the torso of a single environment, m."""
    return engine_of(env).get_state().qpos[0, :2].copy()


def on_the_ground(env):
    """Resets and lets the ant fall on its feet; returns the last observation and step result."""
    env.reset(seed=0)
    for _ in range(12):
        answer = env.step(ACTION)
    return answer


def contact_forces(env):
    """Contact torques and forces `[14, 6]` that MuJoCo computes in the state of a single environment."""
    engine = engine_of(env)
    state = engine.get_state()
    data = mujoco.MjData(engine.model)
    data.qpos, data.qvel, data.ctrl = state.qpos[0], state.qvel[0], ACTION
    mujoco.mj_forward(engine.model, data)
    mujoco.mj_rnePostConstraint(engine.model, data)
    return data.cfrc_ext.copy()


@pytest.mark.parametrize("env_class, size", [(AntRandDirecEnv, 111), (AntRandDirec2DEnv, 111), (AntRandGoalEnv, 113)])
def test_step_equals_the_public_code(env_class, size):
    env = env_class()
    assert engine_of(env).model.opt.timestep == 0.01 and env.dt == pytest.approx(0.05)
    assert env.observation_space.shape == (size,) and env.action_space.shape == (8,)
    assert (env.action_space.low == -1.0).all() and (env.action_space.high == 1.0).all()


@pytest.mark.parametrize("env_class, task, weights", [
    (AntRandDirecEnv, 1.0, (1.0, 0.0)),
    (AntRandDirecEnv, -1.0, (-1.0, 0.0)),
    (AntRandDirec2DEnv, (0.6, -0.8), (0.6, -0.8)),
])
def test_direction_rewards_by_hand(env_class, task, weights):
    env = env_class()
    env.set_task(task)
    env.reset(seed=0)
    before = place(env)
    _, reward, _, _, info = env.step(ACTION)
    velocity = (place(env) - before) / 0.05
    assert np.abs(velocity).min() > 1e-3
    forward = weights[0] * velocity[0] + weights[1] * velocity[1]
    assert info == pytest.approx({
        "reward_forward": forward, "reward_ctrl": -0.5 * SQUARED, "reward_contact": 0.0, "reward_survive": 1.0})
    assert reward == pytest.approx(forward - 0.5 * SQUARED + 1.0, abs=1e-12)


def test_goal_reward_by_hand():
    env = AntRandGoalEnv()
    env.set_task((-1.0, 2.0))
    env.reset(seed=0)
    _, reward, _, _, info = env.step(ACTION)
    x, y = place(env)
    away = abs(x + 1.0) + abs(y - 2.0)
    assert info == pytest.approx({
        "reward_forward": -away, "reward_ctrl": -0.1 * SQUARED, "reward_contact": 0.0, "reward_survive": 0.0})
    assert reward == pytest.approx(-away - 0.1 * SQUARED, abs=1e-12)


@pytest.mark.parametrize("env_class", ENVS)
def test_observation_holds_position_and_velocity_without_contact_forces(env_class):
    env = env_class()
    observation = on_the_ground(env)[0]
    state = engine_of(env).get_state()
    first = 0 if env_class is AntRandGoalEnv else 2
    np.testing.assert_array_equal(observation[:-84], [*state.qpos[0, first:], *state.qvel[0]])
    np.testing.assert_array_equal(observation[-84:], np.zeros(84))


@pytest.mark.parametrize("env_class", ENVS)
def test_contact_forces_are_observed_and_penalized_on_request(env_class):
    env, without = env_class(contact_forces=True), env_class()
    observation, reward, _, _, info = on_the_ground(env)
    forces = contact_forces(env)
    assert np.abs(forces).max() > 1.0  # N: some forces are clipped
    clipped = np.clip(forces, -1.0, 1.0)
    np.testing.assert_array_equal(observation[-84:], clipped.ravel())
    assert info["reward_contact"] == pytest.approx(-0.5e-3 * (clipped**2).sum()) and info["reward_contact"] < -1e-4
    expected = on_the_ground(without)
    np.testing.assert_array_equal(observation[:-84], expected[0][:-84])  # the motion is unchanged
    assert reward == pytest.approx(expected[1] + info["reward_contact"])


@pytest.mark.parametrize("env_class", ENVS)
def test_contact_forces_of_vectorized_environments_equal_single_ones(env_class):
    env = env_class(contact_forces=True)
    batched = env.make_batched(5)
    batched.reset(np.arange(5), [np.random.default_rng((0, i)) for i in range(5)])
    env.np_random = np.random.default_rng((0, 3))
    env.reset()
    for step in range(12):
        action = np.random.default_rng(step).uniform(-1.0, 1.0, (5, 8))
        answer = batched.step(action)
        np.testing.assert_array_equal(env.step(action[3])[0], answer.observations[3])
    assert answer.observations[3, -84:].any()


@pytest.mark.parametrize("env_class", ENVS)
def test_path_ends_when_the_ant_falls_or_jumps_except_in_goal_tasks(env_class):
    qpos = np.zeros((5, 15))
    qpos[:, 2] = [0.0, 0.5, 1.0, -0.01, 1.01]
    ends = ends_of(env_class(), State(qpos, np.zeros((5, 14)), {}))
    assert ends.tolist() == [False] * 5 if env_class is AntRandGoalEnv else [False, False, False, True, True]


@pytest.mark.parametrize("env_class", ENVS)
def test_start_noise_is_uniform_in_position_and_normal_in_velocity(env_class):
    batched = env_class().make_batched(1000)
    batched.reset(np.arange(1000), [np.random.default_rng((0, i)) for i in range(1000)])
    state = batched.engine.get_state()
    noise = np.delete(state.qpos, [3, 4, 5, 6], axis=1) - ([0.0, 0.0, 0.75] + [0.0] * 8)
    assert 0.0999 < np.abs(noise).max() <= 0.1
    np.testing.assert_allclose(noise.std(axis=0), 0.2 / np.sqrt(12), rtol=0.08)
    np.testing.assert_allclose(np.linalg.norm(state.qpos[:, 3:7], axis=1), 1.0, atol=1e-14)
    np.testing.assert_allclose((state.qpos[:, 4:7] / state.qpos[:, 3:4]).std(axis=0), 0.2 / np.sqrt(12), rtol=0.08)
    np.testing.assert_allclose(state.qvel.std(axis=0), 0.1, rtol=0.12)  # five standard errors
    assert np.abs(state.qvel).max() > 0.3  # normal noise exceeds the bounds of the uniform noise


def test_directions_along_x_have_equal_probability():
    tasks = AntRandDirecEnv().sample_tasks(10000, np.random.default_rng(0))
    assert set(tasks) == {-1.0, 1.0} and abs(np.mean(tasks)) < 0.04  # four standard errors


def test_directions_in_the_plane_are_unit_vectors_of_all_angles():
    tasks = np.array(AntRandDirec2DEnv().sample_tasks(8000, np.random.default_rng(0)))
    np.testing.assert_allclose(np.linalg.norm(tasks, axis=1), 1.0)
    counts = np.histogram(np.arctan2(tasks[:, 1], tasks[:, 0]), bins=8, range=(-np.pi, np.pi))[0]
    np.testing.assert_allclose(counts, 1000, atol=150)  # five standard deviations


def test_goals_are_uniform_in_a_disc():
    tasks = np.array(AntRandGoalEnv().sample_tasks(8000, np.random.default_rng(0)))
    distances = np.linalg.norm(tasks, axis=1)
    assert 2.99 < distances.max() <= 3.0
    np.testing.assert_allclose(np.histogram(distances**2, bins=8, range=(0.0, 9.0))[0], 1000, atol=150)
    counts = np.histogram(np.arctan2(tasks[:, 1], tasks[:, 0]), bins=8, range=(-np.pi, np.pi))[0]
    np.testing.assert_allclose(counts, 1000, atol=150)


@pytest.mark.parametrize("env_class, argument, value, complaint", [
    (AntRandDirecEnv, "goal_direction", 0.5, "expected one of -1.0, 1.0, got 0.5"),
    (AntRandDirec2DEnv, "goal_direction", (1.0, 1.0), r"expected a unit vector \(x, y\), got \(1.0, 1.0\)"),
    (AntRandDirec2DEnv, "goal_direction", 1.0, r"expected two finite numbers \(x, y\), got 1.0"),
    (AntRandGoalEnv, "goal", (np.inf, 1.0), r"expected two finite numbers \(x, y\), got \(inf, 1.0\)"),
])
def test_tasks_are_validated_and_the_first_task_is_an_argument(env_class, argument, value, complaint):
    with pytest.raises(ValueError, match=f"{argument}: {complaint}"):
        env_class(**{argument: value})
    with pytest.raises(ValueError, match=f"task 0: {complaint}"):
        env_class().set_task(value)


@pytest.mark.parametrize("env_class, arguments, first", [
    (AntRandDirecEnv, {}, 1.0), (AntRandDirecEnv, dict(goal_direction=-1), -1.0),
    (AntRandDirec2DEnv, {}, [1.0, 0.0]), (AntRandDirec2DEnv, dict(goal_direction=[0, -1]), [0.0, -1.0]),
    (AntRandGoalEnv, {}, [2.0, 0.0]), (AntRandGoalEnv, dict(goal=(4, 5)), [4.0, 5.0]),
])
def test_first_task(env_class, arguments, first):
    np.testing.assert_array_equal(env_class(**arguments).get_task(), first)
    np.testing.assert_array_equal(env_class(**arguments).make_batched(2).get_tasks(), [first] * 2)


@pytest.mark.parametrize("env_class", ENVS)
def test_contact_forces_must_be_a_boolean(env_class):
    with pytest.raises(TypeError, match="contact_forces: expected True or False, got 1"):
        env_class(contact_forces=1)


@pytest.mark.parametrize("env_class", ENVS)
def test_diagnostics_are_statistics_over_paths(monkeypatch, env_class):
    logged = {}
    monkeypatch.setattr(logger, "logkv", logged.__setitem__)
    paths = [
        {"env_infos": {"reward_forward": np.array([1.0, 2.0, 3.0]), "reward_ctrl": np.array([-0.1, -0.1, -0.1])}},
        {"env_infos": {"reward_forward": np.array([6.0]), "reward_ctrl": np.array([-0.5])}},
    ]
    env_class().log_diagnostics(paths, prefix="Step_1-")
    assert logged == pytest.approx({
        "Step_1-AverageForwardReturn": 4.0, "Step_1-MaxForwardReturn": 6.0, "Step_1-MinForwardReturn": 2.0,
        "Step_1-StdForwardReturn": 2.0, "Step_1-AverageCtrlCost": 0.3})
