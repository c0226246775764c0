"""Densities, divergences and entropies of distributions over actions, as graph functions.

All results are `[...]`, in nats. Leading axes broadcast: samples are `[N, ...]` of one task or `[M, N, ...]` of all.
Diagonal Gaussians: actions, `mean` and `log_std` are `[..., A]`; `log_std` may also be `[1, A]` or `[M, 1, A]`.
Categorical distributions: `log_prob` is `[..., n]`, normalized and finite, for `n` actions to choose from.
"""
import math

from meta_policy_search.tf_compat import tf

_LOG_2PI = math.log(2.0 * math.pi)


def gaussian_log_prob(actions: tf.Tensor, mean: tf.Tensor, log_std: tf.Tensor) -> tf.Tensor:
    """Builds `log N(a; mean, std^2) = -sum_i (z_i^2 / 2 + log std_i) - A log(2 pi) / 2`, `z = (a - mean) / std`."""
    with tf.name_scope("gaussian_log_prob"):
        z = (actions - mean) * tf.exp(-log_std)
        size = tf.cast(tf.shape(mean)[-1], mean.dtype)
        return -0.5 * tf.reduce_sum(tf.square(z), -1) - tf.reduce_sum(log_std, -1) - 0.5 * _LOG_2PI * size


def gaussian_kl(old_mean: tf.Tensor, old_log_std: tf.Tensor, mean: tf.Tensor, log_std: tf.Tensor) -> tf.Tensor:
    """Builds `KL(old || new)` of two diagonal Gaussians, summed over the action's components.

    `sum_i ((mu_old - mu)^2 + s_old^2 - s^2) / (2 s^2) + log s - log s_old`, at least zero.
    """
    with tf.name_scope("gaussian_kl"):
        # expm1 keeps the difference of two nearly equal variances exact in float32.
        variance_term = 0.5 * tf.expm1(2.0 * (old_log_std - log_std))
        mean_term = 0.5 * tf.square((old_mean - mean) * tf.exp(-log_std))
        return tf.reduce_sum(mean_term + variance_term + log_std - old_log_std, -1)


def gaussian_fisher_norm(log_std: tf.Tensor, mean_change: tf.Tensor, log_std_change: tf.Tensor) -> tf.Tensor:
    """Builds `sum_i (d mu_i / s_i)^2 + 2 (d log s_i)^2`, the squared length of a change in the Fisher information."""
    with tf.name_scope("gaussian_fisher_norm"):
        return tf.reduce_sum(tf.square(mean_change * tf.exp(-log_std)) + 2.0 * tf.square(log_std_change), -1)


def gaussian_entropy(log_std: tf.Tensor) -> tf.Tensor:
    """Builds the entropy `sum_i log std_i + A (1 + log(2 pi)) / 2` of a diagonal Gaussian."""
    with tf.name_scope("gaussian_entropy"):
        size = tf.cast(tf.shape(log_std)[-1], log_std.dtype)
        return tf.reduce_sum(log_std, -1) + 0.5 * (1.0 + _LOG_2PI) * size


def categorical_log_prob(actions: tf.Tensor, log_prob: tf.Tensor) -> tf.Tensor:
    """Builds `log p_a` of actions `[...]`, whole numbers from 0 to `n - 1` of any numeric type."""
    with tf.name_scope("categorical_log_prob"):
        is_chosen = tf.one_hot(tf.cast(actions, tf.int32), tf.shape(log_prob)[-1], dtype=log_prob.dtype)
        return tf.reduce_sum(is_chosen * log_prob, -1)


def categorical_kl(old_log_prob: tf.Tensor, log_prob: tf.Tensor) -> tf.Tensor:
    """Builds `KL(old || new) = sum_a p_old(a) (log p_old(a) - log p(a))` of two categorical distributions."""
    with tf.name_scope("categorical_kl"):
        return tf.reduce_sum(tf.exp(old_log_prob) * (old_log_prob - log_prob), -1)


def categorical_fisher_norm(log_prob: tf.Tensor, change: tf.Tensor) -> tf.Tensor:
    """Builds `sum_a p(a) (d log p(a))^2`, the squared length of a change in the Fisher information."""
    with tf.name_scope("categorical_fisher_norm"):
        return tf.reduce_sum(tf.exp(log_prob) * tf.square(change), -1)


def categorical_entropy(log_prob: tf.Tensor) -> tf.Tensor:
    """Builds the entropy `-sum_a p(a) log p(a)` of a categorical distribution."""
    with tf.name_scope("categorical_entropy"):
        return -tf.reduce_sum(tf.exp(log_prob) * log_prob, -1)
