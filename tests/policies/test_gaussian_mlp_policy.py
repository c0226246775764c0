"""Tests a Gaussian policy: parameters, actions, graph functions, and the effect of each argument."""
from collections import OrderedDict

import numpy as np
import pytest
import scipy.stats

from meta_policy_search.policies import DiagonalGaussian, GaussianMLPPolicy
from meta_policy_search.sessions import VariableSet
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger

O, A = 3, 2
NAMES = ["mean_network/hidden_0/kernel", "mean_network/hidden_0/bias", "mean_network/output/kernel",
         "mean_network/output/bias", "log_std_network/log_std_var"]


@pytest.fixture
def policy():
    return GaussianMLPPolicy(O, A, hidden_sizes=(4,))


@pytest.fixture
def observations():
    return np.random.default_rng(0).normal(size=(5, O))


def random_params(policy, seed=1):
    rng = np.random.default_rng(seed)
    return OrderedDict((name, (0.5 * rng.normal(size=value.shape)).astype("f"))
                       for name, value in policy.get_param_values().items())


def numpy_mean(params, observations):
    hidden = np.tanh(observations @ params[NAMES[0]] + params[NAMES[1]])
    return hidden @ params[NAMES[2]] + params[NAMES[3]]


def run(tensors, policy, feed=None):
    return VariableSet(policy.get_params()).session().run(tensors, feed)


# Parameters


def test_parameters_have_names_and_shapes(policy):
    shapes = [(O, 4), (4,), (4, A), (A,), (A,)]
    values = policy.get_param_values()
    assert isinstance(values, OrderedDict)
    assert [(name, value.shape) for name, value in values.items()] == list(zip(NAMES, shapes))
    assert all(value.dtype == np.float32 for value in values.values())
    variables = policy.get_params()
    assert list(variables) == NAMES
    assert [tuple(v.shape.as_list()) for v in variables.values()] == shapes
    assert all(v in tf.trainable_variables() for v in variables.values())


def test_set_params_and_get_param_values_are_inverse(policy):
    params = random_params(policy)
    policy.set_params(params)
    for name, value in policy.get_param_values().items():
        np.testing.assert_array_equal(value, params[name])


def test_flat_params_are_the_concatenated_parameters(policy):
    params = random_params(policy)
    policy.set_params(params)
    flat = policy.get_flat_params()
    np.testing.assert_array_equal(flat, np.concatenate([params[name].ravel() for name in NAMES]))
    assert flat.dtype == np.float32 and flat.shape == (28,)

    policy.set_flat_params(2 * flat)
    np.testing.assert_array_equal(policy.get_flat_params(), 2 * flat)
    np.testing.assert_array_equal(policy.get_param_values()[NAMES[2]], 2 * params[NAMES[2]])


def test_load_params_takes_a_vector_or_a_dict(policy):
    params = random_params(policy)
    policy.load_params(params)
    flat = policy.get_flat_params()
    np.testing.assert_array_equal(policy.get_param_values()[NAMES[0]], params[NAMES[0]])
    policy.load_params(list(flat + 1))
    np.testing.assert_allclose(policy.get_flat_params(), flat + 1)


def with_entry(name, value):
    def change(params):
        params[name] = value
        return params

    return change


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda p: OrderedDict(list(p.items())[1:]), r"policy_params: expected the names"),
        (with_entry("other", np.zeros(2)), r"policy_params: expected the names .* got .*'other'"),
        (with_entry(NAMES[1], np.zeros(5)), r"policy_params\['mean_network/hidden_0/bias'\]: .*\(4,\), got \(5,\)"),
        (with_entry(NAMES[4], [np.nan, 0.0]), r"policy_params\['log_std_network/log_std_var'\]: .*finite.*nan"),
        (with_entry(NAMES[4], [np.inf, 0.0]), r"policy_params\['log_std_network/log_std_var'\]: .*finite.*inf"),
        (with_entry(NAMES[4], [1e39, 0.0]), r"policy_params\['log_std_network/log_std_var'\]: .*finite.*inf"),
    ],
)
def test_invalid_parameters_are_refused_and_change_nothing(policy, change, message):
    before = policy.get_flat_params()
    with pytest.raises(ValueError, match=message):
        policy.set_params(change(random_params(policy)))
    with pytest.raises(ValueError, match=message):
        policy.load_params(change(random_params(policy)))
    np.testing.assert_array_equal(policy.get_flat_params(), before)


@pytest.mark.parametrize("flat", [np.zeros(27), np.zeros(29), np.float32(1.0)])
def test_vector_of_wrong_length_is_refused(policy, flat):
    with pytest.raises(ValueError, match="flat_params: expected 28 numbers"):
        policy.set_flat_params(flat)
    with pytest.raises(ValueError, match="policy_params: expected 28 numbers"):
        policy.load_params(flat)


def test_initial_weights_depend_on_the_seed():
    from meta_policy_search.utils.utils import set_seed

    def flat():
        return GaussianMLPPolicy(O, A, hidden_sizes=(4,)).get_flat_params()

    set_seed(3)
    first, second = flat(), flat()
    set_seed(3)
    np.testing.assert_array_equal(flat(), first)
    assert (first != second).any()
    set_seed(4)
    assert (flat() != first).any()


# Actions


def test_get_actions_samples_from_the_gaussian_of_the_network(policy, observations):
    params = random_params(policy)
    policy.set_params(params)
    actions, infos = policy.get_actions(observations)
    assert actions.shape == infos["mean"].shape == infos["log_std"].shape == (5, A)
    assert {value.dtype for value in (actions, *infos.values())} == {np.dtype("f")}
    np.testing.assert_allclose(infos["mean"], numpy_mean(params, observations), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(infos["log_std"], np.broadcast_to(params[NAMES[4]], (5, A)))

    many, infos = policy.get_actions(np.broadcast_to(observations[0], (4000, O)))
    z = (many - infos["mean"]) / np.exp(infos["log_std"])
    assert scipy.stats.kstest(z.ravel(), "norm").pvalue > 0.001


def test_get_action_accepts_one_observation(policy, observations):
    action, info = policy.get_action(observations[0])
    assert action.shape == info["mean"].shape == info["log_std"].shape == (A,)
    _, infos = policy.get_actions(observations[:1])
    np.testing.assert_allclose(info["mean"], infos["mean"][0], rtol=1e-6)


@pytest.mark.parametrize(
    "method, value, message",
    [
        ("get_action", np.zeros(4), r"observation: expected shape \(3,\), got \(4,\)"),
        ("get_action", np.zeros((1, O)), r"observation: expected shape \(3,\), got \(1, 3\)"),
        ("get_action", [0.0, np.nan, 0.0], "observation: expected finite numbers"),
        ("get_actions", np.zeros(O), r"observations: expected shape \(any, 3\), got \(3,\)"),
        ("get_actions", np.zeros((2, 4)), r"observations: expected shape \(any, 3\), got \(2, 4\)"),
        ("get_actions", np.full((2, O), np.inf), "observations: expected finite numbers"),
    ],
)
def test_invalid_observations_are_refused(policy, method, value, message):
    with pytest.raises(ValueError, match=message):
        getattr(policy, method)(value)


# Graph functions


def test_default_parameters_are_the_variables(policy, observations):
    params = random_params(policy)
    policy.set_params(params)
    own = policy.distribution_info_sym(tf.constant(observations, tf.float32))
    other = policy.distribution_info_sym(tf.constant(observations, tf.float32), params={
        name: tf.constant(2 * value) for name, value in params.items()
    })
    own, other = run([own, other], policy)
    assert own["mean"].shape == (5, A) and own["log_std"].shape == (1, A)
    np.testing.assert_allclose(own["mean"], numpy_mean(params, observations), rtol=1e-5, atol=1e-6)
    doubled = {name: 2 * value for name, value in params.items()}
    np.testing.assert_allclose(other["mean"], numpy_mean(doubled, observations), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(other["log_std"][0], 2 * params[NAMES[4]])


def test_stacked_parameters_act_task_by_task(policy):
    rng = np.random.default_rng(2)
    tasks = [random_params(policy, seed) for seed in range(3)]
    stacked = {name: tf.constant(np.stack([p[name] for p in tasks])) for name in NAMES}
    observations = rng.normal(size=(3, 5, O)).astype("f")
    info = run(policy.distribution_info_sym(tf.constant(observations), stacked), policy)
    assert info["mean"].shape == (3, 5, A) and info["log_std"].shape == (3, 1, A)
    for m, params in enumerate(tasks):
        np.testing.assert_allclose(info["mean"][m], numpy_mean(params, observations[m]), rtol=1e-5, atol=1e-6)


def test_log_likelihood_and_ratio_equal_scipy(policy, observations):
    params = random_params(policy)
    rng = np.random.default_rng(3)
    actions, old_mean, old_log_std = (rng.normal(size=(5, A)).astype("f") for _ in range(3))
    tensors = {name: tf.constant(value) for name, value in params.items()}
    obs = tf.constant(observations, tf.float32)
    log_likelihood = policy.log_likelihood_sym(obs, tf.constant(actions), tensors)
    ratio = policy.likelihood_ratio_sym(obs, tf.constant(actions), {"mean": old_mean, "log_std": old_log_std}, tensors)
    log_likelihood, ratio = run([log_likelihood, ratio], policy)

    new = scipy.stats.norm.logpdf(actions, numpy_mean(params, observations), np.exp(params[NAMES[4]])).sum(axis=1)
    old = scipy.stats.norm.logpdf(actions, old_mean, np.exp(old_log_std)).sum(axis=1)
    np.testing.assert_allclose(log_likelihood, new, rtol=1e-4)
    np.testing.assert_allclose(ratio, np.exp(new - old), rtol=1e-3)


def test_distribution_info_keys_create_placeholders_for_the_distribution(policy):
    obs = tf.placeholder(tf.float32, [None, O])
    state = {"state": tf.placeholder(tf.float32, [None, 7])}
    info = policy.distribution_info_keys(obs, state)
    assert list(info) == ["mean", "log_std", "state"]
    assert info["state"] is state["state"]
    for key in ("mean", "log_std"):
        assert info[key].op.type == "Placeholder" and info[key].shape.as_list() == [None, A]
    assert list(policy.distribution_info_keys(obs, None)) == ["mean", "log_std"]
    stacked = policy.distribution_info_keys(tf.placeholder(tf.float32, [4, None, O]), {})
    assert stacked["mean"].shape.as_list() == [4, None, A]


def test_distribution_has_the_size_of_the_actions(policy):
    assert isinstance(policy.distribution, DiagonalGaussian) and policy.distribution.dim == A


# Arguments


@pytest.mark.parametrize("hidden_sizes", [(), (3,), [3, 5, 2]])
def test_hidden_sizes(hidden_sizes):
    policy = GaussianMLPPolicy(O, A, hidden_sizes=hidden_sizes)
    sizes = [O, *hidden_sizes, A]
    kernels = [v.shape for k, v in policy.get_param_values().items() if k.endswith("kernel")]
    assert kernels == list(zip(sizes[:-1], sizes[1:]))
    assert policy.hidden_sizes == tuple(hidden_sizes)
    assert policy.get_actions(np.zeros((2, O)))[0].shape == (2, A)


def test_defaults_are_the_documented_ones():
    policy = GaussianMLPPolicy(O, A)
    assert policy.name == "policy" and policy.hidden_sizes == (32, 32) and policy.learn_std is True
    assert (policy.init_std, policy.min_std) == (1.0, 1e-6)
    _, info = policy.get_action(np.zeros(O))
    np.testing.assert_array_equal(info["log_std"], np.zeros(A))


def test_name_is_the_scope_of_the_operations():
    GaussianMLPPolicy(O, A, name="walker", hidden_sizes=())
    assert {op.name.split("/")[0] for op in tf.get_default_graph().get_operations()} == {"walker"}


def test_init_std_is_the_initial_std():
    policy = GaussianMLPPolicy(O, A, hidden_sizes=(), init_std=0.3)
    _, info = policy.get_action(np.zeros(O))
    np.testing.assert_allclose(np.exp(info["log_std"]), [0.3, 0.3], rtol=1e-6)
    np.testing.assert_allclose(np.exp(policy.get_param_values()[NAMES[4]]), [0.3, 0.3], rtol=1e-6)


def test_min_std_is_the_lower_bound_of_the_std():
    policy = GaussianMLPPolicy(O, A, hidden_sizes=(), init_std=0.5, min_std=0.2)
    params = policy.get_param_values()
    policy.set_params({**params, NAMES[4]: np.log([0.01, 0.4]).astype("f")})
    _, info = policy.get_action(np.zeros(O))
    np.testing.assert_allclose(np.exp(info["log_std"]), [0.2, 0.4], rtol=1e-6)
    actor = policy.make_actors(policy.get_flat_params()[None])
    _, actor_info = actor.act(np.zeros((1, 1, O)), np.zeros((1, 1, A), "f"))
    np.testing.assert_allclose(np.exp(actor_info["log_std"][0, 0]), [0.2, 0.4], rtol=1e-6)


def test_without_learn_std_the_std_is_not_a_parameter():
    policy = GaussianMLPPolicy(O, A, hidden_sizes=(4,), learn_std=False, init_std=0.7)
    assert list(policy.get_param_values()) == NAMES[:4]
    _, info = policy.get_actions(np.zeros((2, O)))
    np.testing.assert_allclose(np.exp(info["log_std"]), np.full((2, A), 0.7), rtol=1e-6)
    obs = tf.zeros([2, O])
    tensors = {name: tf.constant(value) for name, value in policy.get_param_values().items()}
    np.testing.assert_allclose(run(policy.distribution_info_sym(obs, tensors), policy)["log_std"], [np.log([0.7] * 2)],
                               rtol=1e-6)


def test_hidden_nonlinearity(observations):
    policy = GaussianMLPPolicy(O, A, hidden_sizes=(4,), hidden_nonlinearity=tf.nn.relu)
    params = random_params(policy)
    policy.set_params(params)
    hidden = np.maximum(observations @ params[NAMES[0]] + params[NAMES[1]], 0.0)
    expected = hidden @ params[NAMES[2]] + params[NAMES[3]]
    np.testing.assert_allclose(policy.get_actions(observations)[1]["mean"], expected, rtol=1e-5, atol=1e-6)


def test_output_nonlinearity_is_applied_to_the_mean(observations):
    policy = GaussianMLPPolicy(O, A, hidden_sizes=(4,), output_nonlinearity=lambda x: 3.0 * x)
    params = random_params(policy)
    policy.set_params(params)
    mean = policy.get_actions(observations)[1]["mean"]
    np.testing.assert_allclose(mean, 3.0 * numpy_mean(params, observations), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"obs_dim": 0}, ValueError, "obs_dim"),
        ({"obs_dim": 2.5}, TypeError, "obs_dim"),
        ({"action_dim": -1}, ValueError, "action_dim"),
        ({"name": ""}, TypeError, "name"),
        ({"hidden_sizes": (4, 0)}, ValueError, r"hidden_sizes\[1\]"),
        ({"learn_std": 1}, TypeError, "learn_std"),
        ({"hidden_nonlinearity": "tanhh"}, ValueError, "hidden_nonlinearity: .*'tanhh'"),
        ({"output_nonlinearity": 7}, TypeError, "output_nonlinearity"),
        ({"init_std": 0.0}, ValueError, "init_std"),
        ({"min_std": -1.0}, ValueError, "min_std"),
        ({"init_std": 0.1, "min_std": 0.2}, ValueError, "init_std: expected at least min_std=0.2, got 0.1"),
        ({"hiden_sizes": (4,)}, TypeError, "unexpected keyword argument 'hiden_sizes'"),
    ],
)
def test_invalid_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        GaussianMLPPolicy(**{"obs_dim": O, "action_dim": A, **arguments})


def test_log_diagnostics_logs_the_mean_std(policy):
    log_stds = [np.log([[0.5, 1.5], [1.0, 1.0]]), np.log([[2.0, 4.0]])]
    policy.log_diagnostics([{"agent_infos": {"log_std": log_std}} for log_std in log_stds], prefix="Step_0-")
    assert logger.getkvs() == {"Step_0-AveragePolicyStd": pytest.approx(2.0)}  # mean over paths with 1 and 3 steps


def test_log_diagnostics_logs_the_mean_entropy(policy):
    # given paths of two, one and two steps; the entropy of a Gaussian is log(sqrt(2 pi e) std), summed over actions
    stds = [[[0.5, 1.5], [1.0, 1.0]], [[2.0, 4.0]], [[3.0, 1.0], [1.0, 2.0]]]
    policy.log_diagnostics([{"agent_infos": {"mean": np.ones_like(std), "log_std": np.log(std)}} for std in stds])
    of_paths = [(np.log(0.75) + np.log(1.0)) / 2, np.log(8.0), (np.log(3.0) + np.log(2.0)) / 2]
    assert logger.getkvs() == {
        "AveragePolicyEntropy": pytest.approx(np.mean(of_paths) + np.log(2 * np.pi * np.e)),
        "AveragePolicyStd": pytest.approx((1.0 + 3.0 + 1.75) / 3),
    }
