"""Policies that run on NumPy alone: what samplers and worker processes act with."""
import copy
from collections import OrderedDict
from typing import Callable, Dict, Mapping, Optional, Tuple

import numpy as np

from meta_policy_search.types import Infos


def _sigmoid(x: np.ndarray, out: np.ndarray) -> np.ndarray:
    np.multiply(x, 0.5, out=out)
    np.tanh(out, out=out)
    out += 1.0
    out *= 0.5
    return out


def _softplus(x: np.ndarray, out: np.ndarray) -> np.ndarray:
    return np.logaddexp(x, np.zeros((), x.dtype), out=out)


def _elu(x: np.ndarray, out: np.ndarray) -> np.ndarray:
    negative = np.expm1(np.minimum(x, 0.0))
    np.maximum(x, 0.0, out=out)
    out += negative
    return out


def _relu(x: np.ndarray, out: np.ndarray) -> np.ndarray:
    return np.maximum(x, np.zeros((), x.dtype), out=out)


NONLINEARITIES: Dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "tanh": np.tanh,
    "relu": _relu,
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "elu": _elu,
}
"""Name of a TensorFlow nonlinearity to its NumPy form, a function of `(x, out)` that may work in place."""


class StackedGaussianMLP:
    """`M` Gaussian MLP policies, one per task, acting on arrays.

    Each task's matrices multiply alone and always with the same number of rows, so an action depends neither on
    which tasks share a process nor on which rows are in use.

    Args:
        params: float32 parameters stacked over tasks, `mean_network/<layer>/kernel` `[M, in, out]`,
            `mean_network/<layer>/bias` `[M, out]` and `log_std_network/log_std_var` `[M, A]`.
        num_hidden_layers: number of hidden layers.
        hidden_nonlinearity: name of one of `NONLINEARITIES`, or None for the identity.
        output_nonlinearity: likewise, for the output.
        min_log_std: smallest log standard deviation.
    """

    def __init__(
        self,
        params: Mapping[str, np.ndarray],
        num_hidden_layers: int,
        hidden_nonlinearity: Optional[str],
        output_nonlinearity: Optional[str],
        min_log_std: float,
    ) -> None:
        names = [f"hidden_{i}" for i in range(num_hidden_layers)] + ["output"]
        self._layers = [
            (params[f"mean_network/{name}/kernel"], params[f"mean_network/{name}/bias"][:, None, :]) for name in names
        ]
        self._nonlinearities = [hidden_nonlinearity] * num_hidden_layers + [output_nonlinearity]
        self._log_std = np.maximum(params["log_std_network/log_std_var"], np.float32(min_log_std))[:, None, :]
        self._std = np.exp(self._log_std)

    def for_tasks(self, start: int, stop: int) -> "StackedGaussianMLP":
        """Returns the policies of the tasks from `start` to before `stop`, which share the parameters' memory."""
        part = copy.copy(self)
        part._layers = [(kernel[start:stop], bias[start:stop]) for kernel, bias in self._layers]
        part._log_std, part._std = self._log_std[start:stop], self._std[start:stop]
        return part

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Computes actions `mean + std * noise`.

        Args:
            observations: `[M, R, O]`.
            noise: float32 `[M, R, A]`, standard normal; zeros for the mean action.

        Returns:
            Actions float32 `[M, R, A]` and agent infos `mean`, `log_std`, each float32 `[M, R, A]`.
        """
        x = observations.astype(np.float32)
        for (kernel, bias), nonlinearity in zip(self._layers, self._nonlinearities):
            x = np.matmul(x, kernel)
            x += bias
            if nonlinearity is not None:
                x = NONLINEARITIES[nonlinearity](x, x)
        log_std = np.broadcast_to(self._log_std, x.shape)
        return x + self._std * noise, OrderedDict(mean=x, log_std=log_std)
