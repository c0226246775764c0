"""A snapshot is restored only by a trainer with the same settings."""
import functools

import numpy as np
import pytest

from meta_policy_search import TRPOMAML, VPGMAML, MetaGaussianMLPPolicy, ProMP, load_snapshot, logger
from meta_policy_search.baselines import LinearFeatureBaseline
from meta_policy_search.envs import MetaPointEnvCorner, MetaPointEnvNavigation, normalize
from meta_policy_search.optimizers import ConjugateGradientOptimizer
from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler
from meta_policy_search.tf_compat import tf
from tests.helpers.trainers import build_trainer


def build(algo_cls=ProMP, env=None, hidden_sizes=(4,), nonlinearity=tf.tanh, paths=3, horizon=4, discount=0.9,
          parallel=False, baseline=None, meta_batch_size=2, **arguments):
    policy = MetaGaussianMLPPolicy(meta_batch_size, 2, 2, hidden_sizes=hidden_sizes, hidden_nonlinearity=nonlinearity)
    return build_trainer(algo_cls, (meta_batch_size, paths, horizon), 5, env or normalize(MetaPointEnvCorner()), policy,
                         MetaSampleProcessor(baseline or LinearFeatureBaseline(), discount),
                         functools.partial(MetaSampler, parallel=parallel), seed=1, **arguments)


def saved(folder, **arguments):
    """A snapshot of a trainer, from its file."""
    logger.configure(folder, ["csv"], overwrite=True)
    with tf.Graph().as_default():
        build(**arguments).train_itr()
        return load_snapshot(folder)


def test_damaged_record_of_a_run_is_not_overwritten(tmp_path):
    saved(tmp_path)
    (tmp_path / "params.json").write_text("{damaged")
    logger.configure(tmp_path, ["csv"], resume_at=1)
    with tf.Graph().as_default(), pytest.raises(ValueError, match="could not read .*params.json as JSON"):
        build().train()
    assert (tmp_path / "params.json").read_text() == "{damaged"


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("run"))


@pytest.mark.parametrize("arguments, difference", [
    ({"discount": 0.99}, "discount 0.9 (snapshot), 0.99 (trainer)"),
    ({"inner_lr": 0.2}, "inner_lr 0.1 (snapshot), 0.2 (trainer)"),
    ({"tf_optimizer_cls": tf.train.RMSPropOptimizer},
     "tf_optimizer_cls 'Adam' (snapshot), 'RMSPropOptimizer' (trainer)"),
    ({"nonlinearity": tf.nn.relu}, "hidden_nonlinearity 'tanh' (snapshot), 'relu' (trainer)"),
    ({"baseline": LinearFeatureBaseline(reg_coeff=1.0)},
     "baseline 'LinearFeatureBaseline' (snapshot), 'LinearFeatureBaseline(reg_coeff=1.0)' (trainer)"),
    ({"env": normalize(MetaPointEnvNavigation())}, "classes ['MetaPointEnvCorner', 'NormalizedEnv', "),
    ({"env": normalize(MetaPointEnvCorner(reward_type="dense"))}, "reward_type 'sparse' (snapshot), 'dense' (trainer)"),
    ({"algo_cls": VPGMAML}, "'VPGMAML', 'MetaSampler'] (trainer)"),
], ids=lambda value: value.split()[0].rpartition(".")[2] if isinstance(value, str) else "")
@pytest.mark.thorough(but="-inner_lr", ci=("-discount", "-baseline", "-tf_optimizer_cls", "-reward_type", "-classes"))
def test_a_snapshot_of_another_configuration_is_refused(arguments, difference, snapshot):
    """Given a snapshot, then a trainer that was built with another argument names it, and does not change."""
    trainer = build(**arguments)
    before = trainer.policy.get_flat_params()
    with pytest.raises(ValueError) as error:
        trainer.restore(snapshot)
    assert difference in str(error.value)
    assert trainer.itr == 0
    np.testing.assert_array_equal(trainer.policy.get_flat_params(), before)


@pytest.mark.thorough
def test_arguments_of_an_optimizer_are_compared(tmp_path):
    def optimizer(cg_iters):
        return ConjugateGradientOptimizer(cg_iters=cg_iters)

    snapshot = saved(tmp_path, algo_cls=TRPOMAML, optimizer=optimizer(3))
    with pytest.raises(ValueError, match=r"optimizer .Con.*cg_iters=3.* \(snapshot\), .*cg_iters=4.* \(trainer\)"):
        build(TRPOMAML, optimizer=optimizer(4)).restore(snapshot)


@pytest.mark.parametrize("arguments", [
    {"parallel": True}, {"nonlinearity": "tanh"}, {"nonlinearity": tf.nn.tanh},
    {"hidden_sizes": [4]}, {"discount": np.float64(0.9)}, {"inner_lr": 0.1, "tf_optimizer_args": None},
    {"env": normalize(MetaPointEnvCorner(render_mode="rgb_array"))},
], ids=["parallel", "name of a function", "alias of a function", "list", "NumPy number", "default", "render"])
@pytest.mark.thorough(but="parallel", ci=("alias of a function", "render"))
def test_what_does_not_change_the_data_may_differ(arguments, snapshot):
    """Given the same arguments in another form, or others that results do not depend on, then the run is resumed."""
    trainer = build(**arguments)
    trainer.restore(snapshot)
    trainer.sampler.close()
    assert trainer.itr == 1
