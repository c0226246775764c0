"""Policies that run on NumPy alone.

`StackedMLP` and its subclasses are what samplers and worker processes act with: several policies at once, on arrays.
`Policy` and its subclasses are single policies whose parameters are one flat vector, for algorithms that search among
such vectors (`np.algos`).
"""
import abc
import math
from collections import OrderedDict
from typing import Any, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.actors.nonlinearities import NONLINEARITIES
from meta_policy_search.actors.parameters import flatten_params, initial_mlp_values, unflatten_params
from meta_policy_search.actors.stacked_mlp import (
    StackedCategoricalMLP,
    StackedDeterministicMLP,
    StackedGaussianMLP,
    StackedMLP,
)
from meta_policy_search.types import Infos, Params, Path
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_bool, check_choice, check_positive, check_positive_int

# Policies as flat vectors ----------------------------------------------------------------------------------------


class Policy(abc.ABC):
    """A policy on NumPy whose parameters are one flat vector.

    A subclass supplies `get_flat_params`, `set_flat_params` and `make_actors`.

    Args:
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action; the number of actions, where they are discrete.

    Raises:
        ValueError: a size below one.
        TypeError: a size that is not an integer.
    """

    def __init__(self, obs_dim: int, action_dim: int) -> None:
        self.obs_dim = check_positive_int("obs_dim", obs_dim)
        self.action_dim = check_positive_int("action_dim", action_dim)
        self._rng = seeding.next_rng(seeding.Stream.POLICY)

    @property
    def action_shape(self) -> Tuple[int, ...]:
        """Shape of an action: `(A,)`, or `()` where actions are discrete."""
        return (self.action_dim,)

    @abc.abstractmethod
    def get_flat_params(self) -> np.ndarray:
        """Returns a copy of the parameters, float32 `[D]`."""

    @abc.abstractmethod
    def set_flat_params(self, flat_params: np.ndarray) -> None:
        """Sets the parameters, `[D]`.

        Raises:
            ValueError: the size is not `D`, or a number is not finite.
        """

    @abc.abstractmethod
    def make_actors(self, flat_params: np.ndarray) -> Any:
        """Returns policies like this one, with other parameters, that act together on arrays.

        Args:
            flat_params: `[M, D]`, the parameters of each.

        Returns:
            An object with `act`, `draw_noise` and `noise_dim`, such as a `StackedMLP`; where it also has `for_tasks`,
            samplers may divide it among threads.

        Raises:
            ValueError: the shape is not `[M, D]`, or a number is not finite.
        """

    def get_action(self, observation: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Chooses an action.

        Args:
            observation: `[O]`.

        Returns:
            `(action [A], agent_info)`; where actions are discrete, the action is an int64.

        Raises:
            ValueError: a wrong shape, or a number that is not finite.
        """
        actions, infos = self._act("observation", np.asarray(observation)[None])
        return actions[0], {key: value[0] for key, value in infos.items()}

    def get_actions(self, observations: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Chooses an action for each observation.

        Args:
            observations: `[B, O]`.

        Returns:
            `(actions [B, A], agent_infos)`, each info with the leading axis `B`; where actions are discrete, they are
            int64 `[B]`.

        Raises:
            ValueError: a wrong shape, or a number that is not finite.
        """
        return self._act("observations", np.asarray(observations))

    def _act(self, argument: str, observations: np.ndarray) -> Tuple[np.ndarray, Infos]:
        if observations.ndim != 2 or observations.shape[1] != self.obs_dim:
            expected = (self.obs_dim,) if argument == "observation" else f"(any, {self.obs_dim})"
            shape = observations.shape[1:] if argument == "observation" else observations.shape
            raise ValueError(f"{argument}: expected shape {expected}, got {shape}")
        if not np.isfinite(observations).all():
            raise ValueError(f"{argument}: expected finite numbers, got {observations}")
        actor = self.make_actors(self.get_flat_params()[None])
        actions, infos = actor.act(observations[None], self._draw_noise(actor, len(observations))[None])
        return actions[0], {key: value[0] for key, value in infos.items()}

    def _draw_noise(self, actor: Any, num_observations: int) -> np.ndarray:
        """Draws what the actions for `[B, O]` take, float32 `[B, noise_dim]`."""
        noise = np.empty((num_observations, actor.noise_dim), np.float32)
        actor.draw_noise(self._rng, noise)
        return noise

    def log_diagnostics(self, paths: Sequence[Path], prefix: str = "") -> None:
        """Logs figures about the policy on the given paths; none by default.

        Args:
            paths: paths that it acted in.
            prefix: put before each key.
        """


class FlatMLP:
    """A multi-layer perceptron whose parameters are one flat vector.

    Kernels start Glorot-uniform, biases at zero, drawn from the root seed.

    Args:
        scope (str): prefix of the parameter names.
        input_size (int): units of the input layer.
        output_size (int): units of the output layer.
        hidden_sizes (tuple of int): units of each hidden layer; empty for a linear function.
        hidden_nonlinearity (str or None): of the hidden layers, one of `NONLINEARITIES`; None for the identity.
        output_nonlinearity (str or None): likewise, of the output layer.

    Raises:
        ValueError: a size below one, or an unknown nonlinearity.
        TypeError: a size that is not an integer.
    """

    def __init__(
        self,
        scope: str,
        input_size: int,
        output_size: int,
        hidden_sizes: Sequence[int],
        hidden_nonlinearity: Optional[str],
        output_nonlinearity: Optional[str],
    ) -> None:
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
        """Returns a copy of the parameters, float32 `[D]`, in the order of `get_param_values`."""
        return flatten_params(self._params)

    def set_flat_params(self, flat_params: np.ndarray) -> None:
        """Sets the parameters, `[D]`.

        Raises:
            ValueError: the size is not `D`, or a number is not finite.
        """
        self._params = self._unflatten(flat_params, ndim=1)

    def _unflatten(self, flat_params: np.ndarray, ndim: int) -> "OrderedDict[str, np.ndarray]":
        flat = np.asarray(flat_params)
        if flat.ndim != ndim:
            raise ValueError(f"flat_params: expected {ndim} axes, got shape {flat.shape}")
        shapes = {name: value.shape for name, value in self._params.items()}
        return unflatten_params("flat_params", flat, shapes)


class MLPPolicy(FlatMLP, Policy):
    """A policy with a multi-layer perceptron of the observation, whose output is `action_dim` numbers.

    A subclass says what the outputs mean: `_scope` and `_stack_params`.

    Args:
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action; the number of actions, where they are discrete.
        hidden_sizes (tuple of int): units of each hidden layer; empty for a linear policy. Default: `(32, 32)`.
        hidden_nonlinearity (str or None): of the hidden layers, one of `NONLINEARITIES`; None for the identity.
            Default: `"tanh"`.
        output_nonlinearity (str or None): likewise, of the output layer. Default: None.

    Raises:
        ValueError: a size below one, or an unknown nonlinearity.
        TypeError: a size that is not an integer.
    """

    _scope: str  # prefix of the network's parameters

    def __init__(
        self,
        obs_dim: int,
        action_dim: int,
        hidden_sizes: Sequence[int] = (32, 32),
        hidden_nonlinearity: Optional[str] = "tanh",
        output_nonlinearity: Optional[str] = None,
    ) -> None:
        Policy.__init__(self, obs_dim, action_dim)
        FlatMLP.__init__(self, self._scope, self.obs_dim, self.action_dim, hidden_sizes, hidden_nonlinearity,
                         output_nonlinearity)

    @abc.abstractmethod
    def _stack_params(self, params: Params, *network: Any) -> StackedMLP:
        """Returns what acts; parameters `[M, ...]`, and the network's depth and nonlinearities."""

    def make_actors(self, flat_params: np.ndarray) -> StackedMLP:
        """See `Policy.make_actors`."""
        return self._stack_params(self._unflatten(flat_params, ndim=2), *self.network)


class GaussianMLPPolicy(MLPPolicy):
    """Gaussian policy: `a ~ N(mlp(o), diag(std^2))`, the standard deviation independent of the observation.

    Args:
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action.
        hidden_sizes (tuple of int): units of each hidden layer. Default: `(32, 32)`.
        hidden_nonlinearity (str or None): of the hidden layers. Default: `"tanh"`.
        output_nonlinearity (str or None): of the mean. Default: None.
        learn_std (bool): whether the logarithm of the standard deviation is among the parameters (they end with it),
            or fixed. Default: True.
        init_std (float): initial standard deviation, in the action's unit. Default: 1.
        min_std (float): smallest standard deviation. Default: 1e-6.

    Raises:
        ValueError: `init_std` or `min_std` is not positive, or `init_std` is below `min_std`; else as for `MLPPolicy`.
        TypeError: an argument of the wrong type.
    """

    _scope = "mean_network"

    def __init__(
        self,
        obs_dim: int,
        action_dim: int,
        hidden_sizes: Sequence[int] = (32, 32),
        hidden_nonlinearity: Optional[str] = "tanh",
        output_nonlinearity: Optional[str] = None,
        learn_std: bool = True,
        init_std: float = 1.0,
        min_std: float = 1e-6,
    ) -> None:
        self.learn_std = check_bool("learn_std", learn_std)
        self.init_std = check_positive("init_std", init_std)
        self.min_std = check_positive("min_std", min_std)
        if self.init_std < self.min_std:
            raise ValueError(f"init_std: expected at least min_std={self.min_std}, got {self.init_std}")
        super().__init__(obs_dim, action_dim, hidden_sizes, hidden_nonlinearity, output_nonlinearity)
        if self.learn_std:
            self._params["log_std_network/log_std_var"] = self._initial_log_std()

    def _initial_log_std(self) -> np.ndarray:
        return np.full(self.action_dim, math.log(self.init_std), np.float32)

    def _stack_params(self, params: Params, *network: Any) -> StackedGaussianMLP:
        fixed = {} if self.learn_std else {"log_std_network/log_std_var": self._initial_log_std()[None]}
        return StackedGaussianMLP({**params, **fixed}, *network, math.log(self.min_std))


class CategoricalMLPPolicy(MLPPolicy):
    """Categorical policy for discrete actions: `pi(a | o) = softmax(mlp(o))_a`; arguments as for `MLPPolicy`."""

    _scope = "logits_network"

    @property
    def action_shape(self) -> Tuple[int, ...]:
        """Shape of an action: `()`, as actions are indices."""
        return ()

    def _stack_params(self, params: Params, *network: Any) -> StackedCategoricalMLP:
        return StackedCategoricalMLP(params, *network)


class DeterministicMLPPolicy(MLPPolicy):
    """Deterministic policy: `a = mlp(o)`; where actions are discrete, the index of the largest output.

    Args:
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action; the number of actions, where they are discrete.
        hidden_sizes (tuple of int): units of each hidden layer. Default: `(32, 32)`.
        hidden_nonlinearity (str or None): of the hidden layers. Default: `"tanh"`.
        output_nonlinearity (str or None): of the output. Default: None.
        is_discrete (bool): whether actions are discrete. Default: False.

    Raises:
        ValueError: as for `MLPPolicy`.
        TypeError: an argument of the wrong type.
    """

    _scope = "action_network"

    def __init__(
        self,
        obs_dim: int,
        action_dim: int,
        hidden_sizes: Sequence[int] = (32, 32),
        hidden_nonlinearity: Optional[str] = "tanh",
        output_nonlinearity: Optional[str] = None,
        is_discrete: bool = False,
    ) -> None:
        super().__init__(obs_dim, action_dim, hidden_sizes, hidden_nonlinearity, output_nonlinearity)
        self.is_discrete = check_bool("is_discrete", is_discrete)

    @property
    def action_shape(self) -> Tuple[int, ...]:
        """Shape of an action: `(A,)`, or `()` where actions are discrete."""
        return () if self.is_discrete else (self.action_dim,)

    def _stack_params(self, params: Params, *network: Any) -> StackedDeterministicMLP:
        return StackedDeterministicMLP(params, *network, self.is_discrete)
