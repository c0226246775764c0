"""The operations of networks in TensorFlow, nonlinearities by name, and variables."""
from collections import OrderedDict
from types import SimpleNamespace
from typing import Any, Callable, Mapping, Tuple, Union

import numpy as np

from meta_policy_search.ops.networks import NONLINEARITIES, gru, gru_step
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.checks import check_choice

Nonlinearity = Union[str, Callable[[tf.Tensor], tf.Tensor], None]
"""Name of a nonlinearity, a graph function, or None for the identity."""


def _matmul(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    return tf.tensordot(a, b, 1) if len(a.shape) > len(b.shape) else tf.matmul(a, b)  # one product of all rows


TENSORFLOW = SimpleNamespace(
    matmul=_matmul, concat=lambda tensors: tf.concat(tensors, axis=-1), log_softmax=tf.nn.log_softmax,
    sum=lambda x: tf.reduce_sum(x, -1), mean=lambda x: tf.reduce_mean(x, -1, keepdims=True),
    one_hot=lambda indices, n, dtype: tf.one_hot(tf.cast(indices, tf.int32), n, dtype=dtype),
    size=lambda x: tf.cast(tf.shape(x)[-1], x.dtype),  # not a constant, which would change the order of sums
    maximum=tf.maximum, square=tf.square, sqrt=tf.sqrt, exp=tf.exp, expm1=tf.math.expm1, abs=tf.abs,
    tanh=tf.tanh, relu=tf.nn.relu, sigmoid=tf.sigmoid, softplus=tf.nn.softplus, elu=tf.nn.elu)
"""The operations `xp` of `ops.networks` in TensorFlow."""


def check_nonlinearity(argument: str, value: Nonlinearity) -> Nonlinearity:
    """Returns the name of a nonlinearity that has one, else the nonlinearity unchanged; see `nonlinearity_by_name`.

    Raises:
        TypeError: `value` is neither a TensorFlow function, a string nor None; the message calls it `argument`.
        ValueError: `value` is not the name of a known nonlinearity.
    """
    if isinstance(value, str):
        return check_choice(argument, value, NONLINEARITIES)
    if value is not None and (not callable(value) or isinstance(value, (np.ufunc, type))):
        raise TypeError(f"{argument}: expected one of {', '.join(map(repr, NONLINEARITIES))}, a TensorFlow function or "
                        f"None, got {value!r}")
    return nonlinearity_by_name(value)


def nonlinearity_by_name(value: Any) -> Any:
    """Returns the name of a nonlinearity that can be specified by name; returns other values unchanged.

    TensorFlow exports the same nonlinearity as several function objects (`tf.tanh`, `tf.nn.tanh`), and not all of them
    can be pickled. The function is therefore identified by its module and name.
    """
    module, name = (getattr(value, part, None) for part in ("__module__", "__name__"))
    return name if str(module).startswith("tensorflow.") and name in NONLINEARITIES else value


def make_variables(values: Mapping[str, np.ndarray]) -> "OrderedDict[str, tf.Variable]":
    """Creates float32 variables by name with the given initial values."""
    return OrderedDict((name, tf.Variable(np.asarray(value, np.float32), use_resource=True, name=name))
                       for name, value in values.items())


def unroll(step: Callable[..., Tuple[tf.Tensor, tf.Tensor]], params: Mapping[str, tf.Tensor], inputs: tf.Tensor,
           state_size: int) -> tf.Tensor:
    """Builds the outputs of a recurrent cell along `B` paths of `T` steps. The initial state is zero.

    The gradient of `networks.gru` is hand-written, which takes about half the time of automatic differentiation. It has
    no second derivatives.

    Args:
        step: step of the cell, see `networks.Cell`.
        params: parameters of the cell by name.
        inputs: `[T, B, I]`.
        state_size: size of the state.

    Returns:
        The output after each step, `[T, B, H]`.
    """
    with tf.name_scope("unroll"):
        if step is gru:
            of_inputs = tf.tensordot(inputs, params["gru/input_kernel"], 1) + params["gru/bias"]
            return _gru_states(of_inputs, tf.convert_to_tensor(params["gru/recurrent_kernel"]))
        num_steps = tf.shape(inputs)[0]
        steps = _array(num_steps, inputs).unstack(inputs)

        def body(t: tf.Tensor, state: tf.Tensor, outputs: tf.TensorArray) -> Tuple[Any, ...]:
            output, state = step(TENSORFLOW, params, steps.read(t), state)
            return t + 1, state, outputs.write(t, output)

        start = tf.zeros([tf.shape(inputs)[1], state_size], inputs.dtype)
        *_, outputs = tf.while_loop(lambda t, *_: t < num_steps, body, [0, start, _array(num_steps, inputs)])
        return outputs.stack()


@tf.custom_gradient
def _gru_states(projected: tf.Tensor, kernel: tf.Tensor) -> Tuple[tf.Tensor, Any]:
    """Builds the hidden states `[T, B, H]` from `x W + b` `[T, B, 3H]` and the recurrent kernel `[H, 3H]`."""
    num_steps, size = tf.shape(projected)[0], kernel.shape.as_list()[0]
    start = tf.zeros([tf.shape(projected)[1], size], projected.dtype)
    inputs = _array(num_steps, projected).unstack(projected)

    def step(t: tf.Tensor, state: tf.Tensor, *arrays: tf.TensorArray) -> Tuple[Any, ...]:
        state, gates, of_state, candidate = gru_step(TENSORFLOW, inputs.read(t), state, kernel)
        values = (state, gates, tf.concat([of_state, candidate], axis=1))
        return (t + 1, state, *(array.write(t, value) for array, value in zip(arrays, values)))

    _, _, *arrays = tf.while_loop(lambda t, *_: t < num_steps, step,
                                  [0, start, *(_array(num_steps, projected) for _ in range(3))])
    states, gates, candidates = (array.stack() for array in arrays)

    def gradient(by_states: tf.Tensor) -> Tuple[tf.Tensor, tf.Tensor]:
        before = tf.concat([start[None], states[:-1]], axis=0)
        saved = [_array(num_steps, values).unstack(values) for values in (by_states, gates, candidates, before)]
        transposed = tf.transpose(kernel)

        def step_back(t: tf.Tensor, by_state: tf.Tensor, *arrays: tf.TensorArray) -> Tuple[Any, ...]:
            by_output, gate, candidate, state = (values.read(t) for values in saved)
            by_state = by_state + by_output
            reset, update = gate[:, :size], gate[:, size:]
            of_state, candidate = candidate[:, :size], candidate[:, size:]
            by_candidate = by_state * (1.0 - update) * (1.0 - candidate * candidate)
            by_gates = tf.concat([by_candidate * of_state, by_state * (state - candidate)], axis=1)
            by_gates *= gate * (1.0 - gate)
            by_product = tf.concat([by_gates, by_candidate * reset], axis=1)
            values = (tf.concat([by_gates, by_candidate], axis=1), by_product)
            return (t - 1, by_state * update + tf.matmul(by_product, transposed),
                    *(array.write(t, value) for array, value in zip(arrays, values)))

        _, _, by_inputs, by_products = tf.while_loop(
            lambda t, *_: t >= 0, step_back,
            [num_steps - 1, tf.zeros_like(start), _array(num_steps, start), _array(num_steps, start)])
        by_kernel = tf.matmul(tf.reshape(before, [-1, size]), tf.reshape(by_products.stack(), [-1, 3 * size]),
                              transpose_a=True)
        return by_inputs.stack(), by_kernel

    return states, gradient


def _array(num_steps: tf.Tensor, like: tf.Tensor) -> tf.TensorArray:
    return tf.TensorArray(like.dtype, num_steps)
