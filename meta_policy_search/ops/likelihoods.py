"""Densities, divergences and entropies of distributions over actions, as graph functions.

All broadcast over leading axes, so that one set of functions serves samples `[N, ...]` of one task and `[M, N, ...]`
of all tasks. The last axis is the action's (`A`) for diagonal Gaussians, whose log standard deviation may be
`[1, A]`, `[M, 1, A]` or of the full shape, and that of the actions to choose from (`n`) for categorical
distributions.
"""
import math

from meta_policy_search.tf_compat import tf

_LOG_2PI = math.log(2.0 * math.pi)


def gaussian_log_prob(actions: tf.Tensor, mean: tf.Tensor, log_std: tf.Tensor) -> tf.Tensor:
    """Builds `log N(a; mean, std^2) = -sum_i (z_i^2 / 2 + log std_i) - A log(2 pi) / 2`, `z = (a - mean) / std`.

    Args:
        actions: `[..., A]`.
        mean: `[..., A]`.
        log_std: `[..., A]`, broadcast against `mean`.

    Returns:
        `[...]`, nats.
    """
    with tf.name_scope("gaussian_log_prob"):
        z = (actions - mean) * tf.exp(-log_std)
        size = tf.cast(tf.shape(mean)[-1], mean.dtype)
        return -0.5 * tf.reduce_sum(tf.square(z), -1) - tf.reduce_sum(log_std, -1) - 0.5 * _LOG_2PI * size


def gaussian_kl(old_mean: tf.Tensor, old_log_std: tf.Tensor, mean: tf.Tensor, log_std: tf.Tensor) -> tf.Tensor:
    """Builds `KL(old || new)` of two diagonal Gaussians, summed over the action's components.

    `sum_i ((mu_old - mu)^2 + s_old^2 - s^2) / (2 s^2) + log s - log s_old`.

    Args:
        old_mean: `[..., A]`.
        old_log_std: `[..., A]`.
        mean: `[..., A]`.
        log_std: `[..., A]`, broadcast against the others.

    Returns:
        `[...]`, nats, at least zero.
    """
    with tf.name_scope("gaussian_kl"):
        # expm1 keeps the difference of two nearly equal variances exact in float32.
        variance_term = 0.5 * tf.expm1(2.0 * (old_log_std - log_std))
        mean_term = 0.5 * tf.square((old_mean - mean) * tf.exp(-log_std))
        return tf.reduce_sum(mean_term + variance_term + log_std - old_log_std, -1)


def gaussian_entropy(log_std: tf.Tensor) -> tf.Tensor:
    """Builds the entropy `sum_i log std_i + A (1 + log(2 pi)) / 2`, in nats; `[..., A]` to `[...]`."""
    with tf.name_scope("gaussian_entropy"):
        size = tf.cast(tf.shape(log_std)[-1], log_std.dtype)
        return tf.reduce_sum(log_std, -1) + 0.5 * (1.0 + _LOG_2PI) * size


def categorical_log_prob(actions: tf.Tensor, log_prob: tf.Tensor) -> tf.Tensor:
    """Builds the log-probability `log p_a` of actions that are indices.

    Args:
        actions: `[...]`, whole numbers from 0 to `n - 1`, of any numeric type.
        log_prob: `[..., n]`, normalized log-probabilities, nats; finite.

    Returns:
        `[...]`, nats.
    """
    with tf.name_scope("categorical_log_prob"):
        is_chosen = tf.one_hot(tf.cast(actions, tf.int32), tf.shape(log_prob)[-1], dtype=log_prob.dtype)
        return tf.reduce_sum(is_chosen * log_prob, -1)


def categorical_kl(old_log_prob: tf.Tensor, log_prob: tf.Tensor) -> tf.Tensor:
    """Builds `KL(old || new) = sum_a p_old(a) (log p_old(a) - log p(a))` of two categorical distributions.

    Args:
        old_log_prob: `[..., n]`, normalized log-probabilities, nats; finite.
        log_prob: `[..., n]`, likewise.

    Returns:
        `[...]`, nats.
    """
    with tf.name_scope("categorical_kl"):
        return tf.reduce_sum(tf.exp(old_log_prob) * (old_log_prob - log_prob), -1)


def categorical_entropy(log_prob: tf.Tensor) -> tf.Tensor:
    """Builds the entropy `-sum_a p(a) log p(a)`, in nats, from finite log-probabilities; `[..., n]` to `[...]`."""
    with tf.name_scope("categorical_entropy"):
        return -tf.reduce_sum(tf.exp(log_prob) * log_prob, -1)
