"""Test cases of meta-gradients and their NumPy reference objectives."""
import numpy as np
import pytest

from meta_policy_search.meta_algos import DICEMAML, TRPOMAML, VPG_DICEMAML, VPGMAML, ProMP
from tests.helpers.numpy_reference import Objective, central_differences
from tests.helpers.small_world import T, padded, relative_error, shapes_of

CLIP_EPS, KL_COEFF, EXPLORATION_COEFF, INNER_LR = 0.15, 0.7, 0.4, 0.2
EXPLORING, DICE = (TRPOMAML, VPGMAML), (DICEMAML, VPG_DICEMAML)


def case(algo_cls, num_steps, inner_type=None, exploration=False, trainable=False, first_order=False, marks=(),
         adapt_params="all", horizon=T):
    labels = [algo_cls.__name__, f"{num_steps} steps", inner_type, exploration and "exploration",
             trainable and "trained step sizes", first_order and "first order",
             adapt_params != "all" and f"adapts {adapt_params}", horizon is None and "without max_path_length"]
    arguments = {"num_inner_grad_steps": num_steps, "trainable_inner_step_size": trainable, "first_order": first_order,
                 "adapt_params": adapt_params}
    if algo_cls in EXPLORING:
        arguments.update(inner_type=inner_type, exploration=exploration,
                         exploration_coeff=EXPLORATION_COEFF if exploration else None,
                         max_path_length=horizon if inner_type in ("dice", "taypo") else None)
    elif algo_cls in DICE:
        arguments.update(max_path_length=T)
    return pytest.param(algo_cls, arguments, marks=marks, id=", ".join(filter(None, labels)))


def reference(algo, data, theta):
    """Returns the meta-objective of an algorithm in NumPy."""
    inner_type = "dice of rewards" if isinstance(algo, DICE) else getattr(algo, "inner_type", "likelihood_ratio")
    objective = Objective(shapes_of(algo.policy), data, inner_type, algo.first_order, theta, algo.inner_lr,
                          getattr(algo, "max_path_length", None), adapts(algo))
    if isinstance(algo, DICE):
        return objective.dice("log_likelihood" if isinstance(algo, VPG_DICEMAML) else inner_type), objective
    if isinstance(algo, ProMP):
        return objective.pro_mp(CLIP_EPS, KL_COEFF), objective
    outer_type = "likelihood_ratio" if isinstance(algo, TRPOMAML) else "log_likelihood"
    return objective.policy_gradient(outer_type, EXPLORATION_COEFF if algo.exploration else 0.0), objective


def adapts(algo):
    """Returns one for each policy parameter that adaptation steps change, zero for the others."""
    names = algo.get_step_sizes()
    return np.concatenate([np.full(value.size, float(name in names))
                           for name, value in algo.policy.get_param_values().items()])


def input_values(algo, data):
    if isinstance(algo, DICE):
        data = [[padded(samples) for samples in step] for step in data]
    values = algo.meta_input_values(data)
    if isinstance(algo, ProMP):
        values.update(clip_eps=CLIP_EPS, inner_kl_coeff=np.full(algo.num_inner_grad_steps, KL_COEFF))
    return values


def assert_equals_reference(algo, data, theta):
    """Compares the meta-objective at `theta`, its gradient and its constraint with those of the NumPy reference."""
    f, objective = reference(algo, data, theta)
    values, size = input_values(algo, data), len(theta) - algo.policy.context_dim  # without the context
    assert algo.optimizer.loss(values) == pytest.approx(f(theta), rel=1e-4)
    gradient = algo.optimizer.gradient(values)
    assert relative_error(gradient[:size], central_differences(f, theta)[:size]) < 1e-3
    if algo.trainable_inner_step_size:  # with respect to the logarithms of the step sizes, which are all equal
        by_steps = central_differences(lambda log_steps: f(theta, np.exp(log_steps)), np.full(len(theta),
                                                                                                    np.log(INNER_LR)))
        assert relative_error(gradient[size:], by_steps[adapts(algo) == 1.0]) < 1e-3
    else:
        assert len(gradient) == size
    if isinstance(algo, TRPOMAML):
        assert algo.optimizer.constraint_val(values) == pytest.approx(objective.mean_kl(theta), rel=1e-4)
