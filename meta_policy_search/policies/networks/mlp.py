"""A multi-layer perceptron as pure functions of its parameters, for one task or for `M` at once."""
from collections import OrderedDict
from typing import Mapping, Sequence

import numpy as np

from meta_policy_search.policies.networks.nonlinearities import Nonlinearity
from meta_policy_search.tf_compat import tf


def initial_mlp_values(
    scope: str, input_size: int, output_size: int, hidden_sizes: Sequence[int], rng: np.random.Generator
) -> "OrderedDict[str, np.ndarray]":
    """Draws initial weights: kernels Glorot-uniform (Glorot & Bengio, 2010), biases zero.

    Args:
        scope: prefix of the parameter names, such as `mean_network`.
        input_size: units of the input layer.
        output_size: units of the output layer.
        hidden_sizes: units of each hidden layer.
        rng: source of the weights.

    Returns:
        Ordered mapping `scope/layer/kernel` to float32 `[in, out]` and `scope/layer/bias` to float32 `[out]`,
        layers named `hidden_0`, `hidden_1`, ..., `output`.
    """
    sizes = [input_size, *hidden_sizes, output_size]
    layers = [f"hidden_{i}" for i in range(len(hidden_sizes))] + ["output"]
    values = OrderedDict()
    for layer, fan_in, fan_out in zip(layers, sizes[:-1], sizes[1:]):
        limit = np.sqrt(6.0 / (fan_in + fan_out))
        values[f"{scope}/{layer}/kernel"] = rng.uniform(-limit, limit, (fan_in, fan_out)).astype(np.float32)
        values[f"{scope}/{layer}/bias"] = np.zeros(fan_out, np.float32)
    return values


def forward_mlp(
    params: Mapping[str, tf.Tensor],
    inputs: tf.Tensor,
    scope: str,
    num_hidden_layers: int,
    hidden_nonlinearity: Nonlinearity = tf.tanh,
    output_nonlinearity: Nonlinearity = None,
) -> tf.Tensor:
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
