"""Tests flat parameter vectors."""
import numpy as np

from meta_policy_search.actors.parameters import unflatten_params


def test_unflattened_parameters_are_copies():
    flat = np.arange(12.0).reshape(2, 6)
    params = unflatten_params("flat", flat, {"a": np.empty((2, 2)), "b": np.empty(2)}, ndim=2)
    np.testing.assert_array_equal(params["a"][1], [[6, 7], [8, 9]])
    np.testing.assert_array_equal(params["b"], [[4, 5], [10, 11]])
    flat[:] = 0.0
    assert params["b"][1, 1] == 11.0
