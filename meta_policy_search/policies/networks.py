"""Multi-layer perceptrons in the graph, as pure functions of their parameters, and nonlinearities by name."""
from collections import OrderedDict
from typing import Any, Callable, Mapping, Optional, Union

import numpy as np

from meta_policy_search.actors.parameters import CONTEXT, initial_mlp_values
from meta_policy_search.actors.stacked_mlp import NONLINEARITIES, Network
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_choice
from meta_policy_search.utils.fast_paths import fast_path

Nonlinearity = Union[str, Callable[[tf.Tensor], tf.Tensor], None]
"""Name of a nonlinearity, a graph function, or None for the identity."""

_BY_NAME = {"tanh": tf.tanh, "relu": tf.nn.relu, "sigmoid": tf.sigmoid, "softplus": tf.nn.softplus, "elu": tf.nn.elu}
assert set(_BY_NAME) == set(NONLINEARITIES)


def check_nonlinearity(argument: str, value: Nonlinearity) -> Nonlinearity:
    """Returns a nonlinearity unchanged.

    Raises:
        TypeError: `value` is neither a function, a string nor None; the message calls it `argument`.
        ValueError: `value` is not the name of a known nonlinearity.
    """
    if isinstance(value, str):
        return check_choice(argument, value, _BY_NAME)
    if value is not None and not callable(value):
        raise TypeError(f"{argument}: expected one of {', '.join(map(repr, _BY_NAME))}, a TensorFlow function or None, "
                        f"got {value!r}")
    return value


def nonlinearity_name(value: Nonlinearity) -> Optional[str]:
    """Returns the name of a nonlinearity that can be specified by name, else None.

    TensorFlow exports the same nonlinearity as several function objects (`tf.tanh`, `tf.nn.tanh`), and not all of them
    can be pickled. The function is therefore identified by its module and name.
    """
    if isinstance(value, str):
        return value
    module, name = (getattr(value, part, None) for part in ("__module__", "__name__"))
    return name if str(module).startswith("tensorflow.") and name in _BY_NAME else None


def numpy_network(policy: Any) -> Optional[Network]:
    """Returns the network structure of an MLP policy for an actor.

    Returns None if the policy cannot be vectorized: a nonlinearity is not in `NONLINEARITIES`, the distribution was
    replaced, or its `sample` method was overridden.
    """
    functions = policy.hidden_nonlinearity, policy.output_nonlinearity
    hidden, output = map(nonlinearity_name, functions)
    is_known = [name is None for name in (hidden, output)] == [function is None for function in functions]
    if not is_known or fast_path(policy.distribution, "transform_noise") is None:
        return None
    return len(policy.hidden_sizes), hidden, output


def make_variables(values: Mapping[str, np.ndarray]) -> "OrderedDict[str, tf.Variable]":
    """Creates variables by name with the given initial values."""
    return OrderedDict((name, tf.Variable(value, use_resource=True, name=name)) for name, value in values.items())


def build_mlp(policy: Any, scope: str, further_values: Mapping[str, np.ndarray]) -> None:
    """Builds the variables of an MLP policy and the operations for acting.

    Args:
        policy: the policy.
        scope: prefix of the parameter names of the network.
        further_values: initial values of further parameters by name.
    """
    rng = seeding.next_rng(seeding.Stream.WEIGHTS)
    values = initial_mlp_values(scope, policy.obs_dim + policy.context_dim, policy.action_dim, policy.hidden_sizes, rng)
    values.update(further_values)
    if policy.context_dim:
        values[CONTEXT] = np.zeros(policy.context_dim, np.float32)
    with tf.name_scope(policy.name):
        policy._register_parameters(make_variables(values))
        policy._build_acting()


def forward_mlp(params: Mapping[str, tf.Tensor], inputs: tf.Tensor, scope: str, num_hidden_layers: int,
                hidden_nonlinearity: Nonlinearity = "tanh", output_nonlinearity: Nonlinearity = None) -> tf.Tensor:
    """Builds the output of the network, for one set of parameters or for one set per task.

    Args:
        params: dict from name to tensor: kernels `[in, out]` and biases `[out]`, or stacked over tasks, `[M, in, out]`
            and `[M, out]`.
        inputs: `[N, in]` or `[M, N, in]`; with stacked parameters, `[M, N, in]`.
        scope: prefix of the parameter names.
        num_hidden_layers: number of hidden layers.
        hidden_nonlinearity: nonlinearity of every hidden layer. Default: `"tanh"`.
        output_nonlinearity: nonlinearity of the output layer. Default: None, the identity.

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
        function = _BY_NAME[nonlinearity] if isinstance(nonlinearity, str) else nonlinearity
        if function is not None:
            x = function(x)
    return x
