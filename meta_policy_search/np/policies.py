"""Policies that run on NumPy alone: single policies, for algorithms that search among their parameters (`np.algos`)."""
import abc
from collections import OrderedDict
from typing import Any, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.actors.flat_policy import FlatPolicy as Policy
from meta_policy_search.actors.mlp_families import LOG_STD, CategoricalFamily, GaussianFamily
from meta_policy_search.actors.nonlinearities import NONLINEARITIES
from meta_policy_search.actors.parameters import flatten_params, initial_mlp_values, unflatten_params
from meta_policy_search.actors.stacked_mlp import StackedDeterministicMLP
from meta_policy_search.types import Params
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_bool, check_choice, check_positive_int
from meta_policy_search.utils.signatures import SharedArguments

__all__ = ["CategoricalMLPPolicy", "DeterministicMLPPolicy", "FlatMLP", "GaussianMLPPolicy", "MLPPolicy", "Policy"]


class FlatMLP(SharedArguments):
    """A multi-layer perceptron whose parameters are one flat vector.

    Kernels start Glorot-uniform, biases at zero, drawn from the root seed.

    Args:
        scope (str): prefix of the parameter names.
        input_size (int): units of the input layer.
        output_size (int): units of the output layer.
        hidden_sizes (tuple of int): units of each hidden layer; empty for a linear function.
        hidden_nonlinearity (str or None): of the hidden layers, one of `NONLINEARITIES`; None for the identity.
        output_nonlinearity (str or None): likewise, of the output layer.
    """

    def __init__(self, scope: str, input_size: int, output_size: int, hidden_sizes: Sequence[int],
                 hidden_nonlinearity: Optional[str], output_nonlinearity: Optional[str]) -> None:
        self.scope = scope
        self.hidden_sizes = tuple(check_positive_int(f"hidden_sizes[{i}]", n) for i, n in enumerate(hidden_sizes))
        choices = [*NONLINEARITIES, None]
        self.hidden_nonlinearity = check_choice("hidden_nonlinearity", hidden_nonlinearity, choices)
        self.output_nonlinearity = check_choice("output_nonlinearity", output_nonlinearity, choices)
        rng = seeding.next_rng(seeding.Stream.WEIGHTS)
        self._params = initial_mlp_values(scope, input_size, output_size, self.hidden_sizes, rng)

    @property
    def network(self) -> Tuple[int, Optional[str], Optional[str]]:
        """Number of hidden layers, and the nonlinearities of hidden and output layers."""
        return len(self.hidden_sizes), self.hidden_nonlinearity, self.output_nonlinearity

    def get_param_values(self) -> "OrderedDict[str, np.ndarray]":
        """Returns the current parameter values by name; copies."""
        return OrderedDict((name, value.copy()) for name, value in self._params.items())

    def get_flat_params(self) -> np.ndarray:
        """Returns the parameters in the order of `get_param_values`; a copy, float32 `[D]`."""
        return flatten_params(self._params)

    def set_flat_params(self, flat_params: np.ndarray) -> None:
        """See `Policy.set_flat_params`."""
        self._params = self._unflatten(flat_params, ndim=1)

    def _unflatten(self, flat_params: np.ndarray, ndim: int) -> "OrderedDict[str, np.ndarray]":
        shapes = {name: value.shape for name, value in self._params.items()}
        return unflatten_params("flat_params", flat_params, shapes, ndim)


class MLPPolicy(FlatMLP, Policy):
    """A policy with a multi-layer perceptron of the observation, whose output is `action_dim` numbers.

    A subclass says what the outputs mean: `_scope` and `_stack_params`.
    """

    _scope: str  # prefix of the network's parameters

    def __init__(self, obs_dim: int, action_dim: int, hidden_sizes: Sequence[int] = (32, 32),
                 hidden_nonlinearity: Optional[str] = "tanh", output_nonlinearity: Optional[str] = None) -> None:
        Policy.__init__(self, obs_dim, action_dim)
        FlatMLP.__init__(self, self._scope, self.obs_dim, self.action_dim, hidden_sizes, hidden_nonlinearity,
                         output_nonlinearity)

    @abc.abstractmethod
    def _stack_params(self, params: Params, *network: Any) -> Actor:
        """Returns what acts; parameters `[M, ...]`, and the network's depth and nonlinearities by name."""

    def make_actors(self, flat_params: np.ndarray) -> Actor:
        """See `Policy.make_actors`."""
        return self._stack_params(self._unflatten(flat_params, ndim=2), *self.network)


class GaussianMLPPolicy(GaussianFamily, MLPPolicy):
    """Gaussian policy: `a ~ N(mlp(o), diag(std^2))`, the standard deviation independent of the observation.

    Args:
        learn_std (bool): whether the logarithm of the standard deviation is among the parameters (they end with it),
            or fixed. Default: True.
        init_std (float): initial standard deviation, in the action's unit. Default: 1.
        min_std (float): smallest standard deviation. Default: 1e-6.
    """

    def __init__(self, obs_dim: int, action_dim: int, hidden_sizes: Sequence[int] = (32, 32),
                 hidden_nonlinearity: Optional[str] = "tanh", output_nonlinearity: Optional[str] = None,
                 learn_std: bool = True, init_std: float = 1.0, min_std: float = 1e-6) -> None:
        self.learn_std = check_bool("learn_std", learn_std)
        self._set_std(init_std, min_std)
        super().__init__(obs_dim, action_dim, hidden_sizes, hidden_nonlinearity, output_nonlinearity)
        if self.learn_std:
            self._params[LOG_STD] = self._initial_log_std()


class CategoricalMLPPolicy(CategoricalFamily, MLPPolicy):
    """Categorical policy for discrete actions: `pi(a | o) = softmax(mlp(o))_a`."""

    @property
    def action_shape(self) -> Tuple[int, ...]:
        """Shape of an action: `()`, as actions are indices."""
        return ()


class DeterministicMLPPolicy(MLPPolicy):
    """Deterministic policy: `a = mlp(o)`; where actions are discrete, the index of the largest output.

    Args:
        is_discrete (bool): whether actions are discrete. Default: False.
    """

    _scope = "action_network"

    def __init__(self, obs_dim: int, action_dim: int, hidden_sizes: Sequence[int] = (32, 32),
                 hidden_nonlinearity: Optional[str] = "tanh", output_nonlinearity: Optional[str] = None,
                 is_discrete: bool = False) -> None:
        super().__init__(obs_dim, action_dim, hidden_sizes, hidden_nonlinearity, output_nonlinearity)
        self.is_discrete = check_bool("is_discrete", is_discrete)

    @property
    def action_shape(self) -> Tuple[int, ...]:
        """Shape of an action: `(A,)`, or `()` where actions are discrete."""
        return () if self.is_discrete else (self.action_dim,)

    def _stack_params(self, params: Params, *network: Any) -> StackedDeterministicMLP:
        return StackedDeterministicMLP(params, *network, self.is_discrete)  # type: ignore[call-arg]
