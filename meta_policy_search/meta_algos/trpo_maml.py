"""TRPO-MAML: MAML with a trust-region meta-update (arXiv:1703.03400, section 5.3)."""
from typing import Optional, Sequence, Union

from meta_policy_search.meta_algos import inner_losses
from meta_policy_search.meta_algos.base import MAMLAlgo
from meta_policy_search.meta_algos.inputs import AdaptationStep, MetaObjective
from meta_policy_search.ops import losses
from meta_policy_search.optimizers.conjugate_gradient_optimizer import ConjugateGradientOptimizer, Metric
from meta_policy_search.policies.base import MetaPolicy
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.checks import check_positive, check_type
from meta_policy_search.utils.fast_paths import fast_path

STEP_SIZE_DAMPING = 0.1
"""Damping of trained log step sizes, added to the diagonal of the Hessian. The divergence does not depend on most of
them, so a natural-gradient step without damping would be unbounded."""


class TRPOMAML(MAMLAlgo):
    """MAML whose meta-update is one trust-region step (TRPO, arXiv:1502.05477).

    Minimizes the mean over tasks of the likelihood-ratio loss of the adapted policies. With `exploration`, E-MAML's
    term is added (see `meta_algos.inner_losses`). The step keeps the mean divergence of the adapted policies from the
    sampling policies at or below `step_size`.

    Logs `MeanKLBefore`, `MeanKL`, `LossBefore`, `LossAfter`, `dLoss` and `StepFraction` (fraction of the full step).

    Args:
        policy (MetaPolicy): the policy to optimize.
        inner_lr (float): inner step size alpha, at least 0; above 0 with `trainable_inner_step_size`. Default: 0.1.
        meta_batch_size (int): number of tasks `M`; must equal the policy's. Default: 20.
        num_inner_grad_steps (int): number of adaptation steps `K`. With 0, one policy is trained for all tasks.
            Default: 1.
        trainable_inner_step_size (bool): whether the meta-update also optimizes the inner step sizes; see `MAMLAlgo`.
            Default: False.
        first_order (bool): whether to omit second derivatives (first-order MAML; arXiv:1703.03400, section 5.2).
            Default: False.
        name (str): name scope of the algorithm's operations.
        step_size (float): maximum mean divergence `KL(pi_old || pi_theta_K)` per meta-update, in nats. Default: 0.01.
        optimizer (ConjugateGradientOptimizer or None): performs the meta-update. Default: None, a
            `ConjugateGradientOptimizer` with default arguments. It receives a `constraint_metric` if the policy's
            distribution has a `fisher_norm_sym`.
        inner_type (str): loss of the adaptation step: `'likelihood_ratio'`, `'log_likelihood'`, `'dice'` or
            `'taypo'`; see `meta_algos.inner_losses`. Default: `'likelihood_ratio'`.
        exploration (bool): whether to add the exploration term (E-MAML). Default: False.
        exploration_coeff (float or None): coefficient `c` of the exploration term, at least 0. Default: None, one over
            the number of samples.
        max_path_length (int or None): maximum number of steps of a path, for `inner_type='dice'` and `'taypo'`; no
            effect on other inner types. Their loss is divided by this number and by the number of paths. Default: None,
            their loss is the mean over the samples of the task. This mean causes a bias if paths can end early, because
            the number of samples then depends on the policy.
        adapt_params (str or list of str): parameters that adaptation steps change: `'all'` (MAML), `'head'` (ANIL),
            `'body'` (BOIL), `'context'` (CAVIA), or patterns of names; see `meta_algos.adapted_params`. Default:
            `'all'`.

    Raises:
        ValueError: an argument is out of range, or `exploration_coeff` is set without `exploration`.
    """

    optimizer_cls = ConjugateGradientOptimizer

    def __init__(self, policy: MetaPolicy, inner_lr: float = 0.1, meta_batch_size: int = 20,
                 num_inner_grad_steps: int = 1, trainable_inner_step_size: bool = False, first_order: bool = False, *,
                 name: str = "trpo_maml", step_size: float = 0.01,
                 optimizer: Optional[ConjugateGradientOptimizer] = None, inner_type: str = "likelihood_ratio",
                 exploration: bool = False, exploration_coeff: Optional[float] = None,
                 max_path_length: Optional[int] = None, adapt_params: Union[str, Sequence[str]] = "all") -> None:
        super().__init__(policy, inner_lr, meta_batch_size, num_inner_grad_steps, trainable_inner_step_size,
                         first_order, name, adapt_params=adapt_params)
        self.inner_type, self.max_path_length = inner_losses.check_inner_type(inner_type, max_path_length)
        self.exploration, self.exploration_coeff = inner_losses.check_exploration(
            exploration, exploration_coeff, self.num_inner_grad_steps)
        self.step_size = check_positive("step_size", step_size)
        check_type("optimizer", optimizer, (ConjugateGradientOptimizer, type(None)),
                   "a ConjugateGradientOptimizer or None")
        self.optimizer = optimizer or ConjugateGradientOptimizer()
        self.build_graph()

    def meta_objective(self, steps: Sequence[AdaptationStep]) -> MetaObjective:
        """Builds the likelihood-ratio loss of the adapted policies, and their divergence as a constraint."""
        last = steps[-1]
        loss = losses.likelihood_ratio_loss(last.log_prob, last.old_log_prob, last.inputs.advantages,
                                            last.inputs.weights)
        if self.exploration:
            loss += inner_losses.exploration_loss(steps, self.exploration_coeff)
        return MetaObjective(tf.reduce_mean(loss), by_task=True, optimizer_arguments={
            "leq_constraint": (self.mean_kl(last), self.step_size), "constraint_metric": self._metric(last),
            "damping": {f"log_step_size/{name}": STEP_SIZE_DAMPING for name in self._log_step_sizes.variables}})

    def _metric(self, step: AdaptationStep) -> Optional[Metric]:
        """Returns the distribution tensors of a step, and a function that builds the squared length of their change."""
        fisher_norm_sym = fast_path(self.policy.distribution, "fisher_norm_sym")
        if fisher_norm_sym is None:
            return None

        def norm(change: Sequence[tf.Tensor]) -> tf.Tensor:
            norms = fisher_norm_sym(step.dist_info, dict(zip(step.dist_info, change)))
            return tf.reduce_mean(losses.weighted_mean(norms, step.inputs.weights))

        return list(step.dist_info.values()), norm
