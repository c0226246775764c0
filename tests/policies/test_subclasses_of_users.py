"""Tests user-defined subclasses in plain Python: without `quick_init`, with additional arguments."""
import csv

import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search.policies import (
    CategoricalMLPPolicy,
    GaussianMLPPolicy,
    MetaCategoricalMLPPolicy,
    MetaGaussianMLPPolicy,
    MetaPolicy,
)
from meta_policy_search.samplers import MetaSampleProcessor
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger
from meta_policy_search.utils.utils import set_seed

M, P, T = 2, 3, 4


class BoundedPolicy(MetaGaussianMLPPolicy):
    """A policy whose mean is bounded."""

    def __init__(self, meta_batch_size, obs_dim, action_dim, bound=1.0, **kwargs):
        self.bound = bound
        super().__init__(meta_batch_size, obs_dim, action_dim, **kwargs)

    def distribution_info_sym(self, obs_var, params=None):
        info = super().distribution_info_sym(obs_var, params)
        return {**info, "mean": self.bound * tf.tanh(info["mean"] / self.bound)}


class ScaledVPG(mps.VPGMAML):
    """An algorithm whose inner step size is given in percent."""

    def __init__(self, policy, percent=10.0, **kwargs):
        super().__init__(policy, inner_lr=percent / 100.0, **kwargs)
        self.percent = percent


def train(folder, n_itr):
    """Trains a `BoundedPolicy` with a `ScaledVPG`; returns the policy."""
    with tf.Graph().as_default():
        set_seed(1)
        env = mps.normalize(mps.MetaPointEnvCorner())
        policy = BoundedPolicy(M, 2, 2, bound=0.5, hidden_sizes=(4,))
        algo = ScaledVPG(policy, percent=20.0, meta_batch_size=M)
        processor = mps.MetaSampleProcessor(mps.LinearFeatureBaseline(), normalize_adv=True)
        with logger.scoped_configure(folder, ["csv"]), mps.MetaSampler(env, policy, P, M, T) as sampler:
            mps.Trainer(algo, env, sampler, processor, policy, n_itr).train()
        return policy


def returns_of(folder):
    with open(folder / "progress.csv") as file:
        return [row["Step_1-AverageReturn"] for row in csv.DictReader(file)]


def test_resumed_run_of_subclasses_equals_uninterrupted_run(tmp_path):
    # given a run of three iterations, and one that is stopped after the first
    whole = train(tmp_path / "whole", 3)
    train(tmp_path / "parts", 1)
    # when the second one is loaded and resumed
    run = mps.load_run(tmp_path / "parts")
    assert type(run.policy) is BoundedPolicy and run.policy.bound == 0.5
    assert type(run.trainer.algo) is ScaledVPG and run.trainer.algo.percent == 20.0
    run.resume(3, log_formats=["csv"])
    # then both are equal
    assert returns_of(tmp_path / "parts") == returns_of(tmp_path / "whole")
    np.testing.assert_array_equal(run.policy.get_flat_params(), whole.get_flat_params())


def test_mps_train_accepts_a_subclass_with_additional_arguments(tmp_path):
    run = mps.train("MetaPointEnvCorner", ScaledVPG, n_itr=1, dump_path=tmp_path / "run", log_formats=["csv"],
                    percent=30.0, meta_batch_size=M, rollouts_per_meta_task=P, max_path_length=T, progress_bar=False)
    assert run.trainer.algo.percent == 30.0 and run.trainer.algo.inner_lr == pytest.approx(0.3)
    loaded = mps.load_run(tmp_path / "run")
    loaded.resume(2, log_formats=["csv"])
    assert loaded.trainer.algo.percent == 30.0 and len(returns_of(tmp_path / "run")) == 2


@pytest.mark.parametrize("cls, bases", [
    (MetaGaussianMLPPolicy, (GaussianMLPPolicy, MetaPolicy)),
    (MetaCategoricalMLPPolicy, (CategoricalMLPPolicy, MetaPolicy)),
    (mps.DiceMetaSampleProcessor, (MetaSampleProcessor, mps.DiceSampleProcessor)),
])
def test_classes_do_not_depend_on_the_order_of_their_bases(cls, bases):
    """Every attribute is the same function or object if the bases are swapped."""
    assert cls.__bases__ == bases
    own = {name: value for name, value in vars(cls).items() if not name.startswith("__") or name == "__init__"}
    swapped = type("Swapped", bases[::-1], own)
    for name in {name for name in dir(cls) if not name.startswith("__")} - {"_abc_impl"} | {"__init__", "__getstate__"}:
        ours, theirs = (next((vars(c)[name] for c in each.__mro__ if name in vars(c)), None) for each in (cls, swapped))
        assert ours is theirs, name


def test_policy_for_another_number_of_tasks_shares_parameters_and_can_be_pickled():
    policy = BoundedPolicy(M, 2, 2, bound=0.5, hidden_sizes=(4,))
    adapted = np.ones((M, len(policy.get_flat_params())))
    policy.load_params(adapted)
    other = policy.with_meta_batch_size(5)
    assert type(other) is BoundedPolicy and (other.meta_batch_size, policy.meta_batch_size) == (5, M)
    other.set_flat_params(np.full(adapted.shape[1], 2.0))
    np.testing.assert_array_equal(policy.get_flat_params(), 2.0)  # one set of variables
    np.testing.assert_array_equal(other.policies_params_vals[4]["mean_network/output/bias"], 2.0)
    np.testing.assert_array_equal(policy.policies_params_vals[0]["mean_network/output/bias"], 1.0)
    copied = other.clone()
    assert copied.meta_batch_size == 5 and copied.bound == 0.5
    assert repr(other) == "BoundedPolicy(meta_batch_size=5, obs_dim=2, action_dim=2, bound=0.5)"


def test_override_of_an_unused_method_is_refused():
    with pytest.raises(TypeError, match="Old._get_pre_update_actions: .*never calls .*; override get_actions"):
        type("Old", (MetaGaussianMLPPolicy,), {"_get_pre_update_actions": lambda self: None})
