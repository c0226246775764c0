"""The interfaces of policies: one policy, and a policy with adapted parameters for each task of a meta-batch."""
import abc
import contextlib
import inspect
import os
import zipfile
from collections import OrderedDict
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.actors.flat_policy import FlatPolicy
from meta_policy_search.actors.parameters import check_hidden_sizes, flatten_params, unflatten_params
from meta_policy_search.policies.distributions.base import DistInfo, DistInfoSym, Distribution
from meta_policy_search.policies.networks import Nonlinearity, nonlinearity_name, resolve_nonlinearity
from meta_policy_search.sessions import VariableSet
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import Infos, Params, Path
from meta_policy_search.utils import logger, seeding
from meta_policy_search.utils.checks import check_bool, check_int_at_least, check_positive_int
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.files import PathLike, atomic_file
from meta_policy_search.utils.published_hooks import refuse_uncalled
from meta_policy_search.utils.serializable import Serializable, check_own_pickle, shallow_copy

__all__ = ["ACTING", "MetaPolicy", "Policy"]

ACTING = ("get_action", "get_actions", "distribution", "distribution_info_sym", "_build_acting", "_sample_actions")
"""Everything that decides how a policy acts: what the vectorized methods of the library's policies replace."""

P = TypeVar("P", bound="MetaPolicy")


class Policy(Serializable, FlatPolicy):
    """A stochastic policy whose parameters are TensorFlow variables.

    The caller manages no session: the policy runs in the default session if there is one, else in the session of its
    graph. Pickling keeps constructor arguments, parameter values and random state. Unpickling builds a new policy in
    the default graph and changes no other variable. Several policies may share a name.

    A discrete action is an integer, and arrays of discrete actions lack the axis `A` (see `action_shape`).

    A subclass supplies `build_graph`, `distribution` and `distribution_info_sym`; its constructor ends with
    `build_graph`. It has no vectorized methods unless it defines them (`utils.fast_paths`).

    Args:
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action; the number of actions, where they are discrete.
        name (str): name scope of the policy's operations.
        hidden_sizes (tuple of int): units of each hidden layer; empty for a linear policy.
        learn_std (bool): whether the standard deviation is a parameter, or fixed at its initial value.
        hidden_nonlinearity (callable, str or None): of the hidden layers, such as `tf.tanh` or `'tanh'`; None for
            the identity.
        output_nonlinearity (callable, str or None): of the output layer.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_uncalled(cls, Policy)

    def __init__(self, obs_dim: int, action_dim: int, name: str = "policy", hidden_sizes: Sequence[int] = (32, 32),
                 learn_std: bool = True, hidden_nonlinearity: Union[str, Nonlinearity] = tf.tanh,
                 output_nonlinearity: Union[str, Nonlinearity] = None) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"name: expected a non-empty string, got {name!r}")
        self.name = name
        self.hidden_sizes = check_hidden_sizes(hidden_sizes)
        self.learn_std = check_bool("learn_std", learn_std)
        self.hidden_nonlinearity = resolve_nonlinearity("hidden_nonlinearity", hidden_nonlinearity)
        self.output_nonlinearity = resolve_nonlinearity("output_nonlinearity", output_nonlinearity)
        self._graph_function = inspect.getattr_static(self, "distribution_info_sym")
        FlatPolicy.__init__(self, obs_dim, action_dim)

    @abc.abstractmethod
    def build_graph(self) -> None:
        """Builds the policy's variables and the operations that act; called once, by the constructor.

        It passes the variables to `_register_parameters`, then calls `_build_acting`.
        """

    def _register_parameters(self, variables: Mapping[str, tf.Variable]) -> None:
        """Declares the policy's parameters; called by `build_graph`."""
        self._variables = VariableSet(variables)

    def _build_acting(self) -> None:
        """Builds the distribution that `get_actions` samples from; called by `build_graph`."""
        self._obs_ph = tf.placeholder(tf.float32, [None, self.obs_dim], name="observations")
        self._acting_info = self.distribution_info_sym(self._obs_ph)

    @property
    @abc.abstractmethod
    def distribution(self) -> Distribution:
        """The distribution over actions that the policy's outputs are parameters of."""

    @abc.abstractmethod
    def distribution_info_sym(self, obs_var: tf.Tensor,
                              params: Optional[Mapping[str, tf.Tensor]] = None) -> Dict[str, tf.Tensor]:
        """Builds the distribution over actions at the given observations.

        Args:
            obs_var: `[N, O]`, or `[M, N, O]`.
            params: name to tensor; or stacked over tasks, with a leading axis `M` on every parameter and on
                `obs_var`. By default the policy's own variables.

        Returns:
            Dict of the distribution's parameters, which broadcast to `[N, ...]` or `[M, N, ...]`.
        """

    def distribution_info_keys(self, obs: tf.Tensor,
                               state_infos: Optional[Mapping[str, tf.Tensor]]) -> Dict[str, tf.Tensor]:
        """Creates placeholders for the distribution that actions were sampled from.

        Args:
            obs: observations `[..., O]`; the placeholders get its leading axes.
            state_infos: placeholders of a policy's recurrent state when it acted, passed on into the result; None
                or an empty dict for policies without a state.

        Returns:
            Dict of float32 placeholders, one per entry of the distribution.
        """
        leading = obs.shape.as_list()[:-1]
        info = {key: tf.placeholder(tf.float32, leading + list(shape), name=f"{self.name}_{key}")
                for key, shape in self.distribution.dist_info_specs}
        return {**info, **(state_infos or {})}

    def likelihood_ratio_sym(self, obs: tf.Tensor, action: tf.Tensor, dist_info_old: DistInfoSym,
                             policy_params: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Builds the ratio `pi_new(a | o) / pi_old(a | o)`.

        Args:
            obs: `[N, O]` or `[M, N, O]`.
            action: `[N, A]` or `[M, N, A]`.
            dist_info_old: the distribution that the actions were sampled from.
            policy_params: name to tensor, the new parameters; stacked for all tasks at once.

        Returns:
            `[N]` or `[M, N]`.
        """
        new = self.distribution_info_sym(obs, params=policy_params)
        return self.distribution.likelihood_ratio_sym(action, dist_info_old, new)

    def log_likelihood_sym(self, obs: tf.Tensor, action: tf.Tensor,
                           policy_params: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Builds the log-density `log pi(a | o)`, nats; arguments and shapes as in `likelihood_ratio_sym`."""
        info = self.distribution_info_sym(obs, params=policy_params)
        return self.distribution.log_likelihood_sym(action, info)

    @property
    def action_shape(self) -> Tuple[int, ...]:
        """Shape of an action: `(A,)`, or `()` where actions are discrete."""
        return tuple(self.distribution.action_shape)

    def get_actions(self, observations: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Samples an action for each observation; see `FlatPolicy.get_actions`. Actions and infos are float32."""
        return self._sample_actions({self._obs_ph: self._check_observations("observations", observations, ndim=2)})

    def _sample_actions(self, feed: Dict[tf.Tensor, np.ndarray]) -> Tuple[np.ndarray, Infos]:
        """Runs the operations that act, and samples from the distribution."""
        if inspect.getattr_static(self, "distribution_info_sym") is not self._graph_function:
            raise TypeError(f"{type(self).__name__}.distribution_info_sym: this method was replaced after the policy's "
                            "graph was built; override it in a subclass instead")
        info = self._variables.session().run(self._acting_info, feed)
        leading = feed[self._obs_ph].shape[:-1]
        specs = self.distribution.dist_info_specs
        info = {key: np.broadcast_to(info[key], (*leading, *shape)) for key, shape in specs}
        return self.distribution.sample(info, self._rng), info

    def log_diagnostics(self, paths: Sequence[Path], prefix: str = "") -> None:
        """Logs `AveragePolicyEntropy`, nats, mean over each path, then over paths, where the distribution has one."""
        if hasattr(self.distribution, "entropy"):
            names = [name for name, _ in self.distribution.dist_info_specs]
            with contextlib.suppress(NotImplementedError):
                log_path_mean(paths, prefix + "AveragePolicyEntropy", names, self.distribution.entropy)

    def get_params(self) -> "OrderedDict[str, tf.Variable]":
        """Returns the policy's parameters as TensorFlow variables by name."""
        return OrderedDict(self._variables.variables)

    def get_param_values(self) -> "OrderedDict[str, np.ndarray]":
        """Returns the current parameter values by name, as `set_params` takes them."""
        return self._variables.read()

    def set_params(self, policy_params: Params) -> None:
        """Sets all parameters by name, with a finite value for each."""
        self._variables.write(policy_params, "policy_params")

    def get_flat_params(self) -> np.ndarray:
        """Returns all parameters in the order of `get_params`; a copy, float32 `[D]`."""
        return flatten_params(self.get_param_values())

    def set_flat_params(self, flat_params: np.ndarray) -> None:
        self.set_params(self.unflatten("flat_params", flat_params, ndim=1))

    def load_params(self, policy_params: Union[np.ndarray, Params]) -> None:
        """Sets all parameters from a vector `[D]` (as `set_flat_params`) or a dict (as `set_params`)."""
        if isinstance(policy_params, Mapping):
            self.set_params(policy_params)
        else:
            self.set_params(self.unflatten("policy_params", policy_params, ndim=1))

    def save_npz(self, path: PathLike) -> None:
        """Writes all parameters to a file of arrays by name, which holds no code; see `load_npz`."""
        with atomic_file(path) as file:
            np.savez(file, **self.get_param_values())  # type: ignore[arg-type]

    def load_npz(self, path: PathLike) -> None:
        """Sets all parameters from a file that `save_npz` wrote, of a policy of the same sizes; runs no code from it.

        Raises:
            ValueError: the file has another format, names or shapes differ from those of this policy, or a value is
                not finite; names the file. The policy does not change.
            OSError: the file cannot be read.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                self.set_params({name: file[name] for name in file.files})
        except (AttributeError, TypeError, ValueError, zipfile.BadZipFile) as error:  # a lone array has no names
            raise ValueError(f"path: expected the parameters of such a policy in {os.fspath(path)}: {error}") from error

    def unflatten(self, argument: str, flat: np.ndarray, ndim: int) -> "OrderedDict[str, np.ndarray]":
        """Splits vectors `[..., D]` into parameters by name; see `actors.parameters.unflatten_params`."""
        shapes = {name: tuple(v.shape.as_list()) for name, v in self._variables.variables.items()}
        return unflatten_params(argument, flat, shapes, ndim)

    def get_state(self) -> Dict[str, Any]:
        """Returns the state of the policy in addition to its parameters, for a snapshot."""
        return {"rng": self._rng.bit_generator.state}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restores what `get_state` returned."""
        self._rng.bit_generator.state = state["rng"]

    def __getstate__(self) -> Dict[str, Any]:
        """Keeps constructor arguments, parameter values and random state."""
        arguments = super().__getstate__()
        arguments = {"args": tuple(_by_name(value) for value in arguments["args"]),
                     "kwargs": {key: _by_name(value) for key, value in arguments["kwargs"].items()}}
        return {"arguments": arguments, "params": self.get_param_values(), "rng": self._rng}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        """Builds the policy in the default graph and restores its parameters."""
        check_own_pickle(self, state, "arguments", (
            "Take its weights along: where it was pickled, `numpy.savez('policy.npz', **policy.get_param_values())`; "
            "here, build a policy of the same sizes and call `policy.load_npz('policy.npz')`"))
        super().__setstate__(state["arguments"])
        self.set_params(state["params"])
        self._rng = state["rng"]


class MetaPolicy(Policy):
    """A policy that also holds adapted parameters, one set per task of a meta-batch.

    The parameters before adaptation are TensorFlow variables; the adapted ones are NumPy arrays, fed through
    placeholders stacked over tasks (`[M, ...]`), so that the graph does not grow with the number of tasks. After
    construction, and after `switch_to_pre_update`, every task acts with the parameters before adaptation.

    Args:
        meta_batch_size (int): number `M` of tasks.
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action; the number of actions, where they are discrete.
        name (str): name scope of the policy's operations.
        hidden_sizes (tuple of int): units of each hidden layer; empty for a linear policy.
        learn_std (bool): whether the standard deviation is a parameter, or fixed at its initial value.
        hidden_nonlinearity (callable, str or None): of the hidden layers; see `Policy`.
        output_nonlinearity (callable, str or None): of the output layer.
    """

    @classmethod
    def for_env(cls: Type[P], env: Any, meta_batch_size: int, **arguments: Any) -> P:  # type: ignore[override]
        """Returns a policy for `meta_batch_size` tasks of an environment; see `FlatPolicy.for_env`."""
        return super().for_env(env, meta_batch_size=meta_batch_size, **arguments)

    def __init__(self, meta_batch_size: int, obs_dim: int, action_dim: int, name: str = "policy",
                 hidden_sizes: Sequence[int] = (32, 32), learn_std: bool = True,
                 hidden_nonlinearity: Union[str, Nonlinearity] = tf.tanh,
                 output_nonlinearity: Union[str, Nonlinearity] = None) -> None:
        self._init_tasks(meta_batch_size)
        Policy.__init__(self, obs_dim, action_dim, name, hidden_sizes, learn_std, hidden_nonlinearity,
                        output_nonlinearity)

    def _init_tasks(self, meta_batch_size: int) -> None:
        """Sets the number of tasks, without adapted parameters."""
        self.meta_batch_size = check_positive_int("meta_batch_size", meta_batch_size)
        self._stacked_values: Optional["OrderedDict[str, np.ndarray]"] = None

    def _register_parameters(self, variables: Mapping[str, tf.Variable]) -> None:
        super()._register_parameters(variables)
        with tf.name_scope("adapted"):
            self.policies_params_phs = OrderedDict(
                (name, tf.placeholder(tf.float32, [None] + v.shape.as_list(), name=name.replace("/", "_")))
                for name, v in variables.items())

    def _build_acting(self) -> None:
        self._obs_ph = tf.placeholder(tf.float32, [None, None, self.obs_dim], name="observations")
        self._acting_info = self.distribution_info_sym(self._obs_ph, self.policies_params_phs)

    def with_meta_batch_size(self, meta_batch_size: int) -> "MetaPolicy":
        """Returns a policy for another number of tasks, which shares this one's graph and parameters.

        It has its own adapted parameters, none at first, and its own random state.
        """
        other = shallow_copy(self)
        other._init_tasks(meta_batch_size)
        other.switch_to_pre_update()
        other._given = self._arguments_with({"meta_batch_size": other.meta_batch_size})
        other._rng = seeding.next_rng(seeding.Stream.POLICY)
        return other

    @property
    def policies_params_vals(self) -> List["OrderedDict[str, np.ndarray]"]:
        """The parameters each task acts with: a list of `M` ordered dicts (views; do not write to them)."""
        stacked = self.stacked_param_values()
        return [OrderedDict((name, values[task]) for name, values in stacked.items())
                for task in range(self.meta_batch_size)]

    @property
    def policies_params_feed_dict(self) -> Dict[tf.Tensor, np.ndarray]:
        """Feed dict of the parameters each task acts with: stacked placeholder to float32 `[M, ...]`."""
        stacked = self.stacked_param_values()
        return {placeholder: stacked[name] for name, placeholder in self.policies_params_phs.items()}

    def stacked_param_values(self) -> "OrderedDict[str, np.ndarray]":
        """Returns the parameters each task acts with, float32 `[M, ...]` by name (read-only)."""
        if self._stacked_values is not None:
            return self._stacked_values
        return OrderedDict((name, np.broadcast_to(value, (self.meta_batch_size,) + value.shape))
                           for name, value in self.get_param_values().items())

    def switch_to_pre_update(self) -> None:
        """Makes every task act with the parameters before adaptation; drops the adapted parameters."""
        self._stacked_values = None

    def update_task_parameters(self, updated_policies_parameters: Sequence[Params]) -> None:
        """Sets the adapted parameters of each task, given as `M` dicts of name to value."""
        if len(updated_policies_parameters) != self.meta_batch_size:
            raise ValueError(f"updated_policies_parameters: expected {self.meta_batch_size} dicts (meta_batch_size), "
                             f"got {len(updated_policies_parameters)}")
        tasks = [self._variables.checked(params, f"updated_policies_parameters[{task}]")
                 for task, params in enumerate(updated_policies_parameters)]
        self.set_stacked_param_values(
            OrderedDict((name, np.stack([params[name] for params in tasks])) for name in self._variables.variables))

    def set_stacked_param_values(self, values: "OrderedDict[str, np.ndarray]") -> None:
        """Sets the adapted parameters of all tasks, float32 `[M, ...]` by name; does not check them."""
        self._stacked_values = values

    def load_params(self, policy_params: Union[np.ndarray, Params]) -> None:
        """Sets adapted parameters from `[M, D]`, or those before adaptation from a vector `[D]` or a dict."""
        if not isinstance(policy_params, Mapping) and np.ndim(policy_params) == 2:
            if len(policy_params) != self.meta_batch_size:
                raise ValueError(f"policy_params: expected {self.meta_batch_size} vectors (meta_batch_size), got "
                                 f"{len(policy_params)}")
            self.set_stacked_param_values(self.unflatten("policy_params", policy_params, ndim=2))
        else:
            super().load_params(policy_params)

    def get_action(self, observation: np.ndarray, task: int = 0) -> Tuple[np.ndarray, Infos]:
        """Samples an action with the parameters of a task, from 0 to `M - 1`; else as `Policy.get_action`."""
        observation = self._check_observations("observation", observation, ndim=1)
        if check_int_at_least("task", task, 0) >= self.meta_batch_size:
            raise ValueError(f"task: expected less than meta_batch_size={self.meta_batch_size}, got {task}")
        feed = {ph: values[task:task + 1] for ph, values in self.policies_params_feed_dict.items()}
        actions, infos = self._sample_actions({self._obs_ph: observation[None, None], **feed})
        return actions[0, 0], {key: value[0, 0] for key, value in infos.items()}

    def get_actions(  # type: ignore[override]  # in all tasks
        self, observations: Sequence[np.ndarray]
    ) -> Tuple[List[np.ndarray], List[List[Infos]]]:
        """Samples actions for every task.

        Args:
            observations: `M` arrays `[B, O]`, or one array `[M, B, O]`.

        Returns:
            A list of `M` action arrays `[B, A]` (where actions are discrete, int64 `[B]`), and a list of `M` lists of
            `B` dicts with the distributions that the actions were sampled from. Actions and infos are float32.
        """
        if len(observations) != self.meta_batch_size:
            raise ValueError(f"observations: expected {self.meta_batch_size} arrays (meta_batch_size), got "
                             f"{len(observations)}")
        lengths = sorted({len(task_observations) for task_observations in observations})
        if len(lengths) != 1:
            raise ValueError(f"observations: expected equally many for every task, got lengths {lengths}")
        stacked = self._check_observations("observations", observations, ndim=3)
        actions, infos = self._sample_actions({self._obs_ph: stacked, **self.policies_params_feed_dict})
        agent_infos = [[{key: value[task, i] for key, value in infos.items()} for i in range(stacked.shape[1])]
                       for task in range(self.meta_batch_size)]
        return list(actions), agent_infos

    @replaces("get_action", "get_actions")
    def make_actor(self) -> Optional[Actor]:
        """Returns an actor that acts as the policy does in its `M` tasks, without TensorFlow; by default None."""
        return None

    def __getstate__(self) -> Dict[str, Any]:
        """Adapted parameters are kept too."""
        return {**super().__getstate__(), "adapted": self._stacked_values}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        super().__setstate__(state)
        self._stacked_values = state["adapted"]


def _by_name(argument: Any) -> Any:
    """Returns the name of a known nonlinearity (not all of their functions can be pickled), else the argument."""
    return nonlinearity_name(argument) or argument


def log_path_mean(paths: Sequence[Path], key: str, names: Sequence[str],
                  function: Callable[[DistInfo], np.ndarray]) -> None:
    """Logs the mean over paths of each path's mean of a function of its agent infos, which it needs by `names`.

    Paths without them do not count; without any, nothing is logged.
    """
    infos = [path["agent_infos"] for path in paths if set(names) <= set(path["agent_infos"])]
    if infos:
        values = function({name: np.concatenate([info[name] for info in infos]) for name in names})
        lengths = np.array([len(info[names[0]]) for info in infos])
        ends, means = np.cumsum(lengths), np.empty(len(infos), values.dtype)
        for length in np.unique(lengths):
            (of_length,) = np.nonzero(lengths == length)
            steps = values[ends[of_length, None] - np.arange(length, 0, -1)]
            means[of_length] = steps.reshape(len(steps), -1).mean(axis=1)
        logger.logkv(key, float(means.mean()))
