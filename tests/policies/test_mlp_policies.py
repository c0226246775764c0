"""Tests Gaussian and categorical MLP policies, for one task and for a meta-batch."""
from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import pytest
import scipy.special
import scipy.stats

from meta_policy_search import CategoricalMLPPolicy, MetaCategoricalMLPPolicy, MetaGaussianMLPPolicy
from meta_policy_search.policies import Categorical, DiagonalGaussian, GaussianMLPPolicy, MetaPolicy
from meta_policy_search.sessions import VariableSet
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger

M, O, A, B = 3, 3, 2, 4  # tasks, sizes of observations and of continuous actions, paths
LOG_STD = "log_std_network/log_std_var"


class Family(NamedTuple):
    """The policies for one kind of actions."""

    single: type
    meta: type
    scope: str
    num_outputs: int
    distribution: type


GAUSSIAN = Family(GaussianMLPPolicy, MetaGaussianMLPPolicy, "mean_network", A, DiagonalGaussian)
CATEGORICAL = Family(CategoricalMLPPolicy, MetaCategoricalMLPPolicy, "logits_network", 4, Categorical)


@pytest.fixture(params=[GAUSSIAN, CATEGORICAL], ids=["gaussian", "categorical"])
def family(request):
    return request.param


def make(family=GAUSSIAN, **arguments):
    return family.single(O, family.num_outputs, **{"hidden_sizes": (4,), **arguments})


def make_meta(family=GAUSSIAN, **arguments):
    return family.meta(M, O, family.num_outputs, **{"hidden_sizes": (4,), **arguments})


@pytest.fixture
def observations():
    return np.random.default_rng(0).normal(size=(M, B, O))


def random_params(policy, seed=1):
    rng = np.random.default_rng(seed)
    return OrderedDict((name, (0.5 * rng.normal(size=value.shape)).astype("f"))
                       for name, value in policy.get_param_values().items())


def task_params(policy, seed=1):
    """Returns different parameters for each task."""
    return [random_params(policy, 10 * seed + m) for m in range(M)]


def reference_infos(params, observations, nonlinearity=np.tanh, output_nonlinearity=lambda x: x):
    """Returns the agent infos of a policy with one hidden layer."""
    scope = next(iter(params)).partition("/")[0]
    hidden = nonlinearity(observations @ params[f"{scope}/hidden_0/kernel"] + params[f"{scope}/hidden_0/bias"])
    outputs = output_nonlinearity(hidden @ params[f"{scope}/output/kernel"] + params[f"{scope}/output/bias"])
    if scope == CATEGORICAL.scope:
        return {"log_prob": scipy.special.log_softmax(outputs, axis=-1)}
    return {"mean": outputs, "log_std": np.broadcast_to(params[LOG_STD], outputs.shape)}


def assert_infos(actual, expected):
    assert set(actual) == set(expected)
    for key, value in expected.items():
        np.testing.assert_allclose(np.broadcast_to(actual[key], value.shape), value, rtol=1e-5, atol=1e-6)


def stack_rows(rows):
    return {key: np.stack([row[key] for row in rows]) for key in rows[0]}


def run(tensors, policy, feed=None):
    return VariableSet(policy.get_params()).session().run(tensors, feed)


def constants(params, factor=1):
    return {name: tf.constant(factor * value) for name, value in params.items()}


# Parameters


def test_parameters_have_names_and_shapes(family):
    policy, n = make(family), family.num_outputs
    expected = {f"{family.scope}/hidden_0/kernel": (O, 4), f"{family.scope}/hidden_0/bias": (4,),
                f"{family.scope}/output/kernel": (4, n), f"{family.scope}/output/bias": (n,)}
    if family is GAUSSIAN:
        expected[LOG_STD] = (A,)
    values, variables = policy.get_param_values(), policy.get_params()
    assert isinstance(values, OrderedDict) and {value.dtype for value in values.values()} == {np.dtype("f")}
    assert [(name, value.shape) for name, value in values.items()] == list(expected.items())
    assert [(name, tuple(v.shape.as_list())) for name, v in variables.items()] == list(expected.items())
    assert all(v in tf.trainable_variables() for v in variables.values())
    assert isinstance(policy.distribution, family.distribution) and policy.distribution.dim == policy.action_dim == n


@pytest.mark.parametrize("make_policy", [make, make_meta])
def test_parameters_can_be_set_by_name_and_as_a_vector(make_policy):
    policy = make_policy()
    params = random_params(policy)
    policy.set_params(params)
    for name, value in policy.get_param_values().items():
        np.testing.assert_array_equal(value, params[name])
    flat = policy.get_flat_params()
    np.testing.assert_array_equal(flat, np.concatenate([value.ravel() for value in params.values()]))
    assert flat.dtype == np.float32 and flat.shape == (28,)

    policy.set_flat_params(2 * flat)
    np.testing.assert_array_equal(policy.get_flat_params(), 2 * flat)
    np.testing.assert_array_equal(policy.get_param_values()[LOG_STD], 2 * params[LOG_STD])
    policy.load_params(params)
    np.testing.assert_array_equal(policy.get_flat_params(), flat)
    policy.load_params(list(flat + 1))
    np.testing.assert_allclose(policy.get_flat_params(), flat + 1)


@pytest.mark.parametrize("change, message", [
    (lambda p: OrderedDict(list(p.items())[1:]), ": expected the names"),
    (lambda p: {**p, "other": np.zeros(2)}, ": expected the names .* got .*'other'"),
    (lambda p: {**p, "mean_network/hidden_0/bias": np.zeros(5)},
     r"\['mean_network/hidden_0/bias'\]: expected shape \(4,\), got \(5,\)"),
    *((lambda p, value=value: {**p, LOG_STD: np.array([value, 0.0])}, rf"\['{LOG_STD}'\]: expected finite.*{shown}")
      for value, shown in ((np.nan, "nan"), (np.inf, "inf"), (1e39, "inf"))),
])
def test_invalid_parameters_are_refused_and_change_nothing(change, message):
    policy = make_meta()
    params = task_params(policy)
    policy.update_task_parameters(params)
    before, wrong = policy.get_flat_params(), change(random_params(policy))
    for set_params in (policy.set_params, policy.load_params):
        with pytest.raises(ValueError, match=f"^policy_params{message}"):
            set_params(wrong)
    with pytest.raises(ValueError, match=rf"^updated_policies_parameters\[2\]{message}"):
        policy.update_task_parameters([*task_params(policy, seed=2)[:2], wrong])
    np.testing.assert_array_equal(policy.get_flat_params(), before)
    np.testing.assert_array_equal(policy.policies_params_vals[2][LOG_STD], params[2][LOG_STD])


def test_vectors_of_wrong_shapes_are_refused():
    for flat in (np.zeros(27), np.zeros(29), np.float32(1.0)):
        for method, argument in (("set_flat_params", "flat_params"), ("load_params", "policy_params")):
            with pytest.raises(ValueError, match=f"^{argument}: expected 28 numbers"):
                getattr(make(), method)(flat)
    for shape in ((M - 1, 28), (M, 27), (M, 2, 28)):
        with pytest.raises(ValueError, match="^policy_params: expected"):
            make_meta().load_params(np.zeros(shape))
    policy = make_meta()
    with pytest.raises(ValueError, match=r"expected 3 dicts \(meta_batch_size\), got 2"):
        policy.update_task_parameters(task_params(policy)[:2])


# Actions


def test_policy_for_one_task_samples_from_the_distribution_of_the_network(family, observations):
    policy = make(family)
    params = random_params(policy)
    policy.set_params(params)
    actions, infos = policy.get_actions(observations[0])
    assert actions.shape == (B, *policy.action_shape)
    assert actions.dtype == (np.float32 if family is GAUSSIAN else np.int64)
    assert {value.dtype for value in infos.values()} == {np.dtype("f")}
    assert_infos(infos, reference_infos(params, observations[0]))

    action, info = policy.get_action(observations[0, 2])
    assert np.shape(action) == policy.action_shape and action.dtype == actions.dtype
    assert_infos(info, reference_infos(params, observations[0, 2]))

    many, infos = policy.get_actions(np.broadcast_to(observations[0, 0], (4000, O)))
    if family is GAUSSIAN:
        z = (many - infos["mean"]) / np.exp(infos["log_std"])
        assert scipy.stats.kstest(z.ravel(), "norm").pvalue > 0.001
    else:
        expected = 4000 * np.exp(infos["log_prob"][0].astype(float))
        assert scipy.stats.chisquare(np.bincount(many), expected * 4000 / expected.sum()).pvalue > 0.001


def test_meta_policy_returns_lists_over_tasks(family, observations):
    policy = make_meta(family)
    assert isinstance(policy, MetaPolicy) and isinstance(policy, family.single) and policy.meta_batch_size == M
    actions, agent_infos = policy.get_actions(list(observations))
    assert isinstance(actions, list) and isinstance(agent_infos, list)
    assert [task.shape for task in actions] == [(B, *policy.action_shape)] * M
    assert {task.dtype for task in actions} == {np.dtype("f" if family is GAUSSIAN else np.int64)}
    assert [len(rows) for rows in agent_infos] == [B] * M
    assert {key: value.shape for key, value in agent_infos[2][3].items()} == dict(policy.distribution.dist_info_specs)


def test_each_task_acts_with_its_parameters(family, observations):
    policy = make_meta(family)
    # initially with the parameters before adaptation
    before, start = policy.get_flat_params(), policy.get_param_values()
    _, agent_infos = policy.get_actions(observations)
    for m in range(M):
        assert_infos(stack_rows(agent_infos[m]), reference_infos(start, observations[m]))
    # then with adapted parameters
    params = task_params(policy)
    policy.update_task_parameters(params)
    _, agent_infos = policy.get_actions(observations)
    for m in range(M):
        assert_infos(stack_rows(agent_infos[m]), reference_infos(params[m], observations[m]))
        action, info = policy.get_action(observations[m][0], task=m)
        assert np.shape(action) == policy.action_shape
        assert_infos(info, reference_infos(params[m], observations[m][0]))
    assert_infos(policy.get_action(observations[2][0])[1], reference_infos(params[0], observations[2][0]))
    np.testing.assert_array_equal(policy.get_flat_params(), before)  # these parameters are unchanged
    # and after the switch again with the parameters before adaptation, which may change
    policy.switch_to_pre_update()
    policy.set_flat_params(2 * before)
    _, agent_infos = policy.get_actions(observations)
    assert_infos(stack_rows(agent_infos[2]), reference_infos(policy.get_param_values(), observations[2]))


def test_adapted_parameters_are_copied_and_can_be_read():
    policy = make_meta()
    params = task_params(policy)
    policy.update_task_parameters([{name: value.copy() for name, value in task.items()} for task in params])
    values, feed = policy.policies_params_vals, policy.policies_params_feed_dict
    assert len(values) == M and all(isinstance(task, OrderedDict) for task in values) and len(feed) == len(params[0])
    for name, placeholder in policy.policies_params_phs.items():
        assert placeholder.op.type == "Placeholder"
        np.testing.assert_array_equal(feed[placeholder], np.stack([task[name] for task in params]))
        for m in range(M):
            np.testing.assert_array_equal(values[m][name], params[m][name])
    policy.update_task_parameters(values)  # round trip
    np.testing.assert_array_equal(policy.policies_params_vals[2][LOG_STD], params[2][LOG_STD])
    policy.update_task_parameters(params)
    params[1][LOG_STD][:] = 9.0
    assert (policy.policies_params_vals[1][LOG_STD] != 9.0).all()


@pytest.mark.parametrize("make_policy, method, arguments, error, message", [
    (make, "get_action", [np.zeros(4)], ValueError, r"observation: expected shape \(3,\), got \(4,\)"),
    (make, "get_action", [[0.0, 1e39, 0.0]], ValueError, "observation: expected finite numbers"),  # not in float32
    (make, "get_action", [np.ones(O) + 1j], ValueError, "observation: expected an array of real numbers"),
    (make, "get_actions", [np.zeros(O)], ValueError, r"observations: expected shape \(any, 3\), got \(3,\)"),
    (make, "get_actions", [np.full((2, O), np.inf)], ValueError, "observations: expected finite numbers"),
    (make_meta, "get_actions", [np.zeros((2, B, O))], ValueError,
     r"observations: expected 3 arrays \(meta_batch_size\), got 2"),
    (make_meta, "get_actions", [np.zeros((M, B, O + 1))], ValueError,
     r"observations: expected shape \(any, any, 3\), got \(3, 4, 4\)"),
    (make_meta, "get_actions", [[np.zeros((2, O)), np.zeros((1, O)), np.zeros((2, O))]], ValueError,
     r"observations: expected the same shape for every task, got \[\(1, 3\), \(2, 3\)\]"),
    (make_meta, "get_actions", [np.zeros(M)], ValueError, r"observations: expected shape \(any, any, 3\), got \(3,\)"),
    (make_meta, "get_action", [np.zeros(O), M], ValueError, "task: expected"),
    (make_meta, "get_action", [np.zeros(O), 0.5], TypeError, "task: expected"),
])
def test_invalid_observations_and_tasks_are_refused(make_policy, method, arguments, error, message):
    with pytest.raises(error, match=f"^{message}"):
        getattr(make_policy(), method)(*arguments)


# Graph functions


def test_distribution_info_has_the_given_parameters(family, observations):
    policy = make(family)
    params, obs = random_params(policy), tf.constant(observations, tf.float32)
    policy.set_params(params)
    # by default the variables; also parameters by name; also parameters of each task
    tasks = [random_params(policy, seed) for seed in range(M)]
    stacked = {name: tf.constant(np.stack([task[name] for task in tasks])) for name in params}
    default, doubled, of_tasks = run([policy.distribution_info_sym(obs[0]), policy.distribution_info_sym(
        obs[0], params=constants(params, 2)), policy.distribution_info_sym(obs, stacked)], policy)
    assert_infos(default, reference_infos(params, observations[0]))
    assert_infos(doubled, reference_infos({name: 2 * value for name, value in params.items()}, observations[0]))
    for m in range(M):
        assert_infos({key: value[m] for key, value in of_tasks.items()}, reference_infos(tasks[m], observations[m]))
    if family is GAUSSIAN:
        assert default["log_std"].shape == (1, A) and of_tasks["log_std"].shape == (M, 1, A)


def log_probs(family, actions, infos):
    """Returns the log-density of each action."""
    if family is CATEGORICAL:
        return np.take_along_axis(infos["log_prob"], actions[:, None], axis=1)[:, 0]
    return scipy.stats.norm.logpdf(actions, infos["mean"], np.exp(infos["log_std"])).sum(axis=1)


def test_log_likelihood_and_ratio_equal_scipy(family, observations):
    policy, rng = make(family), np.random.default_rng(3)
    params, old_params, obs = random_params(policy), random_params(policy, 2), tf.constant(observations[0], tf.float32)
    actions = rng.normal(size=(B, A)).astype("f") if family is GAUSSIAN else np.array([0, 3, 1, 2])
    old_infos = reference_infos(old_params, observations[0])
    old_tensors = {key: tf.constant(value, tf.float32) for key, value in old_infos.items()}
    tensors, fed = constants(params), tf.constant(actions)
    log_likelihood, ratio = run([policy.log_likelihood_sym(obs, fed, tensors),
                                 policy.likelihood_ratio_sym(obs, fed, old_tensors, tensors)], policy)
    new, old = (log_probs(family, actions, infos) for infos in (reference_infos(params, observations[0]), old_infos))
    np.testing.assert_allclose(log_likelihood, new, rtol=1e-4)
    np.testing.assert_allclose(ratio, np.exp(new - old), rtol=1e-3)


def test_distribution_info_keys_create_placeholders_for_the_distribution(family):
    policy, state = make(family), {"state": tf.placeholder(tf.float32, [None, 7])}
    info = policy.distribution_info_keys(tf.placeholder(tf.float32, [None, O]), state)
    keys = ["mean", "log_std"] if family is GAUSSIAN else ["log_prob"]
    assert list(info) == [*keys, "state"] and info["state"] is state["state"]
    for key in keys:
        assert info[key].op.type == "Placeholder" and info[key].shape.as_list() == [None, family.num_outputs]
    assert list(policy.distribution_info_keys(tf.placeholder(tf.float32, [None, O]), None)) == keys
    stacked = policy.distribution_info_keys(tf.placeholder(tf.float32, [M, None, O]), {})
    assert stacked[keys[0]].shape.as_list() == [M, None, family.num_outputs]


# Arguments


@pytest.mark.parametrize("hidden_sizes", [(), (3,), [3, 5, 2], np.array([3, 5])])
def test_hidden_sizes(family, hidden_sizes):
    policy = make(family, hidden_sizes=hidden_sizes)
    sizes = [O, *hidden_sizes, family.num_outputs]
    kernels = [v.shape for k, v in policy.get_param_values().items() if k.endswith("kernel")]
    assert kernels == list(zip(sizes[:-1], sizes[1:]))
    assert policy.hidden_sizes == tuple(hidden_sizes)
    assert policy.get_actions(np.zeros((2, O)))[0].shape == (2, *policy.action_shape)


def test_name_is_the_scope_of_the_operations():
    make(name="walker", hidden_sizes=())
    assert {op.name.split("/")[0] for op in tf.get_default_graph().get_operations()} == {"walker"}


def test_init_std_is_the_initial_std_and_min_std_its_lower_bound():
    policy = make(hidden_sizes=(), init_std=np.float32(0.5), min_std=0.2)
    np.testing.assert_allclose(np.exp(policy.get_action(np.zeros(O))[1]["log_std"]), [0.5, 0.5], rtol=1e-6)
    np.testing.assert_allclose(np.exp(policy.get_param_values()[LOG_STD]), [0.5, 0.5], rtol=1e-6)
    policy.set_params({**policy.get_param_values(), LOG_STD: np.log([0.01, 0.4]).astype("f")})
    np.testing.assert_allclose(np.exp(policy.get_action(np.zeros(O))[1]["log_std"]), [0.2, 0.4], rtol=1e-6)
    actor = policy.make_actors(policy.get_flat_params()[None])
    _, infos = actor.act(np.zeros((1, 1, O)), np.zeros((1, 1, A), "f"))
    np.testing.assert_allclose(np.exp(infos["log_std"][0, 0]), [0.2, 0.4], rtol=1e-6)


def test_without_learn_std_the_std_is_not_a_parameter():
    policy = make(learn_std=False, init_std=0.7)
    assert LOG_STD not in policy.get_param_values()
    _, info = policy.get_actions(np.zeros((2, O)))
    np.testing.assert_allclose(np.exp(info["log_std"]), np.full((2, A), 0.7), rtol=1e-6)
    info = run(policy.distribution_info_sym(tf.zeros([2, O]), constants(policy.get_param_values())), policy)
    np.testing.assert_allclose(info["log_std"], [np.log([0.7] * 2)], rtol=1e-6)


@pytest.mark.parametrize("arguments, reference", [
    ({"hidden_nonlinearity": tf.nn.relu}, {"nonlinearity": lambda x: np.maximum(x, 0.0)}),
    ({"hidden_nonlinearity": "relu"}, {"nonlinearity": lambda x: np.maximum(x, 0.0)}),
    ({"hidden_nonlinearity": None}, {"nonlinearity": lambda x: x}),
    ({"output_nonlinearity": lambda x: 3.0 * x}, {"output_nonlinearity": lambda x: 3.0 * x}),
    ({"output_nonlinearity": "sigmoid"}, {"output_nonlinearity": scipy.special.expit}),
])
def test_nonlinearities_are_functions_or_names(family, arguments, reference, observations):
    policy = make(family, **arguments)
    params = random_params(policy)
    policy.set_params(params)
    assert_infos(policy.get_actions(observations[0])[1], reference_infos(params, observations[0], **reference))


@pytest.mark.parametrize("make_policy", [make, make_meta])
@pytest.mark.parametrize("arguments, error, message", [
    ({"name": ""}, TypeError, "name"),
    ({"hidden_sizes": (4, 0)}, ValueError, r"hidden_sizes\[1\]"),
    ({"learn_std": 1}, TypeError, "learn_std"),
    ({"hidden_nonlinearity": "tanhh"}, ValueError, "hidden_nonlinearity: .*'tanhh'"),
    ({"hidden_nonlinearity": dict}, TypeError, "hidden_nonlinearity: expected one of 'tanh', .*, got <class"),
    ({"hidden_nonlinearity": np.tanh}, TypeError, "hidden_nonlinearity: expected one of 'tanh', .*, got <ufunc"),
    ({"output_nonlinearity": 7}, TypeError, "output_nonlinearity"),
    ({"init_std": 0.1, "min_std": 0.2}, ValueError, "init_std: expected at least min_std=0.2, got 0.1"),
    ({"hiden_sizes": (4,)}, TypeError, "unexpected keyword argument 'hiden_sizes'"),
    ({"family": CATEGORICAL, "learn_std": False}, ValueError,
     "learn_std: expected True, got False; .* no standard deviation"),
    ({"family": CATEGORICAL, "init_std": 0.5}, TypeError, "unexpected keyword argument 'init_std'"),
])
def test_invalid_arguments_are_refused(make_policy, arguments, error, message):
    with pytest.raises(error, match=message):
        make_policy(**arguments)


@pytest.mark.parametrize("sizes, error, name", [
    ((M, 0, A), ValueError, "obs_dim"), ((M, 2.5, A), TypeError, "obs_dim"), ((M, O, -1), ValueError, "action_dim"),
    ((M, O, 0), ValueError, "action_dim"), ((0, O, A), ValueError, "meta_batch_size"),
    ((-2, O, A), ValueError, "meta_batch_size"), ((2.0, O, A), TypeError, "meta_batch_size"),
    ((True, O, A), TypeError, "meta_batch_size"),
])
def test_sizes_are_checked(family, sizes, error, name):
    for cls, arguments in ((family.meta, sizes), (family.single, sizes[1:])):
        if cls is family.meta or name != "meta_batch_size":
            with pytest.raises(error, match=name):
                cls(*arguments)


# Actors of categorical policies; those of Gaussian policies are tested with the other actors


def test_probabilities_near_zero_stay_finite_in_the_actor():
    policy = make_meta(CATEGORICAL)
    policy.set_flat_params(1e5 * policy.get_flat_params())
    _, infos = policy.make_actor().act(np.ones((M, B, O)), np.zeros((M, B, 1), "f"))
    assert np.isfinite(infos["log_prob"]).all() and infos["log_prob"].min() < -1e3


# Diagnostics: means over paths of different lengths


def test_log_diagnostics_logs_the_mean_entropy():
    # given paths of two, one and two steps; the entropy of a Gaussian is log(sqrt(2 pi e) std), summed over actions
    stds = [[[0.5, 1.5], [1.0, 1.0]], [[2.0, 4.0]], [[3.0, 1.0], [1.0, 2.0]]]
    make().log_diagnostics([{"agent_infos": {"mean": np.ones_like(std), "log_std": np.log(std)}} for std in stds])
    of_paths = [(np.log(0.75) + np.log(1.0)) / 2, np.log(8.0), (np.log(3.0) + np.log(2.0)) / 2]
    assert logger.getkvs() == {
        "AveragePolicyEntropy": pytest.approx(np.mean(of_paths) + np.log(2 * np.pi * np.e)),
        "AveragePolicyStd": pytest.approx((1.0 + 3.0 + 1.75) / 3),
    }


def test_log_diagnostics_of_a_categorical_policy():
    halves, certain = np.log([[0.5, 0.5]]), np.array([[0.0, -1e6], [0.0, -1e6]])
    make_meta(CATEGORICAL).log_diagnostics(
        [{"agent_infos": {"log_prob": halves}}, {"agent_infos": {"log_prob": certain}}], "Step_1-")
    assert logger.getkvs() == {"Step_1-AveragePolicyEntropy": pytest.approx(0.5 * np.log(2))}
