"""Policies for a single task that run on NumPy, used by `np.algos` and for loaded weights."""
import abc
import functools
from collections import OrderedDict
from typing import Any, Callable, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.actors.actor import Actor, NetworkActor
from meta_policy_search.actors.flat_policy import FlatPolicy as Policy
from meta_policy_search.actors.parameters import check_hidden_sizes, check_std, flatten_params, unflatten_params
from meta_policy_search.ops import networks
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_bool, check_choice
from meta_policy_search.utils.fast_paths import replaces

__all__ = ["CategoricalMLPPolicy", "DeterministicMLPPolicy", "GaussianMLPPolicy", "MLPPolicy", "Policy"]

_CHOICES = (*networks.NONLINEARITIES, None)


class MLPPolicy(Policy):
    """A policy based on a multi-layer perceptron from the observation to `action_dim` outputs.

    Kernels have a Glorot-uniform initialization, drawn from the root seed. Biases are initialized to zero. A subclass
    sets `scope` and implements `_acting`.

    Args:
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action; if actions are discrete, the number of actions.
        hidden_sizes (sequence of int): number of units of each hidden layer; empty for a linear function. Default: (32,
            32).
        hidden_nonlinearity (str or None): nonlinearity of the hidden layers, one of
            `ops.networks.NONLINEARITIES`; None for the identity. Default: `"tanh"`.
        output_nonlinearity (str or None): nonlinearity of the output layer, from the same choices. Default: None, the
            identity.
    """

    scope: str  # prefix of the parameter names

    def __init__(self, obs_dim: int, action_dim: int, hidden_sizes: Sequence[int] = (32, 32),
                 hidden_nonlinearity: Optional[str] = "tanh", output_nonlinearity: Optional[str] = None) -> None:
        super().__init__(obs_dim, action_dim)
        self.hidden_sizes = check_hidden_sizes(hidden_sizes)
        self.hidden_nonlinearity = check_choice("hidden_nonlinearity", hidden_nonlinearity, _CHOICES)
        self.output_nonlinearity = check_choice("output_nonlinearity", output_nonlinearity, _CHOICES)
        rng = seeding.next_rng(seeding.Stream.WEIGHTS)
        self._params = networks.make_mlp(self.scope, self.obs_dim, self.action_dim, self.hidden_sizes, rng)

    @property
    def network(self) -> Callable[..., Any]:
        """Function of `(xp, params, observations)`, see `ops.networks`."""
        network = self._acting()[0]
        return functools.partial(network, hidden_nonlinearity=self.hidden_nonlinearity,
                                 output_nonlinearity=self.output_nonlinearity)

    def get_param_values(self) -> "OrderedDict[str, np.ndarray]":
        """Returns copies of the current parameters by name."""
        return OrderedDict((name, value.copy()) for name, value in self._params.items())

    def get_flat_params(self) -> np.ndarray:
        """Returns a copy of the parameters in the order of `get_param_values`, float32 `[D]`."""
        return flatten_params(self._params)

    def set_flat_params(self, flat_params: np.ndarray) -> None:
        """Sets the parameters, `[D]`, in the order of `get_param_values`."""
        self._params = unflatten_params("flat_params", flat_params, self._params, ndim=1)

    @replaces("get_action", "get_actions")
    def make_actors(self, flat_params: np.ndarray) -> Actor:
        """Returns an actor for parameters `[M, D]`; see `FlatPolicy.make_actors`."""
        params = unflatten_params("flat_params", flat_params, self._params, ndim=2)
        return NetworkActor(self.network, params, *self._acting()[1:])

    @abc.abstractmethod
    def _acting(self) -> Tuple:
        """Returns the network without nonlinearities, and the arguments of `NetworkActor` after the parameters."""


class GaussianMLPPolicy(MLPPolicy):
    """Gaussian policy: `a ~ N(mlp(o), diag(std^2))`. The standard deviation does not depend on the observation.

    Args:
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action.
        hidden_sizes (sequence of int): number of units of each hidden layer; empty for a linear function. Default: (32,
            32).
        hidden_nonlinearity (str or None): nonlinearity of the hidden layers, one of
            `ops.networks.NONLINEARITIES`; None for the identity. Default: `"tanh"`.
        output_nonlinearity (str or None): nonlinearity of the output layer, from the same choices. Default: None, the
            identity.
        learn_std (bool): whether the logarithm of the standard deviation is a parameter (the last one); otherwise, it
            is fixed. Default: True.
        init_std (float): initial standard deviation, in the action's unit, at least `min_std`. Default: 1.
        min_std (float): minimum standard deviation, in the action's unit, above 0. Default: 1e-6.
    """

    scope = "mean_network"

    def __init__(self, obs_dim: int, action_dim: int, hidden_sizes: Sequence[int] = (32, 32),
                 hidden_nonlinearity: Optional[str] = "tanh", output_nonlinearity: Optional[str] = None,
                 learn_std: bool = True, init_std: float = 1.0, min_std: float = 1e-6) -> None:
        super().__init__(obs_dim, action_dim, hidden_sizes, hidden_nonlinearity, output_nonlinearity)
        self.learn_std = check_bool("learn_std", learn_std)
        self.init_std, self.min_std = check_std(init_std, min_std)
        if self.learn_std:
            self._params[networks.LOG_STD] = networks.make_log_std(self.action_dim, self.init_std)

    def _acting(self) -> Tuple:
        fixed = None if self.learn_std else networks.make_log_std(self.action_dim, self.init_std)
        network = functools.partial(networks.gaussian_mlp, fixed_log_std=fixed, min_std=self.min_std)
        infos = ("mean", self.action_shape), ("log_std", self.action_shape)
        return network, networks.gaussian_action, infos, self.action_dim


class CategoricalMLPPolicy(MLPPolicy):
    """Categorical policy for discrete actions: `pi(a | o) = softmax(mlp(o))_a`.

    Args:
        obs_dim (int): size `O` of an observation.
        action_dim (int): number of actions.
        hidden_sizes (sequence of int): number of units of each hidden layer; empty for a linear function. Default: (32,
            32).
        hidden_nonlinearity (str or None): nonlinearity of the hidden layers, one of
            `ops.networks.NONLINEARITIES`; None for the identity. Default: `"tanh"`.
        output_nonlinearity (str or None): nonlinearity of the output layer, from the same choices. Default: None, the
            identity.
    """

    scope = "logits_network"
    action_shape = ()

    def _acting(self) -> Tuple:
        return networks.categorical_mlp, networks.categorical_action, (("log_prob", (self.action_dim,)),), 1, True


class DeterministicMLPPolicy(MLPPolicy):
    """Deterministic policy: `a = mlp(o)`; if actions are discrete, the index of the largest output.

    Args:
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action; if actions are discrete, the number of actions.
        hidden_sizes (sequence of int): number of units of each hidden layer; empty for a linear function. Default: (32,
            32).
        hidden_nonlinearity (str or None): nonlinearity of the hidden layers, one of
            `ops.networks.NONLINEARITIES`; None for the identity. Default: `"tanh"`.
        output_nonlinearity (str or None): nonlinearity of the output layer, from the same choices. Default: None, the
            identity.
        is_discrete (bool): whether actions are discrete. Default: False.
    """

    scope = "action_network"

    def __init__(self, obs_dim: int, action_dim: int, hidden_sizes: Sequence[int] = (32, 32),
                 hidden_nonlinearity: Optional[str] = "tanh", output_nonlinearity: Optional[str] = None,
                 is_discrete: bool = False) -> None:
        super().__init__(obs_dim, action_dim, hidden_sizes, hidden_nonlinearity, output_nonlinearity)
        self.is_discrete = check_bool("is_discrete", is_discrete)

    @property
    def action_shape(self) -> Tuple[int, ...]:
        """Shape of an action: `(A,)`, or `()` if actions are discrete."""
        return () if self.is_discrete else (self.action_dim,)

    def _acting(self) -> Tuple:
        return functools.partial(networks.mlp, scope=self.scope), _best_action if self.is_discrete else _output, ()


def _output(outputs: Any, noise: np.ndarray) -> np.ndarray:
    return outputs


def _best_action(outputs: Any, noise: np.ndarray) -> np.ndarray:
    return outputs.argmax(axis=-1)
