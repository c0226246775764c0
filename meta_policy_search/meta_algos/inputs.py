"""Graph inputs: stacks the samples of a step to arrays `[M, N, ...]`, and the data structures that losses use."""
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from meta_policy_search.ops import losses
from meta_policy_search.policies.base import MetaPolicy
from meta_policy_search.samplers.paths import path_mask
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
        for key, values in stacked.items():
            shape = self.placeholders[prefix + key].shape
            if not shape.is_compatible_with(values.shape):
                raise ValueError(f"{key}: expected shape {tuple(shape.as_list()[2:])} after the sample axis, got "
                                 f"{values.shape[2:]}")
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


def stack_samples(samples: Sequence[TaskSamples], keys: Iterable[str]) -> Dict[str, np.ndarray]:
    """Stacks entries of the samples of all tasks.

    Tasks with fewer samples than others are padded with copies of their first sample, where the mask is zero. Padded
    samples of a `DiceSampleProcessor`, `[P, T, ...]`, are flattened to the steps with mask one. Then
    `adjusted_rewards_after_end` is added to the last adjusted reward of each path, because both have the same magic
    box.

    Args:
        samples: `M` dicts, see `TaskSamples`. Entries that are not in `keys` are ignored.
        keys: names of entries, such as `advantages` or `agent_infos/mean`, and any of these:

            * `mask`, float32 `[M, N]`: 1 for samples, 0 for padding;
            * `path_starts`, int32 `[M, N]`: index of the first sample of the same path.

    Returns:
        A dict with these keys. Entries are float32 `[M, N, ...]`, unless specified above.

    Raises:
        ValueError: an entry is missing, does not have one value per observation, has different shapes in different
            tasks, or is not finite in float32; the sum of `path_lengths` is not the number of samples; or `mask` and
            `path_lengths` of DiCE samples are inconsistent. The message names task and entry.
    """
    masks = [_mask_of(task, m) for m, task in enumerate(samples)]

    def read(key: str) -> List[np.ndarray]:
        return [_read(task, m, key, mask) for m, (task, mask) in enumerate(zip(samples, masks))]

    counts = [len(observations) for observations in read("observations")]
    stacked: Dict[str, np.ndarray] = {}
    for key in keys:
        if key == "mask":
            stacked[key] = path_mask(np.asarray(counts)).astype(np.float32)
        elif key == "path_starts":
            starts = [path_starts(_path_lengths(task, m)) for m, task in enumerate(samples)]
            stacked[key] = _stack_entry("path_lengths", starts, counts, np.int32)
        else:
            stacked[key] = _stack_entry(key, read(key), counts)
    return stacked


def stack_tasks(arrays: Sequence[np.ndarray], dtype: type = np.float32) -> np.ndarray:
    """Stacks `M` arrays `[N_m, ...]` with `N_m >= 1` to `[M, max N_m, ...]`.

    Shorter arrays are padded with copies of their first sample, because real samples keep likelihood ratios finite.
    """
    longest = max(len(array) for array in arrays)
    stacked: np.ndarray = np.empty((len(arrays), longest) + np.shape(arrays[0])[1:], dtype)
    for row, array in zip(stacked, arrays):
        row[: len(array)] = array
        row[len(array):] = array[0]
    return stacked


def path_starts(path_lengths: Union[np.ndarray, Sequence[int]]) -> np.ndarray:
    """Returns for each sample the index of the first sample of its path, int `[N]`, for path lengths int `[P]`."""
    lengths = np.asarray(path_lengths)
    return np.repeat(np.cumsum(lengths) - lengths, lengths)


def _stack_entry(key: str, arrays: Sequence[np.ndarray], counts: Sequence[int], dtype: type = np.float32) -> np.ndarray:
    for m, (array, count) in enumerate(zip(arrays, counts)):
        if not count or count != len(array):
            raise ValueError(f"task {m}: expected the same number of samples, at least 1, in all entries, got {count} "
                             f"observations and {len(array)} of {key}")
        if array.shape[1:] != arrays[0].shape[1:]:
            raise ValueError(f"task {m}, {key}: expected shape {arrays[0].shape[1:]} after the sample axis, "
                             f"as in task 0, got {array.shape[1:]}")
    with np.errstate(over="ignore"):  # infinities raise an error below
        stacked = stack_tasks(arrays, dtype)
    finite = np.isfinite(stacked)
    if not finite.all():
        m, n = np.argwhere(~finite)[0, :2].tolist()
        raise ValueError(f"task {m}, {key}: expected finite float32 numbers, got {arrays[m][n]} in sample {n}")
    return stacked


def _read(task: Mapping[str, Any], m: int, key: str, mask: Optional[np.ndarray]) -> np.ndarray:
    """Returns an entry of task `m` as a numeric array `[N, ...]`."""
    if mask is None:
        return _array(task, m, key)
    values = _array(task, m, key, mask.shape)[mask]
    if key == "adjusted_rewards":
        values[np.cumsum(mask.sum(axis=1)) - 1] += _array(task, m, "adjusted_rewards_after_end", mask.shape[:1])
    return values


def _array(task: Mapping[str, Any], m: int, key: str, shape: Tuple[int, ...] = ()) -> np.ndarray:
    """Returns an entry of task `m` as a numeric array; raises `ValueError` unless its shape starts with `shape`."""
    kind, _, info = key.partition("/")
    if kind not in task or info and info not in task[kind]:
        lacking = key if kind in task else kind
        is_dice = lacking == "advantages" and "adjusted_rewards" in task
        advice = "; pass return_baseline, such as LinearFeatureBaseline(), to the sample processor" if is_dice else (
            "; use DiceSampleProcessor" * (lacking == "adjusted_rewards"))
        raise ValueError(f"task {m}: expected samples with an entry {lacking!r}, got none{advice}")
    array = np.asarray(task[kind][info] if info else task[kind])
    if array.ndim == 0 or array.dtype.kind not in "biuf" or array.shape[:len(shape)] != shape:
        expected = f"whose shape starts with {shape}" if shape else "with a sample axis"
        raise ValueError(f"task {m}, {key}: expected a numeric array {expected}, got an array of shape "
                         f"{array.shape} and dtype {array.dtype}")
    return array


def _path_lengths(task: Mapping[str, Any], m: int) -> np.ndarray:
    lengths = _array(task, m, "path_lengths")
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or lengths.min(initial=1) < 1:
        raise ValueError(f"task {m}, path_lengths: expected integers of at least 1, got {lengths}")
    return lengths


def _mask_of(task: Mapping[str, Any], m: int) -> Optional[np.ndarray]:
    """Returns the mask of padded samples, bool `[P, T]`, or None for samples without a mask.

    Raises:
        ValueError: mask and path lengths are inconsistent.
    """
    if "mask" not in task:
        return None
    mask, lengths = _array(task, m, "mask"), _array(task, m, "path_lengths")
    agree = mask.ndim == 2 and lengths.shape == mask.shape[:1] and np.array_equal(
        mask, path_mask(lengths, mask.shape[1]))
    if not agree or lengths.min() < 1 or lengths.max() > mask.shape[1]:
        raise ValueError(f"task {m}, mask and path_lengths: expected a mask [P, T] with ones on the first path_lengths "
                         f"steps of each path and zeros after them, got path_lengths {lengths} and a mask of shape "
                         f"{mask.shape} with the row sums {mask.sum(axis=-1)}")
    return mask > 0
