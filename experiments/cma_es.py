"""Trains a policy by CMA-ES (arXiv:1604.00772), a gradient-free search that adapts a full covariance matrix.

    python experiments/cma_es.py                                                    # balance a pole on a cart
    python experiments/cma_es.py --env MetaPointEnvNavigation --max_path_length 20 --batch_size 80

docs/results/single_task.md contains the results. Training takes about half a minute on one core.
"""
import sys

from meta_policy_search.cli.train import make_main

ALGORITHM, PUBLISHED = "cma_es", {}

main = make_main(ALGORITHM, PUBLISHED, __file__, __doc__)

if __name__ == "__main__":
    sys.exit(main())
