"""Tests that the runner accepts scripts for garage."""
import csv
from typing import NamedTuple

import numpy as np
import pytest

from meta_policy_search.baselines import ZeroBaseline
from meta_policy_search.envs import EnvSpec, MetaPointEnvNavigation
from meta_policy_search.local_runner import LocalRunner
from meta_policy_search.np.algos import CEM, RLAlgorithm
from meta_policy_search.np.policies import DeterministicMLPPolicy
from meta_policy_search.samplers import SingleTaskSampler


class SnapshotConfig(NamedTuple):
    """The `SnapshotConfig` of garage."""

    snapshot_dir: str
    snapshot_mode: str
    snapshot_gap: int


def test_runner_trains_with_a_snapshot_config_in_a_with_block(tmp_path):
    """A script in the style of garage trains and writes rows and the requested snapshots."""
    env = MetaPointEnvNavigation()
    with LocalRunner(SnapshotConfig(str(tmp_path), "gap", 2)) as runner:
        policy = DeterministicMLPPolicy(2, 2, ())
        algo = CEM(EnvSpec.of(env), policy, ZeroBaseline(), n_samples=2, best_frac=0.5, max_path_length=3)
        runner.setup(algo, env)
        runner.train(n_epochs=3, batch_size=3)
    with open(tmp_path / "progress.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == 3
    assert (tmp_path / "itr_2.pkl").exists() and not (tmp_path / "itr_1.pkl").exists()


class FixedPolicy:
    """A policy with `get_actions` only."""

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


def test_runner_samples_with_a_policy_that_only_has_get_actions():
    runner, env = LocalRunner(), MetaPointEnvNavigation()
    runner.setup(Sampling(FixedPolicy(2)), env)
    runner.train(1, 10)
    assert [path["actions"].shape for path in runner.step_path] == [(5, 2)] * 2
    runner.setup(Sampling(FixedPolicy(2, 2)), env)
    with pytest.raises(ValueError, match=r"policy: expected actions of shape \(2,\), got \(2, 2\)"):
        runner.train(1, 10)
