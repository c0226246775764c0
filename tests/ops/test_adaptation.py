"""Compares the adaptation step with finite differences for each task."""
from collections import OrderedDict

import numpy as np
import pytest

from meta_policy_search.ops import adaptation
from meta_policy_search.tf_compat import tf
from tests.helpers.small_world import run

M = 3


def task_loss(w, b, x):
    """Returns a non-quadratic loss of one task in NumPy: `mean tanh(x w)^2 + sum b^3`."""
    return np.mean(np.tanh(x @ w) ** 2) + np.sum(b**3)


def finite_difference(f, value, h=1e-6):
    gradient = np.empty_like(value)
    for index in np.ndindex(value.shape):
        up, down = value.copy(), value.copy()
        up[index] += h
        down[index] -= h
        gradient[index] = (f(up) - f(down)) / (2 * h)
    return gradient


@pytest.fixture
def problem():
    """Returns stacked float64 parameters of three tasks, the data, and their losses `[M]` in the graph."""
    rng = np.random.default_rng(0)
    values = OrderedDict(w=rng.normal(size=(M, 4, 2)), b=rng.normal(size=(M, 2)), unused=rng.normal(size=(M, 3)))
    x = rng.normal(size=(M, 6, 4))
    params = OrderedDict((name, tf.constant(value)) for name, value in values.items())
    loss = tf.reduce_mean(tf.tanh(tf.matmul(x, params["w"])) ** 2, [1, 2]) + tf.reduce_sum(params["b"] ** 3, 1)
    return values, x, params, loss


def test_each_task_descends_its_loss(problem):
    values, x, params, loss = problem
    step_sizes = {"w": tf.constant(0.1, tf.float64), "b": tf.constant([0.2, 0.0], tf.float64), "unused": 1.0}
    adapted = run(adaptation.gradient_step(params, loss, step_sizes))
    for m in range(M):
        w, b = values["w"][m], values["b"][m]
        expected_w = w - 0.1 * finite_difference(lambda w: task_loss(w, b, x[m]), w)  # noqa: B023
        expected_b = b - np.array([0.2, 0.0]) * finite_difference(lambda b: task_loss(w, b, x[m]), b)  # noqa: B023
        np.testing.assert_allclose(adapted["w"][m], expected_w, rtol=1e-7)
        np.testing.assert_allclose(adapted["b"][m], expected_b, rtol=1e-7)


def test_parameters_without_influence_are_unchanged(problem):
    values, _, params, loss = problem
    adapted = run(adaptation.gradient_step(params, loss, dict.fromkeys(params, tf.constant(0.1, tf.float64))))
    assert list(adapted) == ["w", "b", "unused"]
    np.testing.assert_array_equal(adapted["unused"], values["unused"])


@pytest.mark.parametrize("first_order", [False, True])
def test_first_order_stops_the_gradient_through_the_inner_gradient(first_order):
    # given L = theta^3, so theta' = theta - alpha 3 theta^2 and d theta' / d theta = 1 - 6 alpha theta
    theta = tf.constant([0.5, 2.0], tf.float64)
    adapted = adaptation.gradient_step({"x": theta}, theta**3, {"x": tf.constant(0.1, tf.float64)}, first_order)["x"]
    value, derivative = run([adapted, tf.gradients(adapted, theta)[0]])
    np.testing.assert_allclose(value, [0.425, 0.8])
    np.testing.assert_allclose(derivative, [1.0, 1.0] if first_order else [0.7, -0.2])


def test_gradients_of_stacked_copies_are_summed():
    w = tf.constant([[1.0, 2.0]])
    stacked = adaptation.stack_params({"w": w}, tf.constant(M))["w"]
    factors = np.arange(3.0, dtype="f").reshape(M, 1, 1)
    value, gradient = run([stacked, tf.gradients(tf.reduce_sum(factors * stacked), w)[0]])
    np.testing.assert_array_equal(value, [[[1.0, 2.0]]] * M)
    np.testing.assert_array_equal(gradient, [[3.0, 3.0]])
