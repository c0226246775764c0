"""The cross-entropy method: a search among policy parameters without gradients.

    python experiments/cem.py                                              # balance a pole on a cart
    python experiments/cem.py --env MetaPointEnvNavigation --max_path_length 20      # go to a goal in the plane

With each of the seeds 1 to 5, the policy that is found balances the pole for all 500 steps, a return of 500 (about
half a minute on a core), and the one in the plane returns between -2.0 and -0.1 (a second or two), where the goal is
up to five steps away.
"""
import sys
from dataclasses import dataclass

import meta_policy_search as mps
from experiments import single_task
from experiments.command import make_main
from experiments.settings import setting


@dataclass(frozen=True)
class Config(single_task.SearchConfig):
    """The settings."""

    init_std: float = setting(1.0, "initial standard deviation of each parameter, around the policy's weights")
    best_frac: float = setting(0.2, "share of the candidates, the best, that the distribution is fitted to")
    extra_std: float = setting(0.5, "standard deviation that is added (in variance) at first, and decays")
    extra_decay_time: float = setting(400.0, "iterations, one for each candidate, until there is none of it left")


def build(config: Config) -> "mps.LocalRunner":
    """Builds CEM and its runner."""
    return single_task.build_search(config, mps.CEM)


main = make_main(Config, single_task.SingleTask)

if __name__ == "__main__":
    sys.exit(main())
