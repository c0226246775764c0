"""Tests sampling of discrete actions: equal data from all executors, and refused mismatches."""
import sys

import cloudpickle
import gymnasium
import numpy as np
import pytest

from meta_policy_search.baselines import LinearFeatureBaseline, LinearTimeBaseline
from meta_policy_search.envs import MetaPointEnvCorner, MetaTabularMDPEnv
from meta_policy_search.policies import MetaCategoricalMLPPolicy, MetaGaussianMLPPolicy
from meta_policy_search.samplers import DiceMetaSampleProcessor, MetaSampleProcessor
from meta_policy_search.utils.gym_import import gym
from tests.helpers.runs import assert_same
from tests.helpers.sampling import Ending, flat_paths, make_policy, parallel, sampler_of, two_iterations

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # keeps workers from importing this file and pytest

M, P, T, S, A = 3, 4, 6, 4, 3


class GymnasiumCounter(gymnasium.Env):
    """Counts its actions; ends with probability 0.2 per step; checks that actions are in its action space."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = gymnasium.spaces.Discrete(A)

    def sample_tasks(self, n_tasks):
        return list(self.np_random.normal(size=n_tasks))

    def set_task(self, task):
        self.task = task

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.sum = self.np_random.normal()
        return np.array([self.sum]), {}

    def step(self, action):
        assert action in self.action_space and isinstance(action, (int, np.integer)), action
        self.sum += action
        return np.array([self.sum]), self.task * self.sum, self.np_random.random() < 0.2, False, {"chosen": action}


def test_gymnasium_environment_gets_integers_and_equal_data_in_worker_processes():
    env = GymnasiumCounter()
    policy = make_policy(env)
    expected = two_iterations(sampler_of(env, policy))
    assert_same(two_iterations(sampler_of(env, policy, executor=parallel(2), envs_per_task=2)), expected)
    for path in flat_paths(expected[0]):
        np.testing.assert_array_equal(path["env_infos"]["chosen"], path["actions"])
        sums = np.append(path["observations"], path["last_observation"])
        np.testing.assert_allclose(np.diff(sums), path["actions"], atol=1e-12)


def test_actions_have_the_reported_probabilities():
    env = MetaTabularMDPEnv(S, A)
    policy = make_policy(env, scale=1.0)
    sampler = sampler_of(env, policy, rollouts_per_meta_task=200, max_path_length=20)
    paths = flat_paths(sampler.obtain_samples())
    actions = np.concatenate([path["actions"] for path in paths])
    probabilities = np.exp(np.concatenate([path["agent_infos"]["log_prob"] for path in paths]))
    assert np.ptp(probabilities, axis=0).min() > 0.2  # probabilities differ between tasks and states
    for action in range(A):
        expected = probabilities[:, action]
        deviation = np.sqrt(np.sum(expected * (1.0 - expected)))
        assert abs(np.sum(actions == action) - expected.sum()) < 5 * deviation


def test_processors_keep_actions_unchanged():
    paths = sampler_of(Ending()).obtain_samples()
    actions = [np.concatenate([path["actions"] for path in task_paths]) for task_paths in paths.values()]
    for samples, expected in zip(MetaSampleProcessor(LinearFeatureBaseline()).process_samples(paths), actions):
        np.testing.assert_array_equal(samples["actions"], expected)
        assert samples["actions"].dtype == np.int64
    dice = DiceMetaSampleProcessor(LinearTimeBaseline(), T, return_baseline=LinearFeatureBaseline())
    for samples, expected in zip(dice.process_samples(paths), actions):
        assert samples["actions"].shape == (P, T) and samples["actions"].dtype == np.int64
        np.testing.assert_array_equal(samples["actions"][samples["mask"] > 0], expected)
        assert not samples["actions"][samples["mask"] == 0].any()


def shifted():
    """An environment whose smallest action is 1."""
    env = MetaTabularMDPEnv(S, A)
    env.action_space = gym.spaces.Discrete(A, start=1)
    return env


@pytest.mark.parametrize("make_env, policy_cls, sizes, message", [
    (MetaTabularMDPEnv, MetaGaussianMLPPolicy, (10, 5),
     r"policy: expected a policy for the action space Discrete\(5\), got a MetaGaussianMLPPolicy, "
     r"whose actions are arrays of shape \(5,\)"),
    (MetaPointEnvCorner, MetaCategoricalMLPPolicy, (2, 2),
     r"policy: expected a policy for the action space Box\(.*, got a MetaCategoricalMLPPolicy, "
     "whose actions are integers"),
    (MetaTabularMDPEnv, MetaCategoricalMLPPolicy, (10, 4), r"policy.action_dim: expected \(5,\), .* got 4"),
    (MetaTabularMDPEnv, MetaCategoricalMLPPolicy, (9, 5), r"policy.obs_dim: expected \(10,\), .* got 9"),
    (shifted, MetaCategoricalMLPPolicy, (S, A), r"env.action_space: expected discrete actions numbered from 0, got "),
])
def test_mismatched_policy_and_environment_are_refused(make_env, policy_cls, sizes, message):
    with pytest.raises(ValueError, match=message):
        sampler_of(make_env(), policy_cls(M, *sizes, hidden_sizes=()))
