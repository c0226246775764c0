"""The operations of networks in TensorFlow, nonlinearities by name, and variables."""
from collections import OrderedDict
from types import SimpleNamespace
from typing import Callable, Mapping, Optional, Union

import numpy as np

from meta_policy_search.ops.networks import NONLINEARITIES
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
    """Returns the name of a nonlinearity that has one, else the nonlinearity unchanged; see `nonlinearity_name`.

    Raises:
        TypeError: `value` is neither a function, a string nor None; the message calls it `argument`.
        ValueError: `value` is not the name of a known nonlinearity.
    """
    if isinstance(value, str):
        return check_choice(argument, value, NONLINEARITIES)
    if value is not None and not callable(value):
        raise TypeError(f"{argument}: expected one of {', '.join(map(repr, NONLINEARITIES))}, a TensorFlow function or "
                        f"None, got {value!r}")
    return nonlinearity_name(value) or value


def nonlinearity_name(value: Nonlinearity) -> Optional[str]:
    """Returns the name of a nonlinearity that can be specified by name, else None.

    TensorFlow exports the same nonlinearity as several function objects (`tf.tanh`, `tf.nn.tanh`), and not all of them
    can be pickled. The function is therefore identified by its module and name.
    """
    if isinstance(value, str):
        return value
    module, name = (getattr(value, part, None) for part in ("__module__", "__name__"))
    return name if str(module).startswith("tensorflow.") and name in NONLINEARITIES else None


def make_variables(values: Mapping[str, np.ndarray]) -> "OrderedDict[str, tf.Variable]":
    """Creates float32 variables by name with the given initial values."""
    return OrderedDict((name, tf.Variable(np.asarray(value, np.float32), use_resource=True, name=name))
                       for name, value in values.items())
