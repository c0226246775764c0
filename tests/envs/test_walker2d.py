"""Tests the walker environments: hand-computed rewards, observation, start, termination."""
import numpy as np
import pytest

from meta_policy_search.envs.mujoco_envs import Walker2DRandDirecEnv, Walker2DRandParamsEnv, Walker2DRandVelEnv
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.utils import logger
from tests.helpers.robots import ends_of, engine_of, observations_of

ENVS = [Walker2DRandDirecEnv, Walker2DRandVelEnv, Walker2DRandParamsEnv]
ACTION = np.array([0.5, -0.5, 1.0, 0.0, 0.2, -1.0])
SQUARED = 0.25 + 0.25 + 1.0 + 0.0 + 0.04 + 1.0  # |ACTION|^2


def step_by_hand(env, task):
    """Sets the task, resets and steps; returns reward, info, and the mean velocity of the torso, m/s."""
    env.set_task(task)
    env.reset(seed=0)
    x = engine_of(env).get_state().qpos[0, 0]
    _, reward, _, _, info = env.step(ACTION)
    velocity = (engine_of(env).get_state().qpos[0, 0] - x) / env.dt
    assert abs(velocity) > 1e-3
    return reward, info, velocity


@pytest.mark.parametrize("env_class, frame_skip", [
    (Walker2DRandDirecEnv, 8), (Walker2DRandVelEnv, 8), (Walker2DRandParamsEnv, 5)])
def test_step_equals_the_public_code(env_class, frame_skip):
    env = env_class()
    assert engine_of(env).model.opt.timestep == 0.002
    assert env.dt == pytest.approx(0.002 * frame_skip)
    assert env.observation_space.shape == (17,) and env.action_space.shape == (6,)
    assert (env.action_space.low == -1.0).all() and (env.action_space.high == 1.0).all()


@pytest.mark.parametrize("direction", [-1.0, 1.0])
def test_direction_reward_by_hand(direction):
    reward, info, velocity = step_by_hand(Walker2DRandDirecEnv(), direction)
    assert info == pytest.approx({"reward_run": direction * velocity, "reward_ctrl": -1e-3 * SQUARED})
    assert reward == pytest.approx(direction * velocity - 1e-3 * SQUARED + 1.0, abs=1e-12)


def test_velocity_reward_by_hand():
    reward, info, velocity = step_by_hand(Walker2DRandVelEnv(), 3.0)
    away = abs(velocity - 3.0)
    assert info == pytest.approx({"forward_vel": velocity, "reward_run": -away, "reward_ctrl": -1e-3 * SQUARED})
    assert reward == pytest.approx(-away - 1e-3 * SQUARED + 15.0, abs=1e-12)


def test_reward_with_random_parameters_by_hand():
    env = Walker2DRandParamsEnv()
    reward, info, velocity = step_by_hand(env, env.sample_tasks(1, np.random.default_rng(0))[0])
    assert info == pytest.approx({"reward_run": velocity, "reward_ctrl": -1e-3 * SQUARED})
    assert reward == pytest.approx(velocity - 1e-3 * SQUARED + 1.0, abs=1e-12)


@pytest.mark.parametrize("env_class", ENVS)
def test_observation_is_qpos_without_x_followed_by_clipped_qvel(env_class):
    qpos = np.arange(9.0)[None]
    qvel = np.array([[1.0, -2.0, 9.9, 10.1, -11.0, 0.0, 50.0, -10.0, 10.0]])
    observation = observations_of(env_class(), State(qpos, qvel, {}))
    np.testing.assert_array_equal(
        observation, [[1, 2, 3, 4, 5, 6, 7, 8, 1.0, -2.0, 9.9, 10.0, -10.0, 0.0, 10.0, -10.0, 10.0]])


@pytest.mark.parametrize("env_class", ENVS)
def test_path_ends_when_the_walker_is_too_low_too_high_or_tilted(env_class):
    postures = [(1.25, 0.0), (0.81, 0.99), (1.99, -0.99), (0.8, 0.0), (2.0, 0.0), (1.25, 1.0), (1.25, -1.0)]
    qpos = np.zeros((7, 9))
    qpos[:, 1:3] = postures
    ends = ends_of(env_class(), State(qpos, np.zeros((7, 9)), {}))
    assert ends.tolist() == [False, False, False, True, True, True, True]


def test_passive_walker_falls_over():
    env = Walker2DRandDirecEnv()
    env.reset(seed=0)
    ends = [env.step(np.zeros(6))[2] for _ in range(200)]
    assert not ends[0] and any(ends)


@pytest.mark.parametrize("env_class", ENVS)
def test_start_is_upright_with_uniform_noise(env_class):
    batched = env_class().make_batched(1000)
    batched.reset(np.arange(1000), [np.random.default_rng((0, i)) for i in range(1000)])
    state = batched.engine.get_state()
    noise = np.concatenate((state.qpos - [0.0, 1.25, 0, 0, 0, 0, 0, 0, 0], state.qvel), axis=1)
    assert 0.00499 < np.abs(noise).max() <= 0.005
    np.testing.assert_allclose(noise.std(axis=0), 0.01 / np.sqrt(12), rtol=0.08)


def test_target_velocities_are_uniform():
    tasks = np.array(Walker2DRandVelEnv().sample_tasks(10000, np.random.default_rng(0)))
    assert 0.0 <= tasks.min() < 0.02 and 9.98 < tasks.max() < 10.0
    assert tasks.mean() == pytest.approx(5.0, abs=0.15) and tasks.std() == pytest.approx(10.0 / np.sqrt(12), abs=0.08)
    assert Walker2DRandVelEnv(max_velocity=2.0).get_task() == 1.0


def test_parameters_are_scaled_by_up_to_three_powers():
    env = Walker2DRandParamsEnv()
    model = env.get_task()
    tasks = env.sample_tasks(50, np.random.default_rng(0))
    for name, base in (("body_mass", 1.5), ("dof_damping", 1.3), ("body_inertia", 1.5), ("geom_friction", 1.5)):
        positive = model[name] > 0.0
        exponents = np.log([task[name][positive] / model[name][positive] for task in tasks]) / np.log(base)
        assert 2.9 < np.abs(exponents).max() <= 3.0 + 1e-9
    assert set(Walker2DRandParamsEnv(1.0, ["body_mass"]).get_task()) == {"body_mass"}


@pytest.mark.parametrize("env_class, key", [
    (Walker2DRandDirecEnv, "reward_run"), (Walker2DRandVelEnv, "forward_vel"), (Walker2DRandParamsEnv, "reward_run")])
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
