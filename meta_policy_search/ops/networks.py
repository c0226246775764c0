"""Networks as pure functions of `(xp, params, inputs)`, for sampling in NumPy and for the TensorFlow graph.

`params` maps names to arrays: kernels `[in, out]` and vectors `[out]`, or the same with a leading axis `M` of tasks. A
layer reads its parameters by name and changes neither `params` nor `inputs`. `inputs` are `[..., in]`, or
`[M, ..., in]` with stacked parameters. Functions `make_*` draw the initial parameters of a layer, as float32.

`xp` is a namespace of the operations that networks need, `NUMPY` or `ops.tensorflow_ops.TENSORFLOW`: `matmul(a, b)`;
`concat(arrays)`, `sum(x)` and `log_softmax(x)` along the last axis; `mean(x)` along the last axis, whose size becomes
1; `size(x)`, the length of the last axis as a float; `one_hot(indices, n, dtype)`, zeros for an index outside of
`0, ..., n - 1`; `maximum`, `square`, `sqrt`, `exp`,
`expm1`, `abs`, and the nonlinearities `tanh`, `relu`, `sigmoid`, `softplus` and `elu`. Operators and slices work on
arrays and tensors alike. In NumPy, the matrices of each task are multiplied separately, so the outputs do not depend on
which tasks share a process.
"""
import dataclasses
import functools
import math
from collections import OrderedDict
from types import SimpleNamespace
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.types import Params
from meta_policy_search.utils.utils import draw_index

LOG_STD = "log_std_network/log_std_var"
"""Parameter name of the logarithm of the standard deviation in the library's Gaussian policies."""

CONTEXT = "context"
"""Name of the parameter of MLP policies that is joined to each observation; see `fold_context`."""

NONLINEARITIES = ("tanh", "relu", "sigmoid", "softplus", "elu")
"""Names of the nonlinearities, which are operations of `xp`."""


def _log_softmax(x: np.ndarray) -> np.ndarray:
    x = x - np.max(x, axis=-1, keepdims=True)
    x -= np.log(np.sum(np.exp(x), axis=-1, keepdims=True))
    return x


@functools.lru_cache(maxsize=None)
def _mean_kernel(size: int, dtype: np.dtype) -> np.ndarray:
    return np.full((size, 1), 1.0 / size, dtype)


NUMPY = SimpleNamespace(
    matmul=np.matmul, concat=lambda arrays: np.concatenate(arrays, axis=-1), log_softmax=_log_softmax,
    sum=lambda x: np.sum(x, axis=-1),
    mean=lambda x: np.matmul(x, _mean_kernel(x.shape[-1], x.dtype)),
    one_hot=lambda indices, n, dtype: (np.asarray(indices, np.int32)[..., None] == np.arange(n)).astype(dtype),
    size=lambda x: np.asarray(x.shape[-1], x.dtype),
    maximum=np.maximum, square=np.square, sqrt=np.sqrt, exp=np.exp, expm1=np.expm1, abs=np.abs,
    tanh=np.tanh,
    relu=lambda x: np.maximum(x, np.zeros((), x.dtype)),
    sigmoid=lambda x: 0.5 * np.tanh(0.5 * x) + 0.5,
    softplus=lambda x: np.logaddexp(x, np.zeros((), x.dtype)),
    elu=lambda x: np.maximum(x, 0.0) + np.expm1(np.minimum(x, 0.0)))
"""The operations `xp` in NumPy."""


# Layers


def make_dense(name: str, input_size: int, output_size: int, rng: np.random.Generator, scale: float = 1.0,
               bias: bool = True) -> Params:
    """Draws `<name>/kernel`, Glorot-uniform (Glorot & Bengio, 2010) times `scale`, and `<name>/bias`, zero.

    With `bias=False`, the layer has no bias, for example because a layer normalization follows, which shifts its
    outputs.
    """
    params = {f"{name}/kernel": (scale * _glorot(input_size, output_size, rng)).astype(np.float32)}
    return {**params, f"{name}/bias": np.zeros(output_size, np.float32)} if bias else params


def dense(xp: Any, params: Mapping[str, Any], inputs: Any, name: str) -> Any:
    """Computes `inputs W + b`, or `inputs W` if the layer has no bias."""
    x = xp.matmul(inputs, params[f"{name}/kernel"])
    if f"{name}/bias" in params:
        x += params[f"{name}/bias"][..., None, :]
    return x


def make_layer_norm(name: str, size: int) -> Params:
    """Returns `<name>/scale`, one, and `<name>/shift`, zero."""
    return {f"{name}/scale": np.ones(size, np.float32), f"{name}/shift": np.zeros(size, np.float32)}


def layer_norm(xp: Any, params: Mapping[str, Any], inputs: Any, name: str, epsilon: float = 1e-5) -> Any:
    """Normalizes each row to mean 0 and variance 1, then scales and shifts it (arXiv:1607.06450)."""
    x = inputs - xp.mean(inputs)
    x *= 1.0 / xp.sqrt(xp.mean(xp.square(x)) + epsilon)
    x *= params[f"{name}/scale"][..., None, :]
    x += params[f"{name}/shift"][..., None, :]
    return x


def make_mlp(scope: str, input_size: int, output_size: int, hidden_sizes: Sequence[int],
             rng: np.random.Generator) -> "OrderedDict[str, np.ndarray]":
    """Draws the dense layers `<scope>/hidden_0`, `<scope>/hidden_1`, ..., `<scope>/output`; see `make_dense`."""
    sizes = [input_size, *hidden_sizes, output_size]
    params: "OrderedDict[str, np.ndarray]" = OrderedDict()
    for i, (fan_in, fan_out) in enumerate(zip(sizes[:-1], sizes[1:])):
        layer = f"hidden_{i}" if i < len(hidden_sizes) else "output"
        params.update(make_dense(f"{scope}/{layer}", fan_in, fan_out, rng))
    return params


def mlp(xp: Any, params: Mapping[str, Any], inputs: Any, scope: str, hidden_nonlinearity: Any = "tanh",
        output_nonlinearity: Any = None) -> Any:
    """Computes a multi-layer perceptron.

    Args:
        xp: operations.
        params: parameters by name; see `make_mlp`. A context is joined to the inputs; see `fold_context`.
        inputs: `[..., in]`.
        scope: prefix of the parameter names.
        hidden_nonlinearity: nonlinearity of the hidden layers: a name, a function or None for the identity.
        output_nonlinearity: nonlinearity of the output layer, in the same forms.
    """
    x, params, i = inputs, fold_context(params, scope), 0
    while f"{scope}/hidden_{i}/kernel" in params:
        x = _activate(xp, hidden_nonlinearity, dense(xp, params, x, f"{scope}/hidden_{i}"))
        i += 1
    return _activate(xp, output_nonlinearity, dense(xp, params, x, f"{scope}/output"))


def _activate(xp: Any, nonlinearity: Any, x: Any) -> Any:
    if nonlinearity is None:
        return x
    return (vars(xp)[nonlinearity] if isinstance(nonlinearity, str) else nonlinearity)(x)


def make_context(size: int) -> Params:
    """Returns the parameter `CONTEXT`, zero, or no parameter if the size is 0; see `fold_context`."""
    return {CONTEXT: np.zeros(size, np.float32)} if size else {}


def fold_context(params: Mapping[str, Any], scope: str) -> Mapping[str, Any]:
    """Adds the contribution of the context (CAVIA, arXiv:1810.03642) to the bias of the first layer.

    With the kernel split into rows `W_o` for the observation and `W_c` for the context,
    `[o, c] W + b = o W_o + (c W_c + b)`.

    Args:
        params: parameters by name, or stacked over tasks; returned unchanged if there is no context.
        scope: prefix of the names of the network's parameters.
    """
    if CONTEXT not in params:
        return params
    layer = f"{scope}/hidden_0" if f"{scope}/hidden_0/kernel" in params else f"{scope}/output"
    kernel, context = params[f"{layer}/kernel"], params[CONTEXT]
    obs_dim = int(kernel.shape[-2]) - int(context.shape[-1])
    bias = params[f"{layer}/bias"] + (context[..., None, :] @ kernel[..., obs_dim:, :])[..., 0, :]
    return {**params, f"{layer}/kernel": kernel[..., :obs_dim, :], f"{layer}/bias": bias}


# Recurrent cells


@dataclasses.dataclass(frozen=True)
class Cell:
    """A recurrent layer: initial parameters, and the step from one state to the next."""

    make_params: Callable[[int, int, np.random.Generator], Params]  # of input size, number of units and generator
    step: Callable[..., Tuple[Any, Any]]  # of (xp, params, inputs, state); returns outputs and the next state
    states_per_unit: int = 1  # size of the state, divided by the number of units


def make_gru(input_size: int, size: int, rng: np.random.Generator) -> Params:
    """Draws `gru/input_kernel` `[I, 3H]`, `gru/recurrent_kernel` `[H, 3H]` and `gru/bias` `[3H]`; see `gru`.

    Reset gate, update gate and candidate state each have a Glorot-uniform input kernel and an orthogonal recurrent
    kernel. The bias of the update gate is 1, so that states change slowly; all other biases are zero.
    """
    return _make_gates("gru", input_size, size, [0.0, 1.0, 0.0], rng)


def gru(xp: Any, params: Mapping[str, Any], inputs: Any, state: Any) -> Tuple[Any, Any]:
    """Computes a step of a gated recurrent unit (GRU, arXiv:1406.1078); its output is the next state.

    The columns of both kernels and of the bias are split into three blocks of size `H`, in this order: reset gate `r`,
    update gate `z`, candidate state `c`. For an input `x` and the previous state `h`, the next state is `h'`:

    `r = sigmoid(x W_r + h U_r + b_r)`, `z = sigmoid(x W_z + h U_z + b_z)`,
    `c = tanh(x W_c + b_c + r * (h U_c))`, `h' = c + z * (h - c)`.

    The reset gate is applied after the matrix product, so each step needs only one product with the recurrent kernel.
    """
    of_input = xp.matmul(inputs, params["gru/input_kernel"])
    of_input += params["gru/bias"][..., None, :]
    state, *_ = gru_step(xp, of_input, state, params["gru/recurrent_kernel"])
    return state, state


def gru_step(xp: Any, of_input: Any, state: Any, recurrent_kernel: Any) -> Tuple[Any, Any, Any, Any]:
    """Computes `h'`, `[r, z]`, `h U_c` and `c` of `gru` from `of_input = x W + b`."""
    size = int(state.shape[-1])
    of_state = xp.matmul(state, recurrent_kernel)
    gates = xp.sigmoid(of_input[..., :2 * size] + of_state[..., :2 * size])
    of_state = of_state[..., 2 * size:]
    candidate = xp.tanh(of_input[..., 2 * size:] + gates[..., :size] * of_state)
    return candidate + gates[..., size:] * (state - candidate), gates, of_state, candidate


def make_lstm(input_size: int, size: int, rng: np.random.Generator) -> Params:
    """Draws `lstm/input_kernel` `[I, 4H]`, `lstm/recurrent_kernel` `[H, 4H]` and `lstm/bias` `[4H]`; see `lstm`.

    The gates are initialized like those of `make_gru`. The bias of the forget gate is 1; all other biases are zero.
    """
    return _make_gates("lstm", input_size, size, [0.0, 1.0, 0.0, 0.0], rng)


def lstm(xp: Any, params: Mapping[str, Any], inputs: Any, state: Any) -> Tuple[Any, Any]:
    """Computes a step of a long short-term memory (LSTM, Hochreiter & Schmidhuber, 1997).

    The columns of the kernels are split into four blocks of size `H`: input gate `i`, forget gate `f`, output gate `o`,
    candidate `g`. The state contains the output `h` and the memory `m`: `m' = f * m + i * g`, `h' = o * tanh(m')`.
    """
    size = int(state.shape[-1]) // 2
    x = xp.matmul(inputs, params["lstm/input_kernel"]) + xp.matmul(state[..., :size], params["lstm/recurrent_kernel"])
    x += params["lstm/bias"][..., None, :]
    gates, candidate = xp.sigmoid(x[..., :3 * size]), xp.tanh(x[..., 3 * size:])
    memory = gates[..., size:2 * size] * state[..., size:] + gates[..., :size] * candidate
    output = gates[..., 2 * size:] * xp.tanh(memory)
    return output, xp.concat([output, memory])


CELLS: Dict[str, Cell] = {"gru": Cell(make_gru, gru), "lstm": Cell(make_lstm, lstm, states_per_unit=2)}
"""Name to recurrent cell."""


def _glorot(fan_in: int, fan_out: int, rng: np.random.Generator) -> np.ndarray:
    limit = np.sqrt(6.0 / (fan_in + fan_out))
    return rng.uniform(-limit, limit, (fan_in, fan_out))


def _make_gates(name: str, input_size: int, size: int, biases: Sequence[float], rng: np.random.Generator) -> Params:
    """Draws Glorot-uniform input kernels and orthogonal recurrent kernels; the biases of each gate are constant."""
    recurrent = [np.linalg.qr(rng.standard_normal((size, size)))[0] for _ in biases]
    params = {f"{name}/input_kernel": np.concatenate([_glorot(input_size, size, rng) for _ in biases], axis=1),
              f"{name}/recurrent_kernel": np.concatenate(recurrent, axis=1), f"{name}/bias": np.repeat(biases, size)}
    return {name: value.astype(np.float32) for name, value in params.items()}


# Outputs of policies, and their actions


def gaussian(xp: Any, mean: Any, log_std: Any, min_std: float = 1e-6) -> Dict[str, Any]:
    """Returns the parameters of a Gaussian distribution, whose standard deviation is at least `min_std`.

    Args:
        xp: operations.
        mean: `[..., A]`, or `[M, ..., A]`.
        log_std: logarithm of the standard deviation, `[A]` or `[M, A]`, the same at all observations.
        min_std: minimum standard deviation, in the action's unit.
    """
    return OrderedDict(mean=mean, log_std=xp.maximum(log_std, math.log(min_std))[..., None, :])


def make_log_std(action_dim: int, init_std: float) -> np.ndarray:
    """Returns the initial value of `LOG_STD`, float32 `[A]`."""
    return np.full(action_dim, math.log(init_std), np.float32)


def categorical(xp: Any, logits: Any) -> Dict[str, Any]:
    """Returns the parameter of a categorical distribution with the given logits `[..., n]`."""
    return OrderedDict(log_prob=xp.log_softmax(logits))


def gaussian_mlp(xp: Any, params: Mapping[str, Any], inputs: Any, hidden_nonlinearity: Any, output_nonlinearity: Any,
                 fixed_log_std: Optional[np.ndarray], min_std: float) -> Dict[str, Any]:
    """Computes `mlp` as the mean of a Gaussian distribution; the parameter `LOG_STD` is not used if it is fixed."""
    mean = mlp(xp, params, inputs, "mean_network", hidden_nonlinearity, output_nonlinearity)
    return gaussian(xp, mean, params[LOG_STD] if fixed_log_std is None else fixed_log_std, min_std)


def categorical_mlp(xp: Any, params: Mapping[str, Any], inputs: Any, hidden_nonlinearity: Any,
                    output_nonlinearity: Any) -> Dict[str, Any]:
    """Computes `mlp` as the logits of a categorical distribution."""
    return categorical(xp, mlp(xp, params, inputs, "logits_network", hidden_nonlinearity, output_nonlinearity))


def categorical_heads(xp: Any, params: Mapping[str, Any], inputs: Any) -> Dict[str, Any]:
    """Computes the logits and the value of a recurrent policy from the outputs of its cell."""
    return {**categorical(xp, dense(xp, params, inputs, "action")), "value": dense(xp, params, inputs, "value")[..., 0]}


def gaussian_heads(xp: Any, params: Mapping[str, Any], inputs: Any, min_std: float) -> Dict[str, Any]:
    """Computes the mean and the value of a recurrent policy from the outputs of its cell."""
    distribution = gaussian(xp, dense(xp, params, inputs, "action"), params[LOG_STD], min_std)
    return {**distribution, "value": dense(xp, params, inputs, "value")[..., 0]}


def gaussian_action(info: Mapping[str, np.ndarray], noise: np.ndarray) -> np.ndarray:
    """Computes actions `mean + std * noise`, `[..., A]`, from standard normal noise `[..., A]`."""
    return info["mean"] + np.exp(info["log_std"]) * noise


def categorical_action(info: Mapping[str, np.ndarray], noise: np.ndarray) -> np.ndarray:
    """Computes actions, int64 `[...]`, from noise `[..., 1]` that is uniform in `[0, 1)`."""
    return draw_index(np.exp(info["log_prob"]), noise[..., 0])
