"""Tests initial weights of networks and flat parameter vectors."""
import numpy as np
import pytest

from meta_policy_search.actors.parameters import initial_mlp_values, unflatten_params


def test_initial_kernels_are_glorot_uniform_and_biases_zero():
    values = initial_mlp_values("net", 30, 10, (50, 20), np.random.default_rng(0))
    shapes = {name: value.shape for name, value in values.items()}
    assert list(shapes.items()) == [
        ("net/hidden_0/kernel", (30, 50)), ("net/hidden_0/bias", (50,)), ("net/hidden_1/kernel", (50, 20)),
        ("net/hidden_1/bias", (20,)), ("net/output/kernel", (20, 10)), ("net/output/bias", (10,)),
    ]
    limit = np.sqrt(6.0 / (30 + 50))
    kernel = values["net/hidden_0/kernel"]
    assert kernel.dtype == np.float32
    assert 0.98 * limit < np.abs(kernel).max() <= limit
    assert kernel.std() == pytest.approx(limit / np.sqrt(3.0), rel=0.05)  # std of a uniform distribution
    assert not any(value.any() for name, value in values.items() if name.endswith("bias"))


def test_network_without_hidden_layers_is_linear():
    values = initial_mlp_values("net", 3, 2, (), np.random.default_rng(0))
    assert list(values) == ["net/output/kernel", "net/output/bias"]


def test_unflattened_parameters_are_copies():
    flat = np.arange(12.0).reshape(2, 6)
    params = unflatten_params("flat", flat, {"a": (2, 2), "b": (2,)}, ndim=2)
    np.testing.assert_array_equal(params["a"][1], [[6, 7], [8, 9]])
    np.testing.assert_array_equal(params["b"], [[4, 5], [10, 11]])
    flat[:] = 0.0
    assert params["b"][1, 1] == 11.0
