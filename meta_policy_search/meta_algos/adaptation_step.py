"""One step of the chain from the parameters before adaptation to the adapted ones."""
from typing import Mapping, NamedTuple

from meta_policy_search.meta_algos.inputs import StepInputs
from meta_policy_search.tf_compat import tf


class AdaptationStep(NamedTuple):
    """One step of the chain from `theta` to the adapted parameters, inside the meta-objective."""

    inputs: StepInputs
    params: Mapping[str, tf.Tensor]  # each [M, ...], what the policy acts with at this step
    dist_info: Mapping[str, tf.Tensor]  # each [M, N, ...]
    log_prob: tf.Tensor  # [M, N], of the actions under `params`
    old_log_prob: tf.Tensor  # [M, N], of the actions when they were sampled
