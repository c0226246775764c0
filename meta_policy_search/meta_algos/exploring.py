"""MAML with a choice of inner objective, and with E-MAML's exploration term (arXiv:1803.01118)."""
from typing import Any, Optional, Sequence, Tuple

from meta_policy_search.meta_algos.adaptation_step import AdaptationStep
from meta_policy_search.meta_algos.base import MAMLAlgo, MAMLArguments
from meta_policy_search.ops import losses
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.checks import check_bool, check_choice, check_non_negative, check_positive_int
from meta_policy_search.utils.signatures import Unpack

INNER_TYPES = ("likelihood_ratio", "log_likelihood", "dice")


class ExploringArguments(MAMLArguments, total=False):
    """Arguments that algorithms with a choice of inner objective share, by name."""

    inner_type: str
    exploration: bool
    exploration_coeff: Optional[float]
    max_path_length: Optional[int]


class ExploringMAMLAlgo(MAMLAlgo):
    """MAML with a choice of inner objective, and with E-MAML's exploration term.

    The samples before adaptation decide where adaptation leads. E-MAML (arXiv:1803.01118) therefore adds the score
    of those samples, times what the adapted policy achieved. Per task `m`,

        L_m = L_outer,m - c * B_m * sum_k sum_n (pi_{theta_k}(a_kn | o_kn) / pi_old(a_kn | o_kn) - 1),

    where the sum runs over all samples of all inner steps, each under the parameters of its own step, `B_m` is the
    task's mean of `adj_avg_rewards` after adaptation (its mean reward, less the mean over all tasks, in standard
    deviations of the rewards), and `c` is `exploration_coeff`. With `c = 1` and rewards in place of `B_m` this is the
    exact score of the data set, and together with `inner_type='log_likelihood'` the meta-gradient is unbiased. (The
    other inner types differentiate through the samples' probabilities themselves, and would count a part of the score
    twice.) Its variance grows with the number of samples, so that it drowns the rest of the
    gradient in data sets of the usual size; by default `c` is one over the number of samples of the step, which makes
    the sum a mean, as in common code.

    Args:
        inner_type (str): `'likelihood_ratio'`, `'log_likelihood'` or `'dice'`, the loss of the inner step. All three
            have the same gradient at the sampling policy, if paths are equally long. They differ in second
            derivatives: `'log_likelihood'` leaves out that which actions are sampled depends on the parameters,
            `'likelihood_ratio'` only that earlier actions led to the present state, which keeps the variance low
            (arXiv:1810.06784, section 5), and `'dice'` nothing (Loaded DiCE, arXiv:1909.10549).
        exploration (bool): whether to add the exploration term (E-MAML).
        exploration_coeff (float or None): the coefficient `c`, at least 0; default None, one over the number of
            samples.
        max_path_length (int or None): for `inner_type='dice'`, the most steps that a path can have: the loss is
            divided by this and the number of paths, not by the number of samples, which depends on the policy where
            paths end early. Default None, the length of the longest path.

    Raises:
        ValueError: `exploration_coeff` without `exploration`, or `max_path_length` without `inner_type='dice'`.
    """

    def __init__(self, *args: Any, name: str = "maml", inner_type: str = "likelihood_ratio", exploration: bool = False,
                 exploration_coeff: Optional[float] = None, max_path_length: Optional[int] = None,
                 **kwargs: Unpack[MAMLArguments]) -> None:
        super().__init__(*args, name=name, **kwargs)  # type: ignore[misc]  # `args` end before it
        self.inner_type = check_choice("inner_type", inner_type, INNER_TYPES)
        self.exploration = check_bool("exploration", exploration)
        if self.exploration:
            self._check_adapts("exploration")
        self.exploration_coeff = None if exploration_coeff is None else check_non_negative(
            "exploration_coeff", exploration_coeff)
        if exploration_coeff is not None and not self.exploration:
            raise ValueError("exploration_coeff: expected None with exploration=False, which has no such term, got "
                             f"{exploration_coeff}")
        if max_path_length is not None:
            self.max_path_length = check_positive_int("max_path_length", max_path_length)
        if self.max_path_length is not None and self.inner_type != "dice":
            raise ValueError(f"max_path_length: expected None with inner_type={self.inner_type!r}, which does not "
                             f"depend on it, got {max_path_length}")

    def build_inner_loss(self, step: AdaptationStep) -> tf.Tensor:
        """Builds the loss that an inner step descends, `[M]`."""
        if self.inner_type == "log_likelihood":
            return losses.log_likelihood_loss(step.log_prob, step.inputs.advantages, step.inputs.weights).loss
        if self.inner_type == "dice":
            inputs = step.inputs
            return losses.loaded_dice_loss(
                step.log_prob, inputs.advantages, inputs.path_weights, inputs.path_starts).loss
        return super().build_inner_loss(step)

    def _sample_keys(self, is_last: bool) -> Tuple[str, ...]:
        explores = is_last and self.exploration
        return (*super()._sample_keys(is_last), *(("adj_avg_rewards",) if explores else ()))

    def _needs_paths(self, is_last: bool) -> bool:
        return self.inner_type == "dice" and not is_last

    def build_exploration_loss(self, chain: Sequence[AdaptationStep]) -> tf.Tensor:
        """Builds the exploration term, `[M]`; zero without `exploration`."""
        last = chain[-1].inputs
        if not self.exploration:
            return tf.zeros_like(last.weights[:, 0])
        achieved = losses.weighted_mean(last.entries["adj_avg_rewards"], last.weights)
        scores = []
        for step in chain[:-1]:
            inputs, coeff = step.inputs, self.exploration_coeff
            weights = inputs.weights if coeff is None else coeff * inputs.mask
            scores.append(losses.exploration_score(step.log_prob, step.old_log_prob, weights))
        return -achieved * tf.add_n(scores)
