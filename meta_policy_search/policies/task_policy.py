"""A policy for a single task, created from a meta-policy."""
import copy
from typing import Mapping, Optional, Tuple

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.actors.flat_policy import FlatPolicy
from meta_policy_search.actors.parameters import flatten_params
from meta_policy_search.policies.base import MetaPolicy
from meta_policy_search.types import Infos, Params
from meta_policy_search.utils.fast_paths import fast_path, replaces


class TaskPolicy(FlatPolicy):
    """A policy for a single task that acts like a meta-policy, with separate parameters.

    The initial parameters are a copy of the meta-policy's parameters before adaptation. The policy acts without
    TensorFlow if the meta-policy has the vectorized method `make_actors`, else in the graph of the meta-policy.

    Args:
        meta_policy (MetaPolicy): the meta-policy, which is not changed.

    Attributes:
        inner_state (dict): state of the update rule after the adaptation steps (`MAMLAlgo.inner_update`), arrays
            `[1, ...]` by name; empty before adaptation and after parameters are set.
    """

    inner_state: Mapping[str, np.ndarray] = {}

    def __init__(self, meta_policy: MetaPolicy) -> None:
        if not isinstance(meta_policy, MetaPolicy):
            raise TypeError(f"meta_policy: expected a MetaPolicy (such as MetaGaussianMLPPolicy), got {meta_policy!r}")
        super().__init__(meta_policy.obs_dim, meta_policy.action_dim)
        self.meta_policy = meta_policy
        self._policy = meta_policy.with_meta_batch_size(1)
        self._flat_params = meta_policy.get_flat_params()

    @property
    def action_shape(self) -> Tuple[int, ...]:
        """Shape of an action: `(A,)`, or `()` if actions are discrete."""
        return tuple(self._policy.distribution.action_shape)

    def get_param_values(self) -> Params:
        """Returns copies of the parameters by name, as accepted by `MetaPolicy.update_task_parameters`."""
        return self._policy.unflatten("flat_params", self._flat_params, ndim=1)

    def get_flat_params(self) -> np.ndarray:
        """Returns a copy of the parameters, float32 `[D]`, in the order of the meta-policy's `get_params`."""
        return self._flat_params.copy()

    def set_flat_params(self, flat_params: np.ndarray) -> None:
        self._flat_params = flatten_params(self._policy.unflatten("flat_params", flat_params, ndim=1))
        self.inner_state = {}

    def with_params(self, params: Params) -> "TaskPolicy":
        """Returns a copy of this policy with other parameters, given by name."""
        other = copy.copy(self)
        other.set_flat_params(flatten_params({name: np.asarray(params[name]) for name in self.get_param_values()}))
        return other

    @replaces("get_action", "get_actions")
    def make_actors(self, flat_params: np.ndarray) -> Optional[Actor]:
        """Returns an actor for parameters `[M, D]`; None if the meta-policy has no vectorized method."""
        make_actors = fast_path(self._policy, "make_actors")
        return None if make_actors is None else make_actors(flat_params)

    def get_actions(self, observations: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Chooses an action for each observation; see `FlatPolicy.get_actions`."""
        if self.make_actors(self._flat_params[None]) is not None:
            return super().get_actions(observations)
        observations = self._check_observations("observations", observations, ndim=2)
        self._policy.update_task_parameters([self.get_param_values()])
        (actions,), (rows,) = self._policy.get_actions([observations])
        return actions, {key: np.stack([row[key] for row in rows]) for key in rows[0]}
