"""Action values on NumPy, which off-policy algorithms learn."""
from typing import Optional, Sequence

import numpy as np

from meta_policy_search.actors.stacked_mlp import StackedMLP
from meta_policy_search.np.policies import FlatMLP
from meta_policy_search.utils.checks import check_positive_int


class MLPQFunction(FlatMLP):
    """The value of an action in a state, `Q(o, a) = mlp([o, a])`, a sum of rewards to come.

    Args:
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action.
    """

    def __init__(self, obs_dim: int, action_dim: int, hidden_sizes: Sequence[int] = (64, 64),
                 hidden_nonlinearity: Optional[str] = "relu") -> None:
        self.obs_dim = check_positive_int("obs_dim", obs_dim)
        self.action_dim = check_positive_int("action_dim", action_dim)
        super().__init__("q_network", self.obs_dim + self.action_dim, 1, hidden_sizes, hidden_nonlinearity, None)

    def compute_values(self, observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Computes the values, float32 `[B]`, of `actions` `[B, A]` in `observations` `[B, O]`."""
        observations, actions = np.asarray(observations), np.asarray(actions)
        for name, array, size in (("observations", observations, self.obs_dim), ("actions", actions, self.action_dim)):
            if array.shape != (len(observations), size):
                raise ValueError(f"{name}: expected shape {(len(observations), size)}, got {array.shape}")
        stacked = {name: value[None] for name, value in self._params.items()}
        inputs = np.concatenate([observations, actions], axis=1)
        return StackedMLP(stacked, self.scope, *self.network).compute_output(inputs[None])[0, :, 0]
