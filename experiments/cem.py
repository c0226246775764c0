"""Trains a policy by the cross-entropy method (CEM), a gradient-free search over policy parameters.

    python experiments/cem.py                                                    # balance a pole on a cart
    python experiments/cem.py --env MetaPointEnvNavigation --max_path_length 20 --batch_size 80

Training takes about half a minute on one core.
"""
import sys

from meta_policy_search.cli.train import make_main

ALGORITHM, PUBLISHED = "cem", {}

main = make_main(ALGORITHM, PUBLISHED, __file__, __doc__)

if __name__ == "__main__":
    sys.exit(main())
