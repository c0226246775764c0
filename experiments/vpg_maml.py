"""VPG-MAML (arXiv:1703.03400): one step of Adam along the plain policy gradient per meta-update.

    python experiments/vpg_maml.py                            # half cheetah, forward or backward
    python experiments/vpg_maml.py --env MetaPointEnvCorner   # 2D navigation with a sparse reward
"""
import sys
from dataclasses import dataclass

import meta_policy_search as mps
from experiments.command import make_main
from experiments.parts import build_parts, build_trainer, first_order_arguments
from experiments.settings import ExploringConfig, FirstOrderConfig


@dataclass(frozen=True)
class Config(FirstOrderConfig, ExploringConfig):
    """The settings that ProMP was compared with (arXiv:1810.06784)."""


def build(config: Config) -> "mps.Trainer":
    """Builds VPG-MAML and its trainer."""
    return build_trainer(config, build_parts(config), mps.VPGMAML, **first_order_arguments(config))


main = make_main(Config)

if __name__ == "__main__":
    sys.exit(main())
