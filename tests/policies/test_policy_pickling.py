"""Tests pickling of policies, and several policies in one graph."""
import pickle

import cloudpickle
import numpy as np
import pytest

from meta_policy_search.policies import MetaCategoricalMLPPolicy, MetaGaussianMLPPolicy
from meta_policy_search.sessions import get_session
from meta_policy_search.tf_compat import tf
from tests.helpers.small_world import flat_task_params

M, O, A = 2, 3, 2


@pytest.fixture
def observations():
    return np.random.default_rng(0).normal(size=(M, 4, O))


@pytest.mark.parametrize("cls, arguments", [
    (MetaGaussianMLPPolicy, {"learn_std": False, "init_std": 0.5}),
    *((cls, arguments) for cls in (MetaGaussianMLPPolicy, MetaCategoricalMLPPolicy) for arguments in (
        {},
        {"hidden_sizes": (4,), "hidden_nonlinearity": tf.nn.tanh, "output_nonlinearity": tf.nn.relu},
        {"hidden_sizes": (), "hidden_nonlinearity": tf.sigmoid, "name": "other"})),
])
@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_copy_has_arguments_parameters_and_random_state(cls, arguments, pickler, observations):
    # given a policy after a parameter change, adaptation and sampling
    policy = cls(M, O, A, **arguments)
    size = len(policy.get_flat_params())
    policy.set_flat_params(np.random.default_rng(1).normal(size=size))
    policy.load_params(np.random.default_rng(2).normal(size=(M, size)))
    policy.get_actions(observations)
    # when it is pickled and unpickled
    copied = pickle.loads(pickler.dumps(policy))
    # then it has equal arguments, parameters and next actions
    assert type(copied) is cls
    for name in ("meta_batch_size", "obs_dim", "action_dim", "name", "hidden_sizes", "learn_std"):
        assert getattr(copied, name) == getattr(policy, name)
    assert cls is MetaCategoricalMLPPolicy or copied.init_std == policy.init_std
    np.testing.assert_array_equal(copied.get_flat_params(), policy.get_flat_params())
    np.testing.assert_array_equal(flat_task_params(copied), flat_task_params(policy))
    np.testing.assert_array_equal(copied.get_actions(observations)[0], policy.get_actions(observations)[0])


def test_policy_before_adaptation_is_unpickled_without_adaptation(observations):
    policy = pickle.loads(pickle.dumps(MetaGaussianMLPPolicy(M, O, A, hidden_sizes=())))
    policy.set_flat_params(np.arange(10.0))
    np.testing.assert_array_equal(flat_task_params(policy), [np.arange(10.0)] * M)


def test_policies_can_share_a_name(observations):
    first, second = (MetaGaussianMLPPolicy(M, O, A, name="policy", hidden_sizes=()) for _ in range(2))
    flat = first.get_flat_params()
    assert (flat != second.get_flat_params()).any()
    second.set_flat_params(0 * flat)
    np.testing.assert_array_equal(first.get_flat_params(), flat)


def test_unpickling_changes_no_other_variable():
    policy = MetaGaussianMLPPolicy(M, O, A, hidden_sizes=())
    policy.set_flat_params(np.arange(10.0))
    pickled = pickle.dumps(policy)
    policy.set_flat_params(-np.arange(10.0))
    other = tf.Variable(3.0, use_resource=True)
    is_initialized = other.is_initialized()

    copied = pickle.loads(pickled)
    np.testing.assert_array_equal(copied.get_flat_params(), np.arange(10.0))
    np.testing.assert_array_equal(policy.get_flat_params(), -np.arange(10.0))
    assert not get_session().run(is_initialized)
