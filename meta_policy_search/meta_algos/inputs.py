"""Graph inputs for the samples of one step, and the data structures that algorithms build from them."""
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.ops import losses
from meta_policy_search.policies.base import MetaPolicy
from meta_policy_search.samplers.stacking import stack_samples
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import TaskSamples


class StepInputs:
    """Placeholders for the samples of all tasks at one step.

    Args:
        name: name of the step, such as `step0`.
        policy: the sampling policy.

    Attributes:
        placeholders (dict): all placeholders by name, `<step>/<entry>`. The first axis is the task axis, the second one
            the sample axis. The methods and properties of this class create further placeholders on first use.
        observations: float32 `[M, N, O]`.
        actions: float32 `[M, N, A]`; `[M, N]` if actions are discrete.
        mask: float32 `[M, N]`, one on samples, zero on padding.
        weights: float32 `[M, N]`, weights for means over samples: rows sum to one, zero on padding.
        dist_info_old (dict): parameters of the sampling distribution, each `[M, N, ...]`.
    """

    def __init__(self, name: str, policy: MetaPolicy) -> None:
        distribution = policy.distribution
        self.name = name
        self._scope = f"{tf.get_default_graph().get_name_scope()}/"  # the trailing slash re-enters this scope
        self.placeholders: Dict[str, tf.Tensor] = {}
        self.observations = self._placeholder("observations", [None, None, policy.obs_dim])
        self.actions = self._placeholder("actions", [None, None, *distribution.action_shape])
        self.mask = self._placeholder("mask", [None, None])
        self.weights = losses.sample_weights(self.mask)
        self.dist_info_old = {key: self._placeholder(f"agent_infos/{key}", [None, None, *shape])
                              for key, shape in distribution.dist_info_specs}

    def _placeholder(self, key: str, shape: Sequence[Optional[int]], dtype: tf.DType = tf.float32) -> tf.Tensor:
        """Returns the placeholder of an entry; creates it on the first call."""
        name = f"{self.name}/{key}"
        if name not in self.placeholders:
            with tf.name_scope(self._scope):
                self.placeholders[name] = tf.placeholder(dtype, shape, name=key.replace("/", "_"))
        return self.placeholders[name]

    def entry(self, key: str) -> tf.Tensor:
        """Returns the placeholder of an entry with one number per sample, float32 `[M, N]`.

        The samples passed to the algorithm must then contain this entry, such as `rewards`.
        """
        return self._placeholder(key, [None, None])

    @property
    def advantages(self) -> tf.Tensor:
        """The advantages, float32 `[M, N]`."""
        return self.entry("advantages")

    @property
    def path_starts(self) -> tf.Tensor:
        """Index of the first sample of each sample's path, int32 `[M, N]`."""
        return self._placeholder("path_starts", [None, None], tf.int32)

    def path_weights(self, max_path_length: int) -> tf.Tensor:
        """Builds weights for means over paths and steps, float32 `[M, N]`; see `ops.losses.path_weights`."""
        return losses.path_weights(self.mask, self.path_starts, max_path_length)

    def values(self, samples: Sequence[TaskSamples]) -> Dict[str, np.ndarray]:
        """Returns the values of the placeholders by name."""
        prefix = f"{self.name}/"
        stacked = stack_samples(samples, [name[len(prefix):] for name in self.placeholders])
        return {prefix + key: values for key, values in stacked.items()}


class AdaptationStep(NamedTuple):
    """The policies of all tasks after a number of adaptation steps, and the samples that they collected."""

    inputs: StepInputs
    params: Mapping[str, tf.Tensor]  # each [M, ...], policy parameters
    dist_info: Mapping[str, tf.Tensor]  # each [M, N, ...], distributions over actions under `params`
    log_prob: tf.Tensor  # [M, N], log-density of the actions under `params`, nats
    old_log_prob: tf.Tensor  # [M, N], log-density of the actions under the sampling policies, nats


class MetaObjective(NamedTuple):
    """Return value of `MAMLAlgo.meta_objective`."""

    loss: tf.Tensor  # scalar, to minimize
    stats: Mapping[str, tf.Tensor] = {}  # logged by name after the update: a scalar, or the mean of a vector
    optimizer_arguments: Mapping[str, Any] = {}  # further arguments of the optimizer's `build_graph`, by name
    inputs: Mapping[str, tf.Tensor] = {}  # further placeholders, fed with the algorithm's attributes of the same name
    by_task: bool = False  # True: loss, stats and constraints are means over tasks; allows blocks of tasks


InnerState = Mapping[str, tf.Tensor]
"""State of the update rule of adaptation, a dict from name to tensor `[M, ...]`; empty for plain gradient steps."""

InnerUpdate = Tuple[Mapping[str, tf.Tensor], InnerState]
"""Parameters and update-rule state after an adaptation step."""
