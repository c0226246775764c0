"""Trains E-MAML (arXiv:1803.01118): TRPO-MAML with an exploration term for the samples before adaptation.

    python experiments/e_maml.py                                 # half cheetah, forward or backward
    python experiments/e_maml.py --env MetaPointEnvCornerGoals   # 2D navigation

docs/results/reference_table.md contains results with tuned settings; they are in experiments/configs.
`meta_policy_search.meta_algos.inner_losses` describes the exploration term and how it differs from common
implementations.
"""
import sys

from meta_policy_search.cli.train import make_main

ALGORITHM = "e_maml"
# Settings of E-MAML in the ProMP paper (arXiv:1810.06784).
PUBLISHED = {"n_itr": 1001, "meta_batch_size": 40, "inner_type": "log_likelihood"}

main = make_main(ALGORITHM, PUBLISHED, __file__, __doc__)

if __name__ == "__main__":
    sys.exit(main())
