"""Trains ProMP (arXiv:1810.06784): several clipped gradient steps per meta-update on the same samples.

    python experiments/pro_mp.py                                 # half cheetah, forward or backward, published settings
    python experiments/pro_mp.py --env MetaPointEnvCornerGoals   # 2D navigation

docs/results.md contains the results. An iteration takes about 3.5 s on the half cheetah with the published 40 tasks,
and 0.7 s on 2D navigation, on two cores.
"""
import sys

from meta_policy_search.cli.train import make_main

ALGORITHM = "promp"
# Published settings of ProMP (arXiv:1810.06784).
PUBLISHED = {"n_itr": 1001, "meta_batch_size": 40, "clip_eps": 0.3, "init_inner_kl_penalty": 5e-4,
             "adaptive_inner_kl_penalty": False}

main = make_main(ALGORITHM, PUBLISHED, __file__, __doc__)

if __name__ == "__main__":
    sys.exit(main())
