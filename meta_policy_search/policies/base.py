"""Interfaces of policies: a policy for one task, and a policy with adapted parameters for each task of a meta-batch."""
import contextlib
import reprlib
from collections import OrderedDict
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union

import numpy as np

from meta_policy_search.actors.actor import Actor, Network, NetworkActor, broadcast_outputs, check_output
from meta_policy_search.actors.flat_policy import FlatPolicy
from meta_policy_search.actors.parameters import check_hidden_sizes, flatten_params, unflatten_params
from meta_policy_search.envs.spaces import as_numbers
from meta_policy_search.ops.tensorflow_ops import (
    TENSORFLOW,
    Nonlinearity,
    check_nonlinearity,
    make_variables,
    nonlinearity_by_name,
)
from meta_policy_search.policies.distributions import DistInfo, DistInfoSym, Distribution
from meta_policy_search.sessions import VariableSet, graph_scope
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import Infos, Params, Path
from meta_policy_search.utils import logger, seeding
from meta_policy_search.utils.checks import (
    check_arguments,
    check_bool,
    check_int_at_least,
    check_not_replaced,
    check_positive_int,
    check_type,
)
from meta_policy_search.utils.fast_paths import fast_path, replaces
from meta_policy_search.utils.serializable import Serializable, check_own_pickle, replaced_arguments, shallow_copy

__all__ = ["ACTING", "MetaPolicy", "Policy"]

ACTING = ("get_action", "get_actions", "distribution", "distribution_info_sym", "_build_acting", "_sample_actions")
"""Names of all attributes that determine how a policy acts. The vectorized methods of policies replace them."""

P = TypeVar("P", bound="MetaPolicy")


class Policy(Serializable, FlatPolicy):
    """A stochastic policy whose parameters are TensorFlow variables.

    The caller does not manage sessions: the policy runs in the default session if there is one, else in the session of
    its graph. A pickle contains the constructor arguments, parameter values and random state. Unpickling builds a new
    policy in the default graph and changes no other variables. Several policies may have the same name.

    A discrete action is an integer, and arrays of discrete actions have no axis `A` (see `action_shape`).

    A subclass sets `distribution_cls` and implements `make_params` and `make_network`. The network is written once for
    the graph and for sampling in NumPy (see `ops.networks`). If a subclass overrides `get_actions`, `distribution` or
    `distribution_info_sym`, the policy is sampled through `get_actions`. A subclass that only overrides `get_actions`
    can be sampled, but not trained: it has no parameters, and its graph functions raise `NotImplementedError`.

    Args:
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action; if actions are discrete, the number of actions.
        name (str): name scope of the policy's operations. Default: `"policy"`.
        hidden_sizes (sequence of int): units of each hidden layer; empty for a linear policy. Default: (32, 32).
        learn_std (bool): whether the standard deviation is a trained parameter; otherwise, it is fixed at its initial
            value. Default: True.
        hidden_nonlinearity (str, callable or None): nonlinearity of the hidden layers: `'tanh'`, `'relu'`, `'sigmoid'`,
            `'softplus'`, `'elu'`, a function that snapshots can contain, such as `lambda x: tf.nn.selu(x)`, or None for
            the identity. Default: `'tanh'`.
        output_nonlinearity (str, callable or None): nonlinearity of the output layer, in the same forms. Default: None,
            the identity.

    Attributes:
        distribution_cls (type): class of the distribution over actions; its argument is `action_dim`.
    """

    distribution_cls: Optional[Type[Distribution]] = None
    _distribution: Optional[Distribution] = None
    _network: Any = None
    _acting_info: Any = None
    _further_outputs: Tuple[Tuple[str, Tuple[int, ...]], ...] = ()  # of the network: names and shapes
    _pickled: Tuple[str, ...] = ("_rng",)  # attributes in pickles, in addition to the arguments and the parameters

    def __init__(self, obs_dim: int, action_dim: int, name: str = "policy", hidden_sizes: Sequence[int] = (32, 32),
                 learn_std: bool = True, hidden_nonlinearity: Nonlinearity = "tanh",
                 output_nonlinearity: Nonlinearity = None) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"name: expected a non-empty string, got {name!r}")
        self.name = name
        self.hidden_sizes = check_hidden_sizes(hidden_sizes)
        self.learn_std = check_bool("learn_std", learn_std)
        self.hidden_nonlinearity = check_nonlinearity("hidden_nonlinearity", hidden_nonlinearity)
        self.output_nonlinearity = check_nonlinearity("output_nonlinearity", output_nonlinearity)
        FlatPolicy.__init__(self, obs_dim, action_dim)
        if self.distribution_cls is not None:
            self._distribution = check_type(f"{type(self).__name__}.distribution_cls", self.distribution_cls, Callable,
                                            "a class of distributions")(self.action_dim)
        self.build_graph()

    def make_params(self, rng: np.random.Generator) -> Params:
        """Draws the initial parameters by name, float32; called once, by the constructor. Default: no parameters."""
        return {}

    def make_network(self) -> Optional[Network]:
        """Returns the function `network(xp, params, observations)`; called once, by the constructor.

        The function returns the parameters of the distribution at observations `[..., O]`; see `ops.networks`. Workers
        run it without the policy: it is a function of a module, or a `functools.partial` with its settings. Default:
        None, there is no network.
        """
        return None

    def _not_implemented(self, name: str, instead: str) -> NotImplementedError:
        lacks = "distribution: distribution_cls is None" if self._network else "network: make_network returned None"
        return NotImplementedError(f"{type(self).__name__}.{name}: the policy has no {lacks}; override {instead}")

    def build_graph(self) -> None:
        """Builds the policy's variables and the operations for acting; called once, by the constructor."""
        with graph_scope(self):
            self._network = self.make_network()
            if self._network is not None:
                check_arguments(f"network of {type(self).__name__}.make_network", self._network,
                                "(xp, params, observations)", None, None, None)
            check_arguments(f"{type(self).__name__}.make_params", self.make_params, "(rng)", None)
            params = check_type(f"{type(self).__name__}.make_params", self.make_params(
                seeding.next_rng(seeding.Stream.WEIGHTS)), Mapping, "a dict of parameters")
            self._variables = VariableSet(make_variables({
                name: as_numbers(f"{type(self).__name__}.make_params: {name}", values)
                for name, values in params.items()}))
            try:
                self._build_acting()
            except NotImplementedError:
                if self._network is not None:
                    raise

    def _build_acting(self) -> None:
        """Builds the distribution that `get_actions` samples from; called by `build_graph`."""
        self._obs_ph = tf.placeholder(tf.float32, [None, self.obs_dim], name="observations")
        self._acting_info = self.distribution_info_sym(self._obs_ph)

    @property
    def distribution(self) -> Distribution:
        """Distribution over actions, parameterized by the outputs of the policy."""
        if self._distribution is None:
            raise self._not_implemented("distribution", "distribution_cls, make_params and make_network")
        return self._distribution

    def distribution_info_sym(self, obs_var: tf.Tensor,
                              params: Optional[Mapping[str, tf.Tensor]] = None) -> Dict[str, tf.Tensor]:
        """Builds the parameters of the distribution over actions at the given observations.

        Args:
            obs_var: `[N, O]`, or `[M, N, O]`.
            params: dict from name to tensor. They may be stacked over tasks: each parameter and `obs_var` then have a
                leading axis `M`. Default: None, the policy's variables.

        Returns:
            Dict of the distribution's parameters, which broadcast to `[N, ...]` or `[M, N, ...]`.
        """
        with tf.name_scope("distribution_info"):
            return self._run_network(obs_var, params)

    def _run_network(self, inputs: tf.Tensor, params: Optional[Mapping[str, tf.Tensor]]) -> Dict[str, tf.Tensor]:
        """Builds the outputs of the network at inputs `[..., I]` and checks their names and shapes."""
        if self._network is None:
            raise self._not_implemented("distribution_info_sym", "make_params and make_network")
        expected = f"{type(self).__name__}.make_network: expected a network"
        try:
            info = self._network(TENSORFLOW, self.get_params() if params is None else params, inputs)
        except (AttributeError, KeyError, NotImplementedError, TypeError, ValueError) as error:
            raise ValueError(f"{expected} that uses operations of xp and parameters of make_params, got "
                             f"{type(error).__name__}: {error}") from error
        specs = (*self.distribution.dist_info_specs, *self._further_outputs)
        names = [name for name, _ in specs]
        if not isinstance(info, Mapping) or not {*names} <= info.keys():
            raise ValueError(f"{expected} that returns a dict with {' and '.join(names)}, got {reprlib.repr(info)}")
        for name, shape in specs:
            found = tf.TensorShape(np.shape(info[name]))
            if found.rank is not None:
                check_output(name, found.as_list(), len(inputs.shape) - 1, shape)
        return dict(info)

    def distribution_info_keys(self, obs: tf.Tensor,
                               state_infos: Optional[Mapping[str, tf.Tensor]]) -> Dict[str, tf.Tensor]:
        """Creates placeholders for the distribution that actions were sampled from.

        Args:
            obs: observations `[..., O]`; the placeholders have the same leading axes.
            state_infos: placeholders of the recurrent state, added to the result; None or an empty dict for policies
                without recurrent state.

        Returns:
            Dict of float32 placeholders, one per parameter of the distribution.
        """
        leading = obs.shape.as_list()[:-1]
        info = {key: tf.placeholder(tf.float32, leading + list(shape), name=f"{self.name}_{key}")
                for key, shape in self.distribution.dist_info_specs}
        return {**info, **(state_infos or {})}

    def likelihood_ratio_sym(self, obs: tf.Tensor, action: tf.Tensor, dist_info_old: DistInfoSym,
                             policy_params: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Builds the likelihood ratio `pi_new(a | o) / pi_old(a | o)`.

        Args:
            obs: `[N, O]` or `[M, N, O]`.
            action: `[N, A]` or `[M, N, A]`.
            dist_info_old: parameters of the distribution that the actions were sampled from.
            policy_params: the new parameters, a dict from name to tensor; stacked over tasks if `obs` has an axis `M`.

        Returns:
            `[N]` or `[M, N]`.
        """
        new = self.distribution_info_sym(obs, params=policy_params)
        return self.distribution.likelihood_ratio_sym(action, dist_info_old, new)

    def log_likelihood_sym(self, obs: tf.Tensor, action: tf.Tensor,
                           policy_params: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Builds the log-density `log pi(a | o)`, in nats; arguments and shapes as in `likelihood_ratio_sym`."""
        info = self.distribution_info_sym(obs, params=policy_params)
        return self.distribution.log_likelihood_sym(action, info)

    @property
    def action_shape(self) -> Tuple[int, ...]:
        """Shape of an action: `(A,)`, or `()` if actions are discrete."""
        return super().action_shape if self._distribution is None else tuple(self.distribution.action_shape)

    def get_actions(self, observations: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Samples an action for each observation; see `FlatPolicy.get_actions`."""
        return self._sample_actions({self._obs_ph: self._check_observations("observations", observations, ndim=2)})

    def _sample_actions(self, feed: Dict[tf.Tensor, np.ndarray]) -> Tuple[np.ndarray, Infos]:
        """Runs the operations for acting, and samples from the distribution."""
        if self._acting_info is None:
            raise self._not_implemented("get_actions", "get_actions, or make_params and make_network")
        info = self._variables.session().run(self._acting_info, feed)
        leading = feed[self._obs_ph].shape[:-1]
        info = broadcast_outputs(info, self.distribution.dist_info_specs, leading)
        return self.distribution.sample(info, self._rng), info

    @replaces(*ACTING)
    def make_actors(self, flat_params: np.ndarray) -> Optional[Actor]:
        """Returns an actor for parameters `[M, D]`; see `FlatPolicy.make_actors`.

        Returns None if a nonlinearity is not in `ops.networks.NONLINEARITIES`, or the distribution has no
        `transform_noise`. The distribution parameters agree with those of `get_actions` to about 1e-6.
        """
        return self._make_actor(self.unflatten("flat_params", flat_params, ndim=2))

    def _make_actor(self, params: Params) -> Optional[Actor]:
        """Returns an actor for parameters `[M, ...]`; None under the same conditions as `make_actors`."""
        distribution = check_not_replaced("policy.distribution", self.distribution, Distribution)
        sample = fast_path(distribution, "transform_noise")
        if sample is None or callable(self.hidden_nonlinearity) or callable(self.output_nonlinearity):
            return None
        return NetworkActor(self._network, params, sample, distribution.dist_info_specs, distribution.noise_dim,
                            distribution.uniform_noise)

    def log_diagnostics(self, paths: Sequence[Path], prefix: str = "") -> None:
        """Logs `AveragePolicyEntropy` if the distribution implements the entropy.

        The column is the mean over paths of the mean entropy over each path, in nats.
        """
        with contextlib.suppress(NotImplementedError):
            names = [name for name, _ in self.distribution.dist_info_specs]
            log_path_mean(paths, prefix + "AveragePolicyEntropy", names, self.distribution.entropy)

    def get_params(self) -> "OrderedDict[str, tf.Variable]":
        """Returns the policy's parameters as TensorFlow variables by name."""
        return OrderedDict(self._variables.variables)

    def get_param_values(self) -> "OrderedDict[str, np.ndarray]":
        """Returns the current parameter values by name, in the form that `set_params` accepts."""
        return self._variables.read()

    def set_params(self, policy_params: Params) -> None:
        """Sets all parameters; `policy_params` maps every parameter name to a finite array."""
        self._variables.write(policy_params, "policy_params")

    def get_flat_params(self) -> np.ndarray:
        """Returns a copy of all parameters in the order of `get_params`, float32 `[D]`."""
        return flatten_params(self.get_param_values())

    def set_flat_params(self, flat_params: np.ndarray) -> None:
        self.set_params(self.unflatten("flat_params", flat_params, ndim=1))

    def load_params(self, policy_params: Union[np.ndarray, Params]) -> None:
        """Sets all parameters from a vector `[D]` (as `set_flat_params`) or a dict (as `set_params`)."""
        if isinstance(policy_params, Mapping):
            self.set_params(policy_params)
        else:
            self.set_params(self.unflatten("policy_params", policy_params, ndim=1))

    def unflatten(self, argument: str, flat: np.ndarray, ndim: int) -> "OrderedDict[str, np.ndarray]":
        """Splits vectors `[..., D]` into parameters by name; see `actors.parameters.unflatten_params`."""
        return unflatten_params(argument, flat, self._variables.variables, ndim)

    def get_state(self) -> Dict[str, Any]:
        """Returns the state of the policy without its parameters, for a snapshot."""
        return {"rng": self._rng.bit_generator.state}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restores the state that `get_state` returned."""
        self._rng.bit_generator.state = state["rng"]

    def __getstate__(self) -> Dict[str, Any]:
        """Returns constructor arguments, parameter values, random state and, in subclasses, the state of tasks."""
        arguments = Serializable.__getstate__(self)
        arguments = {"args": tuple(nonlinearity_by_name(value) for value in arguments["args"]),
                     "kwargs": {key: nonlinearity_by_name(value) for key, value in arguments["kwargs"].items()}}
        return {"arguments": arguments, "params": self.get_param_values(),
                "attributes": {name: vars(self)[name] for name in self._pickled}}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        """Builds the policy in the default graph and restores its parameters and state."""
        check_own_pickle(self, state, "arguments", (
            "Transfer its weights instead: run `numpy.savez('policy.npz', **policy.get_param_values())` in the program "
            "that created the pickle, then build a policy of the same sizes and call `policy.load_npz('policy.npz')`"))
        Serializable.__setstate__(self, state["arguments"])
        self.set_params(state["params"])
        vars(self).update(state["attributes"])


class MetaPolicy(Policy):
    """A policy that also holds adapted parameters, one set per task of a meta-batch.

    The parameters before adaptation are TensorFlow variables. The adapted parameters are NumPy arrays, fed through
    placeholders stacked over tasks (`[M, ...]`), so the size of the graph does not depend on the number of tasks. After
    construction and after `switch_to_pre_update`, the policy acts with the parameters before adaptation in every task.

    Args:
        meta_batch_size (int): number of tasks `M`.
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action; if actions are discrete, the number of actions.
        name (str): name scope of the policy's operations. Default: `"policy"`.
        hidden_sizes (sequence of int): units of each hidden layer; empty for a linear policy. Default: (32, 32).
        learn_std (bool): whether the standard deviation is a trained parameter; otherwise, it is fixed at its initial
            value. Default: True.
        hidden_nonlinearity (str, callable or None): nonlinearity of the hidden layers: `'tanh'`, `'relu'`, `'sigmoid'`,
            `'softplus'`, `'elu'`, a function that snapshots can contain, such as `lambda x: tf.nn.selu(x)`, or None for
            the identity. Default: `'tanh'`.
        output_nonlinearity (str, callable or None): nonlinearity of the output layer, in the same forms. Default: None,
            the identity.
    """

    _pickled = ("_rng", "_stacked_values")

    @classmethod
    def for_env(cls: Type[P], env: Any, meta_batch_size: int, **arguments: Any) -> P:  # type: ignore[override]
        """Returns a policy for `meta_batch_size` tasks of an environment; see `FlatPolicy.for_env`."""
        return super().for_env(env, meta_batch_size=meta_batch_size, **arguments)

    def __init__(self, meta_batch_size: int, obs_dim: int, action_dim: int, name: str = "policy",
                 hidden_sizes: Sequence[int] = (32, 32), learn_std: bool = True,
                 hidden_nonlinearity: Nonlinearity = "tanh",
                 output_nonlinearity: Nonlinearity = None) -> None:
        self._init_tasks(meta_batch_size)
        Policy.__init__(self, obs_dim, action_dim, name, hidden_sizes, learn_std, hidden_nonlinearity,
                        output_nonlinearity)

    def _init_tasks(self, meta_batch_size: int) -> None:
        """Sets the number of tasks and clears the adapted parameters."""
        self.meta_batch_size = check_positive_int("meta_batch_size", meta_batch_size)
        self._stacked_values: Optional["OrderedDict[str, np.ndarray]"] = None

    def _build_acting(self) -> None:
        for name, variable in self._variables.variables.items():
            if not variable.shape.rank:  # the axis of tasks would become the axis of actions
                raise ValueError(f"{type(self).__name__}.make_params: {name}: expected an array with at least one "
                                 "axis, got a number")
        with tf.name_scope("adapted"):
            self.policies_params_phs = OrderedDict(
                (name, tf.placeholder(tf.float32, [None] + v.shape.as_list(), name=name.replace("/", "_")))
                for name, v in self._variables.variables.items())
        self._obs_ph = tf.placeholder(tf.float32, [None, None, self.obs_dim], name="observations")
        self._acting_info = self.distribution_info_sym(self._obs_ph, self.policies_params_phs)

    def with_meta_batch_size(self, meta_batch_size: int) -> "MetaPolicy":
        """Returns a policy for another number of tasks; both policies share the graph and the parameters.

        The result has separate adapted parameters (initially none) and a separate random state.
        """
        return copy_for_tasks(self, meta_batch_size)

    @property
    def policies_params_vals(self) -> List["OrderedDict[str, np.ndarray]"]:
        """The current parameters of each task: a list of `M` ordered dicts of views (do not write to them)."""
        stacked = self.stacked_param_values()
        return [OrderedDict((name, values[task]) for name, values in stacked.items())
                for task in range(self.meta_batch_size)]

    @property
    def policies_params_feed_dict(self) -> Dict[tf.Tensor, np.ndarray]:
        """Feed dict of the current parameters of each task: stacked placeholder to float32 `[M, ...]`."""
        stacked = self.stacked_param_values()
        return {placeholder: stacked[name] for name, placeholder in self.policies_params_phs.items()}

    def stacked_param_values(self) -> "OrderedDict[str, np.ndarray]":
        """Returns the current parameters of each task by name, float32 `[M, ...]` (read-only)."""
        if self._stacked_values is not None:
            return self._stacked_values
        return OrderedDict((name, np.broadcast_to(value, (self.meta_batch_size,) + value.shape))
                           for name, value in self.get_param_values().items())

    def switch_to_pre_update(self) -> None:
        """Discards the adapted parameters: the policy acts with the parameters before adaptation in every task."""
        self._stacked_values = None

    def update_task_parameters(self, updated_policies_parameters: Sequence[Params]) -> None:
        """Sets the adapted parameters of each task from `M` dicts of name to array."""
        if len(updated_policies_parameters) != self.meta_batch_size:
            raise ValueError(f"updated_policies_parameters: expected {self.meta_batch_size} dicts (meta_batch_size), "
                             f"got {len(updated_policies_parameters)}")
        tasks = [self._variables.checked(params, f"updated_policies_parameters[{task}]")
                 for task, params in enumerate(updated_policies_parameters)]
        self.set_stacked_param_values(
            OrderedDict((name, np.stack([params[name] for params in tasks])) for name in self._variables.variables))

    def set_stacked_param_values(self, values: "OrderedDict[str, np.ndarray]") -> None:
        """Sets the adapted parameters of all tasks by name, float32 `[M, ...]`, without checking them."""
        self._stacked_values = values

    def load_params(self, policy_params: Union[np.ndarray, Params]) -> None:
        """Sets adapted parameters from `[M, D]`, or parameters before adaptation from a vector `[D]` or a dict."""
        if not isinstance(policy_params, Mapping) and np.ndim(policy_params) == 2:
            if len(policy_params) != self.meta_batch_size:
                raise ValueError(f"policy_params: expected {self.meta_batch_size} vectors (meta_batch_size), got "
                                 f"{len(policy_params)}")
            self.set_stacked_param_values(self.unflatten("policy_params", policy_params, ndim=2))
        else:
            Policy.load_params(self, policy_params)

    def get_action(self, observation: np.ndarray, task: int = 0) -> Tuple[np.ndarray, Infos]:
        """Samples an action with the parameters of one task, from 0 to `M - 1`; otherwise as `Policy.get_action`."""
        observation = self._check_observations("observation", observation, ndim=1)
        if check_int_at_least("task", task, 0) >= self.meta_batch_size:
            raise ValueError(f"task: expected less than meta_batch_size={self.meta_batch_size}, got {task}")
        feed = {ph: values[task:task + 1] for ph, values in self.policies_params_feed_dict.items()}
        actions, infos = self._sample_actions({self._obs_ph: observation[None, None], **feed})
        return actions[0, 0], {key: value[0, 0] for key, value in infos.items()}

    def get_actions(  # type: ignore[override]  # samples for all tasks
        self, observations: Sequence[np.ndarray]
    ) -> Tuple[List[np.ndarray], List[List[Infos]]]:
        """Samples actions for every task.

        Args:
            observations: `M` arrays `[B, O]`, or one array `[M, B, O]`.

        Returns:
            A list of `M` action arrays `[B, A]` (int64 `[B]` if actions are discrete), and a list of `M` lists of `B`
            dicts with the parameters of the sampling distribution. Infos and continuous actions are float32.
        """
        stacked = check_stacked(self, observations)
        return split_tasks(*self._sample_actions({self._obs_ph: stacked, **self.policies_params_feed_dict}))

    make_actors = replaces(*ACTING)(Policy.make_actors)  # replaces the methods of this class

    @replaces(*ACTING)
    def make_actor(self) -> Optional[Actor]:
        """Returns an actor that acts like the policy in its `M` tasks, without TensorFlow; see `make_actors`."""
        return self._make_actor(self.stacked_param_values())


def copy_for_tasks(policy: Any, meta_batch_size: int) -> Any:
    """Returns a policy for another number of tasks, with the same graph and parameters.

    The result has no adapted parameters and a separate random state.
    """
    other = shallow_copy(policy, meta_batch_size=check_positive_int("meta_batch_size", meta_batch_size))
    other._given = replaced_arguments(policy, {"meta_batch_size": other.meta_batch_size})
    other._rng = seeding.next_rng(seeding.Stream.POLICY)
    other.switch_to_pre_update()
    return other


def check_stacked(policy: Any, observations: Sequence[np.ndarray]) -> np.ndarray:
    """Checks the observations of the `M` tasks of a policy, each `[B, O]`, and stacks them to `[M, B, O]`."""
    if len(observations) != policy.meta_batch_size:
        raise ValueError(f"observations: expected {policy.meta_batch_size} arrays (meta_batch_size), got "
                         f"{len(observations)}")
    if len(shapes := {np.shape(of_task) for of_task in observations}) > 1:
        raise ValueError(f"observations: expected the same shape for every task, got {sorted(shapes)}")
    return policy._check_observations("observations", observations, ndim=3)


def split_tasks(actions: np.ndarray, infos: Infos) -> Tuple[List[np.ndarray], List[List[Infos]]]:
    """Splits actions and infos, each `[M, B, ...]`, into the return value of `get_actions` for several tasks."""
    return list(actions), [[{key: value[m, i] for key, value in infos.items()} for i in range(actions.shape[1])]
                           for m in range(len(actions))]


def log_path_mean(paths: Sequence[Path], key: str, names: Sequence[str],
                  function: Callable[[DistInfo], np.ndarray]) -> None:
    """Logs the mean over paths of the path means of a function of the agent infos.

    Paths that lack one of the agent infos are skipped. If all paths are skipped, nothing is logged.

    Args:
        paths: path dicts with `agent_infos`.
        key: column name.
        names: names of the agent infos that the function needs.
        function: function of a dict of agent infos `[N, ...]`; returns `[N, ...]`.
    """
    infos = [path["agent_infos"] for path in paths if set(names) <= set(path["agent_infos"])]
    if infos:
        values = function({name: np.concatenate([info[name] for info in infos]) for name in names})
        lengths = [len(info[names[0]]) for info in infos]
        if min(lengths) == max(lengths):  # one call for all paths is faster
            means = values.reshape(len(infos), -1).mean(axis=1)
        else:
            means = np.array([steps.mean() for steps in np.split(values, np.cumsum(lengths)[:-1])])
        logger.logkv(key, float(means.mean()))
