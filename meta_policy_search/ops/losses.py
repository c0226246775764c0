"""Policy-gradient losses: tensors `[M, N]` in, one loss per task `[M]` out, to be minimized.

Arguments with the same name have the same meaning in every function:

================  ===========================================================================================
`log_prob`        float32 `[M, N]`, log-density of the actions under the current policy, in nats
`old_log_prob`    float32 `[M, N]`, log-density under the sampling policy, in nats; its gradient is stopped
`advantages`      float32 `[M, N]`, in (normalized) return units; the gradient is stopped
`weights`         float32 `[M, N]`, zero on padding; rows sum to one (DiCE: see `path_weights`)
`path_starts`     int `[M, N]`, index of the first sample of the same path
================  ===========================================================================================

Every mean over samples is a sum with `weights`, so tasks may have different numbers of samples. If static shapes do not
match, a function raises a `ValueError` that names the argument and both shapes.
"""
from typing import Any, Mapping, Tuple

from meta_policy_search.tf_compat import tf


def _check_shapes(log_prob: tf.Tensor, **tensors: tf.Tensor) -> None:
    """Raises a `ValueError` that names the first tensor whose static shape does not match the shape of `log_prob`."""
    expected = log_prob.shape
    for name, tensor in tensors.items():
        if tensor.shape.rank is not None and not tensor.shape.is_compatible_with(expected):
            raise ValueError(f"{name}: expected the shape {expected} of log_prob, got {tensor.shape}")


def weighted_mean(values: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Builds the mean over the valid samples of each task, `sum_n w_mn x_mn`: `[M, N]` to `[M]`."""
    return tf.reduce_sum(weights * values, axis=-1)


def entropy_bonus(distribution: Any, dist_info: Mapping[str, tf.Tensor], weights: tf.Tensor, coef: float) -> tf.Tensor:
    """Builds `coef` times the entropy of policies, nats, mean over samples and tasks, a scalar; to be maximized.

    Args:
        distribution: a `Distribution`; needs no entropy if `coef` is zero.
        dist_info: the policies' distributions, each `[M, N, ...]`.
        weights: float32 `[M, N]`.
        coef: the coefficient, at least 0.
    """
    if coef == 0.0:
        return tf.constant(0.0)
    return coef * tf.reduce_mean(weighted_mean(distribution.entropy_sym(dist_info), weights))


def likelihood_ratio_loss(log_prob: tf.Tensor, old_log_prob: tf.Tensor, advantages: tf.Tensor, weights: tf.Tensor
                          ) -> tf.Tensor:
    """Builds the importance-weighted policy-gradient loss (arXiv:1502.05477, Eq. 14) of each task, `[M]`.

    `L_m = -sum_n w_mn r_mn A_mn` with `r = pi_new / pi_old`. See the module docstring for the arguments.
    """
    _check_shapes(log_prob, old_log_prob=old_log_prob, advantages=advantages, weights=weights)
    with tf.name_scope("likelihood_ratio_loss"):
        ratio = tf.exp(log_prob - tf.stop_gradient(old_log_prob))
        return -weighted_mean(ratio * tf.stop_gradient(advantages), weights)


def log_likelihood_loss(log_prob: tf.Tensor, advantages: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Builds the score-function policy-gradient loss (REINFORCE; Williams, 1992) of each task, `[M]`.

    `L_m = -sum_n w_mn log pi(a_mn | o_mn) A_mn`. At the sampling policy, its gradient equals the gradient of
    `likelihood_ratio_loss`. At other policies, and in second derivatives, the two losses differ. See the module
    docstring for the arguments.
    """
    _check_shapes(log_prob, advantages=advantages, weights=weights)
    with tf.name_scope("log_likelihood_loss"):
        return -weighted_mean(log_prob * tf.stop_gradient(advantages), weights)


def taypo_loss(log_prob: tf.Tensor, old_log_prob: tf.Tensor, advantages: tf.Tensor, weights: tf.Tensor,
               path_starts: tf.Tensor) -> tf.Tensor:
    """Builds the second-order Taylor loss TayPO-2 (arXiv:2106.13125), one per task.

    `L_m = -sum_n w_mn (r_mn + (r_mn - 1) sum_{s < n} (r_ms - 1)) A_mn`, `r = pi_new / pi_old`, where s runs over the
    earlier samples of the path of sample n. Without the second term it is `likelihood_ratio_loss`. At the sampling
    policy the second term has no gradient. The likelihood-ratio loss lacks the second derivatives of this term, which
    describe how earlier actions affect the visited states.
    """
    _check_shapes(log_prob, old_log_prob=old_log_prob, advantages=advantages, weights=weights, path_starts=path_starts)
    with tf.name_scope("taypo_loss"):
        change = tf.expm1(log_prob - tf.stop_gradient(old_log_prob))
        _, before = sums_along_paths(change, path_starts)
        return -weighted_mean((1.0 + change * (1.0 + before)) * tf.stop_gradient(advantages), weights)


def clipped_surrogate(log_prob: tf.Tensor, old_log_prob: tf.Tensor, advantages: tf.Tensor, weights: tf.Tensor,
                      clip_eps: tf.Tensor) -> tf.Tensor:
    """Builds the clipped policy-gradient loss of PPO (arXiv:1707.06347, Eq. 7) of each task, `[M]`.

    `L_m = -sum_n w_mn min(r_mn A_mn, clip(r_mn, 1 - eps, 1 + eps) A_mn)` with `r = pi_new / pi_old`. `clip_eps` is the
    half-width of the ratio interval, dimensionless. See the module docstring for the other arguments.
    """
    _check_shapes(log_prob, old_log_prob=old_log_prob, advantages=advantages, weights=weights)
    with tf.name_scope("clipped_surrogate"):
        advantages = tf.stop_gradient(advantages)
        ratio = tf.exp(log_prob - tf.stop_gradient(old_log_prob))
        clipped = tf.clip_by_value(ratio, 1.0 - clip_eps, 1.0 + clip_eps)
        return -weighted_mean(tf.minimum(ratio * advantages, clipped * advantages), weights)


def exploration_score(log_prob: tf.Tensor, old_log_prob: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Builds the score of the samples of one adaptation step, for E-MAML's exploration term, `[M]`.

    `S_m = sum_n w_mn (pi(a_mn | o_mn) / pi_old(a_mn | o_mn) - 1)`. The score is zero at the sampling policy. If all
    weights are one, its gradient at the sampling policy equals the gradient of the log-density of all samples of the
    task (arXiv:1803.01118, Eq. 9). `weights` therefore need not sum to one here. See the module docstring for the
    arguments.
    """
    _check_shapes(log_prob, old_log_prob=old_log_prob, weights=weights)
    with tf.name_scope("exploration_score"):
        return tf.reduce_sum(weights * tf.expm1(log_prob - tf.stop_gradient(old_log_prob)), axis=-1)


def sums_along_paths(values: tf.Tensor, path_starts: tf.Tensor) -> Tuple[tf.Tensor, tf.Tensor]:
    """Builds cumulative sums along each path, with and without the current step.

    Args:
        values: `[M, N]`, concatenated paths.
        path_starts: int `[M, N]`, index of the first sample of the same path.

    Returns:
        Two tensors `[M, N]`: the sums up to and including each step, and the sums over earlier steps only.
    """
    with tf.name_scope("sums_along_paths"):
        before = tf.cumsum(values, axis=1, exclusive=True)
        before -= tf.gather(before, path_starts, batch_dims=1)
        return before + values, before


def _log_boxes(log_prob: tf.Tensor, path_starts: tf.Tensor) -> Tuple[tf.Tensor, tf.Tensor]:
    """Builds the logarithms of the DiCE magic boxes of the actions, with and without the current step."""
    return sums_along_paths(log_prob - tf.stop_gradient(log_prob), path_starts)


def dice_loss(log_prob: tf.Tensor, rewards: tf.Tensor, weights: tf.Tensor, path_starts: tf.Tensor) -> tf.Tensor:
    """Builds the DiCE loss (arXiv:1802.05098) of each task, `[M]`.

    `L_m = -sum_n w_mn box_mn r_mn` with `box_mn = exp(tau_mn - stop_gradient(tau_mn))`. `tau_mn` is the sum of the
    log-densities of all actions of the same path up to and including sample n, because the reward depends on these
    actions. Each box has the value one. Derivatives of the loss, of any order, estimate the derivatives of the expected
    sum of rewards.

    `rewards` are float32 `[M, N]`, discounted from the start of the path, minus a baseline that depends on time only;
    the gradient is stopped. See the module docstring for the other arguments.
    """
    _check_shapes(log_prob, rewards=rewards, weights=weights, path_starts=path_starts)
    with tf.name_scope("dice_loss"):
        up_to, _ = _log_boxes(log_prob, path_starts)
        return -weighted_mean(tf.exp(up_to) * tf.stop_gradient(rewards), weights)


def loaded_dice_loss(log_prob: tf.Tensor, advantages: tf.Tensor, weights: tf.Tensor, path_starts: tf.Tensor
                     ) -> tf.Tensor:
    """Builds the Loaded DiCE loss (arXiv:1909.10549) of each task, `[M]`.

    `L_m = -sum_n w_mn (box(tau_n) - box(tau_n without a_n)) A_mn`, where `tau_n` contains the actions of the same path
    up to and including `a_n`. The difference of the boxes has the value zero and the gradient of `log pi(a_n)`. Its
    higher derivatives contain the effect of earlier actions on the probability of reaching the state. An advantage
    already includes all later rewards, so `dice_loss` applied to advantages would count these rewards twice. See the
    module docstring for the arguments.
    """
    _check_shapes(log_prob, advantages=advantages, weights=weights, path_starts=path_starts)
    with tf.name_scope("loaded_dice_loss"):
        up_to, before = _log_boxes(log_prob, path_starts)
        return -weighted_mean((tf.exp(up_to) - tf.exp(before)) * tf.stop_gradient(advantages), weights)


def path_weights(mask: tf.Tensor, path_starts: tf.Tensor, max_path_length: int) -> tf.Tensor:
    """Builds weights for means over paths and steps: `1 / (P_m T)` on samples, zero on padding.

    Args:
        mask: float32 `[M, N]`, one on samples, zero on padding.
        path_starts: int `[M, N]`, index of the first sample of the same path.
        max_path_length: `T`, the maximum number of steps of a path.

    Returns:
        Weights, float32 `[M, N]`.
    """
    with tf.name_scope("path_weights"):
        steps_before = tf.cast(tf.range(tf.shape(mask)[1])[None] - path_starts, tf.float32)
        num_paths = tf.reduce_sum(mask * tf.cast(tf.equal(steps_before, 0.0), tf.float32), axis=-1, keepdims=True)
        return mask / (num_paths * float(max_path_length))


def sample_weights(mask: tf.Tensor) -> tf.Tensor:
    """Builds weights for means over samples, float32 `[M, N]`.

    Each row sums to one, or to zero if the task has no samples. `mask` is float32 `[M, N]`, one on samples, zero on
    padding.
    """
    with tf.name_scope("sample_weights"):
        return tf.math.divide_no_nan(mask, tf.reduce_sum(mask, axis=-1, keepdims=True))
