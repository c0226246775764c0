"""Trains DiCE-MAML (arXiv:1802.05098): adaptation steps with unbiased second derivatives.

    python experiments/dice_maml.py                                 # half cheetah, forward or backward
    python experiments/dice_maml.py --env MetaPointEnvNavigation    # 2D navigation

docs/results/dice_navigation.md contains the results on 2D navigation with --normalization_scale 1 --learning_rate 0.003
--meta_batch_size 20: 60 iterations take about half a minute on two cores.
"""
import sys

from meta_policy_search.cli.train import make_main

ALGORITHM = "dice_maml"
PUBLISHED = {"n_itr": 1001, "meta_batch_size": 40}  # sample sizes of the ProMP paper (arXiv:1810.06784)

main = make_main(ALGORITHM, PUBLISHED, __file__, __doc__)

if __name__ == "__main__":
    sys.exit(main())
