"""Policies that run on NumPy alone: single policies, for algorithms that search among their parameters (`np.algos`)."""
import abc
import functools
from collections import OrderedDict
from typing import Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.actors.flat_policy import FlatPolicy as Policy
from meta_policy_search.actors.parameters import (
    LOG_STD,
    check_hidden_sizes,
    check_std,
    flatten_params,
    initial_log_std,
    initial_mlp_values,
    unflatten_params,
)
from meta_policy_search.actors.stacked_mlp import (
    Network,
    StackedMLP,
    categorical_actor,
    check_nonlinearity,
    gaussian_actor,
    sample_deterministic,
)
from meta_policy_search.types import Params
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_bool
from meta_policy_search.utils.fast_paths import replaces

__all__ = ["CategoricalMLPPolicy", "DeterministicMLPPolicy", "GaussianMLPPolicy", "MLPPolicy", "Policy"]


class MLPPolicy(Policy):
    """A policy with a multi-layer perceptron of the observation, whose output is `action_dim` numbers.

    Kernels start Glorot-uniform, biases at zero, drawn from the root seed. A subclass supplies `scope` and `_stack`,
    which says what the outputs mean.

    Args:
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action; the number of actions, where they are discrete.
        hidden_sizes (tuple of int): units of each hidden layer; empty for a linear function.
        hidden_nonlinearity (str or None): of the hidden layers, one of `NONLINEARITIES`; None for the identity.
        output_nonlinearity (str or None): likewise, of the output layer.
    """

    scope: str  # prefix of the network's parameters

    def __init__(self, obs_dim: int, action_dim: int, hidden_sizes: Sequence[int] = (32, 32),
                 hidden_nonlinearity: Optional[str] = "tanh", output_nonlinearity: Optional[str] = None) -> None:
        super().__init__(obs_dim, action_dim)
        self.hidden_sizes = check_hidden_sizes(hidden_sizes)
        self.hidden_nonlinearity = check_nonlinearity("hidden_nonlinearity", hidden_nonlinearity)
        self.output_nonlinearity = check_nonlinearity("output_nonlinearity", output_nonlinearity)
        rng = seeding.next_rng(seeding.Stream.WEIGHTS)
        self._params = initial_mlp_values(self.scope, self.obs_dim, self.action_dim, self.hidden_sizes, rng)

    @property
    def network(self) -> Network:
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
        self._params = unflatten_params("flat_params", flat_params, self._shapes(), ndim=1)

    def _shapes(self) -> "OrderedDict[str, Tuple[int, ...]]":
        return OrderedDict((name, value.shape) for name, value in self._params.items())

    @replaces("get_action", "get_actions")
    def make_actors(self, flat_params: np.ndarray) -> Actor:
        """See `Policy.make_actors`."""
        return self._stack(unflatten_params("flat_params", flat_params, self._shapes(), ndim=2))

    @abc.abstractmethod
    def _stack(self, params: Params) -> Actor:
        """Returns an actor for parameters `[M, ...]`."""


class GaussianMLPPolicy(MLPPolicy):
    """Gaussian policy: `a ~ N(mlp(o), diag(std^2))`, the standard deviation independent of the observation.

    Args:
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action.
        hidden_sizes (tuple of int): units of each hidden layer; empty for a linear function.
        hidden_nonlinearity (str or None): of the hidden layers, one of `NONLINEARITIES`; None for the identity.
        output_nonlinearity (str or None): likewise, of the output layer.
        learn_std (bool): whether the logarithm of the standard deviation is among the parameters (they end with it),
            or fixed.
        init_std (float): initial standard deviation, in the action's unit.
        min_std (float): smallest standard deviation.
    """

    scope = "mean_network"

    def __init__(self, obs_dim: int, action_dim: int, hidden_sizes: Sequence[int] = (32, 32),
                 hidden_nonlinearity: Optional[str] = "tanh", output_nonlinearity: Optional[str] = None,
                 learn_std: bool = True, init_std: float = 1.0, min_std: float = 1e-6) -> None:
        super().__init__(obs_dim, action_dim, hidden_sizes, hidden_nonlinearity, output_nonlinearity)
        self.learn_std = check_bool("learn_std", learn_std)
        self.init_std, self.min_std = check_std(init_std, min_std)
        if self.learn_std:
            self._params[LOG_STD] = initial_log_std(self.action_dim, self.init_std)

    def _stack(self, params: Params) -> Actor:
        fixed_log_std = None if self.learn_std else initial_log_std(self.action_dim, self.init_std)
        return gaussian_actor(params, self.network, fixed_log_std, self.min_std)


class CategoricalMLPPolicy(MLPPolicy):
    """Categorical policy for discrete actions: `pi(a | o) = softmax(mlp(o))_a`.

    Args:
        obs_dim (int): size `O` of an observation.
        action_dim (int): number of actions.
        hidden_sizes (tuple of int): units of each hidden layer; empty for a linear function.
        hidden_nonlinearity (str or None): of the hidden layers, one of `NONLINEARITIES`; None for the identity.
        output_nonlinearity (str or None): likewise, of the output layer.
    """

    scope = "logits_network"

    @property
    def action_shape(self) -> Tuple[int, ...]:
        """Shape of an action: `()`, as actions are indices."""
        return ()

    def _stack(self, params: Params) -> Actor:
        return categorical_actor(params, self.network)


class DeterministicMLPPolicy(MLPPolicy):
    """Deterministic policy: `a = mlp(o)`; where actions are discrete, the index of the largest output.

    Args:
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action; the number of actions, where they are discrete.
        hidden_sizes (tuple of int): units of each hidden layer; empty for a linear function.
        hidden_nonlinearity (str or None): of the hidden layers, one of `NONLINEARITIES`; None for the identity.
        output_nonlinearity (str or None): likewise, of the output layer.
        is_discrete (bool): whether actions are discrete.
    """

    scope = "action_network"

    def __init__(self, obs_dim: int, action_dim: int, hidden_sizes: Sequence[int] = (32, 32),
                 hidden_nonlinearity: Optional[str] = "tanh", output_nonlinearity: Optional[str] = None,
                 is_discrete: bool = False) -> None:
        super().__init__(obs_dim, action_dim, hidden_sizes, hidden_nonlinearity, output_nonlinearity)
        self.is_discrete = check_bool("is_discrete", is_discrete)

    @property
    def action_shape(self) -> Tuple[int, ...]:
        """Shape of an action: `(A,)`, or `()` where actions are discrete."""
        return () if self.is_discrete else (self.action_dim,)

    def _stack(self, params: Params) -> Actor:
        return StackedMLP(params, self.scope, self.network,
                          functools.partial(sample_deterministic, is_discrete=self.is_discrete))
