"""Tests the half-cheetah environments: hand-computed reward, observation, start and tasks."""
import numpy as np
import pytest

from meta_policy_search.envs.interface import PhysicsError
from meta_policy_search.envs.mujoco_envs.half_cheetah_rand_direc import HalfCheetahRandDirecEnv
from meta_policy_search.envs.mujoco_envs.half_cheetah_rand_vel import HalfCheetahRandVelEnv
from meta_policy_search.utils import logger
from tests.helpers.robots import engine_of

ENVS = [HalfCheetahRandDirecEnv, HalfCheetahRandVelEnv]


def generators(count, seed=0):
    return [np.random.default_rng((seed, i)) for i in range(count)]


def positions(env):
    """Returns positions of the robot of a single environment, `[9]`; the first is its x."""
    return engine_of(env).get_state().qpos[0]


@pytest.mark.parametrize("env_class", ENVS)
def test_spaces_and_gym_interface(env_class):
    env = env_class()
    assert env.observation_space.shape == (17,) and env.observation_space.dtype == np.float64
    assert env.action_space.shape == (6,)
    assert (env.action_space.low == -1.0).all() and (env.action_space.high == 1.0).all()

    observation, info = env.reset(seed=3)
    assert env.observation_space.contains(observation) and info == {}
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
    assert env.observation_space.contains(observation)
    assert isinstance(reward, float) and terminated is False and truncated is False


@pytest.mark.parametrize("env_class", ENVS)
def test_observation_is_qpos_without_x_followed_by_qvel(env_class):
    env = env_class()
    env.reset(seed=0)
    observation = env.step(np.full(6, 0.3))[0]
    qpos, qvel, _ = engine_of(env).get_state()
    np.testing.assert_array_equal(observation, [*qpos[0, 1:], *qvel[0]])


@pytest.mark.parametrize("direction", [-1.0, 1.0])
def test_direction_reward_by_hand(direction):
    env = HalfCheetahRandDirecEnv()
    env.reset(seed=0)
    env.set_task(direction)
    x = positions(env)[0]
    action = np.array([0.5, -0.5, 1.0, 0.0, 0.2, -1.0])
    _, reward, _, _, info = env.step(action)
    velocity = (positions(env)[0] - x) / 0.05  # m/s: 5 simulation steps of 0.01 s
    assert abs(velocity) > 1e-3
    assert info["reward_run"] == pytest.approx(direction * velocity, abs=1e-12)
    assert info["reward_ctrl"] == pytest.approx(-0.05 * (0.25 + 0.25 + 1.0 + 0.0 + 0.04 + 1.0), abs=1e-12)
    assert reward == info["reward_run"] + info["reward_ctrl"]
    assert set(info) == {"reward_run", "reward_ctrl"}


def test_velocity_reward_by_hand():
    env = HalfCheetahRandVelEnv()
    env.reset(seed=0)
    env.set_task(2.0)
    x = positions(env)[0]
    _, reward, _, _, info = env.step(np.full(6, 0.5))
    velocity = (positions(env)[0] - x) / 0.05
    assert info["forward_vel"] == pytest.approx(velocity, abs=1e-12)
    assert info["reward_run"] == pytest.approx(-abs(velocity - 2.0), abs=1e-12)
    assert info["reward_ctrl"] == pytest.approx(-0.05 * 6 * 0.25, abs=1e-12)
    assert reward == info["reward_run"] + info["reward_ctrl"]
    assert set(info) == {"forward_vel", "reward_run", "reward_ctrl"}


def test_motion_does_not_depend_on_the_task():
    forward, backward = HalfCheetahRandDirecEnv(), HalfCheetahRandDirecEnv()
    backward.set_task(-1.0)
    forward.reset(seed=0), backward.reset(seed=0)
    ahead, back = forward.step(np.ones(6)), backward.step(np.ones(6))
    np.testing.assert_array_equal(ahead[0], back[0])
    assert ahead[4]["reward_run"] == -back[4]["reward_run"]


@pytest.mark.parametrize("env_class", ENVS)
def test_actions_are_clipped_for_motion_and_cost(env_class):
    wild, clipped = env_class(), env_class()
    wild.reset(seed=0), clipped.reset(seed=0)
    given = wild.step(np.array([3.0, -2.0, 0.5, 1.0, -1.0, 100.0], dtype=np.float32))
    meant = clipped.step(np.array([1.0, -1.0, 0.5, 1.0, -1.0, 1.0]))
    np.testing.assert_array_equal(given[0], meant[0])
    assert given[1] == meant[1] and given[4]["reward_ctrl"] == pytest.approx(-0.05 * 5.25)


@pytest.mark.parametrize("env_class", ENVS)
def test_start_noise_is_uniform_in_position_and_normal_in_velocity(env_class):
    batched = env_class().make_batched(2000)
    batched.reset(np.arange(2000), generators(2000))
    qpos, qvel, _ = batched.engine.get_state()
    assert np.abs(qpos).max() <= 0.1 and np.abs(qpos).max() > 0.0999  # initial position of the model: zero
    np.testing.assert_allclose(qpos.std(axis=0), 0.2 / np.sqrt(12), rtol=0.06)
    np.testing.assert_allclose(qvel.std(axis=0), 0.1, rtol=0.06)
    np.testing.assert_allclose(qvel.mean(axis=0), 0.0, atol=0.01)
    assert np.abs(qvel).max() > 0.3  # normal noise exceeds the bounds of the uniform noise


def test_directions_have_equal_probability():
    tasks = HalfCheetahRandDirecEnv().sample_tasks(10000, np.random.default_rng(0))
    assert set(tasks) == {-1.0, 1.0}
    assert abs(np.mean(tasks)) < 0.04  # four standard errors


def test_velocities_are_uniform():
    tasks = np.array(HalfCheetahRandVelEnv().sample_tasks(10000, np.random.default_rng(0)))
    assert 0.0 <= tasks.min() < 0.01 and 2.99 < tasks.max() < 3.0
    assert tasks.mean() == pytest.approx(1.5, abs=0.04)
    assert tasks.std() == pytest.approx(3.0 / np.sqrt(12), abs=0.02)


def test_max_velocity_limits_the_distribution():
    env = HalfCheetahRandVelEnv(max_velocity=2.0)
    assert 1.95 < max(env.sample_tasks(1000, np.random.default_rng(0))) < 2.0
    assert env.get_task() == 1.0


def test_goal_direction_is_the_first_task():
    assert HalfCheetahRandDirecEnv().get_task() == 1.0
    assert HalfCheetahRandDirecEnv(goal_direction=-1).get_task() == -1.0
    assert HalfCheetahRandDirecEnv(-1.0).make_batched(3).get_tasks() == [-1.0] * 3


@pytest.mark.parametrize("env_class, task", [
    (HalfCheetahRandDirecEnv, 0.5), (HalfCheetahRandDirecEnv, True), (HalfCheetahRandDirecEnv, None),
    (HalfCheetahRandVelEnv, np.nan), (HalfCheetahRandVelEnv, "fast"), (HalfCheetahRandVelEnv, True),
])
def test_invalid_task_is_named_and_changes_nothing(env_class, task):
    batched = env_class().make_batched(2)
    before = batched.get_tasks()
    with pytest.raises((TypeError, ValueError), match="task 1: expected"):
        batched.set_tasks([1.0, task])
    with pytest.raises(ValueError, match="tasks: expected 2 tasks, one per environment, got 3"):
        batched.set_tasks([1.0, 1.0, 1.0])
    assert batched.get_tasks() == before


def test_returned_tasks_are_valid_tasks():
    batched = HalfCheetahRandDirecEnv().make_batched(2)
    batched.set_tasks(np.array([-1.0, 1.0]))
    assert batched.get_tasks() == [-1.0, 1.0]
    batched.set_tasks(batched.get_tasks())
    assert batched.get_tasks() == [-1.0, 1.0]


@pytest.mark.parametrize("env_class, arguments, error, named", [
    (HalfCheetahRandDirecEnv, dict(goal_direction=2.0), ValueError, "goal_direction: .*2.0"),
    (HalfCheetahRandDirecEnv, dict(inertials="old"), ValueError, "inertials: .*'old'"),
    (HalfCheetahRandDirecEnv, dict(num_threads=0), ValueError, "num_threads: .*0"),
    (HalfCheetahRandVelEnv, dict(max_velocity=0.0), ValueError, "max_velocity: .*0.0"),
    (HalfCheetahRandVelEnv, dict(max_velocity="fast"), TypeError, "max_velocity: .*'fast'"),
])
def test_invalid_arguments_are_named(env_class, arguments, error, named):
    with pytest.raises(error, match=named):
        env_class(**arguments)


@pytest.mark.parametrize("env_class", ENVS)
def test_arguments_are_passed_to_the_engine_of_the_vectorized_environment(env_class):
    batched = env_class(inertials="modern", num_threads=3).make_batched(7)
    assert (batched.engine.inertials, batched.engine.num_threads, batched.num_envs) == ("modern", 3, 7)
    assert engine_of(env_class()).inertials == "mujoco210"


def test_diverged_path_raises_with_its_environment():
    batched = HalfCheetahRandDirecEnv().make_batched(3)
    batched.reset(np.arange(3), generators(3))
    qvel = np.zeros((1, 9))
    qvel[0, 4] = 1e9  # rad/s
    batched.engine.set_state(np.zeros((1, 9)), qvel, np.array([1]))
    with pytest.raises(PhysicsError) as raised:
        batched.step(np.zeros((3, 6)))
    assert raised.value.env_ids == (1,)


@pytest.mark.parametrize("env_class, key", [
    (HalfCheetahRandDirecEnv, "reward_run"), (HalfCheetahRandVelEnv, "forward_vel")])
def test_diagnostics_are_means_over_steps_and_last_steps(monkeypatch, env_class, key):
    logged = {}
    monkeypatch.setattr(logger, "logkv", logged.__setitem__)
    paths = [
        {"env_infos": {key: np.array([1.0, 2.0, 3.0]), "reward_ctrl": np.array([-0.1, -0.1, -0.1])}},
        {"env_infos": {key: np.array([6.0]), "reward_ctrl": np.array([-0.5])}},
    ]
    env_class().log_diagnostics(paths, prefix="Step_1-")
    assert logged == pytest.approx(
        {"Step_1-AvgForwardVel": 3.0, "Step_1-AvgFinalForwardVel": 4.5, "Step_1-AvgCtrlCost": 0.2})
