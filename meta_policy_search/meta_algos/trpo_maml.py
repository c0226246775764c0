"""TRPO-MAML: model-agnostic meta-learning with a trust-region outer step (arXiv:1703.03400, section 5.3)."""
from typing import Optional, Sequence, Union

from meta_policy_search.meta_algos import exploring
from meta_policy_search.meta_algos.base import MAMLAlgo
from meta_policy_search.meta_algos.inputs import AdaptationStep, MetaObjective
from meta_policy_search.ops import losses
from meta_policy_search.optimizers.conjugate_gradient_optimizer import (
    ConjugateGradientOptimizer,
    GaussNewtonHvp,
    Metric,
)
from meta_policy_search.policies.base import MetaPolicy
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.checks import check_positive
from meta_policy_search.utils.fast_paths import fast_path


class TRPOMAML(MAMLAlgo):
    """MAML whose meta-update is one trust-region step (TRPO, arXiv:1502.05477).

    Minimizes the mean over tasks of the adapted policies' likelihood-ratio loss, plus E-MAML's term with `exploration`
    (see `meta_algos.exploring`), such that their mean divergence from the policies that sampled stays below
    `step_size`.

    Logs `MeanKLBefore`, `MeanKL`, `LossBefore`, `LossAfter`, `dLoss` and `StepFraction` (of the full step).

    Args:
        policy (MetaPolicy): the policy to optimize.
        inner_lr (float): step size alpha of the inner step, at least 0; above 0 if it is trained. Default 0.1.
        meta_batch_size (int): number of tasks `M`, the same as the policy's; default 20.
        num_inner_grad_steps (int): number of inner steps `K`; default 1. With 0, one policy is trained for all tasks.
        trainable_inner_step_size (bool): whether the meta-update also optimizes the inner step sizes, see `MAMLAlgo`;
            default False.
        first_order (bool): whether to leave out second derivatives (arXiv:1703.03400, section 5.2); default False.
        name (str): name scope of the algorithm's operations.
        step_size (float): maximum mean divergence `KL(pi_old || pi_theta_K)` per meta-update, nats; default 0.01.
        optimizer (ConjugateGradientOptimizer or None): takes the step. Default None, a `ConjugateGradientOptimizer`
            with its own defaults, but with `GaussNewtonHvp()` if the policy's distribution has a `fisher_norm_sym`.
        inner_type (str): loss of the inner step, `'likelihood_ratio'`, `'log_likelihood'`, `'dice'` or
            `'taypo'`; see `meta_algos.exploring`. Default `'likelihood_ratio'`.
        exploration (bool): whether to add the exploration term (E-MAML); default False.
        exploration_coeff (float or None): the coefficient `c` of that term, at least 0; default None, one over the
            number of samples.
        max_path_length (int or None): for `inner_type='dice'` and `'taypo'`, the maximum number of steps of a path. The
            loss is divided by this and the number of paths, since the number of samples depends on the policy if paths
            end early. Default None, the length of the longest path.
        adapt_params (str or list of str): the parameters that inner steps change: `'all'` (MAML), `'head'` (ANIL),
            `'body'` (BOIL), `'context'` (CAVIA), or patterns of their names; see `meta_algos.adapted_params`. Default
            `'all'`.

    Raises:
        ValueError: `exploration_coeff` without `exploration`, or `max_path_length` with an `inner_type` that does
            not depend on it.
    """

    def __init__(self, policy: MetaPolicy, inner_lr: float = 0.1, meta_batch_size: int = 20,
                 num_inner_grad_steps: int = 1, trainable_inner_step_size: bool = False, first_order: bool = False, *,
                 name: str = "trpo_maml", step_size: float = 0.01,
                 optimizer: Optional[ConjugateGradientOptimizer] = None, inner_type: str = "likelihood_ratio",
                 exploration: bool = False, exploration_coeff: Optional[float] = None,
                 max_path_length: Optional[int] = None,
                 adapt_params: Union[str, Sequence[str]] = "all") -> None:
        super().__init__(policy, inner_lr, meta_batch_size, num_inner_grad_steps, trainable_inner_step_size,
                         first_order, name, adapt_params=adapt_params)
        self.inner_type, self.max_path_length = exploring.check_inner_type(inner_type, max_path_length)
        self.exploration, self.exploration_coeff = exploring.check_exploration(exploration, exploration_coeff)
        if self.exploration:
            self._check_adapts("exploration")
        self.step_size = check_positive("step_size", step_size)
        if optimizer is not None and not isinstance(optimizer, ConjugateGradientOptimizer):
            raise TypeError(f"optimizer: expected a ConjugateGradientOptimizer or None, got {optimizer!r}")
        self._fisher_norm_sym = fast_path(policy.distribution, "fisher_norm_sym")
        self.optimizer = optimizer or ConjugateGradientOptimizer(
            hvp_approach=None if self._fisher_norm_sym is None else GaussNewtonHvp())
        self.build_graph()

    def inner_loss(self, step: AdaptationStep) -> tf.Tensor:
        """Builds the loss of an inner step, `[M]`."""
        return exploring.inner_loss(step, self.inner_type, self.max_path_length)

    def meta_objective(self, steps: Sequence[AdaptationStep]) -> MetaObjective:
        """Builds the adapted policies' likelihood-ratio loss and their divergence."""
        last = steps[-1]
        loss = losses.likelihood_ratio_loss(last.log_prob, last.old_log_prob, last.inputs.advantages,
                                            last.inputs.weights)
        if self.exploration:
            loss += exploring.exploration_loss(steps, self.exploration_coeff)
        return MetaObjective(tf.reduce_mean(loss), constraint=(self.mean_kl(last), self.step_size),
                             constraint_metric=self._metric(last))

    def _metric(self, step: AdaptationStep) -> Optional[Metric]:
        """Returns a step's distributions and a function that builds the squared length of a change, mean over tasks."""
        fisher_norm_sym = self._fisher_norm_sym
        if fisher_norm_sym is None:
            return None
        names = list(step.dist_info)

        def norm(change: Sequence[tf.Tensor]) -> tf.Tensor:
            norms = fisher_norm_sym(step.dist_info, dict(zip(names, change)))
            return tf.reduce_mean(losses.weighted_mean(norms, step.inputs.weights))

        return [step.dist_info[name] for name in names], norm
