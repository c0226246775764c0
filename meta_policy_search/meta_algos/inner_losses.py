"""Inner loss types and E-MAML's exploration term (arXiv:1803.01118) of TRPO-MAML, E-MAML and VPG-MAML.

**Inner losses.** At the sampling policy, all types have the same gradient if all paths have `max_path_length`
steps. Their second derivatives differ:

* `'log_likelihood'` neglects that the parameters determine which actions are sampled.
* `'likelihood_ratio'` neglects only that earlier actions led to the current state. This keeps the variance low
  (arXiv:1810.06784, section 5).
* `'dice'` (Loaded DiCE, arXiv:1909.10549) and `'taypo'` (TayPO-2, arXiv:2106.13125) neglect nothing: their second
  derivatives are unbiased.

**Exploration.** The samples before adaptation determine the adapted parameters. E-MAML therefore adds the score of
these samples, multiplied by the reward of the adapted policy. The loss of task `m` is

    L_m = L_outer,m - c * B_m * sum_k sum_n (pi_{theta_k}(a_kn | o_kn) / pi_old(a_kn | o_kn) - 1).

The sum runs over all samples of all adaptation steps, each under the parameters of that step. `B_m` is the task's mean
of `adj_avg_rewards` after adaptation: its mean reward minus the mean over all tasks, divided by the standard deviation
of the rewards. `c` is `exploration_coeff`.

With `c = 1` and rewards instead of `B_m`, the term is the exact score of the data set. With
`inner_type='log_likelihood'`, the meta-gradient is then unbiased. The other inner types already differentiate through
the probabilities of the samples, so a part of the score would count twice. The variance of the exact score grows with
the number of samples and dominates the gradient for data sets of typical size. By default, `c` is one over the number
of samples of the step, which turns the sum into a mean, as in common code.
"""
from typing import Optional, Sequence, Tuple

from meta_policy_search.meta_algos.inputs import AdaptationStep
from meta_policy_search.ops import losses
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.checks import check_bool, check_choice, check_non_negative, check_positive_int

INNER_TYPES = ("likelihood_ratio", "log_likelihood", "dice", "taypo")


def check_inner_type(inner_type: str, max_path_length: Optional[int]) -> Tuple[str, Optional[int]]:
    """Returns the checked arguments of `inner_loss`."""
    if max_path_length is not None:
        max_path_length = check_positive_int("max_path_length", max_path_length)
    return check_choice("inner_type", inner_type, INNER_TYPES), max_path_length


def check_exploration(exploration: bool, exploration_coeff: Optional[float], num_steps: int
                      ) -> Tuple[bool, Optional[float]]:
    """Returns the checked arguments; raises `ValueError` if they would have no effect with `num_steps` steps."""
    if check_bool("exploration", exploration) and num_steps == 0:
        raise ValueError("exploration: expected False with num_inner_grad_steps=0, got True")
    if exploration_coeff is not None:
        exploration_coeff = check_non_negative("exploration_coeff", exploration_coeff)
        if not exploration:
            raise ValueError(f"exploration_coeff: expected None with exploration=False, got {exploration_coeff}")
    return exploration, exploration_coeff


def inner_loss(step: AdaptationStep, inner_type: str, max_path_length: Optional[int]) -> tf.Tensor:
    """Builds the loss of an adaptation step, `[M]`.

    Args:
        step: the adaptation step.
        inner_type: one of `INNER_TYPES`.
        max_path_length: maximum number of steps of a path, for `'dice'` and `'taypo'`; None for means over samples.
    """
    inputs, (inner_type, max_path_length) = step.inputs, check_inner_type(inner_type, max_path_length)
    if inner_type == "log_likelihood":
        return losses.log_likelihood_loss(step.log_prob, inputs.advantages, inputs.weights)
    if inner_type == "likelihood_ratio":
        return losses.likelihood_ratio_loss(step.log_prob, step.old_log_prob, inputs.advantages, inputs.weights)
    weights = inputs.weights if max_path_length is None else inputs.path_weights(max_path_length)
    if inner_type == "dice":
        return losses.loaded_dice_loss(step.log_prob, inputs.advantages, weights, inputs.path_starts)
    return losses.taypo_loss(step.log_prob, step.old_log_prob, inputs.advantages, weights, inputs.path_starts)


def exploration_loss(steps: Sequence[AdaptationStep], coeff: Optional[float] = None) -> tf.Tensor:
    """Builds E-MAML's exploration term, `[M]`.

    Args:
        steps: the adaptation steps, followed by the adapted policies.
        coeff: the coefficient `c`. Default: None, one over the number of samples of a step.
    """
    last = steps[-1].inputs
    achieved = losses.weighted_mean(last.entry("adj_avg_rewards"), last.weights)
    scores = []
    for step in steps[:-1]:
        weights = step.inputs.weights if coeff is None else coeff * step.inputs.mask
        scores.append(losses.exploration_score(step.log_prob, step.old_log_prob, weights))
    return -achieved * tf.add_n(scores)
