"""Policies that run on NumPy alone.

`StackedMLP` and its subclasses are what samplers and worker processes act with: several policies at once, on arrays.
`Policy` and its subclasses are single policies whose parameters are one flat vector, for algorithms that search among
such vectors (`np.algos`).
"""
import abc
import copy
import math
from collections import OrderedDict
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple, TypeVar

import numpy as np

from meta_policy_search.types import Infos, Params, Path
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_bool, check_choice, check_positive, check_positive_int
from meta_policy_search.utils.utils import draw_index

S = TypeVar("S", bound="StackedMLP")


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


class StackedMLP:
    """`M` multi-layer perceptrons, one per task: what the policies below share.

    Each task's matrices multiply alone and always with the same number of rows, so an output depends neither on
    which tasks share a process nor on which rows are in use.

    Args:
        params: float32 parameters stacked over tasks, `<scope>/<layer>/kernel` `[M, in, out]` and
            `<scope>/<layer>/bias` `[M, out]`, layers named `hidden_0`, `hidden_1`, ..., `output`.
        scope: prefix of the parameter names.
        num_hidden_layers: number of hidden layers.
        hidden_nonlinearity: name of one of `NONLINEARITIES`, or None for the identity.
        output_nonlinearity: likewise, for the output.
    """

    def __init__(
        self,
        params: Mapping[str, np.ndarray],
        scope: str,
        num_hidden_layers: int,
        hidden_nonlinearity: Optional[str],
        output_nonlinearity: Optional[str],
    ) -> None:
        names = [f"hidden_{i}" for i in range(num_hidden_layers)] + ["output"]
        self._layers = [
            (params[f"{scope}/{name}/kernel"], params[f"{scope}/{name}/bias"][:, None, :]) for name in names
        ]
        self._nonlinearities = [hidden_nonlinearity] * num_hidden_layers + [output_nonlinearity]

    def for_tasks(self: S, start: int, stop: int) -> S:
        """Returns the policies of the tasks from `start` to before `stop`, which share the parameters' memory."""
        part = copy.copy(self)
        part._layers = [(kernel[start:stop], bias[start:stop]) for kernel, bias in self._layers]
        return part

    def compute_output(self, observations: np.ndarray) -> np.ndarray:
        """Computes the networks' outputs, float32 `[M, R, out]`, at observations `[M, R, O]`."""
        x = observations.astype(np.float32)
        for (kernel, bias), nonlinearity in zip(self._layers, self._nonlinearities):
            x = np.matmul(x, kernel)
            x += bias
            if nonlinearity is not None:
                x = NONLINEARITIES[nonlinearity](x, x)
        return x


class StackedGaussianMLP(StackedMLP):
    """`M` Gaussian MLP policies, one per task, acting on arrays.

    Args:
        params: as for `StackedMLP`, with the scope `mean_network`; and `log_std_network/log_std_var` `[M, A]`.
        num_hidden_layers: number of hidden layers.
        hidden_nonlinearity: name of one of `NONLINEARITIES`, or None for the identity.
        output_nonlinearity: likewise, for the output.
        min_log_std: smallest log standard deviation.

    Attributes:
        noise_dim (int): random numbers that an action takes, `A`.
    """

    def __init__(
        self,
        params: Mapping[str, np.ndarray],
        num_hidden_layers: int,
        hidden_nonlinearity: Optional[str],
        output_nonlinearity: Optional[str],
        min_log_std: float,
    ) -> None:
        super().__init__(params, "mean_network", num_hidden_layers, hidden_nonlinearity, output_nonlinearity)
        self._log_std = np.maximum(params["log_std_network/log_std_var"], np.float32(min_log_std))[:, None, :]
        self._std = np.exp(self._log_std)
        self.noise_dim = self._std.shape[-1]

    def for_tasks(self, start: int, stop: int) -> "StackedGaussianMLP":
        """Returns the policies of the tasks from `start` to before `stop`, which share the parameters' memory."""
        part = super().for_tasks(start, stop)
        part._log_std, part._std = self._log_std[start:stop], self._std[start:stop]
        return part

    @staticmethod
    def draw_noise(rng: np.random.Generator, out: np.ndarray) -> None:
        """Fills `out`, float32 `[..., A]`, with the noise that `act` takes: standard normal."""
        rng.standard_normal(dtype=np.float32, out=out)

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Computes actions `mean + std * noise`.

        Args:
            observations: `[M, R, O]`.
            noise: float32 `[M, R, A]`, standard normal; zeros for the mean action.

        Returns:
            Actions float32 `[M, R, A]` and agent infos `mean`, `log_std`, each float32 `[M, R, A]`.
        """
        mean = self.compute_output(observations)
        log_std = np.broadcast_to(self._log_std, mean.shape)
        return mean + self._std * noise, OrderedDict(mean=mean, log_std=log_std)


class StackedCategoricalMLP(StackedMLP):
    """`M` categorical MLP policies, one per task, acting on arrays.

    Args:
        params: as for `StackedMLP`, with the scope `logits_network`.
        num_hidden_layers: number of hidden layers.
        hidden_nonlinearity: name of one of `NONLINEARITIES`, or None for the identity.
        output_nonlinearity: likewise, for the output.

    Attributes:
        noise_dim (int): random numbers that an action takes, one.
    """

    noise_dim = 1

    def __init__(
        self,
        params: Mapping[str, np.ndarray],
        num_hidden_layers: int,
        hidden_nonlinearity: Optional[str],
        output_nonlinearity: Optional[str],
    ) -> None:
        super().__init__(params, "logits_network", num_hidden_layers, hidden_nonlinearity, output_nonlinearity)

    @staticmethod
    def draw_noise(rng: np.random.Generator, out: np.ndarray) -> None:
        """Fills `out`, float32 `[..., 1]`, with the noise that `act` takes: uniform in `[0, 1)`."""
        rng.random(dtype=np.float32, out=out)

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Draws actions, which are indices.

        Args:
            observations: `[M, R, O]`.
            noise: float32 `[M, R, 1]`, uniform in `[0, 1)`.

        Returns:
            Actions int64 `[M, R]` and the agent info `log_prob`, float32 `[M, R, n]`: log-probabilities of all
            `n` actions.
        """
        logits = self.compute_output(observations)
        logits -= np.max(logits, axis=-1, keepdims=True)
        log_prob = logits - np.log(np.sum(np.exp(logits), axis=-1, keepdims=True))
        return draw_index(np.exp(log_prob), noise[..., 0]), OrderedDict(log_prob=log_prob)


class StackedDeterministicMLP(StackedMLP):
    """`M` deterministic MLP policies, one per task, acting on arrays.

    Args:
        params: as for `StackedMLP`, with the scope `action_network`.
        num_hidden_layers: number of hidden layers.
        hidden_nonlinearity: name of one of `NONLINEARITIES`, or None for the identity.
        output_nonlinearity: likewise, for the output.
        is_discrete: whether an action is the index of the largest output, rather than the outputs.

    Attributes:
        noise_dim (int): random numbers that an action takes, none.
    """

    noise_dim = 0

    def __init__(
        self,
        params: Mapping[str, np.ndarray],
        num_hidden_layers: int,
        hidden_nonlinearity: Optional[str],
        output_nonlinearity: Optional[str],
        is_discrete: bool,
    ) -> None:
        super().__init__(params, "action_network", num_hidden_layers, hidden_nonlinearity, output_nonlinearity)
        self._is_discrete = is_discrete

    @staticmethod
    def draw_noise(rng: np.random.Generator, out: np.ndarray) -> None:
        """Does nothing: actions take no noise."""

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Computes actions.

        Args:
            observations: `[M, R, O]`.
            noise: not looked at.

        Returns:
            Actions float32 `[M, R, A]`, or int64 `[M, R]` where they are discrete; and no agent infos.
        """
        outputs = self.compute_output(observations)
        return (outputs.argmax(axis=-1) if self._is_discrete else outputs), {}


# Policies as flat vectors ----------------------------------------------------------------------------------------


class Policy(abc.ABC):
    """A policy on NumPy whose parameters are one flat vector.

    A subclass supplies `get_flat_params`, `set_flat_params` and `numpy_copies`.

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
    def numpy_copies(self, flat_params: np.ndarray) -> Any:
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
        actor = self.numpy_copies(self.get_flat_params()[None])
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

    def numpy_copies(self, flat_params: np.ndarray) -> StackedMLP:
        """See `Policy.numpy_copies`."""
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


def initial_mlp_values(
    scope: str, input_size: int, output_size: int, hidden_sizes: Sequence[int], rng: np.random.Generator
) -> "OrderedDict[str, np.ndarray]":
    """Draws initial weights: kernels Glorot-uniform (Glorot & Bengio, 2010), biases zero.

    Args:
        scope: prefix of the parameter names, such as `mean_network`.
        input_size: units of the input layer.
        output_size: units of the output layer.
        hidden_sizes: units of each hidden layer.
        rng: source of the weights.

    Returns:
        Ordered mapping `scope/layer/kernel` to float32 `[in, out]` and `scope/layer/bias` to float32 `[out]`,
        layers named `hidden_0`, `hidden_1`, ..., `output`.
    """
    sizes = [input_size, *hidden_sizes, output_size]
    layers = [f"hidden_{i}" for i in range(len(hidden_sizes))] + ["output"]
    values = OrderedDict()
    for layer, fan_in, fan_out in zip(layers, sizes[:-1], sizes[1:]):
        limit = np.sqrt(6.0 / (fan_in + fan_out))
        values[f"{scope}/{layer}/kernel"] = rng.uniform(-limit, limit, (fan_in, fan_out)).astype(np.float32)
        values[f"{scope}/{layer}/bias"] = np.zeros(fan_out, np.float32)
    return values


def flatten_params(params: Params) -> np.ndarray:
    """Returns parameters as one vector, float32 `[D]`, in the order of the mapping."""
    return np.concatenate([value.ravel() for value in params.values()])


def unflatten_params(
    argument: str, flat: np.ndarray, shapes: Mapping[str, Tuple[int, ...]]
) -> "OrderedDict[str, np.ndarray]":
    """Splits vectors into parameters by name.

    Args:
        argument: name of the argument that the vectors were given as, for error messages.
        flat: `[..., D]`.
        shapes: name to shape of each parameter, in order.

    Returns:
        Ordered mapping of name to float32 `[..., *shape]`, copies.

    Raises:
        ValueError: the last axis has another size, or a number is not finite.
    """
    sizes = [math.prod(shape) for shape in shapes.values()]
    if flat.ndim < 1 or flat.shape[-1] != sum(sizes):
        raise ValueError(f"{argument}: expected {sum(sizes)} numbers in the last axis, got shape {flat.shape}")
    with np.errstate(over="ignore"):
        values = flat.astype(np.float32)
    if not np.isfinite(values).all():
        raise ValueError(f"{argument}: expected finite numbers, got {flat[~np.isfinite(values)][0]} among them")
    parts = np.split(values, np.cumsum(sizes)[:-1], axis=-1)
    return OrderedDict((name, part.reshape(flat.shape[:-1] + tuple(shape)))
                       for (name, shape), part in zip(shapes.items(), parts))
