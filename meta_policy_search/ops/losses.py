"""Policy-gradient losses, one value per task: tensors `[M, N]` in, NamedTuples out.

Every mean over samples is a sum with `weights` `[M, N]` whose rows sum to one and which are zero on padding, so
tasks may hold different numbers of samples.
"""
from typing import NamedTuple

from meta_policy_search.tf_compat import tf


class LikelihoodRatioOutput(NamedTuple):
    """What `likelihood_ratio_loss` builds."""

    loss: tf.Tensor  # [M], to minimize
    ratio: tf.Tensor  # [M, N], pi_new / pi_old


class LogLikelihoodOutput(NamedTuple):
    """What `log_likelihood_loss` builds."""

    loss: tf.Tensor  # [M], to minimize


class SurrogateOutput(NamedTuple):
    """What `clipped_surrogate` builds."""

    loss: tf.Tensor  # [M], to minimize
    ratio: tf.Tensor  # [M, N], pi_new / pi_old
    clipped_fraction: tf.Tensor  # [M], in [0, 1]


def _check_shapes(reference: str, **tensors: tf.Tensor) -> None:
    """Raises a `ValueError` naming the first tensor whose static shape does not fit that of `reference`."""
    expected = tensors[reference].shape
    for name, tensor in tensors.items():
        if tensor.shape.rank is not None and not tensor.shape.is_compatible_with(expected):
            raise ValueError(f"{name}: expected the shape {expected} of {reference}, got {tensor.shape}")


def weighted_mean(values: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Builds `sum_n w_mn x_mn`: the mean over each task's valid samples, `[M, N]` to `[M]`."""
    return tf.reduce_sum(weights * values, axis=-1)


def likelihood_ratio_loss(
    log_prob: tf.Tensor,
    old_log_prob: tf.Tensor,
    advantages: tf.Tensor,
    weights: tf.Tensor,
    name: str = "likelihood_ratio_loss",
) -> LikelihoodRatioOutput:
    """Builds the importance-weighted policy-gradient loss (arXiv:1502.05477, Eq. 14), one per task.

    `L_m = -sum_n w_mn r_mn A_mn`, `r = pi_new / pi_old`.

    Args:
        log_prob: float32 `[M, N]`, log-density of the actions under the current policy, nats.
        old_log_prob: float32 `[M, N]`, the same under the sampling policy; no gradient flows here.
        advantages: float32 `[M, N]`, in (normalized) return units; no gradient flows here.
        weights: float32 `[M, N]`, rows sum to one, zero on padding.
        name: name scope.

    Returns:
        A `LikelihoodRatioOutput`.

    Raises:
        ValueError: names the argument whose shape does not fit, and both shapes.
    """
    _check_shapes("log_prob", log_prob=log_prob, old_log_prob=old_log_prob, advantages=advantages, weights=weights)
    with tf.name_scope(name):
        ratio = tf.exp(log_prob - tf.stop_gradient(old_log_prob))
        return LikelihoodRatioOutput(-weighted_mean(ratio * tf.stop_gradient(advantages), weights), ratio)


def log_likelihood_loss(
    log_prob: tf.Tensor, advantages: tf.Tensor, weights: tf.Tensor, name: str = "log_likelihood_loss"
) -> LogLikelihoodOutput:
    """Builds the score-function policy-gradient loss (REINFORCE; Williams, 1992), one per task.

    `L_m = -sum_n w_mn log pi(a_mn | o_mn) A_mn`. Its gradient is that of `likelihood_ratio_loss` at the sampling
    policy; away from it, and in second derivatives, the two differ.

    Args:
        log_prob: float32 `[M, N]`, log-density of the actions under the current policy, nats.
        advantages: float32 `[M, N]`, in (normalized) return units; no gradient flows here.
        weights: float32 `[M, N]`, rows sum to one, zero on padding.
        name: name scope.

    Returns:
        A `LogLikelihoodOutput`.

    Raises:
        ValueError: names the argument whose shape does not fit, and both shapes.
    """
    _check_shapes("log_prob", log_prob=log_prob, advantages=advantages, weights=weights)
    with tf.name_scope(name):
        return LogLikelihoodOutput(-weighted_mean(log_prob * tf.stop_gradient(advantages), weights))


def clipped_surrogate(
    log_prob: tf.Tensor,
    old_log_prob: tf.Tensor,
    advantages: tf.Tensor,
    weights: tf.Tensor,
    clip_eps: tf.Tensor,
    name: str = "clipped_surrogate",
) -> SurrogateOutput:
    """Builds the clipped policy-gradient loss of PPO (arXiv:1707.06347, Eq. 7), one per task.

    `L_m = -sum_n w_mn min(r_mn A_mn, clip(r_mn, 1 - eps, 1 + eps) A_mn)`.

    Args:
        log_prob: float32 `[M, N]`, log-density of the actions under the current policy, nats.
        old_log_prob: float32 `[M, N]`, the same under the sampling policy; no gradient flows here.
        advantages: float32 `[M, N]`, in (normalized) return units; no gradient flows here.
        weights: float32 `[M, N]`, rows sum to one, zero on padding.
        clip_eps: half-width of the ratio interval, dimensionless.
        name: name scope.

    Returns:
        A `SurrogateOutput`.

    Raises:
        ValueError: names the argument whose shape does not fit, and both shapes.
    """
    _check_shapes("log_prob", log_prob=log_prob, old_log_prob=old_log_prob, advantages=advantages, weights=weights)
    with tf.name_scope(name):
        advantages = tf.stop_gradient(advantages)
        ratio = tf.exp(log_prob - tf.stop_gradient(old_log_prob))
        clipped = tf.clip_by_value(ratio, 1.0 - clip_eps, 1.0 + clip_eps)
        loss = -weighted_mean(tf.minimum(ratio * advantages, clipped * advantages), weights)
        outside = tf.cast(tf.not_equal(ratio, clipped), tf.float32)
        return SurrogateOutput(loss, ratio, weighted_mean(outside, weights))


def exploration_score(
    log_prob: tf.Tensor, old_log_prob: tf.Tensor, weights: tf.Tensor, name: str = "exploration_score"
) -> tf.Tensor:
    """Builds the score of one inner step's samples, as E-MAML's exploration term needs it, one per task.

    `S_m = sum_n w_mn (pi(a_mn | o_mn) / pi_old(a_mn | o_mn) - 1)`. At the sampling policy it is zero. With a weight of
    one for every sample its gradient there is that of the log-density of the task's whole data set
    (arXiv:1803.01118, Eq. 9).

    Args:
        log_prob: float32 `[M, N]`, log-density of the actions under the current policy, nats.
        old_log_prob: float32 `[M, N]`, the same under the sampling policy; no gradient flows here.
        weights: float32 `[M, N]`, zero on padding.
        name: name scope.

    Returns:
        `[M]`.

    Raises:
        ValueError: names the argument whose shape does not fit, and both shapes.
    """
    _check_shapes("log_prob", log_prob=log_prob, old_log_prob=old_log_prob, weights=weights)
    with tf.name_scope(name):
        return tf.reduce_sum(weights * tf.expm1(log_prob - tf.stop_gradient(old_log_prob)), axis=-1)
