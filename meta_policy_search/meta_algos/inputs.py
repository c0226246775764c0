"""The samples of a meta-batch as inputs of the graph."""
from typing import Dict, NamedTuple, Optional

from meta_policy_search.tf_compat import tf


class StepInputs(NamedTuple):
    """The samples of all tasks at one adaptation step, as placeholders."""

    placeholders: Dict[str, tf.Tensor]  # by input name, all of the below but `weights`
    observations: tf.Tensor  # [M, N, O]
    actions: tf.Tensor  # [M, N, A]; [M, N] where they are discrete
    mask: tf.Tensor  # [M, N], one for samples, zero on padding
    weights: tf.Tensor  # [M, N], rows sum to one
    dist_info_old: Dict[str, tf.Tensor]  # each [M, N, ...], the distribution the actions were sampled from
    entries: Dict[str, tf.Tensor]  # each [M, N], such as `advantages`
    path_starts: Optional[tf.Tensor]  # int [M, N], where each sample's path starts; for DiCE
    path_weights: Optional[tf.Tensor]  # [M, N], one over the number of paths and steps of a path; for DiCE

    @property
    def advantages(self) -> tf.Tensor:
        """The advantages, `[M, N]`."""
        return self.entries["advantages"]
