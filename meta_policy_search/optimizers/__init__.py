"""Optimizers of meta-objectives: first-order optimizers, and conjugate gradients under a constraint."""
from meta_policy_search.optimizers.base import Optimizer
from meta_policy_search.optimizers.conjugate_gradient_optimizer import ConjugateGradientOptimizer, FiniteDifferenceHvp
from meta_policy_search.optimizers.maml_first_order_optimizer import MAMLFirstOrderOptimizer, MAMLPPOOptimizer

__all__ = ["ConjugateGradientOptimizer", "FiniteDifferenceHvp", "MAMLFirstOrderOptimizer", "MAMLPPOOptimizer",
           "Optimizer"]
