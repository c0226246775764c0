"""Nonlinearities of networks on NumPy."""
from typing import Callable, Dict

import numpy as np


def _sigmoid(x: np.ndarray, out: np.ndarray) -> np.ndarray:
    np.multiply(x, 0.5, out=out)
    np.tanh(out, out=out)
    out += 1.0
    out *= 0.5
    return out


def _elu(x: np.ndarray, out: np.ndarray) -> np.ndarray:
    negative = np.expm1(np.minimum(x, 0.0))
    np.maximum(x, 0.0, out=out)
    out += negative
    return out


NONLINEARITIES: Dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "tanh": np.tanh,
    "relu": lambda x, out: np.maximum(x, np.zeros((), x.dtype), out=out),
    "sigmoid": _sigmoid,
    "softplus": lambda x, out: np.logaddexp(x, np.zeros((), x.dtype), out=out),
    "elu": _elu,
}
"""Name of a TensorFlow nonlinearity to its NumPy form, a function of `(x, out)` that may work in place."""

