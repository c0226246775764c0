"""Compares each layer in NumPy and TensorFlow, and its gradient with central differences."""
from functools import partial

import numpy as np
import pytest
import scipy.special

from meta_policy_search.ops import networks
from meta_policy_search.ops.networks import CELLS, LOG_STD, NONLINEARITIES, NUMPY
from meta_policy_search.ops.tensorflow_ops import TENSORFLOW, unroll
from meta_policy_search.tf_compat import tf
from tests.helpers.small_world import run

M, N, I, H = 3, 5, 4, 3
RNG = np.random.default_rng(0)


def of_cell(step):
    """Computes a step whose state is the last part of the inputs."""
    return lambda xp, params, inputs: xp.concat(list(step(xp, params, inputs[..., :I], inputs[..., I:])))


def of_distribution(network, **settings):
    return lambda xp, params, inputs: xp.concat([value + 0.0 * inputs[..., :1] for value in network(
        xp, params, inputs, **settings).values()] if settings else [network(xp, params, inputs)["log_prob"]])


MLP = networks.make_mlp("mean_network", I, 2, (H, H), RNG)
LAYERS = {  # parameters and function of each layer
    "dense": (networks.make_dense("x", I, H, RNG), partial(networks.dense, name="x")),
    "no bias": (networks.make_dense("x", I, H, RNG, bias=False), partial(networks.dense, name="x")),
    "layer norm": (networks.make_layer_norm("x", I), partial(networks.layer_norm, name="x")),
    "linear": (networks.make_mlp("x", I, H, (), RNG), partial(networks.mlp, scope="x")),
    "context": ({**networks.make_mlp("x", I + 2, H, (H,), RNG), **networks.make_context(2)},
                partial(networks.mlp, scope="x")),
    "gaussian": ({**MLP, LOG_STD: networks.make_log_std(2, 0.5)}, of_distribution(
        networks.gaussian_mlp, hidden_nonlinearity="tanh", output_nonlinearity=None, fixed_log_std=None, min_std=0.1)),
    "categorical": (networks.make_mlp("logits_network", I, H, (), RNG), of_distribution(
        partial(networks.categorical_mlp, hidden_nonlinearity=None, output_nonlinearity="tanh"))),
    "gru": (CELLS["gru"].make_params(I, H, RNG), of_cell(networks.gru)),
    "lstm": (CELLS["lstm"].make_params(I, H, RNG), of_cell(networks.lstm)),
    **{name: (MLP, partial(networks.mlp, scope="mean_network", hidden_nonlinearity=name, output_nonlinearity=name))
       for name in NONLINEARITIES}}
INPUT_SIZES = {"gru": I + H, "lstm": I + 2 * H}


def differences(function, values, epsilon=1e-6):
    """Returns the central differences of a scalar function by each entry of `values`, which change in place."""
    gradient = np.empty_like(values)
    for index in np.ndindex(*values.shape):
        value, results = values[index], []
        for values[index] in (value + epsilon, value - epsilon):
            results.append(function())
        values[index] = value
        gradient[index] = (results[0] - results[1]) / (2.0 * epsilon)
    return gradient


def assert_same_value_and_gradient(numpy_function, tensorflow_function, params, inputs):
    """Compares two functions of parameters and inputs, and the gradient of a weighted sum of the outputs."""
    variables = {name: tf.constant(value) for name, value in params.items()}
    fed, expected = tf.constant(inputs), numpy_function(params, inputs)
    weights = np.random.default_rng(1).normal(size=expected.shape)
    output = tensorflow_function(variables, fed)
    gradients = tf.gradients(tf.reduce_sum(output * weights), [*variables.values(), fed])
    output, gradients = run([output, gradients])
    np.testing.assert_allclose(output, expected, rtol=0, atol=1e-6)
    for values, gradient in zip([*params.values(), inputs], gradients, strict=True):
        by_values = differences(lambda: np.sum(weights * numpy_function(params, inputs)), values)
        np.testing.assert_allclose(gradient, by_values, atol=1e-6)


@pytest.mark.parametrize("is_stacked", [False, True], ids=["one task", "tasks"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_agree_in_numpy_and_tensorflow(name, is_stacked):
    # given float64 parameters of one or of each task, and inputs
    params, function = LAYERS[name]
    rng = np.random.default_rng(2)
    params = {key: value + 0.3 * rng.normal(size=((M,) if is_stacked else ()) + value.shape)
              for key, value in params.items()}
    inputs = rng.normal(size=(M, N, INPUT_SIZES.get(name, I)) if is_stacked else (N, INPUT_SIZES.get(name, I)))
    # then values and gradients agree, and float32 values agree to 1e-6
    assert_same_value_and_gradient(partial(function, NUMPY), partial(function, TENSORFLOW), params, inputs)
    params, inputs = {key: value.astype("f") for key, value in params.items()}, inputs.astype("f")
    before = inputs.copy()
    output = function(NUMPY, params, inputs)
    np.testing.assert_array_equal(inputs, before)  # layers do not change their inputs
    tensors = {key: tf.constant(value) for key, value in params.items()}
    expected = run(function(TENSORFLOW, tensors, tf.constant(inputs)))
    assert output.dtype == expected.dtype == np.float32
    np.testing.assert_allclose(output, expected, rtol=1e-6, atol=1e-6)
    if is_stacked:  # the tasks are independent of each other
        alone = function(NUMPY, {key: value[1:2] for key, value in params.items()}, inputs[1:2])
        np.testing.assert_array_equal(alone[0], output[1])


@pytest.mark.parametrize("name", CELLS)
def test_unrolled_cells_equal_the_loop_over_steps(name):
    cell, num_steps, num_paths = CELLS[name], 4, 2
    params = {key: value.astype(float) for key, value in cell.make_params(I, H, np.random.default_rng(3)).items()}
    size = cell.states_per_unit * H

    def loop(params, inputs):
        state, outputs = np.zeros((num_paths, size)), []
        for step in inputs:
            output, state = cell.step(NUMPY, params, step, state)
            outputs.append(output)
        return np.stack(outputs)

    inputs = np.random.default_rng(4).normal(size=(num_steps, num_paths, I))
    assert_same_value_and_gradient(loop, lambda params, inputs: unroll(cell.step, params, inputs, size), params, inputs)


def test_layers_equal_their_equations():
    rng = np.random.default_rng(5)
    x, state, memory = rng.normal(size=(N, I)), rng.normal(size=(N, H)), rng.normal(size=(N, H))
    kernel = networks.make_dense("x", I, H, rng, bias=False)
    np.testing.assert_allclose(networks.dense(NUMPY, kernel, x, "x"), x @ kernel["x/kernel"])
    norm = {"x/scale": rng.normal(size=I), "x/shift": rng.normal(size=I)}
    expected = (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True) * norm["x/scale"] + norm["x/shift"]
    np.testing.assert_allclose(networks.layer_norm(NUMPY, norm, x, "x", epsilon=0.0), expected)
    # joining the context to the inputs is the same as folding it into the bias
    params, context = networks.make_mlp("x", I + 2, H, (H,), rng), rng.normal(size=2)
    joined = np.hstack([x, np.tile(context, (N, 1))])
    np.testing.assert_allclose(networks.mlp(NUMPY, {**params, "context": context}, x, "x"),
                               networks.mlp(NUMPY, params, joined, "x"), atol=1e-6)
    params = networks.make_lstm(I, H, rng)
    gates = x @ params["lstm/input_kernel"] + state @ params["lstm/recurrent_kernel"] + params["lstm/bias"]
    i, f, o, g = np.split(gates, 4, axis=1)
    new_memory = scipy.special.expit(f) * memory + scipy.special.expit(i) * np.tanh(g)
    output, new_state = networks.lstm(NUMPY, params, x, np.hstack([state, memory]))
    np.testing.assert_allclose(output, scipy.special.expit(o) * np.tanh(new_memory), atol=1e-6)
    np.testing.assert_allclose(new_state, np.hstack([output, new_memory]), atol=1e-6)


def test_initial_kernels_are_glorot_uniform_and_biases_zero():
    values = networks.make_mlp("net", 30, 10, (50, 20), np.random.default_rng(0))
    shapes = {name: value.shape for name, value in values.items()}
    assert list(shapes.items()) == [
        ("net/hidden_0/kernel", (30, 50)), ("net/hidden_0/bias", (50,)), ("net/hidden_1/kernel", (50, 20)),
        ("net/hidden_1/bias", (20,)), ("net/output/kernel", (20, 10)), ("net/output/bias", (10,))]
    limit, kernel = np.sqrt(6.0 / (30 + 50)), values["net/hidden_0/kernel"]
    assert kernel.dtype == np.float32
    assert 0.98 * limit < np.abs(kernel).max() <= limit
    assert kernel.std() == pytest.approx(limit / np.sqrt(3.0), rel=0.05)  # std of a uniform distribution
    assert not any(value.any() for name, value in values.items() if name.endswith("bias"))


FLOATS = {
    "random": np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32),
    "extreme": np.float32([[1e-30, -1e-30, 0.0], [88.0, -88.0, 1e4], [-1e4, 3e38, -3e38]]),
    "invalid": np.float32([[np.inf, -np.inf, np.nan], [1.0, np.nan, 2.0]]),
}
UNARY = sorted({*vars(NUMPY)} - {"matmul", "concat", "one_hot", "maximum", "size"})


@pytest.mark.parametrize("values", FLOATS.values(), ids=FLOATS)
def test_operations_agree_in_numpy_and_tensorflow(values):
    """Infinities and NaN agree, too; sums of numbers near the largest float may overflow in one of them only."""
    assert vars(NUMPY).keys() == vars(TENSORFLOW).keys()
    with np.errstate(all="ignore"):
        for name in UNARY:
            x = np.abs(values) if name == "sqrt" else values
            x = np.clip(x, -1e18, 1e18) if name == "square" else x
            x = np.clip(x, -1e4, 1e4) if name in ("sum", "mean") else x  # processors add in different orders
            expected, actual = getattr(NUMPY, name)(x), run(getattr(TENSORFLOW, name)(tf.constant(x)))
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6, err_msg=name)
        for name, pair in (("maximum", (values, values[::-1])), ("matmul", (values, np.eye(3, dtype=np.float32)))):
            if name == "maximum" or np.isfinite(values).all():
                expected, actual = getattr(NUMPY, name)(*pair), run(getattr(TENSORFLOW, name)(*map(tf.constant, pair)))
                np.testing.assert_allclose(actual, expected, rtol=1e-5, err_msg=name)
    joined = [values, values + 1.0]
    np.testing.assert_array_equal(run(TENSORFLOW.concat(list(map(tf.constant, joined)))), NUMPY.concat(joined))
    assert run(TENSORFLOW.size(tf.constant(values))) == NUMPY.size(values) == 3.0


def test_indices_outside_of_the_classes_give_zeros_in_numpy_and_tensorflow():
    indices = np.float32([-1.0, 0.0, 2.0, 3.0])
    expected = [[0, 0, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]]
    np.testing.assert_array_equal(NUMPY.one_hot(indices, 3, np.float32), expected)
    np.testing.assert_array_equal(run(TENSORFLOW.one_hot(tf.constant(indices), 3, tf.float32)), expected)
