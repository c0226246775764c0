"""Trains VPG-MAML (arXiv:1703.03400): one Adam step along the policy gradient per meta-update.

    python experiments/vpg_maml.py                            # half cheetah, forward or backward
    python experiments/vpg_maml.py --env MetaPointEnvCorner   # 2D navigation with a sparse reward

Expected result for 2D navigation with --meta_batch_size 20: after 300 iterations (about 2 minutes on two cores), the
mean return is about 0.3 before adaptation and 0.4 after adaptation (details in experiments/results/README.md).
"""
import sys
from dataclasses import dataclass

import meta_policy_search as mps
from experiments.command import make_main
from experiments.parts import build_parts, build_trainer, first_order_arguments
from experiments.settings import ExploringConfig, FirstOrderConfig


@dataclass(frozen=True)
class Config(FirstOrderConfig, ExploringConfig):
    """The settings of VPG-MAML in the ProMP paper (arXiv:1810.06784)."""


def build(config: Config) -> "mps.Trainer":
    """Builds VPG-MAML and its trainer."""
    return build_trainer(config, build_parts(config), mps.VPGMAML, **first_order_arguments(config))


main = make_main(Config)

if __name__ == "__main__":
    sys.exit(main())
