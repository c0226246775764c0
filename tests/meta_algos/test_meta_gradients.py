"""Every meta-objective, its gradient and the inner step against a plain NumPy form, for ragged tasks."""
import numpy as np
import pytest
from numpy_reference import Objective, central_differences, inner_gradient
from small_world import M, draw_data, flat_task_params, make_policy, meta_gradient, relative_error, set_theta, shapes_of

from meta_policy_search.meta_algos import TRPOMAML, VPGMAML, ProMP

pytestmark = pytest.mark.gradients

CLIP_EPS, KL_COEFF, EXPLORATION_COEFF, INNER_LR = 0.3, 0.7, 0.4, 0.2


def case(algo_cls, num_steps, inner_type=None, exploration=False, trainable=False, first_order=False, marks=()):
    words = [algo_cls.__name__, f"{num_steps} steps", inner_type, exploration and "exploration",
             trainable and "trained step sizes", first_order and "first order"]
    arguments = {"num_inner_grad_steps": num_steps, "trainable_inner_step_size": trainable, "first_order": first_order}
    if algo_cls is not ProMP:
        arguments.update(inner_type=inner_type, exploration=exploration, exploration_coeff=EXPLORATION_COEFF)
    return pytest.param(algo_cls, arguments, marks=marks, id=", ".join(filter(None, words)))


CASES = [
    case(ProMP, 1),
    case(ProMP, 2, trainable=True),
    case(ProMP, 3),
    case(ProMP, 2, first_order=True),
    case(TRPOMAML, 1, "log_likelihood"),
    case(TRPOMAML, 2, "likelihood_ratio", exploration=True, trainable=True),
    case(VPGMAML, 1, "likelihood_ratio"),
    case(VPGMAML, 2, "log_likelihood", exploration=True, first_order=True),
]
ALL_CASES = [
    case(algo_cls, num_steps, inner_type, exploration, trainable, first_order, marks=pytest.mark.slow)
    for num_steps in (1, 2, 3) for trainable in (False, True) for first_order in (False, True)
    for algo_cls, inner_type, exploration in [
        (ProMP, None, False),
        *((cls, inner, explores) for cls in (TRPOMAML, VPGMAML) for inner in ("likelihood_ratio", "log_likelihood")
          for explores in (False, True)),
    ]
]


def reference(algo, data, theta):
    """The meta-objective of an algorithm in NumPy."""
    inner_type = getattr(algo, "inner_type", "likelihood_ratio")
    objective = Objective(shapes_of(algo.policy), data, inner_type, algo.first_order, theta, algo.inner_lr)
    if isinstance(algo, ProMP):
        return objective.pro_mp(CLIP_EPS, KL_COEFF), objective
    outer_type = "likelihood_ratio" if isinstance(algo, TRPOMAML) else "log_likelihood"
    return objective.policy_gradient(outer_type, EXPLORATION_COEFF if algo.exploration else 0.0), objective


def input_values(algo, data):
    values = algo._meta_input_values(data)
    if isinstance(algo, ProMP):
        values.update(clip_eps=CLIP_EPS, inner_kl_coeff=np.full(algo.num_inner_grad_steps, KL_COEFF))
    return values


@pytest.mark.parametrize("algo_cls, arguments", CASES + ALL_CASES)
def test_objective_and_meta_gradient(algo_cls, arguments):
    # given samples of policies that are not those at theta, so that ratios differ from one and some are clipped
    policy = make_policy()
    algo = algo_cls(policy, inner_lr=INNER_LR, meta_batch_size=M, **arguments)
    data, theta = draw_data(algo.num_inner_grad_steps), set_theta(policy)
    # when loss and gradient are computed in the graph
    loss, gradient = meta_gradient(algo)(input_values(algo, data))
    # then they are those of the plain form
    f, objective = reference(algo, data, theta)
    assert loss == pytest.approx(f(theta), rel=1e-4)
    size = len(theta)
    assert relative_error(gradient[:size], central_differences(f, theta)) < 1e-3
    if algo.trainable_inner_step_size:  # by the logarithms of the step sizes, all alike
        by_steps = central_differences(lambda log_steps: f(theta, np.exp(log_steps)), np.full(size, np.log(INNER_LR)))
        assert relative_error(gradient[size:], by_steps) < 1e-3
    else:
        assert len(gradient) == size
    if algo_cls is TRPOMAML:
        kl = algo.optimizer.constraint_val(input_values(algo, data))
        assert kl == pytest.approx(objective.mean_kl(theta), rel=1e-4)


@pytest.mark.parametrize("inner_type", ["likelihood_ratio", "log_likelihood"])
def test_adapt_is_a_policy_gradient_step_of_each_task(inner_type):
    policy = make_policy()
    algo = VPGMAML(policy, inner_lr=INNER_LR, meta_batch_size=M, inner_type=inner_type)
    (first, second), theta, shapes = draw_data(), set_theta(policy), shapes_of(policy)
    # when the policy adapts once, it steps from the common parameters
    algo.adapt(first)
    once = [theta - INNER_LR * inner_gradient(theta, shapes, first[m], inner_type) for m in range(M)]
    for actual, expected in zip(flat_task_params(policy), once):
        assert relative_error(actual - theta, expected - theta) < 1e-4
    # and when it adapts again, from where each task stands
    algo.adapt(second)
    for m, actual in enumerate(flat_task_params(policy)):
        step = -INNER_LR * inner_gradient(once[m], shapes, second[m], inner_type)
        assert relative_error(actual - once[m], step) < 1e-4
    # the parameters before adaptation stay
    np.testing.assert_array_equal(policy.get_flat_params(), theta.astype("f"))


def test_the_inner_gradient_is_that_of_central_differences_too():
    # the reference itself: complex steps against plain differences
    from numpy_reference import inner_loss

    policy = make_policy()
    (samples, *_), _ = draw_data()
    theta, shapes = set_theta(policy), shapes_of(policy)
    for inner_type in ("likelihood_ratio", "log_likelihood"):
        exact = inner_gradient(theta, shapes, samples, inner_type)
        plain = central_differences(lambda x: inner_loss(x, shapes, samples, inner_type), theta)  # noqa: B023
        assert relative_error(plain, exact) < 1e-8
