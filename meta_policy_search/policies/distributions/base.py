"""Interface of distributions over actions."""
import abc
from typing import Mapping, Optional, Tuple

import numpy as np

from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.serializable import Configurable

DistInfo = Mapping[str, np.ndarray]
DistInfoSym = Mapping[str, tf.Tensor]


class Distribution(Configurable, abc.ABC):
    """A family of distributions over actions; a dict of parameters (`dist_info`) specifies one distribution.

    Methods whose names end in `_sym` build tensors; the other methods compute NumPy arrays. The leading axes,
    written `[...]`, broadcast. Actions are arrays `[..., A]`, or integers `[...]` if actions are discrete.

    Policies call `sample`. The distributions of this library also have `transform_noise(dist_info, noise)`, declared as
    a replacement of `sample` (see `utils.fast_paths`). Vectorized policies are used only as long as `sample` is not
    overridden.
    """

    @property
    @abc.abstractmethod
    def dim(self) -> int:
        """Size `A` of an action; if actions are discrete, the number of actions."""

    @property
    def action_shape(self) -> Tuple[int, ...]:
        """Shape of an action: `(A,)`, or `()` if actions are discrete."""
        return (self.dim,)

    @property
    @abc.abstractmethod
    def dist_info_specs(self) -> Tuple[Tuple[str, Tuple[int, ...]], ...]:
        """Name and shape (without leading axes) of each entry of a `dist_info`."""

    @property
    def dist_info_keys(self) -> Tuple[str, ...]:
        """Names of the entries of a `dist_info`."""
        return tuple(name for name, _ in self.dist_info_specs)

    @abc.abstractmethod
    def kl_sym(self, old_dist_info_vars: DistInfoSym, new_dist_info_vars: DistInfoSym) -> tf.Tensor:
        """Builds the divergence `KL(old || new)`, in nats, `[...]`."""

    @abc.abstractmethod
    def kl(self, old_dist_info: DistInfo, new_dist_info: DistInfo) -> np.ndarray:
        """Computes the divergence `KL(old || new)`, in nats, `[...]`."""

    @replaces("kl_sym")
    def fisher_norm_sym(self, dist_info_vars: DistInfoSym, change: DistInfoSym) -> tf.Tensor:
        """Builds the squared length of a change of a `dist_info`, measured by the Fisher information, `[...]`.

        To second order, it equals twice the divergence caused by the change. TRPO-MAML uses it to compute curvature.
        Without it (default), TRPO-MAML uses finite differences of gradients.
        """
        raise NotImplementedError(f"{type(self).__name__} has no fisher_norm_sym")

    @abc.abstractmethod
    def log_likelihood_sym(self, x_var: tf.Tensor, dist_info_vars: DistInfoSym) -> tf.Tensor:
        """Builds the log-density of actions `x_var` `[..., A]`, in nats, `[...]`."""

    @abc.abstractmethod
    def log_likelihood(self, xs: np.ndarray, dist_info: DistInfo) -> np.ndarray:
        """Computes the log-density of actions `xs` `[..., A]`, in nats, `[...]`."""

    def likelihood_ratio_sym(self, x_var: tf.Tensor, old_dist_info_vars: DistInfoSym,
                             new_dist_info_vars: DistInfoSym) -> tf.Tensor:
        """Builds the likelihood ratio `p_new(x) / p_old(x)`, `[...]`."""
        with tf.name_scope("likelihood_ratio"):
            return tf.exp(
                self.log_likelihood_sym(x_var, new_dist_info_vars) - self.log_likelihood_sym(x_var, old_dist_info_vars)
            )

    @abc.abstractmethod
    def entropy_sym(self, dist_info_vars: DistInfoSym) -> tf.Tensor:
        """Builds the entropy, in nats, `[...]`."""

    @abc.abstractmethod
    def entropy(self, dist_info: DistInfo) -> np.ndarray:
        """Computes the entropy, in nats, `[...]`."""

    @abc.abstractmethod
    def sample(self, dist_info: DistInfo, rng: Optional[np.random.Generator] = None) -> np.ndarray:
        """Draws actions `[..., A]` with the generator `rng`. Default: a new one, seeded by NumPy's global generator."""

    @staticmethod
    def _rng(rng: Optional[np.random.Generator]) -> np.random.Generator:
        return np.random.default_rng(np.random.randint(2**31)) if rng is None else rng
