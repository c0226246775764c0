"""Action-value functions in NumPy, trained by off-policy algorithms."""
import functools
from collections import OrderedDict
from typing import Any, Callable, Optional, Sequence

import numpy as np

from meta_policy_search.actors.parameters import check_hidden_sizes, flatten_params, unflatten_params
from meta_policy_search.ops.networks import NONLINEARITIES, NUMPY, make_mlp, mlp
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_choice, check_positive_int
from meta_policy_search.utils.serializable import Configurable


class MLPQFunction(Configurable):
    """Action-value function `Q(o, a) = mlp([o, a])`, which predicts the discounted sum of future rewards.

    Kernels have a Glorot-uniform initialization, drawn from the root seed. Biases are initialized to zero.

    Args:
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action.
        hidden_sizes (sequence of int): number of units of each hidden layer; empty for a linear function. Default: (64,
            64).
        hidden_nonlinearity (str or None): nonlinearity of the hidden layers, one of
            `ops.networks.NONLINEARITIES`; None for the identity. Default: `"relu"`.
    """

    scope = "q_network"  # prefix of the parameter names

    def __init__(self, obs_dim: int, action_dim: int, hidden_sizes: Sequence[int] = (64, 64),
                 hidden_nonlinearity: Optional[str] = "relu") -> None:
        self.obs_dim = check_positive_int("obs_dim", obs_dim)
        self.action_dim = check_positive_int("action_dim", action_dim)
        self.hidden_sizes = check_hidden_sizes(hidden_sizes)
        self.hidden_nonlinearity = check_choice("hidden_nonlinearity", hidden_nonlinearity, [*NONLINEARITIES, None])
        rng = seeding.next_rng(seeding.Stream.WEIGHTS)
        self._params = make_mlp(self.scope, self.obs_dim + self.action_dim, 1, self.hidden_sizes, rng)

    @property
    def network(self) -> Callable[..., Any]:
        """Function of `(xp, params, inputs)`, see `ops.networks`."""
        return functools.partial(mlp, scope=self.scope, hidden_nonlinearity=self.hidden_nonlinearity)

    def get_param_values(self) -> "OrderedDict[str, np.ndarray]":
        """Returns copies of the current parameters by name."""
        return OrderedDict((name, value.copy()) for name, value in self._params.items())

    def get_flat_params(self) -> np.ndarray:
        """Returns a copy of the parameters in the order of `get_param_values`, float32 `[D]`."""
        return flatten_params(self._params)

    def set_flat_params(self, flat_params: np.ndarray) -> None:
        """Sets the parameters, `[D]`."""
        self._params = unflatten_params("flat_params", flat_params, self._params, ndim=1)

    def compute_values(self, observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Computes the values, float32 `[B]`, of actions `[B, A]` at observations `[B, O]`."""
        inputs = np.concatenate([observations, actions], axis=1).astype(np.float32)
        return self.network(NUMPY, self._params, inputs)[:, 0]
