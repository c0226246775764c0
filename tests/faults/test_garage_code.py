"""Scripts for garage: what a runner takes."""

import numpy as np
import pytest

from meta_policy_search.envs import MetaPointEnvNavigation
from meta_policy_search.local_runner import LocalRunner
from meta_policy_search.np.algos import RLAlgorithm
from meta_policy_search.samplers import SingleTaskSampler


class FixedPolicy:
    """A policy with `get_actions` alone."""

    def __init__(self, *shape):
        self.shape = shape

    def get_actions(self, observations):
        return np.full((len(observations), *self.shape), 0.1), None


class Sampling(RLAlgorithm):
    """An algorithm that only collects paths."""

    sampler_cls, max_path_length = SingleTaskSampler, 5

    def __init__(self, policy):
        self.policy = policy

    def train(self, runner):
        for _ in runner.step_epochs():
            runner.step_path = runner.obtain_samples(runner.step_itr)
            runner.step_itr += 1


def test_a_runner_samples_with_a_policy_of_get_actions_alone():
    runner, env = LocalRunner(), MetaPointEnvNavigation()
    runner.setup(Sampling(FixedPolicy(2)), env)
    runner.train(1, 10)
    assert [path["actions"].shape for path in runner.step_path] == [(5, 2)] * 2
    runner.setup(Sampling(FixedPolicy(2, 2)), env)
    with pytest.raises(ValueError, match=r"policy: expected actions of shape \(2,\), got \(2, 2\)"):
        runner.train(1, 10)
