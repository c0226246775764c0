"""Tests the swimmer: hand-computed reward, observation, start, tasks. For common properties see test_contract.py."""
import numpy as np
import pytest

from meta_policy_search.envs.mujoco_envs import SwimmerRandVelEnv
from meta_policy_search.envs.mujoco_envs.engines.base import State
from meta_policy_search.utils import logger
from tests.helpers.robots import engine_of, observations_of


@pytest.mark.parametrize("goal", [0.15, -0.3])
def test_reward_by_hand(goal):
    env = SwimmerRandVelEnv()
    assert engine_of(env).model.opt.timestep == 0.01 and env.dt == pytest.approx(0.04)
    env.set_task(goal)
    env.reset(seed=0)
    x = engine_of(env).get_state().qpos[0, 0]
    _, reward, terminated, _, info = env.step(np.array([0.5, -1.0]))
    velocity = (engine_of(env).get_state().qpos[0, 0] - x) / 0.04
    assert abs(velocity) > 1e-3 and not terminated
    away = abs(velocity - goal)
    assert info == pytest.approx({"forward_vel": velocity, "reward_fwd": -away, "reward_ctrl": -1e-4 * 1.25})
    assert reward == pytest.approx(-away - 1e-4 * 1.25, abs=1e-12)


def test_observation_is_qpos_without_x_and_y_followed_by_qvel():
    env = SwimmerRandVelEnv()
    observation = observations_of(env, State(np.arange(5.0)[None], 50.0 + np.arange(5.0)[None], {}))
    np.testing.assert_array_equal(observation, [[2, 3, 4, 50, 51, 52, 53, 54]])
    assert env.observation_space.shape == (8,) and env.action_space.shape == (2,)


def test_start_is_straight_with_uniform_noise():
    batched = SwimmerRandVelEnv().make_batched(1000)
    batched.reset(np.arange(1000), [np.random.default_rng((0, i)) for i in range(1000)])
    state = batched.engine.get_state()
    noise = np.concatenate((state.qpos, state.qvel), axis=1)  # initial position of the model: zero
    assert 0.0999 < np.abs(noise).max() <= 0.1
    np.testing.assert_allclose(noise.std(axis=0), 0.2 / np.sqrt(12), rtol=0.08)


def test_links_have_no_collisions():
    model = engine_of(SwimmerRandVelEnv()).model
    collides = (model.geom_contype[:, None] & model.geom_conaffinity[None]) != 0
    assert not collides.any()


def test_target_velocities_are_uniform():
    tasks = np.array(SwimmerRandVelEnv().sample_tasks(10000, np.random.default_rng(0)))
    assert 0.1 <= tasks.min() < 0.1001 and 0.1999 < tasks.max() < 0.2
    assert tasks.mean() == pytest.approx(0.15, abs=0.001)
    tasks = SwimmerRandVelEnv(min_velocity=-1.0, max_velocity=0.5).sample_tasks(1000, np.random.default_rng(0))
    assert -1.0 <= min(tasks) < -0.98 and 0.48 < max(tasks) < 0.5


@pytest.mark.parametrize("arguments, error, named", [
    (dict(min_velocity=0.3), ValueError, "max_velocity: expected a number above 0.3, got 0.2"),
    (dict(max_velocity=0.1), ValueError, "max_velocity: expected a number above 0.1, got 0.1"),
    (dict(max_velocity=np.nan), ValueError, "max_velocity: expected a finite number, got nan"),
    (dict(min_velocity="slow"), TypeError, "min_velocity: expected a finite number, got 'slow'"),
])
def test_invalid_arguments_are_named(arguments, error, named):
    with pytest.raises(error, match=named):
        SwimmerRandVelEnv(**arguments)


def test_diagnostics_are_means_over_steps_and_last_steps(monkeypatch):
    logged = {}
    monkeypatch.setattr(logger, "logkv", logged.__setitem__)
    paths = [{"env_infos": {"forward_vel": np.array([1.0, 2.0, 3.0]), "reward_ctrl": np.array([-0.1, -0.2, -0.3])}}]
    SwimmerRandVelEnv().log_diagnostics(paths, prefix="Step_0-")
    assert logged == pytest.approx(
        {"Step_0-AvgForwardVel": 2.0, "Step_0-AvgFinalForwardVel": 3.0, "Step_0-AvgCtrlCost": 0.2})
