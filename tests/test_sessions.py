"""Tests which session holds the variables of a graph, and variable sets that initialize themselves."""
from collections import OrderedDict

import numpy as np
import pytest

from meta_policy_search import GaussianMLPPolicy, ProMP, Trainer
from meta_policy_search.sessions import VariableSet, get_session
from meta_policy_search.tf_compat import tf
from tests.helpers.trainers import build_trainer


def variable(value):
    return tf.Variable(np.array(value, "f"), use_resource=True)


@pytest.fixture
def variables():
    return VariableSet(OrderedDict(a=variable([1.0, 2.0]), b=variable(3.0)))


def test_entered_session_is_used_unless_it_belongs_to_another_graph():
    own = get_session()
    with tf.Session() as entered:
        assert get_session() is entered
    assert get_session() is own
    with tf.Session(graph=tf.Graph()):
        assert get_session(own.graph) is own


def test_first_used_session_remains_the_session_of_the_graph():
    session = tf.Session()
    with session.as_default():
        policy = GaussianMLPPolicy(2, 1, hidden_sizes=())
        policy.set_flat_params([1.0, 2.0, 3.0, 4.0])
    assert policy.get_flat_params().tolist() == [1.0, 2.0, 3.0, 4.0]


def test_closed_session_raises(variables):
    with tf.Session():
        variables.write({"a": [5.0, 6.0], "b": 7.0})
    with pytest.raises(RuntimeError, match="closed Session"):
        variables.read()
    with tf.Session(), pytest.raises(RuntimeError, match="no value in this session, but were used in another one"):
        variables.read()


def test_assigned_values_are_not_overwritten_by_initialization(variables):
    get_session().run(variables.variables["b"].initializer)
    get_session().run(variables.variables["b"].assign(9.0))
    assert variables.read()["b"] == 9.0
    again = VariableSet(variables.variables)
    assert again.read()["b"] == 9.0


MESSAGE = "no value in this session, but were used in another one. Leave this session, or set them in it"


@pytest.fixture
def trainer():
    """A trainer after an iteration, whose weights differ from the initial ones."""
    trainer = build_trainer(ProMP)
    trainer.train()
    return trainer


@pytest.mark.parametrize("use", [
    lambda trainer, path: trainer.policy.save_npz(path),
    lambda trainer, path: trainer.policy.get_actions(np.zeros((2, 1, 2))),
    lambda trainer, path: trainer.train(),
], ids=["save_npz", "get_actions", "train"])
@pytest.mark.thorough(but="save_npz")
def test_session_without_values_is_refused(use, trainer, tmp_path):
    """Given a trained policy, when a new session is entered, then using the policy there raises an error."""
    before = trainer.policy.get_flat_params()
    with tf.Session(), pytest.raises(RuntimeError, match=MESSAGE):
        use(trainer, tmp_path / "policy.npz")
    assert list(tmp_path.iterdir()) == [] and trainer.itr == 1
    np.testing.assert_array_equal(trainer.policy.get_flat_params(), before)


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
    first = build_trainer(ProMP)
    first.policy.set_flat_params(np.ones(8))
    parts = (first.algo, first.env, first.sampler, first.sample_processor, first.policy)
    with pytest.raises(RuntimeError, match="sess: .* no value in this one. Set them first: .*global_variables_init"):
        Trainer(*parts, n_itr=1, sess=session)
    np.testing.assert_array_equal(first.policy.get_flat_params(), np.ones(8))  # the session of the graph is unchanged
    with pytest.raises(ValueError, match="sess: expected a session of the graph of the policy"):
        Trainer(*parts, n_itr=1, sess=tf.Session(graph=tf.Graph()))
