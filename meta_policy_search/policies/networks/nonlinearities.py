"""Nonlinearities by name: what settings files, pickles and NumPy policies speak of."""
from typing import Callable, Optional, Union

from meta_policy_search.actors.nonlinearities import NONLINEARITIES
from meta_policy_search.tf_compat import tf

Nonlinearity = Optional[Callable[[tf.Tensor], tf.Tensor]]

_BY_NAME = {"tanh": tf.tanh, "relu": tf.nn.relu, "sigmoid": tf.sigmoid, "softplus": tf.nn.softplus, "elu": tf.nn.elu}
assert set(_BY_NAME) == set(NONLINEARITIES)


def resolve_nonlinearity(argument: str, value: Union[str, Nonlinearity]) -> Nonlinearity:
    """Returns the graph function of a nonlinearity given as such, by name, or as None (the identity)."""
    if isinstance(value, str):
        if value not in _BY_NAME:
            raise ValueError(
                f"{argument}: expected one of {sorted(_BY_NAME)}, a TensorFlow function or None, got {value!r}"
            )
        return _BY_NAME[value]
    if value is not None and not callable(value):
        raise TypeError(f"{argument}: expected a TensorFlow function, one of {sorted(_BY_NAME)} or None, got {value!r}")
    return value


def nonlinearity_name(value: Nonlinearity) -> Optional[str]:
    """Returns the name of a TensorFlow nonlinearity that is known by name, else None.

    TensorFlow exports the same nonlinearity as several function objects (`tf.tanh`, `tf.nn.tanh`), not all of which
    can be pickled; module and name identify them.
    """
    name = getattr(value, "__name__", None)
    from_tensorflow = str(getattr(value, "__module__", "")).startswith("tensorflow.")
    return name if from_tensorflow and name in _BY_NAME else None
