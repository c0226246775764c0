"""Compares every meta-objective, its gradient and the adaptation step with a NumPy reference, for ragged tasks."""
import numpy as np
import pytest

from meta_policy_search.meta_algos import DICEMAML, TRPOMAML, VPG_DICEMAML, VPGMAML, ProMP
from meta_policy_search.meta_algos.inner_losses import INNER_TYPES
from tests.helpers.gradients import DICE, INNER_LR, assert_equals_reference, case
from tests.helpers.numpy_reference import central_differences, inner_gradient, inner_loss
from tests.helpers.small_world import (
    M,
    T,
    draw_data,
    flat_task_params,
    make_policy,
    relative_error,
    set_theta,
    shapes_of,
)

pytestmark = pytest.mark.gradients

CASES = [
    case(ProMP, 0),
    case(ProMP, 1),
    case(ProMP, 2, trainable=True),
    case(ProMP, 3, marks=pytest.mark.slow),
    case(ProMP, 2, first_order=True, marks=pytest.mark.thorough),
    case(TRPOMAML, 0, "log_likelihood"),
    case(TRPOMAML, 1, "log_likelihood"),
    case(TRPOMAML, 2, "likelihood_ratio", exploration=True, trainable=True, marks=pytest.mark.thorough),
    case(VPGMAML, 0, "log_likelihood", marks=pytest.mark.slow),
    case(VPGMAML, 1, "likelihood_ratio", marks=pytest.mark.slow),
    case(VPGMAML, 2, "log_likelihood", exploration=True, first_order=True),
    case(TRPOMAML, 2, "dice", marks=pytest.mark.slow),
    case(TRPOMAML, 1, "dice", horizon=None),
    case(VPGMAML, 1, "taypo", trainable=True, horizon=None, marks=pytest.mark.thorough),
    case(VPGMAML, 1, "dice", trainable=True, marks=pytest.mark.thorough),
    case(DICEMAML, 0, marks=pytest.mark.slow),
    case(DICEMAML, 1),
    case(DICEMAML, 2, trainable=True, marks=pytest.mark.thorough),
    case(VPG_DICEMAML, 2, marks=pytest.mark.thorough),
    case(TRPOMAML, 2, "taypo", marks=pytest.mark.thorough),
    case(ProMP, 2, adapt_params="head"),
    case(VPGMAML, 2, "log_likelihood", exploration=True, adapt_params="body", marks=pytest.mark.thorough),
    case(TRPOMAML, 2, "likelihood_ratio", adapt_params="context", marks=pytest.mark.thorough),
    case(DICEMAML, 1, adapt_params="head", trainable=True, marks=pytest.mark.thorough),
    case(VPGMAML, 1, "taypo", adapt_params="context", trainable=True),
]
# Trained step sizes add a separate part to the gradient, so all these cases train them. The exploration term adds to
# the loss and could hide errors in other terms, so each inner loss is tested with and without it.
ALL_CASES = [
    case(algo_cls, num_steps, inner_type, exploration, trainable=True, first_order=first_order, marks=pytest.mark.slow)
    for num_steps in (1, 2, 3) for first_order in (False, True)
    for algo_cls, inner_types, exploration in [
        *((algo_cls, [None], False) for algo_cls in (ProMP, *DICE)),
        (TRPOMAML, INNER_TYPES, num_steps != 2),
        (VPGMAML, INNER_TYPES, num_steps == 2),
    ]
    for inner_type in inner_types
]
ALL_CASES = CASES + [slow for slow in ALL_CASES if slow.id not in {quick.id for quick in CASES}]


@pytest.mark.parametrize("algo_cls, arguments", ALL_CASES)
def test_objective_and_meta_gradient(algo_cls, arguments):
    # given samples of policies that differ from those at theta, so that ratios differ from one and some are clipped
    policy = make_policy(context_dim=2 if arguments["adapt_params"] == "context" else 0)
    algo = algo_cls(policy=policy, inner_lr=INNER_LR, meta_batch_size=M, **arguments)
    assert_equals_reference(algo, draw_data(algo.num_inner_grad_steps), set_theta(policy))


@pytest.mark.parametrize("inner_type", INNER_TYPES)
def test_adapt_is_a_policy_gradient_step_of_each_task(inner_type):
    policy = make_policy()
    algo = VPGMAML(policy, inner_lr=INNER_LR, meta_batch_size=M, inner_type=inner_type, max_path_length=T)
    (first, second), theta, shapes = draw_data(), set_theta(policy), shapes_of(policy)
    # when the policy adapts once, it starts at the common parameters
    algo.adapt(first)
    once = [theta - INNER_LR * inner_gradient(theta, shapes, samples, inner_type, horizon=T) for samples in first]
    for actual, expected in zip(flat_task_params(policy), once):
        assert relative_error(actual - theta, expected - theta) < 1e-4
    # when it adapts again, it starts at the parameters of each task
    algo.adapt(second)
    for m, actual in enumerate(flat_task_params(policy)):
        step = -INNER_LR * inner_gradient(once[m], shapes, second[m], inner_type, horizon=T)
        assert relative_error(actual - once[m], step) < 1e-4
    # the pre-update parameters are unchanged
    np.testing.assert_array_equal(policy.get_flat_params(), theta.astype("f"))


def test_reference_inner_gradient_equals_central_differences():
    # checks the reference: complex steps against real differences
    policy = make_policy()
    (samples, *_), _ = draw_data()
    theta, shapes = set_theta(policy), shapes_of(policy)
    for inner_type in ("likelihood_ratio", "log_likelihood"):
        exact = inner_gradient(theta, shapes, samples, inner_type)
        plain = central_differences(lambda x: inner_loss(x, shapes, samples, inner_type), theta)  # noqa: B023
        assert relative_error(plain, exact) < 1e-8
