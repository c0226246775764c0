"""Categorical distribution over a finite number of actions."""
from typing import Optional, Tuple

import numpy as np

from meta_policy_search.policies.distributions.base import DistInfo, DistInfoSym, Distribution
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.utils import draw_index


class Categorical(Distribution):
    """Categorical distribution over `n` actions, the integers from 0 to `n - 1`.

    A `dist_info` contains the log-probabilities `log_prob` `[..., n]`, in nats. They are finite, and the probabilities
    sum to one.

    Args:
        dim: number of actions `n`, at least one.
    """

    def __init__(self, dim: int) -> None:
        self._dim = check_positive_int("dim", dim)

    @property
    def dim(self) -> int:
        """Number of actions `n`."""
        return self._dim

    @property
    def action_shape(self) -> Tuple[int, ...]:
        """Shape of an action: `()`, because an action is an index."""
        return ()

    @property
    def dist_info_specs(self) -> Tuple[Tuple[str, Tuple[int, ...]], ...]:
        """Name and shape of the entry of a `dist_info`: `log_prob`, `(n,)`."""
        return (("log_prob", (self._dim,)),)

    def kl_sym(self, old_dist_info_vars: DistInfoSym, new_dist_info_vars: DistInfoSym) -> tf.Tensor:
        """Builds the divergence `KL(old || new)`, in nats, `[...]`."""
        with tf.name_scope("categorical_kl"):
            old, new = old_dist_info_vars["log_prob"], new_dist_info_vars["log_prob"]
            return tf.reduce_sum(tf.exp(old) * (old - new), -1)

    def kl(self, old_dist_info: DistInfo, new_dist_info: DistInfo) -> np.ndarray:
        """Computes the divergence `KL(old || new)`, in nats, `[...]`."""
        old, new = old_dist_info["log_prob"], new_dist_info["log_prob"]
        return np.sum(np.exp(old) * (old - new), axis=-1)

    @replaces("kl_sym")
    def fisher_norm_sym(self, dist_info_vars: DistInfoSym, change: DistInfoSym) -> tf.Tensor:
        """Builds the squared length of a change of `log_prob`, measured by the Fisher information, `[...]`."""
        with tf.name_scope("categorical_fisher_norm"):
            return tf.reduce_sum(tf.exp(dist_info_vars["log_prob"]) * tf.square(change["log_prob"]), -1)

    def log_likelihood_sym(self, x_var: tf.Tensor, dist_info_vars: DistInfoSym) -> tf.Tensor:
        """Builds the log-probability of actions `x_var` `[...]` of any numeric type, in nats, `[...]`."""
        with tf.name_scope("categorical_log_prob"):
            log_prob = dist_info_vars["log_prob"]
            is_chosen = tf.one_hot(tf.cast(x_var, tf.int32), tf.shape(log_prob)[-1], dtype=log_prob.dtype)
            return tf.reduce_sum(is_chosen * log_prob, -1)

    def log_likelihood(self, xs: np.ndarray, dist_info: DistInfo) -> np.ndarray:
        """Computes the log-probability of actions `xs`, int `[...]`, in nats, `[...]`."""
        return np.take_along_axis(dist_info["log_prob"], np.asarray(xs)[..., None], axis=-1)[..., 0]

    def entropy_sym(self, dist_info_vars: DistInfoSym) -> tf.Tensor:
        """Builds the entropy, in nats, `[...]`."""
        with tf.name_scope("categorical_entropy"):
            return -tf.reduce_sum(tf.exp(dist_info_vars["log_prob"]) * dist_info_vars["log_prob"], -1)

    def entropy(self, dist_info: DistInfo) -> np.ndarray:
        """Computes the entropy, in nats, `[...]`."""
        return -np.sum(np.exp(dist_info["log_prob"]) * dist_info["log_prob"], axis=-1)

    def sample(self, dist_info: DistInfo, rng: Optional[np.random.Generator] = None) -> np.ndarray:
        """Draws actions, int64 `[...]`, from one uniform random number each; see `Distribution.sample`."""
        log_prob = np.asarray(dist_info["log_prob"])
        return self.transform_noise(dist_info, self._rng(rng).random(log_prob.shape[:-1], dtype=log_prob.dtype))

    @replaces("sample")
    def transform_noise(self, dist_info: DistInfo, noise: np.ndarray) -> np.ndarray:
        """Computes actions from uniform random numbers `noise`, as `sample` and the actors do."""
        return draw_index(np.exp(np.asarray(dist_info["log_prob"])), noise)
