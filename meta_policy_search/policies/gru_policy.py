"""Recurrent policies for RL^2 (arXiv:1611.02779)."""
import abc
import math
from collections import OrderedDict
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.actors.gru import GRUActor, initial_gru_values
from meta_policy_search.actors.parameters import LOG_STD, check_std, initial_log_std
from meta_policy_search.actors.stacked_mlp import sample_categorical, sample_gaussian
from meta_policy_search.ops.recurrent import gru
from meta_policy_search.policies.base import ACTING, Policy, copy_for_tasks, split_tasks
from meta_policy_search.policies.distributions.categorical import Categorical
from meta_policy_search.policies.distributions.diagonal_gaussian import DiagonalGaussian
from meta_policy_search.policies.networks import make_variables
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import Infos
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.fast_paths import replaces


class GRUPolicy(Policy):
    """A policy with one layer of gated recurrent units (GRU), an action head and a value head.

    The policy has the same parameters in all `M` tasks and takes no inner gradient steps. It adapts to a task through
    its hidden state. The hidden state is zero at the start of a path and persists until the end of the path. In RL^2,
    a path is a trial of several episodes (see `envs.TrialEnv`).

    The parameters are `gru/input_kernel`, `gru/recurrent_kernel`, `gru/bias`, `action/kernel`, `action/bias`,
    `value/kernel` and `value/bias`.

    A subclass implements `_dist_info` and `make_actor`.

    Args:
        meta_batch_size (int): number `M` of tasks.
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action; if actions are discrete, the number of actions.
        name (str): name scope of the policy's operations.
        hidden_size (int): number of gated recurrent units `H`, at least 1.
    """

    def __init__(self, meta_batch_size: int, obs_dim: int, action_dim: int, name: str, hidden_size: int) -> None:
        self.meta_batch_size = check_positive_int("meta_batch_size", meta_batch_size)
        self.hidden_size = check_positive_int("hidden_size", hidden_size)
        self._states: Optional[np.ndarray] = None  # hidden states of `get_action` and `get_actions`
        Policy.__init__(self, obs_dim, action_dim, name, (self.hidden_size,))

    def build_graph(self) -> None:
        """Builds the policy's variables; called once, by the constructor."""
        with tf.name_scope(self.name):
            self._register_parameters(make_variables(self._initial_values(seeding.next_rng(seeding.Stream.WEIGHTS))))

    def _initial_values(self, rng: np.random.Generator) -> "OrderedDict[str, np.ndarray]":
        return initial_gru_values(self.obs_dim, self.action_dim, self.hidden_size, rng)

    def trial_info_sym(self, obs_var: tf.Tensor, params: Optional[Mapping[str, tf.Tensor]] = None
                       ) -> Tuple[Dict[str, tf.Tensor], tf.Tensor]:
        """Builds the distribution over actions and the output of the value head at each step of whole paths.

        Args:
            obs_var: `[B, T, O]`, the observations of `B` paths, starting with the first step of each path.
            params: dict from name to tensor. Default: None, the policy's variables.

        Returns:
            Tuple of a dict of the distribution's parameters, which broadcast to `[B, T, ...]`, and the values `[B, T]`.
        """
        params = self.get_params() if params is None else params
        with tf.name_scope("trial_info"):
            states = gru(tf.transpose(obs_var, [1, 0, 2]), params["gru/input_kernel"], params["gru/bias"],
                         params["gru/recurrent_kernel"])
            states = tf.transpose(states, [1, 0, 2])
            outputs = tf.tensordot(states, params["action/kernel"], 1) + params["action/bias"]
            values = tf.tensordot(states, params["value/kernel"], 1) + params["value/bias"]
            return self._dist_info(outputs, params), values[..., 0]

    @abc.abstractmethod
    def _dist_info(self, outputs: tf.Tensor, params: Mapping[str, tf.Tensor]) -> Dict[str, tf.Tensor]:
        """Builds the distribution's parameters from the outputs `[B, T, A]` of the action head."""

    def distribution_info_sym(self, obs_var: tf.Tensor,
                              params: Optional[Mapping[str, tf.Tensor]] = None) -> Dict[str, tf.Tensor]:
        """Builds the distribution over actions at each step of whole paths; see `trial_info_sym`."""
        return self.trial_info_sym(obs_var, params)[0]

    def switch_to_pre_update(self) -> None:
        """Does nothing, because the policy has no adapted parameters."""

    def with_meta_batch_size(self, meta_batch_size: int) -> "GRUPolicy":
        """Returns a policy for another number of tasks. Both policies share their graph and parameters."""
        other = copy_for_tasks(self, meta_batch_size)
        other._states = None
        return other

    def reset(self, dones: Any = None) -> None:
        """Resets the hidden states of `get_action` and `get_actions` to zero; call it when paths begin.

        Args:
            dones: bool `[M, B]`, True for the paths of `get_actions` to reset. Default None: all paths.
        """
        if dones is None or self._states is None:
            self._states = None
        else:
            self._states = np.where(np.asarray(dones, bool)[..., None], np.float32(0.0), self._states)

    def get_action(self, observation: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Samples the next action of a path; call `reset` at its start.

        Args:
            observation: `[O]`.

        Returns:
            Tuple of the action `[A]` (an int64 if actions are discrete) and a dict of agent infos: the parameters of
            the distribution, and `value`.
        """
        observation = self._check_observations("observation", observation, ndim=1)
        actions, infos = self._next_actions(observation[None, None])
        return actions[0, 0], {key: value[0, 0] for key, value in infos.items()}

    def get_actions(  # type: ignore[override]  # in all tasks
        self, observations: Sequence[np.ndarray]
    ) -> Tuple[List[np.ndarray], List[List[Infos]]]:
        """Samples the next actions of `B` paths of each task; call `reset` when paths begin.

        Args:
            observations: `M` arrays `[B, O]`, or one array `[M, B, O]`.

        Returns:
            A list of `M` action arrays `[B, A]`, and a list of `M` lists of `B` dicts; see `get_action`.
        """
        if len(observations) != self.meta_batch_size:
            raise ValueError(f"observations: expected {self.meta_batch_size} arrays (meta_batch_size), got "
                             f"{len(observations)}")
        return split_tasks(*self._next_actions(self._check_observations("observations", observations, ndim=3)))

    def _next_actions(self, observations: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Samples actions for the observations `[M, B, O]` and updates the hidden states."""
        if self._states is not None and self._states.shape[:2] != observations.shape[:2]:
            raise ValueError(f"observations: expected {self._states.shape[:2]} tasks and paths as in the step before, "
                             f"got {observations.shape[:2]}; call reset() at the start of paths")
        actor = self.make_actor()
        actor.states = self._states
        noise = np.empty((*observations.shape[:2], actor.noise_dim), np.float32)
        actor.draw_noise(self._rng, noise)
        result = actor.act(observations, noise)
        self._states = actor.states
        return result

    @abc.abstractmethod
    def make_actor(self) -> GRUActor:
        """Returns an actor for the `M` tasks that does not need TensorFlow."""

    def __getstate__(self) -> Dict[str, Any]:
        """Also returns the hidden states."""
        return {**super().__getstate__(), "hidden_states": self._states}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        super().__setstate__(state)
        self._states = state["hidden_states"]


class CategoricalGRUPolicy(GRUPolicy):
    """A `GRUPolicy` for discrete actions: the action head returns the logits.

    Args:
        meta_batch_size (int): number `M` of tasks.
        obs_dim (int): size `O` of an observation.
        action_dim (int): number of actions `n`.
        name (str): name scope of the policy's operations. Default: `"policy"`.
        hidden_size (int): number of gated recurrent units `H`, at least 1. Default: 64.
    """

    def __init__(self, meta_batch_size: int, obs_dim: int, action_dim: int, name: str = "policy",
                 hidden_size: int = 64) -> None:
        GRUPolicy.__init__(self, meta_batch_size, obs_dim, action_dim, name, hidden_size)
        self._distribution = Categorical(self.action_dim)
        self.build_graph()

    def _dist_info(self, outputs: tf.Tensor, params: Mapping[str, tf.Tensor]) -> Dict[str, tf.Tensor]:
        return OrderedDict(log_prob=tf.nn.log_softmax(outputs))

    @replaces(*ACTING)
    def make_actor(self) -> GRUActor:
        return GRUActor(self.get_param_values(), sample_categorical, noise_dim=1, uniform_noise=True)


class GaussianGRUPolicy(GRUPolicy):
    """A `GRUPolicy` for continuous actions: the action head returns the mean.

    The logarithm of the standard deviation is a trained parameter that does not depend on the observation.

    Args:
        meta_batch_size (int): number `M` of tasks.
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action.
        name (str): name scope of the policy's operations. Default: `"policy"`.
        hidden_size (int): number of gated recurrent units `H`, at least 1. Default: 64.
        init_std (float): initial standard deviation, in the action's unit, at least `min_std`. Default: 1.
        min_std (float): minimum standard deviation, in the action's unit, above 0. Default: 1e-6.
    """

    def __init__(self, meta_batch_size: int, obs_dim: int, action_dim: int, name: str = "policy",
                 hidden_size: int = 64, init_std: float = 1.0, min_std: float = 1e-6) -> None:
        GRUPolicy.__init__(self, meta_batch_size, obs_dim, action_dim, name, hidden_size)
        self.init_std, self.min_std = check_std(init_std, min_std)
        self._distribution = DiagonalGaussian(self.action_dim)
        self.build_graph()

    def _initial_values(self, rng: np.random.Generator) -> "OrderedDict[str, np.ndarray]":
        values = super()._initial_values(rng)
        values[LOG_STD] = initial_log_std(self.action_dim, self.init_std)
        return values

    def _dist_info(self, outputs: tf.Tensor, params: Mapping[str, tf.Tensor]) -> Dict[str, tf.Tensor]:
        log_std = tf.maximum(params[LOG_STD], np.float32(math.log(self.min_std)))
        return OrderedDict(mean=outputs, log_std=log_std[None, None])

    @replaces(*ACTING)
    def make_actor(self) -> GRUActor:
        params = self.get_param_values()
        params[LOG_STD] = np.maximum(params[LOG_STD], np.float32(math.log(self.min_std)))[None]
        return GRUActor(params, sample_gaussian, noise_dim=self.action_dim)
