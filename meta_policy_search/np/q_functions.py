"""Action values on NumPy, which off-policy algorithms learn."""
from collections import OrderedDict
from typing import Optional, Sequence

import numpy as np

from meta_policy_search.actors.parameters import (
    check_hidden_sizes,
    flatten_params,
    initial_mlp_values,
    unflatten_params,
)
from meta_policy_search.actors.stacked_mlp import Network, check_nonlinearity, compute_mlp
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.serializable import Configurable


class MLPQFunction(Configurable):
    """The value of an action in a state, `Q(o, a) = mlp([o, a])`, a sum of rewards to come.

    Kernels start Glorot-uniform, biases at zero, drawn from the root seed.

    Args:
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action.
        hidden_sizes (tuple of int): units of each hidden layer; empty for a linear function.
        hidden_nonlinearity (str or None): of the hidden layers, one of `NONLINEARITIES`; None for the identity.
    """

    scope = "q_network"  # prefix of the network's parameters

    def __init__(self, obs_dim: int, action_dim: int, hidden_sizes: Sequence[int] = (64, 64),
                 hidden_nonlinearity: Optional[str] = "relu") -> None:
        self.obs_dim = check_positive_int("obs_dim", obs_dim)
        self.action_dim = check_positive_int("action_dim", action_dim)
        self.hidden_sizes = check_hidden_sizes(hidden_sizes)
        self.hidden_nonlinearity = check_nonlinearity("hidden_nonlinearity", hidden_nonlinearity)
        rng = seeding.next_rng(seeding.Stream.WEIGHTS)
        self._params = initial_mlp_values(self.scope, self.obs_dim + self.action_dim, 1, self.hidden_sizes, rng)

    @property
    def network(self) -> Network:
        """Number of hidden layers, and the nonlinearities of hidden and output layers."""
        return len(self.hidden_sizes), self.hidden_nonlinearity, None

    def get_param_values(self) -> "OrderedDict[str, np.ndarray]":
        """Returns the current parameter values by name; copies."""
        return OrderedDict((name, value.copy()) for name, value in self._params.items())

    def get_flat_params(self) -> np.ndarray:
        """Returns the parameters in the order of `get_param_values`; a copy, float32 `[D]`."""
        return flatten_params(self._params)

    def set_flat_params(self, flat_params: np.ndarray) -> None:
        """Sets the parameters, `[D]`."""
        shapes = {name: value.shape for name, value in self._params.items()}
        self._params = unflatten_params("flat_params", flat_params, shapes, ndim=1)

    def compute_values(self, observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Computes the values, float32 `[B]`, of `actions` `[B, A]` in `observations` `[B, O]`."""
        stacked = {name: value[None] for name, value in self._params.items()}
        inputs = np.concatenate([observations, actions], axis=1)
        return compute_mlp(stacked, inputs[None], self.scope, self.network)[0, :, 0]
