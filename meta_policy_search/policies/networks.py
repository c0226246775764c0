"""Multi-layer perceptrons in the graph, as pure functions of their parameters; and nonlinearities by name."""
from collections import OrderedDict
from typing import Any, Callable, Mapping, Optional, Union

import numpy as np

from meta_policy_search.actors.stacked_mlp import NONLINEARITIES, Network
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.checks import check_choice
from meta_policy_search.utils.fast_paths import fast_path

Nonlinearity = Optional[Callable[[tf.Tensor], tf.Tensor]]

_BY_NAME = {"tanh": tf.tanh, "relu": tf.nn.relu, "sigmoid": tf.sigmoid, "softplus": tf.nn.softplus, "elu": tf.nn.elu}
assert set(_BY_NAME) == set(NONLINEARITIES)


def resolve_nonlinearity(argument: str, value: Union[str, Nonlinearity]) -> Nonlinearity:
    """Returns the graph function of a nonlinearity given as such, by name, or as None (the identity)."""
    if isinstance(value, str):
        return _BY_NAME[check_choice(argument, value, _BY_NAME)]
    if value is not None and not callable(value):
        raise TypeError(f"{argument}: expected a TensorFlow function, one of {sorted(_BY_NAME)} or None, got {value!r}")
    return value


def nonlinearity_name(value: Nonlinearity) -> Optional[str]:
    """Returns the name of a TensorFlow nonlinearity that is known by name, else None.

    TensorFlow exports the same nonlinearity as several function objects (`tf.tanh`, `tf.nn.tanh`), not all of which
    can be pickled; module and name identify them.
    """
    module, name = (getattr(value, part, None) for part in ("__module__", "__name__"))
    return name if str(module).startswith("tensorflow.") and name in _BY_NAME else None


def numpy_network(policy: Any) -> Optional[Network]:
    """Returns the network of an MLP policy as actors take it.

    None if the policy has no vectorized form: a nonlinearity is not one of `NONLINEARITIES`, or its distribution was
    replaced or samples by another function.
    """
    functions = policy.hidden_nonlinearity, policy.output_nonlinearity
    hidden, output = map(nonlinearity_name, functions)
    is_known = [name is None for name in (hidden, output)] == [function is None for function in functions]
    if not is_known or fast_path(policy.distribution, "transform_noise") is None:
        return None
    return len(policy.hidden_sizes), hidden, output


def make_variables(values: Mapping[str, np.ndarray]) -> "OrderedDict[str, tf.Variable]":
    """Creates variables by name with these initial values."""
    return OrderedDict((name, tf.Variable(value, use_resource=True, name=name)) for name, value in values.items())


def forward_mlp(params: Mapping[str, tf.Tensor], inputs: tf.Tensor, scope: str, num_hidden_layers: int,
                hidden_nonlinearity: Nonlinearity = tf.tanh, output_nonlinearity: Nonlinearity = None) -> tf.Tensor:
    """Builds the network's output for one set of parameters or for one set per task.

    Args:
        params: kernels `[in, out]` and biases `[out]`, or stacked over tasks `[M, in, out]` and `[M, out]`.
        inputs: `[N, in]` or `[M, N, in]` for unstacked, `[M, N, in]` for stacked parameters.
        scope: prefix of the parameter names.
        num_hidden_layers: number of hidden layers.
        hidden_nonlinearity: applied to every hidden layer; None for the identity.
        output_nonlinearity: applied to the output; None for the identity.

    Returns:
        `[N, out]` or `[M, N, out]`.
    """
    x = inputs
    for i in range(num_hidden_layers + 1):
        layer = "output" if i == num_hidden_layers else f"hidden_{i}"
        kernel, bias = params[f"{scope}/{layer}/kernel"], params[f"{scope}/{layer}/bias"]
        stacked = kernel.shape.rank == 3
        x = tf.matmul(x, kernel) + (bias[:, None, :] if stacked else bias)
        nonlinearity = output_nonlinearity if i == num_hidden_layers else hidden_nonlinearity
        if nonlinearity is not None:
            x = nonlinearity(x)
    return x
