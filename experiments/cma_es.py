"""Trains a policy by CMA-ES (arXiv:1604.00772), a gradient-free search that adapts a full covariance matrix.

    python experiments/cma_es.py                                                    # balance a pole on a cart
    python experiments/cma_es.py --env MetaPointEnvNavigation --max_path_length 20 --batch_size 80

Expected results for each of the seeds 1 to 5:

* Pole: the policy balances the pole for all 500 steps, a return of 500. Training takes about half a minute on one core.
* Plane: the policy returns between -2.1 and -1.4, with a goal up to five steps away. Training takes 1 to 2 seconds.
"""
import sys

from meta_policy_search.cli.train import make_main

ALGORITHM, PUBLISHED = "cma_es", {}

main = make_main(ALGORITHM, PUBLISHED, __file__, __doc__)

if __name__ == "__main__":
    sys.exit(main())
