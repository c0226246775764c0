"""Runs made in Python can be evaluated, plotted and resumed from their folder."""
import json

import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search.run import settings_of_algorithm
from meta_policy_search.samplers import meta_sampler
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger
from tests.helpers.trainers import build_trainer

SIZES = {"rollouts_per_meta_task": 2, "meta_batch_size": 3, "max_path_length": 5}


def make_trainer(n_itr=2, seed=3):
    mps.set_seed(seed)
    env = mps.normalize(mps.MetaPointEnvCorner(reward_type="dense"), normalization_scale=2.0)
    policy = mps.MetaGaussianMLPPolicy.for_env(env, 3, hidden_sizes=(4,))
    processor = mps.MetaSampleProcessor(mps.LinearFeatureBaseline(), discount=0.9, normalize_adv=True)
    return build_trainer(mps.VPGMAML, (3, 2, 5), n_itr, env, policy, processor, inner_lr=0.3, learning_rate=0.01,
                         trainable_inner_step_size=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Returns the folder and the trainer of a run of two iterations; tests must not change the folder."""
    folder = tmp_path_factory.mktemp("run")
    with tf.Graph().as_default(), logger.scoped_configure(folder, ["csv"], "all"):
        trainer = make_trainer()
        trainer.train()
    return folder, trainer


@pytest.mark.thorough
def test_sampler_of_the_run_is_not_started(tmp_path, monkeypatch):
    mps.train("MetaPointEnvCorner", "vpg_maml", 1, dump_path=tmp_path / "run", parallel=True, **SIZES)
    monkeypatch.setattr(meta_sampler, "MetaParallelEnvExecutor", None)
    assert mps.load_evaluator(tmp_path / "run").parallel is True
    assert mps.load_evaluator(tmp_path / "run", parallel=False).evaluate(2).task_returns.shape == (2, 2)


def test_run_without_a_seed_records_and_describes_none(tmp_path, monkeypatch):
    with tf.Graph().as_default(), logger.scoped_configure(tmp_path, ["csv"]):
        trainer = make_trainer(n_itr=1)
        monkeypatch.setattr(trainer, "_root", None)
        trainer.train()
    assert "seed" not in json.loads((tmp_path / "params.json").read_text())["settings"]
    assert mps.plotting.describe_run(tmp_path) == "VPG-MAML on MetaPointEnvCorner, inner step 0.3"


@pytest.mark.thorough
def test_given_optimizer_is_rebuilt(tmp_path):
    """A run with a user-provided optimizer, which holds tensors, has snapshots and resumes with an equal optimizer."""
    with tf.Graph().as_default(), logger.scoped_configure(tmp_path, ["csv"]):
        optimizer = mps.ConjugateGradientOptimizer(cg_iters=3, hvp_approach=mps.FiniteDifferenceHvp(base_eps=0.02))
        build_trainer(mps.TRPOMAML, optimizer=optimizer).train()
    again = mps.load_run(tmp_path).trainer.algo.optimizer
    assert repr(again) == repr(optimizer) and again is not optimizer
    assert repr(mps.load_evaluator(tmp_path).algo.optimizer) == repr(optimizer)


def test_params_json_records_the_training(run):
    params = json.loads((run[0] / "params.json").read_text())
    settings = params["settings"]
    assert (params["algorithm"], params["resumed"]) == ("vpg_maml", [])
    assert params["started"] <= params["ended"] and params["versions"]["meta_policy_search"] == mps.__version__
    expected = {"env": "MetaPointEnvCorner", "env_kwargs": {"reward_type": "dense"}, "normalization_scale": 2.0,
                "seed": 3, "n_itr": 2, "meta_batch_size": 3, "rollouts_per_meta_task": 2, "max_path_length": 5,
                "discount": 0.9,
                "baseline": "LinearFeatureBaseline", "hidden_sizes": [4], "hidden_nonlinearity": "tanh",
                "inner_lr": 0.3, "num_inner_grad_steps": 1, "learning_rate": 0.01}
    assert {name: settings.get(name) for name in expected} == expected
    assert params["options"]["parallel"] is False


def test_recorded_settings_are_settings_of_the_algorithm(tmp_path):
    """RL2 has no inner steps: the `num_inner_grad_steps` of its trainer is no setting."""
    mps.train("MetaPointEnvCorner", "rl2", 1, dump_path=tmp_path / "run", progress_bar=False, **SIZES)
    recorded = json.loads((tmp_path / "run" / "params.json").read_text())["settings"]
    assert recorded.keys() - {"start_itr"} <= settings_of_algorithm(mps.RL2).keys()


@pytest.mark.thorough
def test_params_json_is_rewritten_for_another_run(tmp_path):
    with logger.scoped_configure(tmp_path, ["csv"]):
        make_trainer(1).train()
    with logger.scoped_configure(tmp_path, ["csv"], overwrite=True):
        make_trainer(1, seed=4).train()
    params = json.loads((tmp_path / "params.json").read_text())
    assert params["settings"]["seed"] == 4 and params["resumed"] == []


def test_params_json_of_the_user_is_kept(tmp_path):
    (tmp_path / "params.json").write_text('{"learning_rate": 1}')
    with logger.scoped_configure(tmp_path, ["csv"]):
        make_trainer(1).train()
    assert (tmp_path / "params.json").read_text() == '{"learning_rate": 1}'


@pytest.mark.thorough
def test_loaded_evaluator_equals_that_of_the_trainer(run):
    folder, trainer = run
    evaluator = mps.load_evaluator(folder)
    assert evaluator.name == f"{folder}, iteration 1"
    expected = mps.MetaEvaluator.from_trainer(trainer).evaluate(tasks=2, num_steps=2)
    np.testing.assert_allclose(evaluator.evaluate(tasks=2, num_steps=2).returns, expected.returns, rtol=1e-5)
    assert all(np.abs(size - 0.3).max() > 1e-3 for size in evaluator.algo.get_step_sizes().values())
    assert mps.load_evaluator(folder, rollouts_per_meta_task=1, max_path_length=3).max_path_length == 3


@pytest.mark.thorough
def test_random_initialization_equals_the_start_of_the_run(run):
    with tf.Graph().as_default():
        expected = make_trainer().policy.get_param_values()
    algo = mps.load_evaluator(run[0], snapshot=None).algo
    for name, value in algo.policy.get_param_values().items():
        np.testing.assert_array_equal(value, expected[name])
    assert all(np.allclose(size, 0.3) for size in algo.get_step_sizes().values())


@pytest.mark.parametrize("arguments, error, message", [
    ({"snapshot": "bestt"}, ValueError, "snapshot: expected 'last', 'best', the number of an iteration or None, got"),
    ({"snapshot": -1}, ValueError, "snapshot: expected an integer of at least 0, got -1"),
    ({"env": "MetaPointEnv"}, TypeError, "env: expected a meta-environment, got the name 'MetaPointEnv': pass"),
])
def test_wrong_arguments_are_named(run, arguments, error, message):
    with pytest.raises(error, match=message):
        mps.load_evaluator(run[0], **arguments)


class KwargsVPG(mps.VPGMAML):
    """A user-defined algorithm that passes `*args` and `**kwargs` to its base."""

    def __init__(self, *args, note="", **kwargs):
        super().__init__(*args, **kwargs)
        self.note = note


class WithNote(mps.MetaSampler):
    """A user-defined sampler with one additional argument."""

    def __init__(self, env, note, **kwargs):
        super().__init__(env, **kwargs)
        self.note = note


@pytest.mark.thorough
def test_classes_that_forward_arguments_are_rebuilt(tmp_path):
    """For subclasses with `*args` and `**kwargs`, `train` accepts the forwarded arguments, and runs resume."""
    with tf.Graph().as_default(), logger.scoped_configure(tmp_path / "run", ["csv"]):
        env = mps.MetaPointEnvCorner()
        policy = mps.MetaGaussianMLPPolicy.for_env(env, 2, hidden_sizes=())
        sampler = WithNote(env, "b", policy=policy, rollouts_per_meta_task=2, meta_batch_size=2, max_path_length=5)
        processor = mps.MetaSampleProcessor(mps.LinearFeatureBaseline())
        mps.Trainer(KwargsVPG(policy, 0.3, 2, note="a"), env, sampler, processor, policy, n_itr=1).train()
    trainer = mps.load_run(tmp_path / "run").resume(2).trainer
    assert (trainer.algo.note, trainer.algo.inner_lr, trainer.sampler.note, trainer.itr) == ("a", 0.3, "b", 2)
    evaluator = mps.load_evaluator(tmp_path / "run", max_path_length=3)
    assert (evaluator.algo.note, evaluator.rollouts_per_meta_task, evaluator.max_path_length) == ("a", 2, 3)


def test_settings_reach_forwarded_arguments(tmp_path):
    settings = {**SIZES, "meta_batch_size": 2, "hidden_sizes": (), "note": "c", "inner_lr": 0.2}
    run = mps.train("MetaPointEnvCorner", KwargsVPG, 1, dump_path=tmp_path / "run", num_inner_grad_steps=2, **settings)
    assert (run.trainer.algo.note, run.trainer.algo.inner_lr, run.trainer.num_inner_grad_steps) == ("c", 0.2, 2)


@pytest.mark.thorough
def test_a_given_environment_receives_the_averages_of_the_run(tmp_path):
    def make_env(**arguments):
        return mps.normalize(mps.MetaPointEnvCorner(), **arguments)

    run = mps.train(make_env(normalize_obs=True, obs_alpha=0.5), "vpg_maml", 1, dump_path=tmp_path / "run", **SIZES)
    env = make_env(normalize_obs=True)
    evaluator = mps.load_evaluator(tmp_path / "run", env=env)
    np.testing.assert_array_equal(evaluator.evaluate(2).returns, run.evaluate(tasks=2).returns)
    np.testing.assert_array_equal(env.averages["observations"], [[0.0, 0.0], [1.0, 1.0]])  # that of the user
    for arguments, names in (({}, "observations"), ({"normalize_obs": True, "normalize_reward": True}, "observations")):
        with pytest.raises(ValueError, match=f"env: expected normalized {names}, as in training"):
            mps.load_evaluator(tmp_path / "run", env=make_env(**arguments))
