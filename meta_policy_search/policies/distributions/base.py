"""Distributions over actions: Gaussian with a diagonal covariance matrix, and categorical."""
import abc
import math
from typing import Any, Mapping, Optional, Tuple

import numpy as np

from meta_policy_search.ops.networks import NUMPY, categorical_action, gaussian_action
from meta_policy_search.ops.tensorflow_ops import TENSORFLOW
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.serializable import Configurable

DistInfo = Mapping[str, np.ndarray]
DistInfoSym = Mapping[str, tf.Tensor]

_LOG_2PI = math.log(2.0 * math.pi)


class Distribution(Configurable, abc.ABC):
    """A family of distributions over actions; a dict of parameters (`dist_info`) specifies one distribution.

    Methods whose names end in `_sym` build tensors, and methods such as `kl` compute NumPy arrays. Both call the
    methods `compute_*`, which a subclass writes once for both (see `ops.networks` for their argument `xp`). The leading
    axes, written `[...]`, broadcast. Actions are arrays `[..., A]`, or integers `[...]` if actions are discrete.

    A subclass implements `dist_info_specs`, `sample` and `compute_log_likelihood`. ProMP, TRPO-MAML,
    E-MAML, RL2 and `target_kl` also need `compute_kl`; entropy bonuses and `AveragePolicyEntropy` need
    `compute_entropy`.

    Policies call `sample`. Vectorized policies call `transform_noise(dist_info, noise)` instead, a static method that
    is declared as a replacement of `sample` (see `utils.fast_paths`) and computes actions from noise
    `[..., noise_dim]`. Policies are vectorized only if the distribution has this method and `sample` is not overridden.

    Args:
        dim: size `A` of an action, at least one; if actions are discrete, the number of actions.

    Attributes:
        uniform_noise (bool): whether the noise is uniform in `[0, 1)` instead of standard normal. Default: False.
    """

    uniform_noise = False
    scope = "distribution"  # in names of operations, which determine the order in which TensorFlow sums

    def __init__(self, dim: int) -> None:
        self.dim = check_positive_int("dim", dim)

    @property
    def noise_dim(self) -> int:
        """Number of random numbers per action in `transform_noise`. Default: `dim`."""
        return self.dim

    @property
    def action_shape(self) -> Tuple[int, ...]:
        """Shape of an action: `(A,)`, or `()` if actions are discrete."""
        return (self.dim,)

    @property
    @abc.abstractmethod
    def dist_info_specs(self) -> Tuple[Tuple[str, Tuple[int, ...]], ...]:
        """Name and shape (without leading axes) of each entry of a `dist_info`."""

    def compute_kl(self, xp: Any, old: Mapping[str, Any], new: Mapping[str, Any]) -> Any:
        """Computes the divergence `KL(old || new)`, in nats, `[...]`."""
        raise NotImplementedError(f"{type(self).__name__} has no compute_kl")

    def compute_log_likelihood(self, xp: Any, actions: Any, info: Mapping[str, Any]) -> Any:
        """Computes the log-density of actions `[..., A]`, in nats, `[...]`."""
        raise NotImplementedError(f"{type(self).__name__} has no compute_log_likelihood")

    def compute_entropy(self, xp: Any, info: Mapping[str, Any]) -> Any:
        """Computes the entropy, in nats, `[...]`."""
        raise NotImplementedError(f"{type(self).__name__} has no compute_entropy")

    def kl_sym(self, old_dist_info_vars: DistInfoSym, new_dist_info_vars: DistInfoSym) -> tf.Tensor:
        """Builds the divergence `KL(old || new)`, in nats, `[...]`."""
        with tf.name_scope(f"{self.scope}_kl"):
            return self.compute_kl(TENSORFLOW, old_dist_info_vars, new_dist_info_vars)

    def kl(self, old_dist_info: DistInfo, new_dist_info: DistInfo) -> np.ndarray:
        """Computes the divergence `KL(old || new)`, in nats, `[...]`."""
        return self.compute_kl(NUMPY, old_dist_info, new_dist_info)

    @replaces("kl_sym", "compute_kl")
    def fisher_norm_sym(self, dist_info_vars: DistInfoSym, change: DistInfoSym) -> tf.Tensor:
        """Builds the squared length of a change of a `dist_info`, measured by the Fisher information, `[...]`.

        To second order, it equals twice the divergence caused by the change. TRPO-MAML uses it to compute curvature.
        Without it (default), TRPO-MAML uses finite differences of gradients.
        """
        raise NotImplementedError(f"{type(self).__name__} has no fisher_norm_sym")

    def log_likelihood_sym(self, x_var: tf.Tensor, dist_info_vars: DistInfoSym) -> tf.Tensor:
        """Builds the log-density of actions `x_var` `[..., A]`, in nats, `[...]`."""
        with tf.name_scope(f"{self.scope}_log_prob"):
            return self.compute_log_likelihood(TENSORFLOW, x_var, dist_info_vars)

    def log_likelihood(self, xs: np.ndarray, dist_info: DistInfo) -> np.ndarray:
        """Computes the log-density of actions `xs` `[..., A]`, in nats, `[...]`."""
        return self.compute_log_likelihood(NUMPY, xs, dist_info)

    def likelihood_ratio_sym(self, x_var: tf.Tensor, old_dist_info_vars: DistInfoSym,
                             new_dist_info_vars: DistInfoSym) -> tf.Tensor:
        """Builds the likelihood ratio `p_new(x) / p_old(x)`, `[...]`."""
        with tf.name_scope("likelihood_ratio"):
            return tf.exp(self.log_likelihood_sym(x_var, new_dist_info_vars)
                          - self.log_likelihood_sym(x_var, old_dist_info_vars))

    def entropy_sym(self, dist_info_vars: DistInfoSym) -> tf.Tensor:
        """Builds the entropy, in nats, `[...]`."""
        with tf.name_scope(f"{self.scope}_entropy"):
            return self.compute_entropy(TENSORFLOW, dist_info_vars)

    def entropy(self, dist_info: DistInfo) -> np.ndarray:
        """Computes the entropy, in nats, `[...]`."""
        return self.compute_entropy(NUMPY, dist_info)

    @abc.abstractmethod
    def sample(self, dist_info: DistInfo, rng: Optional[np.random.Generator] = None) -> np.ndarray:
        """Draws actions `[..., A]` with the generator `rng`. Default: a new one, seeded by NumPy's global generator."""

    @staticmethod
    def _rng(rng: Optional[np.random.Generator]) -> np.random.Generator:
        return np.random.default_rng(np.random.randint(2**31)) if rng is None else rng


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

    scope = "gaussian"

    @property
    def dist_info_specs(self) -> Tuple[Tuple[str, Tuple[int, ...]], ...]:
        """Names and shapes of the entries of a `dist_info`: `mean` and `log_std`, each `(A,)`."""
        return ("mean", (self.dim,)), ("log_std", (self.dim,))

    def compute_kl(self, xp: Any, old: Mapping[str, Any], new: Mapping[str, Any]) -> Any:
        """Computes the divergence `KL(old || new)`, in nats, `[...]`."""
        # expm1 avoids cancellation between nearly equal variances in float32.
        variance_term = 0.5 * xp.expm1(2.0 * (old["log_std"] - new["log_std"]))
        mean_term = 0.5 * xp.square((old["mean"] - new["mean"]) * xp.exp(-new["log_std"]))
        return xp.sum(mean_term + variance_term + new["log_std"] - old["log_std"])

    @replaces("kl_sym", "compute_kl")
    def fisher_norm_sym(self, dist_info_vars: DistInfoSym, change: DistInfoSym) -> tf.Tensor:
        """Builds the squared length of a change of mean and log std, measured by the Fisher information, `[...]`."""
        with tf.name_scope("gaussian_fisher_norm"):
            of_mean = tf.square(change["mean"] * tf.exp(-dist_info_vars["log_std"]))
            return tf.reduce_sum(of_mean + 2.0 * tf.square(change["log_std"]), -1)

    def compute_log_likelihood(self, xp: Any, actions: Any, info: Mapping[str, Any]) -> Any:
        """Computes the log-density of actions `[..., A]`, in nats, `[...]`."""
        z = (actions - info["mean"]) * xp.exp(-info["log_std"])
        constant = 0.5 * _LOG_2PI * xp.size(z)
        return -0.5 * xp.sum(xp.square(z)) - xp.sum(info["log_std"]) - constant

    def compute_entropy(self, xp: Any, info: Mapping[str, Any]) -> Any:
        """Computes the entropy, in nats, `[...]`."""
        return xp.sum(info["log_std"]) + 0.5 * self.dim * (1.0 + _LOG_2PI)

    def sample(self, dist_info: DistInfo, rng: Optional[np.random.Generator] = None) -> np.ndarray:
        """Draws actions `mean + std * noise`, `[..., A]`, with standard normal `noise`; see `Distribution.sample`."""
        mean = np.asarray(dist_info["mean"])
        return self.transform_noise(dist_info, self._rng(rng).standard_normal(mean.shape, dtype=mean.dtype))

    transform_noise = replaces("sample")(staticmethod(gaussian_action))


class Categorical(Distribution):
    """Categorical distribution over `n` actions, the integers from 0 to `n - 1`.

    A `dist_info` contains the log-probabilities `log_prob` `[..., n]`, in nats. They are finite, and the probabilities
    sum to one.

    Args:
        dim: number of actions `n`, at least one.
    """

    scope = "categorical"
    uniform_noise = True
    noise_dim = 1
    action_shape = ()

    @property
    def dist_info_specs(self) -> Tuple[Tuple[str, Tuple[int, ...]], ...]:
        """Name and shape of the entry of a `dist_info`: `log_prob`, `(n,)`."""
        return (("log_prob", (self.dim,)),)

    def compute_kl(self, xp: Any, old: Mapping[str, Any], new: Mapping[str, Any]) -> Any:
        """Computes the divergence `KL(old || new)`, in nats, `[...]`."""
        return xp.sum(xp.exp(old["log_prob"]) * (old["log_prob"] - new["log_prob"]))

    @replaces("kl_sym", "compute_kl")
    def fisher_norm_sym(self, dist_info_vars: DistInfoSym, change: DistInfoSym) -> tf.Tensor:
        """Builds the squared length of a change of `log_prob`, measured by the Fisher information, `[...]`."""
        with tf.name_scope("categorical_fisher_norm"):
            return tf.reduce_sum(tf.exp(dist_info_vars["log_prob"]) * tf.square(change["log_prob"]), -1)

    def compute_log_likelihood(self, xp: Any, actions: Any, info: Mapping[str, Any]) -> Any:
        """Computes the log-probability of actions `[...]` of any numeric type, in nats, `[...]`."""
        return xp.sum(xp.one_hot(actions, self.dim, info["log_prob"].dtype) * info["log_prob"])

    def compute_entropy(self, xp: Any, info: Mapping[str, Any]) -> Any:
        """Computes the entropy, in nats, `[...]`."""
        return -xp.sum(xp.exp(info["log_prob"]) * info["log_prob"])

    def sample(self, dist_info: DistInfo, rng: Optional[np.random.Generator] = None) -> np.ndarray:
        """Draws actions, int64 `[...]`, from one uniform random number each; see `Distribution.sample`."""
        log_prob = np.asarray(dist_info["log_prob"])
        noise = self._rng(rng).random((*log_prob.shape[:-1], 1), dtype=log_prob.dtype)
        return self.transform_noise(dist_info, noise)

    transform_noise = replaces("sample")(staticmethod(categorical_action))
