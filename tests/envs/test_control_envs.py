"""Tests cart-pole and pendulum with different masses: motion compared with gym."""
import numpy as np
import pytest

from meta_policy_search.envs import CartPoleMassEnv, PendulumMassEnv
from meta_policy_search.utils.gym_import import gym


def gyms(name, task):
    """Returns gym's environment with the masses of a task."""
    env = gym.make(name, disable_env_checker=True).unwrapped
    if name == "Pendulum-v1":
        (env.m,) = task
    else:
        env.masscart, env.masspole = task
        env.total_mass, env.polemass_length = sum(task), task[1] * env.length
    return env


@pytest.mark.parametrize("cls, name, task", [
    (CartPoleMassEnv, "CartPole-v1", (1.0, 0.1)), (CartPoleMassEnv, "CartPole-v1", (2.0, 0.05)),
    (PendulumMassEnv, "Pendulum-v1", (1.0,)), (PendulumMassEnv, "Pendulum-v1", (1.7,)),
])
def test_motion_equals_gym(cls, name, task):
    env, theirs = cls(), gyms(name, task)
    env.set_task(task)
    rng = np.random.default_rng(0)
    for path in range(5):
        env.reset(seed=path)
        theirs.reset(seed=path)
        theirs.state = env._batched.states[0].copy()
        for _ in range(50):
            action = rng.integers(2) if name == "CartPole-v1" else rng.uniform(-3.0, 3.0, 1)
            observation, reward, terminated, _, _ = env.step(action)
            expected = theirs.step(action)
            np.testing.assert_allclose(observation, expected[0], rtol=1e-5, atol=1e-6)
            assert reward == pytest.approx(expected[1], rel=1e-6)
            assert terminated == expected[2]
            if terminated:
                break


def test_default_masses_equal_gym():
    assert CartPoleMassEnv().get_task().tolist() == [1.0, 0.1] and PendulumMassEnv().get_task().tolist() == [1.0]
