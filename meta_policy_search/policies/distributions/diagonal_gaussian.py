"""Gaussian distribution with a diagonal covariance matrix."""
import math
from typing import Optional, Tuple

import numpy as np

from meta_policy_search.policies.distributions.base import DistInfo, DistInfoSym, Distribution
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.fast_paths import replaces

_LOG_2PI = math.log(2.0 * math.pi)


class DiagonalGaussian(Distribution):
    """Gaussian distribution over actions; a `dist_info` contains `mean` and `log_std`, each `[..., A]`.

    Equations, with `z = (a - mean) / std` and sums over the components of the action:

        log N(a) = -sum_i (z_i^2 / 2 + log std_i) - A log(2 pi) / 2
        KL(old || new) = sum_i ((mu_old - mu)^2 + s_old^2 - s^2) / (2 s^2) + log s - log s_old
        H = sum_i log std_i + A (1 + log(2 pi)) / 2
        squared length of a change = sum_i (d mu_i / s_i)^2 + 2 (d log s_i)^2

    Args:
        dim: size `A` of an action, at least one.
    """

    def __init__(self, dim: int) -> None:
        self._dim = check_positive_int("dim", dim)

    @property
    def dim(self) -> int:
        """Size `A` of an action."""
        return self._dim

    @property
    def dist_info_specs(self) -> Tuple[Tuple[str, Tuple[int, ...]], ...]:
        """Names and shapes of the entries of a `dist_info`: `mean` and `log_std`, each `(A,)`."""
        return ("mean", (self._dim,)), ("log_std", (self._dim,))

    def kl_sym(self, old_dist_info_vars: DistInfoSym, new_dist_info_vars: DistInfoSym) -> tf.Tensor:
        """Builds the divergence `KL(old || new)`, in nats, `[...]`."""
        with tf.name_scope("gaussian_kl"):
            old, new = old_dist_info_vars, new_dist_info_vars
            # expm1 avoids cancellation between nearly equal variances in float32.
            variance_term = 0.5 * tf.expm1(2.0 * (old["log_std"] - new["log_std"]))
            mean_term = 0.5 * tf.square((old["mean"] - new["mean"]) * tf.exp(-new["log_std"]))
            return tf.reduce_sum(mean_term + variance_term + new["log_std"] - old["log_std"], -1)

    def kl(self, old_dist_info: DistInfo, new_dist_info: DistInfo) -> np.ndarray:
        """Computes the divergence `KL(old || new)`, in nats, `[...]`."""
        old, new = old_dist_info, new_dist_info
        variance_term = 0.5 * np.expm1(2.0 * (old["log_std"] - new["log_std"]))
        mean_term = 0.5 * np.square((old["mean"] - new["mean"]) * np.exp(-new["log_std"]))
        return np.sum(mean_term + variance_term + new["log_std"] - old["log_std"], axis=-1)

    @replaces("kl_sym")
    def fisher_norm_sym(self, dist_info_vars: DistInfoSym, change: DistInfoSym) -> tf.Tensor:
        """Builds the squared length of a change of mean and log std, measured by the Fisher information, `[...]`."""
        with tf.name_scope("gaussian_fisher_norm"):
            of_mean = tf.square(change["mean"] * tf.exp(-dist_info_vars["log_std"]))
            return tf.reduce_sum(of_mean + 2.0 * tf.square(change["log_std"]), -1)

    def log_likelihood_sym(self, x_var: tf.Tensor, dist_info_vars: DistInfoSym) -> tf.Tensor:
        """Builds the log-density of actions `x_var` `[..., A]`, in nats, `[...]`."""
        with tf.name_scope("gaussian_log_prob"):
            mean, log_std = dist_info_vars["mean"], dist_info_vars["log_std"]
            z = (x_var - mean) * tf.exp(-log_std)
            size = tf.cast(tf.shape(mean)[-1], mean.dtype)
            return -0.5 * tf.reduce_sum(tf.square(z), -1) - tf.reduce_sum(log_std, -1) - 0.5 * _LOG_2PI * size

    def log_likelihood(self, xs: np.ndarray, dist_info: DistInfo) -> np.ndarray:
        """Computes the log-density of actions `xs` `[..., A]`, in nats, `[...]`."""
        z = (xs - dist_info["mean"]) * np.exp(-dist_info["log_std"])
        return -np.sum(0.5 * np.square(z) + dist_info["log_std"], axis=-1) - 0.5 * self._dim * _LOG_2PI

    def entropy_sym(self, dist_info_vars: DistInfoSym) -> tf.Tensor:
        """Builds the entropy, in nats, `[...]`."""
        with tf.name_scope("gaussian_entropy"):
            return tf.reduce_sum(dist_info_vars["log_std"], -1) + 0.5 * self._dim * (1.0 + _LOG_2PI)

    def entropy(self, dist_info: DistInfo) -> np.ndarray:
        """Computes the entropy, in nats, `[...]`."""
        return np.sum(dist_info["log_std"], axis=-1) + 0.5 * self._dim * (1.0 + _LOG_2PI)

    def sample(self, dist_info: DistInfo, rng: Optional[np.random.Generator] = None) -> np.ndarray:
        """Draws actions `mean + std * noise`, `[..., A]`, with standard normal `noise`; see `Distribution.sample`."""
        mean = np.asarray(dist_info["mean"])
        return self.transform_noise(dist_info, self._rng(rng).standard_normal(mean.shape, dtype=mean.dtype))

    @replaces("sample")
    def transform_noise(self, dist_info: DistInfo, noise: np.ndarray) -> np.ndarray:
        """Computes actions from standard normal `noise`, as `sample` and the actors do."""
        return np.asarray(dist_info["mean"]) + np.exp(dist_info["log_std"]) * noise
