"""Trains DiCE-MAML (arXiv:1802.05098): adaptation steps with unbiased second derivatives.

    python experiments/dice_maml.py                                 # half cheetah, forward or backward
    python experiments/dice_maml.py --env MetaPointEnvNavigation    # 2D navigation
    python experiments/dice_maml.py --outer_type log_likelihood     # policy gradient on advantages after adaptation

Expected result for 2D navigation with --normalization_scale 1 --learning_rate 0.003 --meta_batch_size 20: after 60
iterations (about half a minute on two cores), the mean return is about -41 before adaptation and -19 after adaptation
(details in experiments/results/README.md).
"""
import sys
from dataclasses import dataclass

import meta_policy_search as mps
from experiments.command import make_main
from experiments.parts import build_parts, build_trainer, first_order_arguments
from experiments.settings import BASELINES, FirstOrderConfig, setting


@dataclass(frozen=True)
class Config(FirstOrderConfig):
    """The shared settings with a time-dependent baseline; a state-dependent baseline would bias DiCE."""

    baseline: str = setting("LinearTimeBaseline", "class of the reward baseline", BASELINES)
    outer_type: str = setting("dice", "objective after adaptation: DiCE, or the policy gradient on advantages",
                              ("dice", "log_likelihood"))
    return_baseline: str = setting("LinearFeatureBaseline", "class of the baseline for these advantages", BASELINES)


def build(config: Config) -> "mps.Trainer":
    """Builds DiCE-MAML and its trainer."""
    has_advantages = config.outer_type == "log_likelihood"
    return_baseline = getattr(mps, config.return_baseline)() if has_advantages else None
    parts = build_parts(config, mps.DiceMetaSampleProcessor, return_baseline=return_baseline)
    return build_trainer(config, parts, mps.VPG_DICEMAML if has_advantages else mps.DICEMAML,
                         max_path_length=config.max_path_length, **first_order_arguments(config))


main = make_main(Config)

if __name__ == "__main__":
    sys.exit(main())
