"""A run is resumed with the settings that it began with, whoever edits `params.json`, and with no other trainer."""
import json

import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search.baselines import LinearFeatureBaseline, LinearTimeBaseline
from meta_policy_search.envs import MetaPointEnvCorner, MetaPointEnvNavigation, normalize
from meta_policy_search.meta_algos import TRPOMAML, VPGMAML, ProMP
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.optimizers import ConjugateGradientOptimizer
from meta_policy_search.policies import MetaGaussianMLPPolicy
from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger, set_seed
from meta_policy_search.utils.snapshotter import load_snapshot

# params.json


@pytest.mark.parametrize("algo, edited", [("vpg_maml", {"inner_lr": 0.2, "seed": 7}), ("cem", {"n_samples": 9})])
def test_edited_params_json_does_not_change_the_resumed_run(algo, edited, tmp_path):
    """The snapshot determines the settings, and `params.json` contains them again after resuming."""
    tiny = {"hidden_sizes": (4,), "max_path_length": 5, **({"n_samples": 10, "batch_size": 5} if algo == "cem" else
                                                           {"meta_batch_size": 2, "rollouts_per_meta_task": 2})}
    for name in ("whole", "edited"):
        mps.train("MetaPointEnvCorner", algo, 3 if name == "whole" else 2, dump_path=tmp_path / name, **tiny)
    path = tmp_path / "edited" / "params.json"
    params = json.loads(path.read_text())
    path.write_text(json.dumps({**params, "settings": {**params["settings"], **edited}}))
    resumed = mps.load_run(tmp_path / "edited").resume(3).progress
    whole = json.loads((tmp_path / "whole" / "params.json").read_text())
    assert json.loads(path.read_text())["settings"] == whole["settings"]
    expected = mps.plotting.read_progress(tmp_path / "whole")
    for name in expected.keys() - {name for name in expected if "Time" in name}:
        np.testing.assert_array_equal(resumed[name], expected[name])


# Trainer.restore


def build(algo_cls=ProMP, env=None, hidden_sizes=(4,), nonlinearity=tf.tanh, paths=3, horizon=4, discount=0.9,
          parallel=False, baseline=None, meta_batch_size=2, **arguments):
    set_seed(1)
    env = normalize(MetaPointEnvCorner()) if env is None else env
    policy = MetaGaussianMLPPolicy(meta_batch_size, 2, 2, hidden_sizes=hidden_sizes, hidden_nonlinearity=nonlinearity)
    algo = algo_cls(policy, meta_batch_size=meta_batch_size, **arguments)
    return Trainer(algo, env, MetaSampler(env, policy, paths, meta_batch_size, horizon, parallel=parallel),
                   MetaSampleProcessor(baseline or LinearFeatureBaseline(), discount), policy, 5,
                   num_inner_grad_steps=algo.num_inner_grad_steps)


def saved(folder, **arguments):
    """A snapshot of a trainer, from its file."""
    logger.configure(folder, ["csv"], overwrite=True)
    with tf.Graph().as_default():
        build(**arguments).train_itr()
        return load_snapshot(folder)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("run"))


@pytest.mark.parametrize("arguments, difference", [
    ({"paths": 5}, "sampler.rollouts_per_meta_task was 3, is 5"),
    ({"horizon": 6}, "sampler.max_path_length was 4, is 6"),
    ({"num_inner_grad_steps": 2}, "algo.num_inner_grad_steps was 1, is 2"),
    ({"discount": 0.99}, "sample_processor.discount was 0.9, is 0.99"),
    ({"inner_lr": 0.2}, "algo.inner_lr was 0.1, is 0.2"),
    ({"learning_rate": 0.1}, "algo.learning_rate was 0.001, is 0.1"),
    ({"clip_eps": 0.5}, "algo.clip_eps was 0.2, is 0.5"),
    ({"num_minibatches": 2}, "algo.num_minibatches was 1, is 2"),
    ({"first_order": True}, "algo.first_order was False, is True"),
    ({"tf_optimizer_args": {"beta1": 0.8}}, "algo.tf_optimizer_args was None, is {'beta1': [0.8]}"),
    ({"tf_optimizer_cls": tf.train.RMSPropOptimizer},
     "algo.tf_optimizer_cls was 'AdamOptimizer', is 'RMSPropOptimizer'"),
    ({"nonlinearity": tf.nn.relu}, "policy.hidden_nonlinearity was 'tanh', is 'relu'"),
    ({"hidden_sizes": (8, 8)}, "policy.hidden_sizes was [4], is [8, 8]"),
    ({"baseline": LinearTimeBaseline()},
     "sample_processor.baseline was 'LinearFeatureBaseline', is 'LinearTimeBaseline'"),
    ({"baseline": LinearFeatureBaseline(reg_coeff=1.0)},
     "sample_processor.baseline.reg_coeff was 1e-05, is 1.0"),
    ({"env": normalize(MetaPointEnvNavigation())},
     "sampler.env.env was 'MetaPointEnvCorner', is 'MetaPointEnvNavigation'"),
    ({"env": normalize(MetaPointEnvCorner(reward_type="dense"))},
     "sampler.env.env.reward_type was 'sparse', is 'dense'"),
    ({"env": MetaPointEnvCorner()}, "sampler.env was 'NormalizedEnv', is 'MetaPointEnvCorner'"),
    ({"meta_batch_size": 3}, "algo.meta_batch_size was 2, is 3"),
    ({"name": "other"}, "algo.name was 'ppo_maml', is 'other'"),  # it decides the order of Adam's variables
    ({"algo_cls": VPGMAML}, "algo was 'ProMP', is 'VPGMAML'"),
])
@pytest.mark.thorough(but=("arguments4-algo.inner_lr was 0.1, is 0.2", "arguments20-algo was 'ProMP', is 'VPGMAML'"))
def test_a_snapshot_of_another_configuration_is_refused(arguments, difference, snapshot):
    """Given a snapshot, then a trainer that was built with another argument names it, and does not change."""
    trainer = build(**arguments)
    before = trainer.policy.get_flat_params()
    with pytest.raises(ValueError) as error:
        trainer.restore(snapshot)
    assert difference in str(error.value)
    assert trainer.itr == 0
    np.testing.assert_array_equal(trainer.policy.get_flat_params(), before)


def test_a_snapshot_of_another_algorithm_with_the_same_state_is_refused(tmp_path):
    with pytest.raises(ValueError, match="algo was 'VPGMAML', is 'TRPOMAML'"):
        build(TRPOMAML).restore(saved(tmp_path, algo_cls=VPGMAML))


def test_arguments_of_an_optimizer_are_compared(tmp_path):
    def optimizer(cg_iters):
        return ConjugateGradientOptimizer(cg_iters=cg_iters)

    snapshot = saved(tmp_path, algo_cls=TRPOMAML, optimizer=optimizer(3))
    with tf.Graph().as_default():
        build(TRPOMAML, optimizer=optimizer(3)).restore(snapshot)
    with pytest.raises(ValueError, match="algo.optimizer.cg_iters was 3, is 4"):
        build(TRPOMAML, optimizer=optimizer(4)).restore(snapshot)


@pytest.mark.parametrize("arguments", [
    {"parallel": True}, {"nonlinearity": "tanh"}, {"nonlinearity": tf.nn.tanh},
    {"hidden_sizes": [4]}, {"discount": np.float64(0.9)}, {"inner_lr": 0.1, "tf_optimizer_args": None},
    {"env": normalize(MetaPointEnvCorner(render_mode="rgb_array"))},
], ids=["parallel", "name of a function", "alias of a function", "list", "NumPy number", "default", "render"])
@pytest.mark.thorough(but="parallel")
def test_what_does_not_change_the_data_may_differ(arguments, snapshot):
    """Given the same arguments in another form, or others that results do not depend on, then the run is resumed."""
    trainer = build(**arguments)
    trainer.restore(snapshot)
    trainer.sampler.close()
    assert trainer.itr == 1


def test_snapshots_without_arguments_are_restored_as_before(snapshot):
    """Given a snapshot that does not say how its parts were built, then these arguments are not compared."""
    state = {key: value for key, value in snapshot["state"].items() if key not in ("parts", "settings")}
    trainer = build(inner_lr=0.3)
    trainer.restore({**snapshot, "state": state})
    assert trainer.itr == 1
