"""E-MAML (arXiv:1803.01118): TRPO-MAML that also credits the samples before adaptation with where they led.

    python experiments/e_maml.py                            # half cheetah, forward or backward
    python experiments/e_maml.py --env MetaPointEnvCorner   # 2D navigation with a sparse reward

On the point environment with 20 tasks, returns go from 0.1 before to between 0.6 and 1.7 after adaptation within 50
iterations, which take 1 to 2 minutes on two cores: as with TRPO-MAML (see experiments/results). The term that it adds,
and how it relates to that of common code, is described in `meta_policy_search.meta_algos.exploring`.
"""
import sys
from dataclasses import dataclass

from experiments import maml_trpo
from experiments.command import make_main
from experiments.settings import setting


@dataclass(frozen=True)
class Config(maml_trpo.Config):
    """Those of TRPO-MAML, with the term that E-MAML adds."""

    exploration: bool = setting(True, "add the exploration term, without which this is TRPO-MAML")


build = maml_trpo.build


main = make_main(Config)

if __name__ == "__main__":
    sys.exit(main())
