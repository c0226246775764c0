"""Sample weights for padded batches in which tasks have different numbers of samples."""
from typing import Union

from meta_policy_search.tf_compat import tf


def path_weights(mask: tf.Tensor, path_starts: tf.Tensor, max_path_length: Union[int, tf.Tensor]) -> tf.Tensor:
    """Builds weights for means over paths and steps: `1 / (P_m T)` on samples, zero on padding.

    Args:
        mask: float32 `[M, N]`, one on samples, zero on padding.
        path_starts: int `[M, N]`, index of the first sample of the same path.
        max_path_length: `T`, a number or a scalar tensor.

    Returns:
        Weights, float32 `[M, N]`.
    """
    with tf.name_scope("path_weights"):
        steps_before = tf.cast(tf.range(tf.shape(mask)[1])[None] - path_starts, tf.float32)
        num_paths = tf.reduce_sum(mask * tf.cast(tf.equal(steps_before, 0.0), tf.float32), axis=-1, keepdims=True)
        return mask / (num_paths * tf.cast(max_path_length, tf.float32))


def sample_weights(mask: tf.Tensor) -> tf.Tensor:
    """Builds weights for means over samples, float32 `[M, N]`.

    Each row sums to one, or to zero if the task has no samples. `mask` is float32 `[M, N]`, one on samples, zero on
    padding.
    """
    with tf.name_scope("sample_weights"):
        return tf.math.divide_no_nan(mask, tf.reduce_sum(mask, axis=-1, keepdims=True))
