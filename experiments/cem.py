"""Trains a policy by the cross-entropy method (CEM), a gradient-free search over policy parameters.

    python experiments/cem.py                                                    # balance a pole on a cart
    python experiments/cem.py --env MetaPointEnvNavigation --max_path_length 20  # go to a goal in the plane

Expected results for each of the seeds 1 to 5:

* Pole: the policy balances the pole for all 500 steps, a return of 500. Training takes about half a minute on one core.
* Plane: the policy returns between -2.0 and -0.1, with a goal up to five steps away. Training takes 1 to 2 seconds.
"""
import sys
from dataclasses import dataclass

import meta_policy_search as mps
from experiments import single_task
from experiments.command import make_main
from experiments.settings import setting


@dataclass(frozen=True)
class Config(single_task.SearchConfig):
    """The settings of CEM."""

    init_std: float = setting(1.0, "initial standard deviation of each parameter, around the policy's weights")
    best_frac: float = setting(0.2, "fraction of the candidates (the best) that the distribution is fitted to")
    extra_std: float = setting(0.5, "initial additional standard deviation (added as variance), decays to 0")
    extra_decay_time: float = setting(400.0, "iterations (one per candidate) until extra_std has decayed to 0")


def build(config: Config) -> "mps.LocalRunner":
    """Builds CEM and its runner."""
    return single_task.build_search(config, mps.CEM)


main = make_main(Config, single_task.SingleTask)

if __name__ == "__main__":
    sys.exit(main())
