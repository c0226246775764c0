"""The interface of a distribution over actions."""
import abc
from typing import Mapping, Optional, Tuple

import numpy as np

from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.serializable import Configurable

DistInfo = Mapping[str, np.ndarray]
DistInfoSym = Mapping[str, tf.Tensor]


class Distribution(Configurable, abc.ABC):
    """A family of distributions over actions, its members given by dicts (`dist_info`).

    Methods ending in `_sym` build tensors, the others compute NumPy arrays. Leading axes broadcast. Actions are
    arrays `[..., A]`; where they are discrete, integers `[...]`.

    Policies sample by `sample`. The distributions of this library also have `transform_noise(dist_info, noise)`, which
    declares that it replaces `sample` (`utils.fast_paths`): vectorized policies are used only while this holds.
    """

    @property
    @abc.abstractmethod
    def dim(self) -> int:
        """Size `A` of an action; the number of actions, where they are discrete."""

    @property
    def action_shape(self) -> Tuple[int, ...]:
        """Shape of an action: `(A,)`, or `()` where actions are discrete."""
        return (self.dim,)

    @property
    @abc.abstractmethod
    def dist_info_specs(self) -> Tuple[Tuple[str, Tuple[int, ...]], ...]:
        """Name and shape, without leading axes, of each entry of a `dist_info`."""

    @property
    def dist_info_keys(self) -> Tuple[str, ...]:
        """Names of the entries of a `dist_info`."""
        return tuple(name for name, _ in self.dist_info_specs)

    @abc.abstractmethod
    def kl_sym(self, old_dist_info_vars: DistInfoSym, new_dist_info_vars: DistInfoSym) -> tf.Tensor:
        """Builds `KL(old || new)`, nats, `[...]`."""

    @abc.abstractmethod
    def kl(self, old_dist_info: DistInfo, new_dist_info: DistInfo) -> np.ndarray:
        """Computes `KL(old || new)`, nats, `[...]`."""

    @replaces("kl_sym")
    def fisher_norm_sym(self, dist_info_vars: DistInfoSym, change: DistInfoSym) -> tf.Tensor:
        """Builds the squared length, in the Fisher information, of a change of the entries of a `dist_info`, `[...]`.

        To second order it is twice the divergence that the change makes. TRPO-MAML computes curvature from it; where a
        distribution has none, as by default, from differences of gradients.
        """
        raise NotImplementedError(f"{type(self).__name__} has no fisher_norm_sym")

    @abc.abstractmethod
    def log_likelihood_sym(self, x_var: tf.Tensor, dist_info_vars: DistInfoSym) -> tf.Tensor:
        """Builds the log-density of actions `x_var` `[..., A]`, nats, `[...]`."""

    @abc.abstractmethod
    def log_likelihood(self, xs: np.ndarray, dist_info: DistInfo) -> np.ndarray:
        """Computes the log-density of actions `xs` `[..., A]`, nats, `[...]`."""

    def likelihood_ratio_sym(self, x_var: tf.Tensor, old_dist_info_vars: DistInfoSym,
                             new_dist_info_vars: DistInfoSym) -> tf.Tensor:
        """Builds `p_new(x) / p_old(x)`, `[...]`."""
        with tf.name_scope("likelihood_ratio"):
            return tf.exp(
                self.log_likelihood_sym(x_var, new_dist_info_vars) - self.log_likelihood_sym(x_var, old_dist_info_vars)
            )

    @abc.abstractmethod
    def entropy_sym(self, dist_info_vars: DistInfoSym) -> tf.Tensor:
        """Builds the entropy, nats, `[...]`."""

    @abc.abstractmethod
    def entropy(self, dist_info: DistInfo) -> np.ndarray:
        """Computes the entropy, nats, `[...]`."""

    @abc.abstractmethod
    def sample(self, dist_info: DistInfo, rng: Optional[np.random.Generator] = None) -> np.ndarray:
        """Draws actions `[..., A]` from `rng`; by default from a new one, seeded by NumPy's global generator."""

    @staticmethod
    def _rng(rng: Optional[np.random.Generator]) -> np.random.Generator:
        return np.random.default_rng(np.random.randint(2**31)) if rng is None else rng
