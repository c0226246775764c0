"""A multi-layer perceptron as pure functions of its parameters, for one task or for `M` at once."""
from typing import Mapping

from meta_policy_search.policies.networks.nonlinearities import Nonlinearity
from meta_policy_search.tf_compat import tf


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
