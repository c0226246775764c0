"""Compares the network with NumPy, and tests nonlinearities by name."""
import numpy as np
import pytest

from meta_policy_search.actors.parameters import initial_mlp_values
from meta_policy_search.actors.stacked_mlp import NONLINEARITIES
from meta_policy_search.policies.networks import check_nonlinearity, forward_mlp, nonlinearity_name
from meta_policy_search.tf_compat import tf


def run(tensors):
    with tf.Session() as session:
        return session.run(tensors)


@pytest.mark.parametrize("hidden_sizes", [(), (4,), (4, 5)])
def test_forward_pass_equals_numpy_for_one_task_and_for_many(hidden_sizes):
    rng = np.random.default_rng(0)
    values = initial_mlp_values("net", 3, 2, hidden_sizes, rng)
    stacked = {name: np.stack([v + rng.normal(size=v.shape) for _ in range(3)]) for name, v in values.items()}
    inputs = rng.normal(size=(3, 6, 3))

    def numpy_mlp(params, x):
        for i in range(len(hidden_sizes)):
            x = np.tanh(x @ params[f"net/hidden_{i}/kernel"] + params[f"net/hidden_{i}/bias"])
        return np.maximum(x @ params["net/output/kernel"] + params["net/output/bias"], 0.0)

    params = {name: tf.constant(v) for name, v in stacked.items()}
    both = [
        forward_mlp(params, tf.constant(inputs), "net", len(hidden_sizes), tf.tanh, tf.nn.relu),
        forward_mlp({k: v[1] for k, v in params.items()}, tf.constant(inputs[1]), "net", len(hidden_sizes), tf.tanh,
                    tf.nn.relu),
    ]
    of_all, of_one = run(both)
    expected = np.stack([numpy_mlp({k: v[m] for k, v in stacked.items()}, inputs[m]) for m in range(3)])
    np.testing.assert_allclose(of_all, expected, rtol=1e-10)
    np.testing.assert_allclose(of_one, expected[1], rtol=1e-10)


@pytest.mark.parametrize("name", sorted(NONLINEARITIES))
def test_numpy_nonlinearities_equal_tensorflow_and_can_work_in_place(name):
    x = np.linspace(-30.0, 30.0, 241, dtype=np.float32)
    expected = run(getattr(tf.nn, name)(tf.constant(x)))
    out = x.copy()
    result = NONLINEARITIES[name](out, out)
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6)
    assert result is out and result.dtype == np.float32


@pytest.mark.parametrize("function", [tf.tanh, tf.nn.tanh, tf.math.tanh, tf.compat.v2.nn.tanh])
def test_every_export_of_a_nonlinearity_has_its_name(function):
    assert nonlinearity_name(function) == "tanh"


def test_other_functions_have_no_name():
    def tanh(x):
        return x

    assert nonlinearity_name(tanh) is None
    assert nonlinearity_name(tf.nn.leaky_relu) is None
    assert nonlinearity_name(np.tanh) is None
    assert nonlinearity_name(None) is None
    assert check_nonlinearity("argument", tanh) is tanh
    assert check_nonlinearity("argument", None) is None


def test_unknown_nonlinearities_are_refused():
    with pytest.raises(ValueError, match=r"output_nonlinearity: .*'tanh', 'relu'.*got 'swish'"):
        check_nonlinearity("output_nonlinearity", "swish")
    with pytest.raises(TypeError, match="output_nonlinearity"):
        check_nonlinearity("output_nonlinearity", 3)
