"""Trains VPG-MAML (arXiv:1703.03400): one Adam step along the policy gradient per meta-update.

    python experiments/vpg_maml.py                                 # half cheetah, forward or backward
    python experiments/vpg_maml.py --env MetaPointEnvCornerGoals   # 2D navigation

docs/results/reference_table.md contains results with tuned settings; they are in experiments/configs.
"""
import sys

from meta_policy_search.cli.train import make_main

ALGORITHM = "vpg_maml"
# Settings of VPG-MAML in the ProMP paper (arXiv:1810.06784).
PUBLISHED = {"n_itr": 1001, "meta_batch_size": 40, "inner_type": "log_likelihood"}

main = make_main(ALGORITHM, PUBLISHED, __file__, __doc__)

if __name__ == "__main__":
    sys.exit(main())
