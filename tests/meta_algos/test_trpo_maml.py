"""Tests the trust region of TRPO-MAML, its logged values and its arguments."""
import numpy as np
import pytest

from meta_policy_search.meta_algos import TRPOMAML
from meta_policy_search.optimizers import ConjugateGradientOptimizer, FiniteDifferenceHvp, MAMLFirstOrderOptimizer
from meta_policy_search.policies import DiagonalGaussian, Distribution, MetaCategoricalMLPPolicy, MetaGaussianMLPPolicy
from meta_policy_search.tf_compat import tf
from tests.helpers.numpy_reference import Objective, central_differences
from tests.helpers.small_world import (
    A,
    M,
    O,
    T,
    collect,
    draw_data,
    make_policy,
    relative_error,
    set_theta,
    shapes_of,
    update,
)

STEP_SIZE = 0.002


@pytest.fixture(scope="module")
def algo():
    with tf.Graph().as_default():
        optimizer = ConjugateGradientOptimizer(hvp_approach="exact", backtrack_ratio=0.9)
        yield TRPOMAML(make_policy(), meta_batch_size=M, step_size=STEP_SIZE, optimizer=optimizer)


def test_each_update_reduces_the_loss_within_the_trust_region(algo):
    set_theta(algo.policy)
    divergences = []
    for itr in range(5):
        data = collect(algo, seed=itr)
        before, plain = algo.policy.get_flat_params().astype(float), Objective(shapes_of(algo.policy), data)
        logged = update(algo, data)
        after = algo.policy.get_flat_params().astype(float)
        # logged values equal those of NumPy
        loss = plain.policy_gradient("likelihood_ratio")
        assert logged["LossBefore"] == pytest.approx(loss(before), rel=1e-3, abs=1e-5)
        assert logged["LossAfter"] == pytest.approx(loss(after), rel=1e-3, abs=1e-5)
        assert logged["dLoss"] == pytest.approx(loss(before) - loss(after), rel=1e-2, abs=1e-5)
        assert logged["MeanKLBefore"] == pytest.approx(0.0, abs=1e-6)
        assert logged["MeanKL"] == pytest.approx(plain.mean_kl(after), rel=1e-2)
        # and the step uses the whole trust region
        assert logged["dLoss"] > 0 and 0 < logged["StepFraction"] <= 1
        assert logged["MeanKL"] <= STEP_SIZE
        divergences.append(logged["MeanKL"])
    assert np.mean(divergences) > 0.5 * STEP_SIZE


@pytest.mark.thorough
def test_hessian_vector_products_equal_the_dense_hessian_of_the_divergence():
    # given the divergence as a function of the pre-update parameters, and its Hessian by central differences
    policy = make_policy(hidden_sizes=())
    hvps = "exact", "finite_difference"
    algos = [TRPOMAML(policy, meta_batch_size=M, optimizer=ConjugateGradientOptimizer(hvp_approach=hvp))
             for hvp in hvps]
    data, theta = draw_data(), set_theta(policy)
    mean_kl = Objective(shapes_of(policy), data).mean_kl
    hessian = central_differences(lambda x: central_differences(mean_kl, x, h=1e-4), theta, h=1e-4)
    values = algos[0].meta_input_values(data)
    exact, finite_difference = (algo.optimizer.hessian_product(values) for algo in algos)
    for x in np.random.default_rng(0).normal(size=(4, len(theta))):
        assert relative_error(exact(x), hessian @ x) < 1e-4
        assert relative_error(finite_difference(x), exact(x)) < 1e-3


@pytest.mark.parametrize("arguments", [
    {}, {"num_inner_grad_steps": 2, "trainable_inner_step_size": True}, {"inner_type": "dice", "max_path_length": T},
])
@pytest.mark.thorough(ci="arguments2")
def test_gauss_newton_products_are_exact_at_the_start_of_a_step(arguments):
    policy, hvps = make_policy(), ("gauss_newton", "exact")
    algos = [TRPOMAML(policy, meta_batch_size=M, optimizer=ConjugateGradientOptimizer(hvp_approach=hvp), **arguments)
             for hvp in hvps]
    set_theta(policy)
    # given samples of the current policies
    values = algos[0].meta_input_values(collect(algos[0]))
    gauss_newton, exact = (algo.optimizer.hessian_product(values) for algo in algos)
    for x in np.random.default_rng(0).normal(size=(4, len(algos[0].optimizer.get_flat()))):
        assert relative_error(gauss_newton(x), exact(x)) < 1e-4
    # and of other policies, where the curvature may be negative, but a Gauss-Newton product is not
    values = algos[0].meta_input_values(draw_data(algos[0].num_inner_grad_steps))
    gauss_newton = algos[0].optimizer.hessian_product(values)
    for x in np.random.default_rng(1).normal(size=(4, len(algos[0].optimizer.get_flat()))):
        assert x @ gauss_newton(x) > 0


@pytest.mark.thorough
def test_gauss_newton_products_are_exact_for_categorical_policies():
    policy, hvps = MetaCategoricalMLPPolicy(M, O, 3, hidden_sizes=(3,)), ("gauss_newton", "exact")
    algos = [TRPOMAML(policy, meta_batch_size=M, optimizer=ConjugateGradientOptimizer(hvp_approach=hvp))
             for hvp in hvps]
    set_theta(policy)
    # given samples of the current policies
    data, rng = draw_data(), np.random.default_rng(0)
    for step, samples in enumerate(data):
        observations = [task["observations"] for task in samples]
        for m, task in enumerate(samples):
            task["actions"] = rng.integers(3, size=len(task["observations"]))
            info = [policy.get_action(observation, task=m)[1] for observation in observations[m]]
            task["agent_infos"] = {"log_prob": np.array([each["log_prob"] for each in info])}
        if step == 0:
            algos[0].adapt(samples)
    policy.switch_to_pre_update()
    values = algos[0].meta_input_values(data)
    gauss_newton, exact = (algo.optimizer.hessian_product(values) for algo in algos)
    for x in np.random.default_rng(0).normal(size=(4, len(algos[0].optimizer.get_flat()))):
        assert relative_error(gauss_newton(x), exact(x)) < 1e-4


@pytest.mark.thorough
def test_distribution_without_fisher_information_uses_finite_differences():
    class Own(DiagonalGaussian):
        fisher_norm_sym = Distribution.fisher_norm_sym

    class OwnPolicy(MetaGaussianMLPPolicy):
        distribution = Own(A)

    policy = OwnPolicy(M, O, A, hidden_sizes=(3,))
    algo = TRPOMAML(policy, meta_batch_size=M)
    assert isinstance(algo.optimizer.hvp_approach, FiniteDifferenceHvp)
    algo.optimize_policy(collect(algo), log=False)
    with pytest.raises(ValueError, match="constraint_metric"):
        TRPOMAML(policy, meta_batch_size=M, optimizer=ConjugateGradientOptimizer(hvp_approach="gauss_newton"))


def test_every_algorithm_has_a_separate_optimizer_whose_curvature_is_a_gauss_newton_product():
    optimizer = ConjugateGradientOptimizer(cg_iters=5)
    for given in (None, optimizer):
        algo = TRPOMAML(make_policy(), meta_batch_size=M, num_inner_grad_steps=0, optimizer=given)
        assert algo.optimizer.hvp_approach == "gauss_newton" and given in (None, algo.optimizer)
    with pytest.raises(ValueError, match="already used by another algorithm"):
        TRPOMAML(make_policy(), meta_batch_size=M, optimizer=optimizer)


@pytest.mark.parametrize("arguments, error", [
    ({"step_size": 0.0}, ValueError),
    ({"optimizer": MAMLFirstOrderOptimizer}, TypeError),
])
def test_arguments_are_checked(arguments, error):
    (name,) = arguments
    with pytest.raises(error, match=name):
        TRPOMAML(make_policy(), meta_batch_size=M, **arguments)
