"""Tests the policy of one task, which acts like a meta-policy and has separate parameters."""
import pickle

import numpy as np
import pytest

from meta_policy_search.policies import GaussianMLPPolicy, MetaCategoricalMLPPolicy, MetaGaussianMLPPolicy, TaskPolicy
from meta_policy_search.tf_compat import tf

O, A = 3, 2
KINDS = {"gaussian": (MetaGaussianMLPPolicy, {}), "categorical": (MetaCategoricalMLPPolicy, {}),
         "in the graph": (MetaGaussianMLPPolicy, {"hidden_nonlinearity": tf.nn.relu6})}


def make(kind="gaussian"):
    cls, arguments = KINDS[kind]
    return cls(4, O, A, hidden_sizes=(5,), **arguments)



@pytest.mark.parametrize("kind", KINDS)
def test_policy_acts_like_the_meta_policy_with_equal_parameters(kind):
    meta_policy = make(kind)
    policy = TaskPolicy(meta_policy)
    flat_params = np.random.default_rng(0).normal(size=len(policy.get_flat_params())).astype(np.float32)
    policy.set_flat_params(flat_params)
    observations = np.random.default_rng(1).normal(size=(6, O))
    actions, infos = policy.get_actions(observations)
    meta_policy.update_task_parameters([policy.get_param_values()] * 4)
    expected_actions, expected = meta_policy.get_actions([observations] * 4)
    assert actions.shape == expected_actions[0].shape == (6, *policy.action_shape)
    assert actions.dtype == expected_actions[0].dtype
    for row in range(6):
        assert set(infos) == set(expected[0][row])
        for key in infos:
            np.testing.assert_allclose(infos[key][row], expected[0][row][key], atol=1e-5)
    action, info = policy.get_action(observations[2])
    assert action.shape == policy.action_shape
    for key in info:
        np.testing.assert_allclose(info[key], infos[key][2], atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_policy_starts_with_the_meta_policy_parameters_and_stores_them_separately(kind):
    meta_policy = make(kind)
    start = meta_policy.get_flat_params()
    policy = TaskPolicy(meta_policy)
    meta_policy.set_flat_params(np.zeros_like(start))
    np.testing.assert_array_equal(policy.get_flat_params(), start)
    policy.set_flat_params(np.ones_like(start))
    policy.get_action(np.zeros(O))
    np.testing.assert_array_equal(meta_policy.get_flat_params(), 0.0)
    assert (meta_policy.stacked_param_values()[next(iter(policy.get_param_values()))] == 0.0).all()
    if kind != "in the graph":  # relu6 cannot be pickled
        loaded = pickle.loads(pickle.dumps(policy))
        np.testing.assert_array_equal(loaded.get_flat_params(), 1.0)
    changed = policy.with_params({name: 2.0 * value for name, value in policy.get_param_values().items()})
    np.testing.assert_array_equal(changed.get_flat_params(), 2.0)
    np.testing.assert_array_equal(policy.get_flat_params(), 1.0)


def test_invalid_arguments_are_refused():
    policy = TaskPolicy(make())
    size = len(policy.get_flat_params())
    with pytest.raises(TypeError, match=r"meta_policy: expected a MetaPolicy .*, got GaussianMLPPolicy"):
        TaskPolicy(GaussianMLPPolicy(O, A))
    with pytest.raises(ValueError, match=f"flat_params: expected {size} numbers in the last axis, got shape"):
        policy.set_flat_params(np.zeros(size + 1))
    with pytest.raises(ValueError, match="flat_params: expected 1 axis, got shape"):
        policy.set_flat_params(np.zeros((1, size)))
    with pytest.raises(ValueError, match="flat_params: expected finite numbers, got nan"):
        policy.set_flat_params(np.full(size, np.nan))
    with pytest.raises(KeyError, match="mean_network"):
        policy.with_params({})
    with pytest.raises(ValueError, match=r"observation: expected shape \(3,\), got \(2,\)"):
        policy.get_action(np.zeros(2))
    assert (policy.get_flat_params() != 0.0).any()
