"""Recurrent policies for RL^2 (arXiv:1611.02779)."""
import functools
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from meta_policy_search.actors.actor import Network, NetworkActor, Sample
from meta_policy_search.actors.parameters import check_std
from meta_policy_search.ops import networks
from meta_policy_search.ops.tensorflow_ops import unroll
from meta_policy_search.policies.base import ACTING, Policy, check_stacked, copy_for_tasks, split_tasks
from meta_policy_search.policies.distributions import Categorical, DiagonalGaussian
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import Infos, Params
from meta_policy_search.utils.checks import check_choice, check_positive_int
from meta_policy_search.utils.fast_paths import fast_path, replaces


class RecurrentPolicy(Policy):
    """A policy with a recurrent cell, followed by an action head and a value head.

    The policy has the same parameters in all `M` tasks and takes no inner gradient steps. It adapts to a task through
    its recurrent state. The state is zero at the start of a path and persists until the end of the path. In RL^2, a
    path is a trial of several episodes (see `envs.TrialEnv`).

    The parameters are those of the cell (`gru/...` or `lstm/...`), `action/kernel`, `action/bias`, `value/kernel` and
    `value/bias`.

    A subclass sets `distribution_cls` and implements `make_network`. The inputs of the network are the outputs of the
    cell. It returns the parameters of the distribution and `value`, the output of the value head `[...]`.

    Args:
        meta_batch_size (int): number `M` of tasks.
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action; if actions are discrete, the number of actions.
        name (str): name scope of the policy's operations. Default: `"policy"`.
        hidden_size (int): number of units `H` of the cell, at least 1. Default: 64.
        cell (str or Cell): recurrent cell: `"gru"`, `"lstm"`, or an `ops.networks.Cell`. Default: `"gru"`.
    """

    _further_outputs = (("value", ()),)
    _pickled = ("_rng", "_states")

    def __init__(self, meta_batch_size: int, obs_dim: int, action_dim: int, name: str = "policy",
                 hidden_size: int = 64, cell: Union[str, networks.Cell] = "gru") -> None:
        self.meta_batch_size = check_positive_int("meta_batch_size", meta_batch_size)
        self.hidden_size = check_positive_int("hidden_size", hidden_size)
        self.cell = cell if isinstance(cell, networks.Cell) else check_choice("cell", cell, networks.CELLS)
        self._cell = cell if isinstance(cell, networks.Cell) else networks.CELLS[cell]
        self._state_size = self._cell.states_per_unit * self.hidden_size
        self._states: Optional[np.ndarray] = None  # recurrent states of `get_action` and `get_actions`
        Policy.__init__(self, obs_dim, action_dim, name, (self.hidden_size,))

    def make_params(self, rng: np.random.Generator) -> Params:
        """Draws the initial parameters by name; see `Policy.make_params`.

        The kernels of both heads are Glorot-uniform, scaled by 0.01. The initial distribution of discrete actions is
        therefore close to uniform.
        """
        of_cell = self._cell.make_params(self.obs_dim, self.hidden_size, rng)
        heads = {**networks.make_dense("action", self.hidden_size, self.action_dim, rng, scale=0.01),
                 **networks.make_dense("value", self.hidden_size, 1, rng, scale=0.01)}
        if names := of_cell.keys() & heads.keys():
            raise ValueError(f"cell: expected other names of parameters than those of the heads, got {min(names)!r}")
        return {**of_cell, **heads}

    def _build_acting(self) -> None:
        """Builds nothing, because the policy acts without TensorFlow."""

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
            outputs = unroll(self._cell.step, params, tf.transpose(obs_var, [1, 0, 2]), self._state_size)
            info = self._run_network(tf.transpose(outputs, [1, 0, 2]), params)
            return {name: info[name] for name, _ in self.distribution.dist_info_specs}, info["value"]

    def distribution_info_sym(self, obs_var: tf.Tensor,
                              params: Optional[Mapping[str, tf.Tensor]] = None) -> Dict[str, tf.Tensor]:
        """Builds the distribution over actions at each step of whole paths; see `trial_info_sym`."""
        return self.trial_info_sym(obs_var, params)[0]

    def switch_to_pre_update(self) -> None:
        """Does nothing, because the policy has no adapted parameters."""

    def with_meta_batch_size(self, meta_batch_size: int) -> "RecurrentPolicy":
        """Returns a policy for another number of tasks. Both policies share their graph and parameters."""
        other = copy_for_tasks(self, meta_batch_size)
        other._states = None
        return other

    def reset(self, dones: Any = None) -> None:
        """Resets the recurrent states of `get_action` and `get_actions` to zero; call it when paths begin.

        Args:
            dones: bool `[M, B]`, True for the paths of `get_actions` to reset. Default None: all paths.

        Raises:
            ValueError: `dones` has another type or shape.
        """
        if dones is None or self._states is None:
            self._states = None
            return
        dones = np.asarray(dones)
        if dones.dtype != bool or dones.shape != self._states.shape[:2]:
            raise ValueError(f"dones: expected bools of shape {self._states.shape[:2]}, got {dones!r}")
        self._states = np.where(dones[..., None], np.float32(0.0), self._states)

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
        return split_tasks(*self._next_actions(check_stacked(self, observations)))

    def _next_actions(self, observations: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Samples actions for the observations `[M, B, O]` and updates the recurrent states."""
        if self._states is not None and self._states.shape[:2] != observations.shape[:2]:
            raise ValueError(f"observations: expected {self._states.shape[:2]} tasks and paths as in the step before, "
                             f"got {observations.shape[:2]}; call reset() at the start of paths")
        distribution = self.distribution
        actor = self._actor(lambda info, noise: distribution.sample(info, self._rng))
        actor.states = self._states
        result = actor.act(observations, observations[..., :0])
        self._states = actor.states
        return result

    @replaces(*ACTING)
    def make_actor(self) -> Optional[NetworkActor]:
        """Returns an actor for the `M` tasks; None if the distribution has no `transform_noise`."""
        sample = fast_path(self.distribution, "transform_noise")
        return None if sample is None else self._actor(sample)

    def _actor(self, sample: Sample) -> NetworkActor:
        specs = (*self.distribution.dist_info_specs, *self._further_outputs)
        return NetworkActor(self._network, self.get_param_values(), sample, specs, self.distribution.noise_dim,
                            self.distribution.uniform_noise, self._cell.step, self._state_size)


class CategoricalRecurrentPolicy(RecurrentPolicy):
    """A `RecurrentPolicy` for discrete actions: the action head returns the logits.

    Args:
        meta_batch_size (int): number `M` of tasks.
        obs_dim (int): size `O` of an observation.
        action_dim (int): number of actions `n`.
        name (str): name scope of the policy's operations. Default: `"policy"`.
        hidden_size (int): number of units `H` of the cell, at least 1. Default: 64.
        cell (str or Cell): recurrent cell: `"gru"`, `"lstm"`, or an `ops.networks.Cell`. Default: `"gru"`.
    """

    distribution_cls = Categorical

    def make_network(self) -> Network:
        """Returns the function that computes both heads; see `Policy.make_network`."""
        return networks.categorical_heads


class GaussianRecurrentPolicy(RecurrentPolicy):
    """A `RecurrentPolicy` for continuous actions: the action head returns the mean.

    The logarithm of the standard deviation is a trained parameter that does not depend on the observation.

    Args:
        meta_batch_size (int): number `M` of tasks.
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action.
        name (str): name scope of the policy's operations. Default: `"policy"`.
        hidden_size (int): number of units `H` of the cell, at least 1. Default: 64.
        init_std (float): initial standard deviation, in the action's unit, at least `min_std`. Default: 1.
        min_std (float): minimum standard deviation, in the action's unit, above 0. Default: 1e-6.
        cell (str or Cell): recurrent cell: `"gru"`, `"lstm"`, or an `ops.networks.Cell`. Default: `"gru"`.
    """

    distribution_cls = DiagonalGaussian

    def __init__(self, meta_batch_size: int, obs_dim: int, action_dim: int, name: str = "policy",
                 hidden_size: int = 64, init_std: float = 1.0, min_std: float = 1e-6,
                 cell: Union[str, networks.Cell] = "gru") -> None:
        self.init_std, self.min_std = check_std(init_std, min_std)
        RecurrentPolicy.__init__(self, meta_batch_size, obs_dim, action_dim, name, hidden_size, cell)

    def make_params(self, rng: np.random.Generator) -> Params:
        """Draws the initial parameters by name; see `RecurrentPolicy.make_params`."""
        return {**super().make_params(rng), networks.LOG_STD: networks.make_log_std(self.action_dim, self.init_std)}

    def make_network(self) -> Network:
        """Returns the function that computes both heads; see `Policy.make_network`."""
        return functools.partial(networks.gaussian_heads, min_std=self.min_std)
