"""VPG-MAML (arXiv:1703.03400): one step of Adam along the plain policy gradient per meta-update.

    python experiments/vpg_maml.py                            # half cheetah, forward or backward
    python experiments/vpg_maml.py --env MetaPointEnvCorner   # 2D navigation with a sparse reward
"""
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional, Sequence

from experiments.command import run
from experiments.parts import build_parts, build_trainer, first_order_arguments
from experiments.settings import ExploringConfig, FirstOrderConfig

if TYPE_CHECKING:
    from meta_policy_search.meta_trainer import Trainer


@dataclass(frozen=True)
class Config(FirstOrderConfig, ExploringConfig):
    """The settings that ProMP was compared with (arXiv:1810.06784)."""


def build(config: Config) -> "Trainer":
    """Builds VPG-MAML and its trainer."""
    from meta_policy_search.meta_algos import VPGMAML  # loads TensorFlow, which takes seconds

    return build_trainer(config, build_parts(config), VPGMAML, **first_order_arguments(config))


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Trains with the settings of the command line; returns the exit status."""
    return run(Config, build, argv)


if __name__ == "__main__":
    sys.exit(main())
