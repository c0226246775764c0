"""Trains E-MAML (arXiv:1803.01118): TRPO-MAML with an exploration term for the samples before adaptation.

    python experiments/e_maml.py                            # half cheetah, forward or backward
    python experiments/e_maml.py --env MetaPointEnvCorner   # 2D navigation with a sparse reward

Expected result for 2D navigation with --meta_batch_size 20: after 50 iterations (1 to 2 minutes on two cores), the mean
return is 0.1 to 0.2 before adaptation and 0.6 to 1.7 after adaptation, similar to TRPO-MAML (details in
experiments/results/README.md). `meta_policy_search.meta_algos.exploring` describes the exploration term and how it
differs from common implementations.
"""
import sys
from dataclasses import dataclass

from experiments import maml_trpo
from experiments.command import make_main
from experiments.settings import setting


@dataclass(frozen=True)
class Config(maml_trpo.Config):
    """The settings of TRPO-MAML with the exploration term."""

    exploration: bool = setting(True, "add the exploration term of E-MAML; without it, the algorithm is TRPO-MAML")


build = maml_trpo.build


main = make_main(Config)

if __name__ == "__main__":
    sys.exit(main())
