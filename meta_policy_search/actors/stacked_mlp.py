"""Multi-layer perceptrons in NumPy, which compute the policies of `M` tasks at once, without TensorFlow."""
import copy
import math
from collections import OrderedDict
from typing import Callable, Dict, Optional, Tuple

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.actors.parameters import LOG_STD
from meta_policy_search.types import Infos, Params
from meta_policy_search.utils.checks import check_choice
from meta_policy_search.utils.utils import draw_index

NONLINEARITIES: Dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "tanh": np.tanh,
    "relu": lambda x, out: np.maximum(x, np.zeros((), x.dtype), out=out),
    "sigmoid": lambda x, out: np.add(0.5 * np.tanh(0.5 * x), 0.5, out=out),
    "softplus": lambda x, out: np.logaddexp(x, np.zeros((), x.dtype), out=out),
    "elu": lambda x, out: np.add(np.maximum(x, 0.0), np.expm1(np.minimum(x, 0.0)), out=out),
}
"""Name of a TensorFlow nonlinearity to the same NumPy function, with the arguments `(x, out)`; `out` may be `x`."""

Network = Tuple[int, Optional[str], Optional[str]]
"""Number of hidden layers, nonlinearity of the hidden layers and of the output layer; None for the identity."""


def check_nonlinearity(argument: str, name: Optional[str]) -> Optional[str]:
    """Checks and returns the name of a nonlinearity, or None for the identity."""
    return check_choice(argument, name, [*NONLINEARITIES, None])


def compute_mlp(params: Params, inputs: np.ndarray, scope: str, network: Network) -> np.ndarray:
    """Computes the outputs of `M` networks, float32 `[M, R, out]`.

    The matrices of each task are multiplied separately, and always with the same number of rows. The outputs therefore
    do not depend on which tasks share a process, or on which rows are in use.

    Args:
        params: float32 parameters stacked over tasks, `<scope>/<layer>/kernel` `[M, in, out]` and
            `<scope>/<layer>/bias` `[M, out]`, for the layers `hidden_0`, `hidden_1`, ..., `output`.
        inputs: `[M, R, in]`.
        scope: prefix of the parameter names.
        network: see `Network`.
    """
    num_hidden_layers, hidden_nonlinearity, output_nonlinearity = network
    x = inputs.astype(np.float32)
    for i in range(num_hidden_layers + 1):
        layer = "output" if i == num_hidden_layers else f"hidden_{i}"
        x = np.matmul(x, params[f"{scope}/{layer}/kernel"])
        x += params[f"{scope}/{layer}/bias"][:, None, :]
        nonlinearity = output_nonlinearity if i == num_hidden_layers else hidden_nonlinearity
        if nonlinearity is not None:
            x = NONLINEARITIES[nonlinearity](x, x)
    return x


class StackedMLP(Actor):
    """Actor for the MLP policies of `M` tasks.

    Args:
        params: as for `compute_mlp`. Further arrays `[M, ...]`, such as the standard deviation, are passed to `sample`.
        scope: prefix of the parameter names.
        network: see `Network`.
        sample: function of the network outputs `[M, R, out]`, the noise `[M, R, noise_dim]` and `params`, with the
            return value of `Actor.act`. See `sample_gaussian`, `sample_categorical` and `sample_deterministic`.
        noise_dim: number of random numbers per action. Default: 0.
        uniform_noise: whether the noise is uniform in `[0, 1)` instead of standard normal. Default: False.
    """

    can_divide = True

    def __init__(self, params: Params, scope: str, network: Network,
                 sample: Callable[..., Tuple[np.ndarray, Infos]], noise_dim: int = 0,
                 uniform_noise: bool = False) -> None:
        self._params, self._scope, self._network = params, scope, network
        self._sample = sample
        self.noise_dim, self.uniform_noise = noise_dim, uniform_noise

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Computes the network outputs at `observations` and samples actions from them; see `Actor.act`."""
        return self._sample(compute_mlp(self._params, observations, self._scope, self._network), noise, self._params)

    def for_tasks(self, start: int, stop: int) -> "StackedMLP":
        """Returns an actor for the tasks from `start` (inclusive) to `stop` (exclusive), sharing parameter memory."""
        part = copy.copy(self)
        part._params = {name: values[start:stop] for name, values in self._params.items()}
        return part


def sample_gaussian(mean: np.ndarray, noise: np.ndarray, params: Params) -> Tuple[np.ndarray, Infos]:
    """Computes actions `mean + std * noise`, and the agent infos `mean` and `log_std`, each float32 `[M, R, A]`.

    `params[LOG_STD]` is `[M, A]`. If `noise` is zero, the actions equal the mean.
    """
    log_std = params[LOG_STD][:, None, :]
    return mean + np.exp(log_std) * noise, OrderedDict(mean=mean, log_std=np.broadcast_to(log_std, mean.shape))


def sample_categorical(logits: np.ndarray, noise: np.ndarray, params: Params) -> Tuple[np.ndarray, Infos]:
    """Draws actions, int64 `[M, R]`; the agent info `log_prob` contains the log-probabilities of all actions.

    `logits` `[M, R, n]` are overwritten. `noise` `[M, R, 1]` is uniform in `[0, 1)`. `log_prob` is float32 `[M, R, n]`.
    """
    logits -= np.max(logits, axis=-1, keepdims=True)
    log_prob = logits - np.log(np.sum(np.exp(logits), axis=-1, keepdims=True))
    return draw_index(np.exp(log_prob), noise[..., 0]), OrderedDict(log_prob=log_prob)


def sample_deterministic(outputs: np.ndarray, noise: np.ndarray, params: Params,
                         is_discrete: bool) -> Tuple[np.ndarray, Infos]:
    """Returns outputs `[M, R, A]` as actions, or the index of the largest output, int64 `[M, R]`; no agent infos."""
    return (outputs.argmax(axis=-1) if is_discrete else outputs), {}


def gaussian_actor(params: Params, network: Network, fixed_log_std: Optional[np.ndarray],
                   min_std: float) -> StackedMLP:
    """Returns an actor for Gaussian MLP policies.

    Args:
        params: as for `compute_mlp`, with scope `mean_network`; also `LOG_STD` `[M, A]`, if it is a parameter.
        network: see `Network`.
        fixed_log_std: `[A]`, the logarithm of the standard deviation if it is not a parameter; else None.
        min_std: minimum standard deviation, in the action's unit.
    """
    num_tasks = len(params["mean_network/output/bias"])
    log_std = params[LOG_STD] if fixed_log_std is None else np.tile(fixed_log_std, (num_tasks, 1))
    params = {**params, LOG_STD: np.maximum(log_std, np.float32(math.log(min_std)))}
    return StackedMLP(params, "mean_network", network, sample_gaussian, noise_dim=log_std.shape[-1])


def categorical_actor(params: Params, network: Network) -> StackedMLP:
    """Returns an actor for categorical MLP policies; `params` as for `compute_mlp`, with scope `logits_network`."""
    return StackedMLP(params, "logits_network", network, sample_categorical, noise_dim=1, uniform_noise=True)
