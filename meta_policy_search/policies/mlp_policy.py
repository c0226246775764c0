"""What all policies share whose distribution is computed by a multi-layer perceptron: parameters, and acting."""
import abc
from collections import OrderedDict
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.actors.parameters import initial_mlp_values
from meta_policy_search.policies.base import MetaPolicy, Policy
from meta_policy_search.policies.networks.mlp import forward_mlp
from meta_policy_search.policies.networks.nonlinearities import nonlinearity_name
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import Infos, Params
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_int_at_least


class MLPPolicy(Policy):
    """A policy with a multi-layer perceptron of the observation, whose output is `action_dim` numbers.

    A subclass says what distribution they are parameters of: `distribution`, `distribution_info_sym` and
    `_stack_params`. Its constructor ends with `build_graph`.
    """

    _scope: str  # prefix of the network's parameters

    def build_graph(self) -> None:
        """Builds the policy's variables and the operations that act; called once, by the constructor."""
        with tf.name_scope(self.name):
            values = self._initial_values(seeding.next_rng(seeding.Stream.WEIGHTS))
            self._register_parameters(OrderedDict((name, tf.Variable(value, use_resource=True, name=name))
                                                  for name, value in values.items()))
            self._build_acting()

    def _initial_values(self, rng: np.random.Generator) -> "OrderedDict[str, np.ndarray]":
        """Draws the parameters that the policy starts with."""
        return initial_mlp_values(self._scope, self.obs_dim, self.action_dim, self.hidden_sizes, rng)

    def _build_acting(self) -> None:
        self._obs_ph = tf.placeholder(tf.float32, [None, self.obs_dim], name="observations")
        self._acting_info = self.distribution_info_sym(self._obs_ph)

    def _build_output(self, params: Mapping[str, tf.Tensor], obs_var: tf.Tensor) -> tf.Tensor:
        """Builds the network's output; arguments as for `distribution_info_sym`."""
        return forward_mlp(params, obs_var, self._scope, len(self.hidden_sizes), self.hidden_nonlinearity,
                           self.output_nonlinearity)

    def get_actions(self, observations: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """See `FlatPolicy.get_actions`; actions and infos are float32."""
        return self._run({self._obs_ph: self._check_observations("observations", observations, ndim=2)})

    def _run(self, feed: Dict[tf.Tensor, np.ndarray]) -> Tuple[np.ndarray, Infos]:
        """Runs the acting operations and samples."""
        info = self._variables.session().run(self._acting_info, feed)
        leading = feed[self._obs_ph].shape[:-1]
        specs = self.distribution.dist_info_specs
        info = {key: np.broadcast_to(info[key], (*leading, *shape)) for key, shape in specs}
        return self.distribution.sample(info, self._rng), info

    def make_actors(self, flat_params: np.ndarray) -> Optional[Actor]:
        """See `FlatPolicy.make_actors`; None if a nonlinearity has no NumPy form, or a subclass acts in its own way.

        Given the same random numbers, its distributions agree with those of `get_actions` to about 1e-6.
        """
        return self._stacked_actor(self._unflatten("flat_params", flat_params, ndim=2))

    def _stacked_actor(self, params: Params) -> Optional[Actor]:
        """Returns what `make_actors` does, given stacked parameters `[M, ...]`."""
        nonlinearities = (self.hidden_nonlinearity, self.output_nonlinearity)
        names = [nonlinearity_name(function) for function in nonlinearities]
        if self._acts_otherwise() or [name is None for name in names] != [f is None for f in nonlinearities]:
            return None
        return self._stack_params(params, len(self.hidden_sizes), *names)

    @abc.abstractmethod
    def _stack_params(self, params: Params, *network: Any) -> Actor:
        """Returns what acts; parameters `[M, ...]`, and the network's depth and nonlinearities by name."""

    def _acts_otherwise(self) -> bool:
        """Whether a class of another package overrides how the policy acts."""
        package = __name__.partition(".")[0]
        names = ("distribution_info_sym", "distribution", "get_action", "get_actions", "_run")
        owners = (next(cls for cls in type(self).__mro__ if name in vars(cls)) for name in names)
        return any(not owner.__module__.startswith(package + ".") for owner in owners)


class MetaMLPPolicy(MLPPolicy, MetaPolicy):
    """An `MLPPolicy` for meta-learning: `M` tasks act with parameters of their own.

    Inherited before an `MLPPolicy`, it makes a meta-policy of that.
    """

    def _build_acting(self) -> None:
        self._obs_ph = tf.placeholder(tf.float32, [None, None, self.obs_dim], name="observations")
        self._acting_info = self.distribution_info_sym(self._obs_ph, self.policies_params_phs)

    def get_action(self, observation: np.ndarray, task: int = 0) -> Tuple[np.ndarray, Infos]:
        """See `MetaPolicy.get_action`; action and info are float32."""
        observation = self._check_observations("observation", observation, ndim=1)
        if check_int_at_least("task", task, 0) >= self.meta_batch_size:
            raise ValueError(f"task: expected less than meta_batch_size={self.meta_batch_size}, got {task}")
        feed = {ph: values[task:task + 1] for ph, values in self.policies_params_feed_dict.items()}
        actions, infos = self._run({self._obs_ph: observation[None, None], **feed})
        return actions[0, 0], {key: value[0, 0] for key, value in infos.items()}

    def get_actions(  # type: ignore[override]  # in all tasks
        self, observations: Sequence[np.ndarray]
    ) -> Tuple[List[np.ndarray], List[List[Infos]]]:
        """See `MetaPolicy.get_actions`; actions and infos are float32."""
        if len(observations) != self.meta_batch_size:
            raise ValueError(f"observations: expected {self.meta_batch_size} arrays (meta_batch_size), got "
                             f"{len(observations)}")
        lengths = sorted({len(task_observations) for task_observations in observations})
        if len(lengths) != 1:
            raise ValueError(f"observations: expected equally many for every task, got lengths {lengths}")
        stacked = self._check_observations("observations", observations, ndim=3)
        actions, infos = self._run({self._obs_ph: stacked, **self.policies_params_feed_dict})
        agent_infos = [[{key: value[task, i] for key, value in infos.items()} for i in range(lengths[0])]
                       for task in range(self.meta_batch_size)]
        return list(actions), agent_infos

    def make_actor(self) -> Optional[Actor]:
        """See `MetaPolicy.make_actor`; None as in `make_actors`."""
        return self._stacked_actor(self.stacked_param_values())
