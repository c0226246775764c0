"""Tests action values in NumPy."""
import numpy as np

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
