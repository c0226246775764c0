"""Tests the policy of a meta-batch: task-specific parameters, and the switch to pre-update parameters."""
from collections import OrderedDict

import numpy as np
import pytest

from meta_policy_search.policies import GaussianMLPPolicy, MetaGaussianMLPPolicy, MetaPolicy
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger

M, O, A, B = 3, 3, 2, 4
LOG_STD = "log_std_network/log_std_var"


@pytest.fixture
def policy():
    return MetaGaussianMLPPolicy(M, O, A, hidden_sizes=(4,))


@pytest.fixture
def observations():
    return list(np.random.default_rng(0).normal(size=(M, B, O)))


def task_params(policy, seed=1):
    """Returns different parameters for each task."""
    rng = np.random.default_rng(seed)
    return [
        OrderedDict((name, (0.5 * rng.normal(size=value.shape)).astype("f"))
                    for name, value in policy.get_param_values().items())
        for _ in range(M)
    ]


def numpy_mean(params, observations):
    hidden = np.tanh(observations @ params["mean_network/hidden_0/kernel"] + params["mean_network/hidden_0/bias"])
    return hidden @ params["mean_network/output/kernel"] + params["mean_network/output/bias"]


def means(agent_infos):
    return [np.stack([info["mean"] for info in task_infos]) for task_infos in agent_infos]


def test_policy_is_a_meta_policy_and_a_gaussian_policy(policy):
    assert isinstance(policy, MetaPolicy) and isinstance(policy, GaussianMLPPolicy)
    assert policy.meta_batch_size == M


def test_get_actions_returns_lists_over_tasks(policy, observations):
    actions, agent_infos = policy.get_actions(observations)
    assert isinstance(actions, list) and isinstance(agent_infos, list)
    assert [a.shape for a in actions] == [(B, A)] * M
    assert [len(task_infos) for task_infos in agent_infos] == [B] * M
    assert {a.dtype for a in actions} == {np.dtype("f")}
    for task_infos in agent_infos:
        for info in task_infos:
            assert set(info) == {"mean", "log_std"} and info["mean"].shape == info["log_std"].shape == (A,)


def test_initially_all_tasks_act_with_the_pre_update_parameters(policy, observations):
    params = task_params(policy)[0]
    policy.set_params(params)
    _, agent_infos = policy.get_actions(observations)
    for mean, obs in zip(means(agent_infos), observations):
        np.testing.assert_allclose(mean, numpy_mean(params, obs), rtol=1e-5, atol=1e-6)


def test_update_task_parameters_sets_the_parameters_of_each_task(policy, observations):
    before, params = policy.get_flat_params(), task_params(policy)
    policy.update_task_parameters(params)
    _, agent_infos = policy.get_actions(observations)
    for m in range(M):
        np.testing.assert_allclose(means(agent_infos)[m], numpy_mean(params[m], observations[m]), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(agent_infos[m][0]["log_std"], params[m][LOG_STD])
    np.testing.assert_array_equal(policy.get_flat_params(), before)  # the pre-update parameters are unchanged


def test_given_arrays_are_copied(policy):
    params = task_params(policy)
    policy.update_task_parameters(params)
    params[1][LOG_STD][:] = 9.0
    assert (policy.policies_params_vals[1][LOG_STD] != 9.0).all()


def test_get_action_acts_for_the_given_task(policy, observations):
    params = task_params(policy)
    policy.update_task_parameters(params)
    for m in range(M):
        action, info = policy.get_action(observations[m][0], task=m)
        assert action.shape == (A,) and action.dtype == np.float32
        np.testing.assert_allclose(info["mean"], numpy_mean(params[m], observations[m][0]), rtol=1e-5, atol=1e-6)
    _, info = policy.get_action(observations[0][0])
    np.testing.assert_allclose(info["mean"], numpy_mean(params[0], observations[0][0]), rtol=1e-5, atol=1e-6)


def test_switch_to_pre_update_drops_adapted_parameters(policy, observations):
    policy.update_task_parameters(task_params(policy))
    policy.switch_to_pre_update()
    _, agent_infos = policy.get_actions(observations)
    expected = numpy_mean(policy.get_param_values(), observations[2])
    np.testing.assert_allclose(means(agent_infos)[2], expected, rtol=1e-5, atol=1e-6)
    # and later changes apply to all tasks
    policy.set_flat_params(2 * policy.get_flat_params())
    np.testing.assert_array_equal(policy.policies_params_vals[0]["mean_network/output/kernel"],
                                  policy.get_param_values()["mean_network/output/kernel"])


def test_policies_params_vals_and_feed_dict_hold_the_acting_parameters(policy):
    params = task_params(policy)
    policy.update_task_parameters(params)
    values = policy.policies_params_vals
    assert len(values) == M and all(isinstance(v, OrderedDict) for v in values)
    feed = policy.policies_params_feed_dict
    assert len(feed) == len(params[0])
    for name, placeholder in policy.policies_params_phs.items():
        assert placeholder.op.type == "Placeholder"
        np.testing.assert_array_equal(feed[placeholder], np.stack([p[name] for p in params]))
        for m in range(M):
            np.testing.assert_array_equal(values[m][name], params[m][name])
    policy.update_task_parameters(values)  # round trip
    np.testing.assert_array_equal(policy.policies_params_vals[2][LOG_STD], params[2][LOG_STD])


def test_feed_dict_evaluates_user_graphs(policy, observations):
    params = task_params(policy)
    policy.update_task_parameters(params)
    info = policy.distribution_info_sym(tf.constant(np.stack(observations), tf.float32), policy.policies_params_phs)
    with tf.Session() as session:
        mean = session.run(info["mean"], policy.policies_params_feed_dict)
    np.testing.assert_allclose(mean[1], numpy_mean(params[1], observations[1]), rtol=1e-5, atol=1e-6)


def test_load_params_accepts_one_vector_per_task_or_one_for_all(policy):
    flat = np.random.default_rng(0).normal(size=(M, len(policy.get_flat_params()))).astype("f")
    before = policy.get_flat_params()
    policy.load_params(flat)
    assert (policy.get_flat_params() == before).all()
    for m in range(M):
        values = np.concatenate([v.ravel() for v in policy.policies_params_vals[m].values()])
        np.testing.assert_array_equal(values, flat[m])

    policy.switch_to_pre_update()
    policy.load_params(flat[0])
    np.testing.assert_array_equal(policy.get_flat_params(), flat[0])
    policy.load_params(OrderedDict((name, 2 * value) for name, value in policy.get_param_values().items()))
    np.testing.assert_array_equal(policy.get_flat_params(), 2 * flat[0])


def without_log_std(params):
    return {name: value for name, value in params.items() if name != LOG_STD}


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda p: p[:2], r"expected 3 dicts \(meta_batch_size\), got 2"),
        (lambda p: [*p[:2], without_log_std(p[2])], r"updated_policies_parameters\[2\]: expected the names"),
        (lambda p: [p[0], {**p[1], "other": 1.0}, p[2]], r"updated_policies_parameters\[1\]: .*'other'"),
        (lambda p: [p[0], {**p[1], LOG_STD: np.zeros(3)}, p[2]],
         r"updated_policies_parameters\[1\]\['log_std_network/log_std_var'\]: expected shape \(2,\), got \(3,\)"),
        (lambda p: [*p[:2], {**p[2], LOG_STD: np.array([0.0, np.nan])}],
         r"updated_policies_parameters\[2\]\['log_std_network/log_std_var'\]: expected finite"),
    ],
)
def test_invalid_task_parameters_are_refused_and_change_nothing(policy, change, message):
    params = task_params(policy)
    policy.update_task_parameters(params)
    with pytest.raises(ValueError, match=message):
        policy.update_task_parameters(change(task_params(policy, seed=2)))
    np.testing.assert_array_equal(policy.policies_params_vals[2][LOG_STD], params[2][LOG_STD])


@pytest.mark.parametrize("shape", [(M - 1, 28), (M, 27), (M, 2, 28)])
def test_invalid_vectors_are_refused(policy, shape):
    with pytest.raises(ValueError, match="updated_policies_parameters|policy_params"):
        policy.load_params(np.zeros(shape))


@pytest.mark.parametrize(
    "observations, message",
    [
        (np.zeros((2, B, O)), r"observations: expected 3 arrays \(meta_batch_size\), got 2"),
        (np.zeros((M, B, O + 1)), r"observations: expected shape \(any, any, 3\), got \(3, 4, 4\)"),
        (np.zeros((M, O)), r"observations: expected shape \(any, any, 3\), got \(3, 3\)"),
        ([np.zeros((2, O)), np.zeros((1, O)), np.zeros((2, O))], r"same number for every task, got lengths \[1, 2\]"),
        (np.full((M, B, O), np.nan), "observations: expected finite numbers"),
    ],
)
def test_invalid_observations_are_refused(policy, observations, message):
    with pytest.raises(ValueError, match=message):
        policy.get_actions(observations)


@pytest.mark.parametrize("observation, task, error", [
    (np.zeros(O + 1), 0, ValueError), (np.full(O, np.inf), 0, ValueError), (np.zeros(O), M, ValueError),
    (np.zeros(O), -1, ValueError), (np.zeros(O), 0.5, TypeError),
])
def test_invalid_observation_or_task_is_refused(policy, observation, task, error):
    with pytest.raises(error, match="^(observation|task): expected"):
        policy.get_action(observation, task)


@pytest.mark.parametrize("size, error", [(0, ValueError), (-2, ValueError), (2.0, TypeError), (True, TypeError)])
def test_meta_batch_size_is_validated(size, error):
    with pytest.raises(error, match="meta_batch_size"):
        MetaGaussianMLPPolicy(size, O, A)


def test_graph_size_is_independent_of_the_number_of_tasks():
    sizes = []
    for meta_batch_size in (2, 7):
        with tf.Graph().as_default() as graph:
            MetaGaussianMLPPolicy(meta_batch_size, O, A, hidden_sizes=(4,))
            sizes.append(len(graph.get_operations()))
    assert sizes[0] == sizes[1]


def test_arguments_are_passed_to_the_network(observations):
    policy = MetaGaussianMLPPolicy(meta_batch_size=M, obs_dim=O, action_dim=A, name="meta", hidden_sizes=(),
                                   learn_std=False, output_nonlinearity="sigmoid", init_std=0.5, min_std=0.4)
    assert list(policy.get_param_values()) == ["mean_network/output/kernel", "mean_network/output/bias"]
    _, agent_infos = policy.get_actions(observations)
    kernel = policy.get_param_values()["mean_network/output/kernel"]
    expected = 1.0 / (1.0 + np.exp(-observations[0] @ kernel))
    np.testing.assert_allclose(means(agent_infos)[0], expected, rtol=1e-5)
    np.testing.assert_allclose(np.exp(agent_infos[0][0]["log_std"]), [0.5, 0.5], rtol=1e-6)
    assert policy.policies_params_phs["mean_network/output/bias"].name.startswith("meta/")


def test_log_diagnostics(policy):
    policy.log_diagnostics([{"agent_infos": {"log_std": np.log([[0.5, 1.5]])}}], "Step_1-")
    assert logger.getkvs() == {"Step_1-AveragePolicyStd": pytest.approx(1.0)}
