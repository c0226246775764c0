"""Tests environments whose observation includes the task."""
import numpy as np
import pytest

from meta_policy_search.envs import make_env
from meta_policy_search.envs.compat import adapt_env
from meta_policy_search.envs.task_observing_env import TaskObservingEnv

NAMES = ["MetaPointEnvCorner", "HalfCheetahRandDirecEnv", "HalfCheetahRandVelEnv"]


@pytest.mark.parametrize("name", NAMES)
def test_observations_end_with_the_task(name):
    plain, env = make_env(name), TaskObservingEnv(make_env(name))
    for task in env.sample_tasks(3, np.random.default_rng(1)):
        env.set_task(task)
        numbers = np.ravel(task)
        first, _ = env.reset(seed=1)
        second = env.step(env.action_space.low)[0]
        for observation in (first, second):
            np.testing.assert_array_equal(observation[-len(numbers):], numbers)
            assert env.observation_space.contains(observation)
    assert env.observation_space.shape[0] == plain.observation_space.shape[0] + len(numbers)


@pytest.mark.parametrize("name", NAMES)
def test_vectorized_environment_equals_single_environments(name):
    env = TaskObservingEnv(make_env(name))
    batched, tasks = adapt_env(env).make_batched(3), env.sample_tasks(3, np.random.default_rng(2))
    batched.set_tasks(tasks)
    observations = batched.reset(np.arange(3), [np.random.default_rng(i) for i in range(3)])
    actions = np.random.default_rng(3).uniform(-5.0, 5.0, (2, *env.action_space.shape))
    answer = batched.step(actions, np.array([2, 0]))
    for row, i in enumerate((2, 0)):
        env.set_task(tasks[i])
        env.np_random = np.random.default_rng(i)
        np.testing.assert_array_equal(observations[i], env.reset()[0])
        observation, reward, *_ = env.step(actions[row])
        np.testing.assert_array_equal(answer.observations[row], observation)
        assert answer.rewards[row] == reward


def test_non_numeric_tasks_are_refused():
    with pytest.raises(TypeError, match="observe_task: expected an environment with numeric tasks"):
        TaskObservingEnv(make_env("HopperRandParamsEnv"))
