"""Tests partial adaptation: the parameters that adaptation steps change, and the context of CAVIA."""
import numpy as np
import pytest

from meta_policy_search.meta_algos import DICEMAML, TRPOMAML, VPGMAML, ProMP
from meta_policy_search.meta_algos.adapted_params import select_params
from meta_policy_search.policies import MetaCategoricalMLPPolicy, MetaGaussianMLPPolicy
from meta_policy_search.tf_compat import tf
from tests.helpers.small_world import M, collect, draw_data, make_policy, padded, set_theta

HEAD = ["mean_network/output/kernel", "mean_network/output/bias", "log_std_network/log_std_var"]
BODY = ["mean_network/hidden_0/kernel", "mean_network/hidden_0/bias"]


def adapted_and_updated(algo):
    """Returns the names of the parameters changed by an adaptation step and by a meta-update."""
    policy, data = algo.policy, collect(algo)
    before = policy.get_param_values()
    algo.adapt(data[0])
    adapted = [name for name, values in policy.stacked_param_values().items()
               if np.any(values != before[name], axis=tuple(range(1, values.ndim))).all()]
    same = [name for name, values in policy.stacked_param_values().items() if np.all(values == before[name])]
    assert sorted([*adapted, *same]) == sorted(before), "a parameter changes in every task or in none"
    algo.optimize_policy(data, log=False)
    after = policy.get_param_values()
    return adapted, [name for name in before if np.any(after[name] != before[name])]


@pytest.mark.parametrize("adapt_params, expected", [
    ("all", BODY + HEAD), ("head", HEAD), ("body", BODY), (["*/bias"], [BODY[1], HEAD[1]]),
    (["log_std*", "*hidden_0/kernel"], [BODY[0], HEAD[2]])])
@pytest.mark.parametrize("algo_cls", [ProMP, TRPOMAML])
@pytest.mark.thorough(but=("ProMP-head-expected1", "TRPOMAML-adapt_params3-expected3"),
                      ci=("ProMP-adapt_params4-expected4", "TRPOMAML-body-expected2"))
def test_chosen_parameters_adapt(algo_cls, adapt_params, expected):
    policy = make_policy()
    set_theta(policy)
    algo = algo_cls(policy, meta_batch_size=M, adapt_params=adapt_params)
    adapted, updated = adapted_and_updated(algo)
    assert adapted == expected
    assert updated == BODY + HEAD
    assert list(algo.get_step_sizes()) == expected


def test_output_layer_of_a_policy_without_scope_belongs_to_the_head():
    assert select_params("head", ["hidden_0/kernel", "output/kernel", HEAD[-1]]) == ("output/kernel", HEAD[-1])


@pytest.mark.parametrize("algo_cls", [ProMP, TRPOMAML])
@pytest.mark.parametrize("adapt_params, expected", [("context", ["context"]), ("all", BODY + HEAD + ["context"])])
@pytest.mark.thorough(but="context-expected0-ProMP", ci="all-expected1-TRPOMAML")
def test_context_starts_at_zero_and_is_changed_only_by_adaptation(adapt_params, expected, algo_cls):
    policy = make_policy(context_dim=2)
    algo = algo_cls(policy, meta_batch_size=M, adapt_params=adapt_params)
    np.testing.assert_array_equal(policy.get_param_values()["context"], np.zeros(2, "f"))
    adapted, updated = adapted_and_updated(algo)
    assert adapted == expected
    assert updated == BODY + HEAD
    policy.switch_to_pre_update()
    np.testing.assert_array_equal(policy.stacked_param_values()["context"], np.zeros((M, 2), "f"))


def test_step_size_applies_to_the_adapted_parameters():
    policy = make_policy()
    set_theta(policy)
    algo, (samples, _) = ProMP(policy, inner_lr=0.1, meta_batch_size=M, adapt_params="head"), draw_data()
    before, changes = policy.get_param_values(), []
    for arguments in ({}, {"step_size": 0.2}):
        policy.switch_to_pre_update()
        algo.adapt(samples, **arguments)
        changes.append({name: values - before[name] for name, values in policy.stacked_param_values().items()})
    for name in before:
        np.testing.assert_allclose(changes[1][name], 2 * changes[0][name], rtol=1e-4, atol=1e-6)


def test_trained_step_sizes_belong_to_the_adapted_parameters():
    policy = make_policy()
    set_theta(policy)
    algo = VPGMAML(policy, meta_batch_size=M, adapt_params="head", trainable_inner_step_size=True)
    before = algo.get_step_sizes()
    algo.optimize_policy(collect(algo), log=False)
    after = algo.get_step_sizes()
    assert list(after) == HEAD
    assert all(np.all(after[name] != before[name]) for name in HEAD)


@pytest.mark.parametrize("policy_class, hidden_sizes", [
    (MetaGaussianMLPPolicy, (5,)), (MetaGaussianMLPPolicy, ()), (MetaCategoricalMLPPolicy, (5, 4))])
def test_context_acts_like_additional_observations(policy_class, hidden_sizes):
    # given two policies with equal weights: one with a context, one that observes the context
    rng = np.random.default_rng(0)
    policy = policy_class(3, 4, 2, hidden_sizes=hidden_sizes, context_dim=2)
    observing = policy_class(3, 6, 2, hidden_sizes=hidden_sizes)
    flat = rng.normal(size=(3, policy.get_flat_params().size)).astype("f")
    policy.load_params(flat)
    observing.load_params(flat[:, :-2])
    observations = rng.normal(size=(3, 5, 4)).astype("f")
    contexts = np.broadcast_to(flat[:, None, -2:], (3, 5, 2))
    # then their distributions are equal, in the graph and in the actors
    _, infos = policy.get_actions(observations)
    _, expected = observing.get_actions(np.concatenate([observations, contexts], axis=-1))
    for task in range(3):
        for info, other in zip(infos[task], expected[task]):
            for key, value in info.items():
                np.testing.assert_allclose(value, other[key], rtol=1e-4, atol=1e-5)
    actor = policy.make_actor()
    _, by_actor = actor.act(observations, np.zeros((3, 5, actor.noise_dim), "f"))
    for key, value in by_actor.items():
        np.testing.assert_allclose(value, [[info[key] for info in task] for task in infos], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make, error, words", [
    (lambda: select_params("mean/*", HEAD), ValueError, ["adapt_params", "'mean/*'", "matches none", HEAD[0]]),
    (lambda: select_params([], HEAD), ValueError, ["adapt_params", "none"]),
    (lambda: select_params(3, HEAD), TypeError, ["adapt_params", "3"]),
    (lambda: ProMP(make_policy(), meta_batch_size=M, adapt_params="context"), ValueError,
     ["adapt_params", "'context'", "context_dim"]),
    (lambda: ProMP(make_policy(context_dim=1), meta_batch_size=M, adapt_params="head"), ValueError,
     ["adapt_params", "'context'", "'head'"]),
    (lambda: ProMP(make_policy(), meta_batch_size=M, num_inner_grad_steps=0, adapt_params="head"), ValueError,
     ["adapt_params", "num_inner_grad_steps=0"]),
    (lambda: make_policy(context_dim=-1), ValueError, ["context_dim", "-1"]),
])
def test_invalid_input_is_reported_in_one_line(make, error, words):
    with pytest.raises(error) as caught:
        make()
    assert all(word in str(caught.value) for word in words) and str(caught.value).count("\n") == 0


@pytest.mark.parametrize("algo_cls, arguments", [(ProMP, {}), (VPGMAML, {}), (DICEMAML, {"max_path_length": 5})])
@pytest.mark.thorough(but=("ProMP-arguments0", "DICEMAML-arguments2"))
def test_entropy_bonus_subtracts_the_entropy_of_the_adapted_policies(algo_cls, arguments):
    losses, entropies = [], []
    for entropy_coef in (0.0, 0.5):
        policy = make_policy()
        set_theta(policy)
        algo = algo_cls(policy=policy, meta_batch_size=M, entropy_coef=entropy_coef, num_inner_grad_steps=0,
                        **arguments)
        data = draw_data(0)
        if algo_cls is DICEMAML:
            data = [[padded(task) for task in data[0]]]
        losses.append(algo.optimizer.loss(algo.meta_input_values(data)))
        log_std = policy.get_param_values()["log_std_network/log_std_var"]
        entropies.append(np.sum(log_std + 0.5 * np.log(2 * np.pi * np.e)))
    assert losses[0] - losses[1] == pytest.approx(0.5 * entropies[0], rel=1e-4)


@pytest.mark.parametrize("algo_cls, arguments", [(ProMP, {"num_ppo_steps": 1}), (VPGMAML, {})])
@pytest.mark.thorough(but="VPGMAML-arguments1")
def test_meta_gradient_is_scaled_to_its_maximum_norm(algo_cls, arguments):
    def step(max_grad_norm):
        policy = make_policy()
        theta = set_theta(policy)
        algo = algo_cls(policy, meta_batch_size=M, learning_rate=1.0, max_grad_norm=max_grad_norm,
                        tf_optimizer_cls=tf.train.GradientDescentOptimizer, **arguments)
        algo.optimize_policy(draw_data(), log=False)
        return policy.get_flat_params() - theta

    free = step(None)
    norm = np.linalg.norm(free)
    np.testing.assert_allclose(step(norm / 4), free / 4, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(step(norm * 4), free, rtol=1e-4, atol=1e-6)
