"""Trains TRPO-MAML (arXiv:1703.03400): one trust-region step per meta-update, as in the original experiments.

    python experiments/maml_trpo.py                            # half cheetah, forward or backward
    python experiments/maml_trpo.py --env MetaPointEnvCorner   # 2D navigation with a sparse reward

Expected result for 2D navigation with --meta_batch_size 20: after 50 iterations (1 to 2 minutes on two cores), the mean
return is about 0.1 before adaptation and 0.9 to 1.8 after adaptation (details in experiments/results/README.md).
"""
import sys
from dataclasses import dataclass

import meta_policy_search as mps
from experiments.command import make_main
from experiments.parts import build_parts, build_trainer
from experiments.settings import ExploringConfig, setting


@dataclass(frozen=True)
class Config(ExploringConfig):
    """The settings of TRPO-MAML in the ProMP paper (arXiv:1810.06784)."""

    step_size: float = setting(0.01, "maximum mean KL divergence per meta-update, nats")
    cg_iters: int = setting(10, "conjugate gradient iterations per meta-update, at least 1")
    subsample_factor: float = setting(1.0, "fraction of the samples used for curvature products, in (0, 1]")
    curvature: str = setting("gauss_newton", "method for curvature products of the KL divergence",
                             ("gauss_newton", "finite_difference", "exact"))


def build(config: Config) -> "mps.Trainer":
    """Builds TRPO-MAML and its trainer."""
    products = {"gauss_newton": mps.GaussNewtonHvp, "finite_difference": mps.FiniteDifferenceHvp, "exact": mps.ExactHvp}
    optimizer = mps.ConjugateGradientOptimizer(
        cg_iters=config.cg_iters, subsample_factor=config.subsample_factor, hvp_approach=products[config.curvature]())
    return build_trainer(config, build_parts(config), mps.TRPOMAML, optimizer=optimizer)


main = make_main(Config)

if __name__ == "__main__":
    sys.exit(main())
