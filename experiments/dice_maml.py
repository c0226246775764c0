"""Trains DiCE-MAML (arXiv:1802.05098): adaptation steps with unbiased second derivatives.

    python experiments/dice_maml.py                                 # half cheetah, forward or backward
    python experiments/dice_maml.py --env MetaPointEnvNavigation    # 2D navigation

docs/results/reference_table.md contains results with tuned settings; they are in experiments/configs.
"""
import sys

from meta_policy_search.cli.train import make_main

ALGORITHM = "dice_maml"
PUBLISHED = {"n_itr": 1001, "meta_batch_size": 40}  # sample sizes of the ProMP paper (arXiv:1810.06784)

main = make_main(ALGORITHM, PUBLISHED, __file__, __doc__)

if __name__ == "__main__":
    sys.exit(main())
