"""TRPO-MAML: model-agnostic meta-learning with a trust-region outer step (arXiv:1703.03400, section 5.3)."""
from typing import Any, Dict, Mapping, Optional, Sequence

import numpy as np

from meta_policy_search.meta_algos.adaptation_step import AdaptationStep
from meta_policy_search.meta_algos.exploring import ExploringArguments, ExploringMAMLAlgo
from meta_policy_search.ops import losses
from meta_policy_search.optimizers.conjugate_gradient_optimizer import (
    ConjugateGradientOptimizer,
    GaussNewtonHvp,
    Metric,
)
from meta_policy_search.policies.distributions.base import Distribution
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.checks import check_positive
from meta_policy_search.utils.signatures import Unpack


class TRPOMAML(ExploringMAMLAlgo):
    """MAML whose meta-update is one trust-region step (TRPO, arXiv:1502.05477).

    Minimizes the mean over tasks of the adapted policies' likelihood-ratio loss (plus, with `exploration`, E-MAML's
    term, see `ExploringMAMLAlgo`), such that their mean divergence from the policies that sampled stays below
    `step_size`.

    Logs `MeanKLBefore`, `MeanKL`, `LossBefore`, `LossAfter`, `dLoss` and `StepFraction` (of the full step).

    Args:
        step_size (float): largest mean divergence `KL(pi_old || pi_theta_K)` per meta-update, nats; default 0.01.
        optimizer (ConjugateGradientOptimizer or None): by default one with its own defaults, but
            `GaussNewtonHvp()` where the policy's distribution has a `fisher_norm_sym`.
    """

    def __init__(self, *args: Any, name: str = "trpo_maml", step_size: float = 0.01,
                 optimizer: Optional[ConjugateGradientOptimizer] = None, **kwargs: Unpack[ExploringArguments]) -> None:
        super().__init__(*args, name=name, **kwargs)
        self.step_size = check_positive("step_size", step_size)
        if optimizer is not None and not isinstance(optimizer, ConjugateGradientOptimizer):
            raise TypeError(f"optimizer: expected a ConjugateGradientOptimizer or None, got {optimizer!r}")
        self.optimizer: ConjugateGradientOptimizer = optimizer or ConjugateGradientOptimizer(
            hvp_approach=GaussNewtonHvp() if self._has_fisher_norm() else None)
        self.build_graph()

    @property
    def learning_rate(self) -> None:
        """None: how far a meta-update goes is limited by `step_size`."""

    def build_meta_objective(self, chain: Sequence[AdaptationStep]) -> None:
        """Builds the adapted policies' likelihood-ratio loss and divergence."""
        with tf.name_scope("meta_objective"):
            last = chain[-1]
            outer = losses.likelihood_ratio_loss(last.log_prob, last.old_log_prob, last.inputs.advantages,
                                                 last.inputs.weights)
            loss = tf.reduce_mean(outer.loss + self.build_exploration_loss(chain))
            mean_kl = self._build_mean_kl(last)
        self.optimizer.build_graph(loss, self.meta_parameters, self._meta_placeholders(chain),
                                   leq_constraint=(mean_kl, self.step_size),
                                   sample_axes=self._last_step_sample_axes(chain), task_inputs=self.task_inputs(chain),
                                   constraint_metric=self._metric(last) if self._has_fisher_norm() else None)

    def _has_fisher_norm(self) -> bool:
        method = getattr(type(self.policy.distribution), "fisher_norm_sym", None)
        return method not in (None, Distribution.fisher_norm_sym)

    def _metric(self, step: AdaptationStep) -> Metric:
        """Returns a step's distributions, and what builds the squared length of a change, mean over tasks."""
        names = list(step.dist_info)

        def norm(change: Sequence[tf.Tensor]) -> tf.Tensor:
            norms = self.policy.distribution.fisher_norm_sym(step.dist_info, dict(zip(names, change)))
            return tf.reduce_mean(losses.weighted_mean(norms, step.inputs.weights))

        return [step.dist_info[name] for name in names], norm

    def _update(self, values: Mapping[str, np.ndarray]) -> Dict[str, float]:
        self.optimizer.optimize(values)
        search = self.optimizer.last_search
        return {"MeanKLBefore": self.optimizer.constraint_before, "MeanKL": search.constraint,
                "LossBefore": search.loss_before, "LossAfter": search.loss, "dLoss": search.loss_before - search.loss,
                "StepFraction": search.step_fraction}
