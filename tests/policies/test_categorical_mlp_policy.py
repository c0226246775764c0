"""Tests policies of discrete actions, except behavior shared with Gaussian policies."""
import copy
import inspect
import pickle

import numpy as np
import pytest
import scipy.special

from meta_policy_search.policies import (
    Categorical,
    CategoricalMLPPolicy,
    GaussianMLPPolicy,
    MetaCategoricalMLPPolicy,
    MetaGaussianMLPPolicy,
    MetaPolicy,
)
from meta_policy_search.sessions import VariableSet
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger

M, O, N, B = 3, 3, 4, 5


@pytest.fixture
def policy():
    return MetaCategoricalMLPPolicy(M, O, N, hidden_sizes=(4,))


@pytest.fixture
def observations():
    return np.random.default_rng(0).normal(size=(M, B, O))


def task_params(policy, seed=1):
    """Returns different parameters for each task, float32 `[M, D]`."""
    return np.random.default_rng(seed).normal(size=(M, len(policy.get_flat_params()))).astype("f")


def numpy_log_prob(params, observations):
    hidden = np.tanh(observations @ params["logits_network/hidden_0/kernel"] + params["logits_network/hidden_0/bias"])
    logits = hidden @ params["logits_network/output/kernel"] + params["logits_network/output/bias"]
    return scipy.special.log_softmax(logits, axis=-1)


def test_interface_equals_that_of_the_gaussian_policy():
    for cls, gaussian in ((CategoricalMLPPolicy, GaussianMLPPolicy), (MetaCategoricalMLPPolicy, MetaGaussianMLPPolicy)):
        public = {name for name, _ in inspect.getmembers(gaussian) if not name.startswith("_")}
        assert public == {name for name, _ in inspect.getmembers(cls) if not name.startswith("_")}
    assert issubclass(MetaCategoricalMLPPolicy, CategoricalMLPPolicy)
    assert issubclass(MetaCategoricalMLPPolicy, MetaPolicy)


def test_parameters_and_distribution(policy):
    shapes = {name: value.shape for name, value in policy.get_param_values().items()}
    assert shapes == {"logits_network/hidden_0/kernel": (O, 4), "logits_network/hidden_0/bias": (4,),
                      "logits_network/output/kernel": (4, N), "logits_network/output/bias": (N,)}
    assert isinstance(policy.distribution, Categorical) and policy.distribution.dim == policy.action_dim == N


def test_single_task_policy_acts(observations):
    policy = CategoricalMLPPolicy(O, N, hidden_sizes=(4,))
    expected = numpy_log_prob(policy.get_param_values(), observations[0])

    actions, infos = policy.get_actions(observations[0])
    assert actions.shape == (B,) and actions.dtype == np.int64 and set(actions) <= set(range(N))
    assert infos["log_prob"].dtype == np.float32
    np.testing.assert_allclose(infos["log_prob"], expected, rtol=1e-5)

    action, info = policy.get_action(observations[0][2])
    assert np.shape(action) == () and action.dtype == np.int64 and 0 <= action < N
    np.testing.assert_allclose(info["log_prob"], expected[2], rtol=1e-5)


def test_each_task_acts_with_its_parameters(policy, observations):
    policy.load_params(task_params(policy))
    actions, agent_infos = policy.get_actions(list(observations))
    assert isinstance(actions, list) and [a.shape for a in actions] == [(B,)] * M
    for m, params in enumerate(policy.policies_params_vals):
        expected = numpy_log_prob(params, observations[m])
        np.testing.assert_allclose([info["log_prob"] for info in agent_infos[m]], expected, rtol=1e-4, atol=1e-6)
        action, info = policy.get_action(observations[m][0], task=m)
        assert np.shape(action) == ()
        np.testing.assert_allclose(info["log_prob"], expected[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("hidden_nonlinearity, output_nonlinearity", [("tanh", None), ("relu", "tanh"), (None, None)])
def test_actor_agrees_with_get_actions_for_equal_noise(hidden_nonlinearity, output_nonlinearity):
    policy = MetaCategoricalMLPPolicy(M, O, N, hidden_sizes=(6, 5), hidden_nonlinearity=hidden_nonlinearity,
                                      output_nonlinearity=output_nonlinearity)
    policy.load_params(task_params(policy))
    observations = np.random.default_rng(2).normal(size=(M, 200, O))
    actor = policy.make_actor()
    noise = np.empty((M, 200, actor.noise_dim), np.float32)
    actor.draw_noise(copy.deepcopy(policy._rng), noise)
    expected, expected_infos = policy.get_actions(observations)
    actions, infos = actor.act(observations, noise)
    assert actions.dtype == np.int64 and actions.shape == (M, 200)
    assert infos["log_prob"].dtype == np.float32 and infos["log_prob"].shape == (M, 200, N)
    np.testing.assert_allclose(infos["log_prob"], [[i["log_prob"] for i in task] for task in expected_infos],
                               rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(actions, expected)


def test_actor_samples_with_the_given_probabilities(policy):
    policy.load_params(task_params(policy))
    actor, rng = policy.make_actor(), np.random.default_rng(0)
    noise = np.empty((M, 20000, 1), np.float32)
    actor.draw_noise(rng, noise)
    actions, infos = actor.act(np.ones((M, 20000, O)), noise)
    for m in range(M):
        shares = np.bincount(actions[m], minlength=N) / 20000
        np.testing.assert_allclose(shares, np.exp(infos["log_prob"][m, 0]), atol=0.02)


def test_actor_for_some_tasks_acts_like_the_actor_for_all(policy, observations):
    policy.load_params(task_params(policy))
    noise = np.random.default_rng(3).random((M, B, 1), dtype=np.float32)
    actions, infos = policy.make_actor().act(observations, noise)
    part_actions, part_infos = policy.make_actor().for_tasks(1, M).act(observations[1:], noise[1:])
    np.testing.assert_array_equal(part_actions, actions[1:])
    np.testing.assert_array_equal(part_infos["log_prob"], infos["log_prob"][1:])


def test_probabilities_near_zero_stay_finite_in_the_actor(policy):
    policy.set_flat_params(1e5 * policy.get_flat_params())
    _, infos = policy.make_actor().act(np.ones((M, B, O)), np.zeros((M, B, 1), "f"))
    assert np.isfinite(infos["log_prob"]).all() and infos["log_prob"].min() < -1e3


@pytest.mark.parametrize("arguments", [
    {}, {"hidden_sizes": (), "name": "other"}, {"hidden_nonlinearity": tf.nn.relu, "output_nonlinearity": tf.nn.tanh},
])
def test_pickled_copy_acts_like_the_original(arguments, observations):
    policy = MetaCategoricalMLPPolicy(M, O, N, **arguments)
    policy.load_params(task_params(policy))
    actor = pickle.loads(pickle.dumps(policy))
    assert isinstance(actor, MetaCategoricalMLPPolicy) and actor.name == policy.name
    np.testing.assert_array_equal(actor.get_flat_params(), policy.get_flat_params())
    np.testing.assert_array_equal(actor.get_actions(observations)[0], policy.get_actions(observations)[0])


def test_placeholders_and_graph_functions(policy):
    placeholders = policy.distribution_info_keys(tf.zeros([M, B, O]), {})
    assert {key: ph.shape.as_list() for key, ph in placeholders.items()} == {"log_prob": [M, B, N]}
    obs, actions, params = tf.ones([B, O]), tf.constant([0, 3, 1, 2, 0]), policy.get_params()
    info = policy.distribution_info_sym(obs)
    log_prob = policy.log_likelihood_sym(obs, actions, params)
    ratio = policy.likelihood_ratio_sym(obs, actions, info, params)
    values = VariableSet(policy.get_params()).session().run([log_prob, ratio])
    expected = numpy_log_prob(policy.get_param_values(), np.ones(O))
    np.testing.assert_allclose(values[0], expected[[0, 3, 1, 2, 0]], rtol=1e-5)
    np.testing.assert_array_equal(values[1], np.ones(B))


def test_log_diagnostics(policy):
    halves, certain = np.log([[0.5, 0.5]]), np.array([[0.0, -1e6], [0.0, -1e6]])
    policy.log_diagnostics([{"agent_infos": {"log_prob": halves}}, {"agent_infos": {"log_prob": certain}}], "Step_1-")
    assert logger.getkvs() == {"Step_1-AveragePolicyEntropy": pytest.approx(0.5 * np.log(2))}


@pytest.mark.parametrize("arguments, error, message", [
    ({"learn_std": False}, ValueError, "learn_std: expected True, got False; .* no standard deviation"),
    ({"init_std": 0.5}, TypeError, "unexpected keyword argument 'init_std'"),
    ({"action_dim": 0}, ValueError, "action_dim"),
])
def test_arguments_are_checked(arguments, error, message):
    for cls, sizes in ((CategoricalMLPPolicy, {}), (MetaCategoricalMLPPolicy, {"meta_batch_size": M})):
        with pytest.raises(error, match=message):
            cls(**{"obs_dim": O, "action_dim": N, **sizes, **arguments})
