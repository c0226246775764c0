"""Tests the hopper with random parameters: hand-computed reward, observation, start, termination."""
import numpy as np
import pytest

from meta_policy_search.envs.mujoco_envs import HopperRandParamsEnv
from meta_policy_search.envs.mujoco_envs.engines.base import State
from tests.helpers.robots import ends_of, engine_of, observations_of


def test_reward_by_hand():
    env = HopperRandParamsEnv()
    assert engine_of(env).model.opt.timestep == 0.002 and env.dt == pytest.approx(0.008)
    env.set_task(env.sample_tasks(1, np.random.default_rng(0))[0])
    env.reset(seed=0)
    x = engine_of(env).get_state().qpos[0, 0]
    _, reward, _, _, info = env.step(np.array([0.5, -1.0, 0.2]))
    velocity = (engine_of(env).get_state().qpos[0, 0] - x) / 0.008
    assert abs(velocity) > 1e-3
    assert info == pytest.approx({"reward_run": velocity, "reward_ctrl": -1e-3 * 1.29})
    assert reward == pytest.approx(velocity - 1e-3 * 1.29 + 1.0, abs=1e-12)


def test_observation_is_qpos_without_x_followed_by_clipped_qvel():
    env = HopperRandParamsEnv()
    state = State(np.arange(6.0)[None], np.array([[1.0, -11.0, 12.0, 0.0, 9.0, -10.0]]), {})
    observation = observations_of(env, state)
    np.testing.assert_array_equal(observation, [[1, 2, 3, 4, 5, 1.0, -10.0, 10.0, 0.0, 9.0, -10.0]])
    assert env.observation_space.shape == (11,) and env.action_space.shape == (3,)


@pytest.mark.parametrize("index, value, ends", [
    (1, 0.71, False), (1, 0.7, True), (1, 5.0, False),  # height, m
    (2, 0.19, False), (2, 0.2, True), (2, -0.2, True),  # pitch, rad
    (0, 1000.0, False),  # x position
    (5, 99.0, False), (5, -100.0, True),  # an angle
    (6, 99.0, False), (6, 100.0, True), (11, -100.0, True),  # velocities
])
def test_path_ends_when_the_hopper_falls_or_spins(index, value, ends):
    numbers = np.array([0.0, 1.25] + [0.0] * 10)
    numbers[index] = value
    state = State(numbers[None, :6], numbers[None, 6:], {})
    assert ends_of(HopperRandParamsEnv(), state).tolist() == [ends]


def test_passive_hopper_falls_over():
    env = HopperRandParamsEnv()
    env.reset(seed=0)
    ends = [env.step(np.zeros(3))[2] for _ in range(200)]
    assert not ends[0] and any(ends)


def test_start_is_upright_with_uniform_noise():
    batched = HopperRandParamsEnv().make_batched(1000)
    batched.reset(np.arange(1000), [np.random.default_rng((0, i)) for i in range(1000)])
    state = batched.engine.get_state()
    noise = np.concatenate((state.qpos - [0.0, 1.25, 0.0, 0.0, 0.0, 0.0], state.qvel), axis=1)
    assert 0.00499 < np.abs(noise).max() <= 0.005
    np.testing.assert_allclose(noise.std(axis=0), 0.01 / np.sqrt(12), rtol=0.08)
