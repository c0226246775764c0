"""Policy-gradient losses: tensors `[M, N]` in, one loss per task `[M]` out, to be minimized.

Arguments of the same name mean the same in every function:

================  ======================================================================================
`log_prob`        float32 `[M, N]`, log-density of the actions under the current policy, nats
`old_log_prob`    float32 `[M, N]`, the same under the sampling policy; no gradient flows here
`advantages`      float32 `[M, N]`, in (normalized) return units; no gradient flows here
`weights`         float32 `[M, N]`, zero on padding; rows sum to one (DiCE: see `ragged.path_weights`)
`path_starts`     int `[M, N]`, index of the first sample of the same path
`name`            name scope
================  ======================================================================================

Every mean over samples is a sum with `weights`, so tasks may hold different numbers of samples. A shape that does not
fit raises a `ValueError` that names the argument and both shapes.
"""
from typing import Tuple

from meta_policy_search.tf_compat import tf


def _check_shapes(reference: str, **tensors: tf.Tensor) -> None:
    """Raises a `ValueError` naming the first tensor whose static shape does not fit that of `reference`."""
    expected = tensors[reference].shape
    for name, tensor in tensors.items():
        if tensor.shape.rank is not None and not tensor.shape.is_compatible_with(expected):
            raise ValueError(f"{name}: expected the shape {expected} of {reference}, got {tensor.shape}")


def weighted_mean(values: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Builds `sum_n w_mn x_mn`: the mean over each task's valid samples, `[M, N]` to `[M]`."""
    return tf.reduce_sum(weights * values, axis=-1)


def likelihood_ratio_loss(log_prob: tf.Tensor, old_log_prob: tf.Tensor, advantages: tf.Tensor, weights: tf.Tensor,
                          name: str = "likelihood_ratio_loss") -> tf.Tensor:
    """Builds the importance-weighted policy-gradient loss (arXiv:1502.05477, Eq. 14), one per task.

    `L_m = -sum_n w_mn r_mn A_mn`, `r = pi_new / pi_old`.
    """
    _check_shapes("log_prob", log_prob=log_prob, old_log_prob=old_log_prob, advantages=advantages, weights=weights)
    with tf.name_scope(name):
        ratio = tf.exp(log_prob - tf.stop_gradient(old_log_prob))
        return -weighted_mean(ratio * tf.stop_gradient(advantages), weights)


def log_likelihood_loss(log_prob: tf.Tensor, advantages: tf.Tensor, weights: tf.Tensor,
                        name: str = "log_likelihood_loss") -> tf.Tensor:
    """Builds the score-function policy-gradient loss (REINFORCE; Williams, 1992), one per task.

    `L_m = -sum_n w_mn log pi(a_mn | o_mn) A_mn`. Its gradient is that of `likelihood_ratio_loss` at the sampling
    policy; away from it, and in second derivatives, the two differ.
    """
    _check_shapes("log_prob", log_prob=log_prob, advantages=advantages, weights=weights)
    with tf.name_scope(name):
        return -weighted_mean(log_prob * tf.stop_gradient(advantages), weights)


def taypo_loss(log_prob: tf.Tensor, old_log_prob: tf.Tensor, advantages: tf.Tensor, weights: tf.Tensor,
               path_starts: tf.Tensor, name: str = "taypo_loss") -> tf.Tensor:
    """Builds the second-order Taylor loss TayPO-2 (arXiv:2106.13125), one per task.

    `L_m = -sum_n w_mn (r_mn + (r_mn - 1) sum_{s < n} (r_ms - 1)) A_mn`, `r = pi_new / pi_old`, where s runs over the
    earlier samples of the path of sample n. Without the second term it is `likelihood_ratio_loss`. At the sampling
    policy the second term has no gradient. Its second derivatives are those that the likelihood ratio lacks: the effect
    of earlier actions on which states are visited.
    """
    _check_shapes("log_prob", log_prob=log_prob, old_log_prob=old_log_prob, advantages=advantages, weights=weights,
                  path_starts=path_starts)
    with tf.name_scope(name):
        change = tf.expm1(log_prob - tf.stop_gradient(old_log_prob))
        _, before = sums_along_paths(change, path_starts)
        return -weighted_mean((1.0 + change * (1.0 + before)) * tf.stop_gradient(advantages), weights)


def clipped_surrogate(log_prob: tf.Tensor, old_log_prob: tf.Tensor, advantages: tf.Tensor, weights: tf.Tensor,
                      clip_eps: tf.Tensor, name: str = "clipped_surrogate") -> tf.Tensor:
    """Builds the clipped policy-gradient loss of PPO (arXiv:1707.06347, Eq. 7), one per task.

    `L_m = -sum_n w_mn min(r_mn A_mn, clip(r_mn, 1 - eps, 1 + eps) A_mn)`.
    `clip_eps` is the half-width of the ratio interval, dimensionless.
    """
    _check_shapes("log_prob", log_prob=log_prob, old_log_prob=old_log_prob, advantages=advantages, weights=weights)
    with tf.name_scope(name):
        advantages = tf.stop_gradient(advantages)
        ratio = tf.exp(log_prob - tf.stop_gradient(old_log_prob))
        clipped = tf.clip_by_value(ratio, 1.0 - clip_eps, 1.0 + clip_eps)
        return -weighted_mean(tf.minimum(ratio * advantages, clipped * advantages), weights)


def exploration_score(log_prob: tf.Tensor, old_log_prob: tf.Tensor, weights: tf.Tensor,
                      name: str = "exploration_score") -> tf.Tensor:
    """Builds the score of one inner step's samples for E-MAML's exploration term, `[M]`.

    `S_m = sum_n w_mn (pi(a_mn | o_mn) / pi_old(a_mn | o_mn) - 1)`. At the sampling policy it is zero. With a weight of
    one for every sample its gradient there is that of the log-density of the task's whole data set
    (arXiv:1803.01118, Eq. 9); so `weights` need not sum to one here.
    """
    _check_shapes("log_prob", log_prob=log_prob, old_log_prob=old_log_prob, weights=weights)
    with tf.name_scope(name):
        return tf.reduce_sum(weights * tf.expm1(log_prob - tf.stop_gradient(old_log_prob)), axis=-1)


def sums_along_paths(values: tf.Tensor, path_starts: tf.Tensor) -> Tuple[tf.Tensor, tf.Tensor]:
    """Builds sums over the steps of the same path: up to and including each step, and up to before it.

    Args:
        values: `[M, N]`, paths stacked one after the other.
        path_starts: int `[M, N]`, index of the first sample of the same path.

    Returns:
        Two tensors `[M, N]`.
    """
    with tf.name_scope("sums_along_paths"):
        before = tf.cumsum(values, axis=1, exclusive=True)
        before -= tf.gather(before, path_starts, batch_dims=1)
        return before + values, before


def _log_boxes(log_prob: tf.Tensor, path_starts: tf.Tensor) -> Tuple[tf.Tensor, tf.Tensor]:
    """Builds the logarithms of the magic boxes of all actions up to each step, and up to before it."""
    return sums_along_paths(log_prob - tf.stop_gradient(log_prob), path_starts)


def dice_loss(log_prob: tf.Tensor, rewards: tf.Tensor, weights: tf.Tensor, path_starts: tf.Tensor,
              name: str = "dice_loss") -> tf.Tensor:
    """Builds the DiCE loss (arXiv:1802.05098), one per task.

    `L_m = -sum_n w_mn box_mn r_mn`, `box_mn = exp(tau_mn - stop_gradient(tau_mn))`, with `tau_mn` the sum of the
    log-densities of the actions of sample n's path up to and including that of n: all that its reward depends on. Each
    box is one, and derivatives of the loss, of any order, are estimates of those of the expected sum of rewards.

    `rewards` are float32 `[M, N]`, discounted from the start of the path, less a baseline of time alone; no gradient
    flows here.
    """
    _check_shapes("log_prob", log_prob=log_prob, rewards=rewards, weights=weights, path_starts=path_starts)
    with tf.name_scope(name):
        up_to, _ = _log_boxes(log_prob, path_starts)
        return -weighted_mean(tf.exp(up_to) * tf.stop_gradient(rewards), weights)


def loaded_dice_loss(log_prob: tf.Tensor, advantages: tf.Tensor, weights: tf.Tensor, path_starts: tf.Tensor,
                     name: str = "loaded_dice_loss") -> tf.Tensor:
    """Builds the Loaded DiCE loss (arXiv:1909.10549), one per task.

    `L_m = -sum_n w_mn (box(tau_n) - box(tau_n without a_n)) A_mn`, with `tau_n` the actions of sample n's path up to
    and including a_n. The difference is zero in value; its gradient is that of `log pi(a_n)`, and its higher
    derivatives hold what earlier actions contributed to being in this state at all. An advantage already counts all
    later rewards: weighted with the box alone, as rewards are in `dice_loss`, it would count them twice.
    """
    _check_shapes("log_prob", log_prob=log_prob, advantages=advantages, weights=weights, path_starts=path_starts)
    with tf.name_scope(name):
        up_to, before = _log_boxes(log_prob, path_starts)
        return -weighted_mean((tf.exp(up_to) - tf.exp(before)) * tf.stop_gradient(advantages), weights)
