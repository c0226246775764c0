"""Optimizers of meta-objectives: first-order optimizers, and conjugate gradients under a constraint."""
from meta_policy_search.optimizers.base import Optimizer
from meta_policy_search.optimizers.conjugate_gradient_optimizer import (
    ConjugateGradientOptimizer,
    ExactHvp,
    FiniteDifferenceHvp,
    GaussNewtonHvp,
    HessianVectorProduct,
)
from meta_policy_search.optimizers.maml_first_order_optimizer import MAMLFirstOrderOptimizer, MAMLPPOOptimizer

__all__ = ["ConjugateGradientOptimizer", "ExactHvp", "FiniteDifferenceHvp", "GaussNewtonHvp", "HessianVectorProduct",
           "MAMLFirstOrderOptimizer", "MAMLPPOOptimizer", "Optimizer"]
