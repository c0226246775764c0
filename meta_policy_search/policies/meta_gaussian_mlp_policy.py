"""The Gaussian MLP policy with adapted parameters for each task of a meta-batch."""
from collections import OrderedDict
from typing import Any, List, Sequence, Tuple

import numpy as np

from meta_policy_search.policies.base import MetaPolicy
from meta_policy_search.policies.gaussian_mlp_policy import GaussianMLPPolicy
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import Infos
from meta_policy_search.utils.checks import check_int_at_least


class MetaGaussianMLPPolicy(GaussianMLPPolicy, MetaPolicy):
    """A `GaussianMLPPolicy` for meta-learning: `M` tasks act with parameters of their own.

    Args:
        meta_batch_size (int): number `M` of tasks.
        *args: as for `Policy`.
        **kwargs: as for `GaussianMLPPolicy`.

    Raises:
        ValueError: `meta_batch_size` below one; else as for `GaussianMLPPolicy`.
    """

    def __init__(self, meta_batch_size: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(meta_batch_size, *args, **kwargs)

    def _build_acting(self) -> None:
        self._obs_ph = tf.placeholder(tf.float32, [None, None, self.obs_dim], name="observations")
        self._acting_info = self.distribution_info_sym(self._obs_ph, self.policies_params_phs)

    def get_action(self, observation: np.ndarray, task: int = 0) -> Tuple[np.ndarray, Infos]:
        """Samples an action with the parameters of one task.

        Args:
            observation: `[O]`.
            task: index of the task, from 0 to `meta_batch_size - 1`.

        Returns:
            `(action [A], agent_info)` with `mean` `[A]` and `log_std` `[A]`, float32.

        Raises:
            ValueError: a wrong shape, a number that is not finite, or no such task.
        """
        observation = self._check_observations("observation", observation, ndim=1)
        if check_int_at_least("task", task, 0) >= self.meta_batch_size:
            raise ValueError(f"task: expected less than meta_batch_size={self.meta_batch_size}, got {task}")
        feed = {ph: values[task:task + 1] for ph, values in self.policies_params_feed_dict.items()}
        actions, infos = self._act({self._obs_ph: observation[None, None], **feed})
        return actions[0, 0], {key: value[0, 0] for key, value in infos.items()}

    def get_actions(self, observations: Sequence[np.ndarray]) -> Tuple[List[np.ndarray], List[List[Infos]]]:
        """Samples actions for every task, each with its own parameters.

        Args:
            observations: `M` arrays `[B, O]`, or one array `[M, B, O]`.

        Returns:
            A list of `M` action arrays `[B, A]`, and a list of `M` lists of `B` dicts with `mean` and `log_std`
            `[A]`, float32.

        Raises:
            ValueError: the number of arrays is not `meta_batch_size`, their lengths differ, a shape is wrong, or a
                number is not finite.
        """
        if len(observations) != self.meta_batch_size:
            raise ValueError(
                f"observations: expected {self.meta_batch_size} arrays (meta_batch_size), got {len(observations)}"
            )
        lengths = sorted({len(task_observations) for task_observations in observations})
        if len(lengths) != 1:
            raise ValueError(f"observations: expected equally many for every task, got lengths {lengths}")
        stacked = self._check_observations("observations", observations, ndim=3)
        actions, infos = self._act({self._obs_ph: stacked, **self.policies_params_feed_dict})
        agent_infos = [
            [{key: value[task, i] for key, value in infos.items()} for i in range(lengths[0])]
            for task in range(self.meta_batch_size)
        ]
        return list(actions), agent_infos

    def _stacked_for_acting(self) -> "OrderedDict[str, np.ndarray]":
        return OrderedDict(self.stacked_param_values())
