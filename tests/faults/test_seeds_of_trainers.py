"""Every trainer uses the seed that was set before its construction, regardless of later seeds."""
import numpy as np
import pytest

from meta_policy_search import CEM, EnvSpec, LinearFeatureBaseline, LocalRunner, MetaPointEnvNavigation, set_seed
from meta_policy_search.np.policies import GaussianMLPPolicy
from meta_policy_search.utils import seeding
from tests.helpers.trainers import build_trainer


def build(seed=None):
    return build_trainer(env=MetaPointEnvNavigation(), n_itr=2, seed=seed)


def train(trainer):
    """Returns the tasks of the last iteration and the final parameters."""
    trainer.train()
    return np.array(trainer.sampler.tasks), trainer.policy.get_flat_params()


@pytest.mark.thorough
def test_trainers_built_before_training_use_separate_seeds():
    alone = [train(build(seed)) for seed in (1, 3)]
    trainers = [build(seed) for seed in (1, 3)]
    for trainer, (tasks, params) in zip(trainers, alone, strict=True):
        for actual, expected in zip(train(trainer), (tasks, params)):
            np.testing.assert_array_equal(actual, expected)
    assert not np.allclose(alone[0][0], alone[1][0])
    assert seeding.get_root() == 3  # the seed at construction
    assert trainers[0].get_itr_snapshot(1)["state"]["seeding"]["root"] == 1


def test_runners_use_the_seed_at_construction():
    def build_runner(seed):
        set_seed(seed)
        env = MetaPointEnvNavigation()
        runner = LocalRunner()
        runner.setup(CEM(EnvSpec.of(env), GaussianMLPPolicy(2, 2, ()), LinearFeatureBaseline(), 4, best_frac=0.5,
                         max_path_length=4), env)
        return runner

    alone = [build_runner(seed).train(2, 8) for seed in (1, 2)]
    runners = [build_runner(seed) for seed in (1, 2)]
    assert [runner.train(2, 8) for runner in runners] == alone


def test_training_reports_a_seed_that_was_set_later(messages):
    trainer = build(1)
    trainer.train_itr()
    assert messages == []
    set_seed(4)
    trainer.train_itr()
    assert messages == ["set_seed(4) was ignored: the Trainer keeps seed 1"]


@pytest.mark.thorough
def test_without_a_seed_the_seed_at_the_start_of_training_is_used(monkeypatch):
    monkeypatch.setattr(seeding, "_root", None)
    monkeypatch.setattr(seeding, "_is_chosen", False)
    first, second = build(), build()
    for trainer in (first, second):
        set_seed(5)
        trainer.policy.set_flat_params(np.zeros(8))
        trainer.train_itr()
    np.testing.assert_array_equal(first.sampler.tasks, second.sampler.tasks)
    set_seed(5)
    expected = build()
    expected.train_itr()
    np.testing.assert_array_equal(first.sampler.tasks, expected.sampler.tasks)


def test_evaluation_does_not_count_as_setting_a_seed(monkeypatch):
    monkeypatch.setattr(seeding, "_root", None)
    monkeypatch.setattr(seeding, "_is_chosen", False)
    with seeding.evaluation_seed(3):
        assert seeding.chosen_root() == seeding.get_root()
    assert seeding.chosen_root() is None
