"""A Gaussian policy with a diagonal covariance matrix, its mean a multi-layer perceptron."""
import math
from collections import OrderedDict
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.np.policies import StackedGaussianMLP
from meta_policy_search.policies.base import Policy, log_policy_std
from meta_policy_search.policies.distributions.diagonal_gaussian import DiagonalGaussian
from meta_policy_search.policies.networks.mlp import forward_mlp, initial_mlp_values
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import Infos, Path
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_positive

_MEAN = "mean_network"
_LOG_STD = "log_std_network/log_std_var"


class GaussianMLPPolicy(Policy):
    """Gaussian policy: `a ~ N(mlp(o), diag(std^2))`, the standard deviation independent of the observation.

    The parameters are `mean_network/<layer>/kernel`, `mean_network/<layer>/bias` (layers `hidden_0`, ...,
    `output`) and, if `learn_std`, `log_std_network/log_std_var`. Kernels start Glorot-uniform, biases at zero,
    drawn from the root seed.

    Args:
        *args: as for `Policy`.
        init_std (float): initial standard deviation, in the action's unit; default 1.
        min_std (float): smallest standard deviation; default 1e-6.
        **kwargs: as for `Policy`.

    Raises:
        ValueError: `init_std` or `min_std` is not positive, or `init_std` is below `min_std`; else as for `Policy`.
    """

    def __init__(self, *args: Any, init_std: float = 1.0, min_std: float = 1e-6, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.init_std = check_positive("init_std", init_std)
        self.min_std = check_positive("min_std", min_std)
        if self.init_std < self.min_std:
            raise ValueError(f"init_std: expected at least min_std={self.min_std}, got {self.init_std}")
        self._min_log_std = math.log(self.min_std)
        self._distribution = DiagonalGaussian(self.action_dim)
        self.build_graph()

    @property
    def distribution(self) -> DiagonalGaussian:
        """A `DiagonalGaussian` of the action's size."""
        return self._distribution

    def build_graph(self) -> None:
        """Builds the policy's variables and the operations that act; called once, by the constructor."""
        with tf.name_scope(self.name):
            self._build_parameters()
            self._build_acting()

    def _build_parameters(self) -> None:
        rng = seeding.next_rng(seeding.Stream.WEIGHTS)
        values = initial_mlp_values(_MEAN, self.obs_dim, self.action_dim, self.hidden_sizes, rng)
        log_std = np.full(self.action_dim, math.log(self.init_std), np.float32)
        if self.learn_std:
            values[_LOG_STD] = log_std
        else:
            self._fixed_log_std = log_std
        self._register_parameters(
            OrderedDict((name, tf.Variable(v, use_resource=True, name=name)) for name, v in values.items())
        )

    def _build_acting(self) -> None:
        self._obs_ph = tf.placeholder(tf.float32, [None, self.obs_dim], name="observations")
        self._acting_info = self.distribution_info_sym(self._obs_ph)

    def distribution_info_sym(
        self, obs_var: tf.Tensor, params: Optional[Mapping[str, tf.Tensor]] = None
    ) -> Dict[str, tf.Tensor]:
        """Builds the distribution over actions at the given observations.

        Args:
            obs_var: `[N, O]`, or `[M, N, O]`.
            params: name to tensor; or stacked over tasks, with a leading axis `M` on every parameter and on
                `obs_var`. By default the policy's own variables.

        Returns:
            `mean` `[N, A]` and `log_std` `[1, A]`; or `[M, N, A]` and `[M, 1, A]`.
        """
        params = self.get_params() if params is None else params
        with tf.name_scope("distribution_info"):
            mean = forward_mlp(
                params, obs_var, _MEAN, len(self.hidden_sizes), self.hidden_nonlinearity, self.output_nonlinearity
            )
            log_std = params[_LOG_STD] if self.learn_std else self._fixed_log_std
            log_std = tf.maximum(log_std, np.float32(self._min_log_std))
            return OrderedDict(mean=mean, log_std=tf.expand_dims(log_std, -2))

    def get_action(self, observation: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Samples an action.

        Args:
            observation: `[O]`.

        Returns:
            `(action [A], agent_info)` with `mean` `[A]` and `log_std` `[A]`, float32.

        Raises:
            ValueError: a wrong shape, or a number that is not finite.
        """
        actions, infos = self.get_actions(self._check_observations("observation", observation, ndim=1)[None])
        return actions[0], {key: value[0] for key, value in infos.items()}

    def get_actions(self, observations: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Samples an action for each observation.

        Args:
            observations: `[B, O]`.

        Returns:
            `(actions [B, A], agent_infos)` with `mean` `[B, A]` and `log_std` `[B, A]`, float32.

        Raises:
            ValueError: a wrong shape, or a number that is not finite.
        """
        observations = self._check_observations("observations", observations, ndim=2)
        return self._act({self._obs_ph: observations})

    def _act(self, feed: Dict[tf.Tensor, np.ndarray]) -> Tuple[np.ndarray, Infos]:
        """Runs the acting operations and samples; `[..., A]`."""
        info = self._variables.session().run(self._acting_info, feed)
        info["log_std"] = np.broadcast_to(info["log_std"], info["mean"].shape)
        return self.distribution.sample(info, self._rng), dict(info)

    def numpy_copy(self) -> Optional[StackedGaussianMLP]:
        """Returns a copy of the policy that acts without TensorFlow, with parameters as they are now.

        It agrees with `get_actions` to about 1e-6.

        Returns:
            A `StackedGaussianMLP` (one task for a plain policy); None if a nonlinearity has no NumPy form, or if a
            subclass acts in a way of its own.
        """
        names = self._numpy_nonlinearities()
        if names is None or self._acts_otherwise():
            return None
        params = self._stacked_for_acting()
        if not self.learn_std:
            tasks = len(next(iter(params.values())))
            params[_LOG_STD] = np.broadcast_to(self._fixed_log_std, (tasks, self.action_dim))
        return StackedGaussianMLP(params, len(self.hidden_sizes), *names, self._min_log_std)

    def _acts_otherwise(self) -> bool:
        """Whether a class of another package overrides how the policy acts."""
        package = __name__.rpartition(".")[0]
        names = ("distribution_info_sym", "distribution", "get_action", "get_actions", "_act")
        owners = (next(cls for cls in type(self).__mro__ if name in vars(cls)) for name in names)
        return any(not owner.__module__.startswith(package + ".") for owner in owners)

    def _stacked_for_acting(self) -> "OrderedDict[str, np.ndarray]":
        return OrderedDict((name, value[None]) for name, value in self.get_param_values().items())

    def log_diagnostics(self, paths: Sequence[Path], prefix: str = "") -> None:
        """Logs `AveragePolicyStd`, the mean standard deviation of the actions of all paths.

        Args:
            paths: the paths of all tasks.
            prefix: put before the key, such as `Step_0-`.
        """
        log_policy_std(paths, prefix)
