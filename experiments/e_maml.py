"""Trains E-MAML (arXiv:1803.01118): TRPO-MAML with an exploration term for the samples before adaptation.

    python experiments/e_maml.py                                 # half cheetah, forward or backward
    python experiments/e_maml.py --env MetaPointEnvCornerGoals   # 2D navigation

docs/results/corner.md contains the results on MetaPointEnvCorner with --meta_batch_size 20: 50 iterations take 1 to 2
minutes on two cores. `meta_policy_search.meta_algos.inner_losses` describes the exploration term and how it differs
from common implementations.
"""
import sys

from meta_policy_search.cli.train import make_main

ALGORITHM = "e_maml"
# Settings of E-MAML in the ProMP paper (arXiv:1810.06784).
PUBLISHED = {"n_itr": 1001, "meta_batch_size": 40, "inner_type": "log_likelihood"}

main = make_main(ALGORITHM, PUBLISHED, __file__, __doc__)

if __name__ == "__main__":
    sys.exit(main())
