"""Tests action values in NumPy."""
import numpy as np
import pytest

from meta_policy_search.np.q_functions import MLPQFunction


def test_value_depends_on_observation_and_action():
    qf = MLPQFunction(2, 1, (2,))
    qf.set_flat_params([1, 0, 0, 1, 0, -1,  # from two observations and an action to two units
                        0, 1,
                        10, 1,  # to the value
                        5])
    # units: relu(o0) and relu(o1 - a + 1)
    values = qf.compute_values([[3.0, 2.0], [-1.0, 2.0], [0.0, 0.0]], [[1.0], [1.0], [5.0]])
    np.testing.assert_array_equal(values, [30 + 2 + 5, 2 + 5, 5])
    assert values.dtype == np.float32 and len(qf.get_flat_params()) == 11


@pytest.mark.parametrize("call, message", [
    (lambda: MLPQFunction(0, 1), "obs_dim: expected an integer of at least 1, got 0"),
    (lambda: MLPQFunction(1, 1, (3, 0)), r"hidden_sizes\[1\]: expected"),
    (lambda: MLPQFunction(1, 1, hidden_nonlinearity="x"), "hidden_nonlinearity: expected one of"),
    (lambda: MLPQFunction(2, 1).compute_values(np.zeros((4, 3)), np.zeros((4, 1))),
     "size 3 is different from 4"),
    (lambda: MLPQFunction(2, 1).compute_values(np.zeros((4, 2)), np.zeros((3, 1))),
     "must match exactly"),
])
def test_invalid_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
