"""Trains a policy by CMA-ES (arXiv:1604.00772), a gradient-free search that adapts a full covariance matrix.

    python experiments/cma_es.py                                                    # balance a pole on a cart
    python experiments/cma_es.py --env MetaPointEnvNavigation --max_path_length 20  # go to a goal in the plane

Expected results for each of the seeds 1 to 5:

* Pole: the policy balances the pole for all 500 steps, a return of 500. Training takes about half a minute on one core.
* Plane: the policy returns between -2.1 and -1.4, with a goal up to five steps away. Training takes 1 to 2 seconds.
"""
import sys
from dataclasses import dataclass

import meta_policy_search as mps
from experiments import single_task
from experiments.command import make_main
from experiments.settings import setting


@dataclass(frozen=True)
class Config(single_task.SearchConfig):
    """The settings of CMA-ES."""

    sigma0: float = setting(1.0, "initial standard deviation of each parameter, around the policy's weights")


def build(config: Config) -> "mps.LocalRunner":
    """Builds CMA-ES and its runner."""
    return single_task.build_search(config, mps.CMAES)


main = make_main(Config, single_task.SingleTask)

if __name__ == "__main__":
    sys.exit(main())
