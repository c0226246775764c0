"""The samples of one adaptation step as inputs of the graph."""
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from meta_policy_search.ops import ragged
from meta_policy_search.policies.distributions.base import Distribution
from meta_policy_search.samplers.stacking import stack_samples
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import TaskSamples


class StepInputs(NamedTuple):
    """The samples of all tasks at one adaptation step, as placeholders."""

    name: str  # of the step
    placeholders: Dict[str, tf.Tensor]  # by `<name>/<entry>`, all that is fed
    observations: tf.Tensor  # [M, N, O]
    actions: tf.Tensor  # [M, N, A]; [M, N] where they are discrete
    mask: tf.Tensor  # [M, N], one for samples, zero on padding
    weights: tf.Tensor  # [M, N], rows sum to one
    dist_info_old: Dict[str, tf.Tensor]  # each [M, N, ...], the distribution the actions were sampled from
    entries: Dict[str, tf.Tensor]  # each [M, N], such as `advantages`
    path_starts: Optional[tf.Tensor]  # int [M, N], where each sample's path starts; for DiCE
    path_weights: Optional[tf.Tensor]  # [M, N], one over the number of paths and steps of a path; for DiCE

    @property
    def by_task(self) -> Dict[str, tf.Tensor]:
        """Those of the placeholders whose axes are tasks and samples."""
        return {name: ph for name, ph in self.placeholders.items() if ph.shape.rank}

    @property
    def advantages(self) -> tf.Tensor:
        """The advantages, `[M, N]`."""
        return self.entries["advantages"]

    def values(self, samples: Sequence[TaskSamples]) -> Dict[str, np.ndarray]:
        """Returns what the placeholders are fed, by their names."""
        prefix = f"{self.name}/"
        stacked = stack_samples(samples, [name[len(prefix):] for name in self.placeholders])
        return {prefix + key: values for key, values in stacked.items()}


def make_step_inputs(name: str, obs_dim: int, distribution: Distribution, entries: Sequence[str], needs_paths: bool,
                     max_path_length: Optional[int]) -> StepInputs:
    """Creates stacked placeholders for one step's samples of all tasks.

    `entries` are those `[N]` that the losses need. `needs_paths` says whether they need to know where paths start, and
    `max_path_length` is the most steps of a path, for its weights: where it is None, the length of the longest one.
    """
    shapes: Dict[str, List[Any]] = {
        "observations": [obs_dim],
        "actions": list(distribution.action_shape),
        "mask": [],
        **{f"agent_infos/{key}": list(shape) for key, shape in distribution.dist_info_specs},
        **{key: [] for key in entries},
    }
    phs = {key: tf.placeholder(tf.float32, [None, None, *shape], name=key.replace("/", "_"))
           for key, shape in shapes.items()}
    path_starts = path_weights = None
    if needs_paths:
        path_starts = phs["path_starts"] = tf.placeholder(tf.int32, [None, None], name="path_starts")
        if max_path_length is None:
            max_path_length = phs["longest_path"] = tf.placeholder(tf.int32, [], name="longest_path")
        path_weights = ragged.path_weights(phs["mask"], path_starts, max_path_length)
    return StepInputs(
        name, {f"{name}/{key}": ph for key, ph in phs.items()}, phs["observations"], phs["actions"], phs["mask"],
        weights=ragged.sample_weights(phs["mask"]),
        dist_info_old={key: phs[f"agent_infos/{key}"] for key, _ in distribution.dist_info_specs},
        entries={key: phs[key] for key in entries}, path_starts=path_starts, path_weights=path_weights,
    )
