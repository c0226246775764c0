"""Sessions that are entered after a policy was used elsewhere: their own values, or an error."""
import numpy as np
import pytest

from meta_policy_search.baselines import LinearFeatureBaseline
from meta_policy_search.envs import MetaPointEnvCorner
from meta_policy_search.meta_algos import ProMP
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.policies import MetaGaussianMLPPolicy
from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler
from meta_policy_search.tf_compat import tf

MESSAGE = "no value in this session, but were used in another one. Leave this session, or set them in it"


def build(**arguments):
    env = MetaPointEnvCorner(reward_type="dense")
    policy = MetaGaussianMLPPolicy(2, 2, 2, hidden_sizes=())
    return Trainer(ProMP(policy, meta_batch_size=2), env, MetaSampler(env, policy, 2, 2, 4),
                   MetaSampleProcessor(LinearFeatureBaseline()), policy, 1, **arguments)


@pytest.fixture
def trainer():
    """A trainer after an iteration, whose weights differ from the initial ones."""
    trainer = build()
    trainer.train()
    return trainer


@pytest.mark.parametrize("use", [
    lambda trainer, path: trainer.policy.save_npz(path),
    lambda trainer, path: trainer.policy.get_actions(np.zeros((2, 1, 2))),
    lambda trainer, path: trainer.train(),
    lambda trainer, path: trainer.get_itr_snapshot(0),
], ids=["save_npz", "get_actions", "train", "snapshot"])
@pytest.mark.thorough(but="save_npz")
def test_session_without_values_is_refused(use, trainer, tmp_path):
    """Given a trained policy, when a new session is entered, then using the policy there raises an error."""
    before = trainer.policy.get_flat_params()
    with tf.Session(), pytest.raises(RuntimeError, match=MESSAGE):
        use(trainer, tmp_path / "policy.npz")
    assert list(tmp_path.iterdir()) == [] and trainer.itr == 1
    np.testing.assert_array_equal(trainer.policy.get_flat_params(), before)


def test_variables_initialized_by_the_user_are_accepted(trainer):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        trainer.train()
    assert trainer.itr == 2


def test_loaded_weights_are_accepted_if_the_optimizer_is_initialized(trainer, tmp_path):
    """Given saved weights, when they are loaded in a new session, then they act there; Adam has no moments yet."""
    trainer.policy.save_npz(tmp_path / "policy.npz")
    saved = trainer.policy.get_flat_params()
    with tf.Session():
        trainer.policy.load_npz(tmp_path / "policy.npz")
        np.testing.assert_array_equal(trainer.policy.get_flat_params(), saved)
        with pytest.raises(RuntimeError, match=f"Adam.*{MESSAGE}"):
            trainer.train()


def test_weights_set_before_a_trainer_session_are_kept():
    """Given a policy with weights in the session of its graph, then a trainer with another session raises an error."""
    session = tf.Session()
    first = build()
    first.policy.set_flat_params(np.ones(8))
    parts = (first.algo, first.env, first.sampler, first.sample_processor, first.policy)
    with pytest.raises(RuntimeError, match=MESSAGE):
        Trainer(*parts, n_itr=1, sess=session).train()


def test_new_trainer_session_initializes_the_variables():
    trainer = build(sess=tf.Session())
    trainer.train()
    assert trainer.itr == 1
