"""Policy parameters: initial values, and conversion to and from a flat vector."""
import math
from collections import OrderedDict
from typing import Any, Mapping, Sequence, Tuple

import numpy as np

from meta_policy_search.types import Params
from meta_policy_search.utils.checks import check_positive, check_positive_int

LOG_STD = "log_std_network/log_std_var"
"""Parameter name of the logarithm of the standard deviation in Gaussian policies."""

CONTEXT = "context"
"""Name of the parameter of MLP policies that is joined to each observation; see `fold_context`."""


def initial_mlp_values(scope: str, input_size: int, output_size: int, hidden_sizes: Sequence[int],
                       rng: np.random.Generator) -> "OrderedDict[str, np.ndarray]":
    """Draws initial parameters of a network: Glorot-uniform kernels (Glorot & Bengio, 2010) and zero biases.

    Returns:
        Ordered mapping from `<scope>/<layer>/kernel` to float32 `[in, out]` and from `<scope>/<layer>/bias` to float32
        `[out]`. The layers are named `hidden_0`, `hidden_1`, ..., `output`.
    """
    sizes = [input_size, *hidden_sizes, output_size]
    layers = [f"hidden_{i}" for i in range(len(hidden_sizes))] + ["output"]
    values = OrderedDict()
    for layer, fan_in, fan_out in zip(layers, sizes[:-1], sizes[1:]):
        limit = np.sqrt(6.0 / (fan_in + fan_out))
        values[f"{scope}/{layer}/kernel"] = rng.uniform(-limit, limit, (fan_in, fan_out)).astype(np.float32)
        values[f"{scope}/{layer}/bias"] = np.zeros(fan_out, np.float32)
    return values


def fold_context(params: Mapping[str, Any], scope: str, obs_dim: int) -> Mapping[str, Any]:
    """Adds the contribution of the context to the bias of the first layer; works on arrays and on tensors.

    With the kernel split into rows `W_o` for the observation and `W_c` for the context,
    `[o, c] W + b = o W_o + (c W_c + b)`.

    Args:
        params: parameters by name, or stacked over tasks; returned unchanged if there is no context.
        scope: prefix of the names of the network's parameters.
        obs_dim: size of an observation.
    """
    if CONTEXT not in params:
        return params
    layer = f"{scope}/hidden_0" if f"{scope}/hidden_0/kernel" in params else f"{scope}/output"
    kernel, context = params[f"{layer}/kernel"], params[CONTEXT]
    bias = params[f"{layer}/bias"] + (context[..., None, :] @ kernel[..., obs_dim:, :])[..., 0, :]
    return {**params, f"{layer}/kernel": kernel[..., :obs_dim, :], f"{layer}/bias": bias}


def check_hidden_sizes(hidden_sizes: Sequence[int]) -> Tuple[int, ...]:
    """Checks and returns the number of units of each hidden layer."""
    if np.ndim(hidden_sizes) == 0:
        raise TypeError(f"hidden_sizes: expected a list of integers, got {hidden_sizes!r}")
    return tuple(check_positive_int(f"hidden_sizes[{i}]", size) for i, size in enumerate(hidden_sizes))


def check_std(init_std: float, min_std: float) -> Tuple[float, float]:
    """Checks and returns the initial and the minimum standard deviation of a Gaussian policy."""
    init_std, min_std = check_positive("init_std", init_std), check_positive("min_std", min_std)
    if init_std < min_std:
        raise ValueError(f"init_std: expected at least min_std={min_std}, got {init_std}")
    return init_std, min_std


def initial_log_std(action_dim: int, init_std: float) -> np.ndarray:
    """Returns the initial value of `LOG_STD`, float32 `[A]`."""
    return np.full(action_dim, math.log(init_std), np.float32)


def flatten_params(params: Params) -> np.ndarray:
    """Concatenates parameters to one vector, float32 `[D]`, in the order of the mapping."""
    return np.concatenate([value.ravel() for value in params.values()])


def unflatten_params(argument: str, flat: np.ndarray, shapes: Mapping[str, Tuple[int, ...]],
                     ndim: int) -> "OrderedDict[str, np.ndarray]":
    """Splits flat parameter vectors into parameters by name.

    Args:
        argument: name of `flat` in error messages.
        flat: vectors `[..., D]`.
        shapes: ordered mapping from parameter name to shape.
        ndim: expected number of axes of `flat`.

    Returns:
        Ordered dict from name to a new array, float32 `[..., *shape]`, in the order of `shapes`.

    Raises:
        ValueError: the number of axes is not `ndim`, the last axis has another size, or a number is not finite.
    """
    flat = np.asarray(flat)
    sizes = [math.prod(shape) for shape in shapes.values()]
    if flat.shape[-1:] != (sum(sizes),):
        raise ValueError(f"{argument}: expected {sum(sizes)} numbers in the last axis, got shape {flat.shape}")
    if flat.ndim != ndim:
        raise ValueError(f"{argument}: expected {ndim} {'axis' if ndim == 1 else 'axes'}, got shape {flat.shape}")
    with np.errstate(over="ignore"):
        values = flat.astype(np.float32)
    if not np.isfinite(values).all():
        raise ValueError(f"{argument}: expected finite numbers, got {flat[~np.isfinite(values)][0]}")
    parts = np.split(values, np.cumsum(sizes)[:-1], axis=-1)
    return OrderedDict((name, part.reshape(flat.shape[:-1] + tuple(shape)))
                       for (name, shape), part in zip(shapes.items(), parts))
