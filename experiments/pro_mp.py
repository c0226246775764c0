"""Trains ProMP (arXiv:1810.06784): several clipped gradient steps per meta-update on the same samples.

    python experiments/pro_mp.py                            # half cheetah, forward or backward, published settings
    python experiments/pro_mp.py --env MetaPointEnvCorner   # 2D navigation with a sparse reward

Expected results on two cores (details in experiments/results/README.md):

* Half cheetah with --meta_batch_size 20: adaptation gain of 140 to 200 after 70 iterations (5.6 million environment
  steps, 3 minutes), depending on seed and processor. With the published 40 tasks, an iteration takes about 3.5 s.
* 2D navigation: almost no adaptation gain with the published settings, because the reward is sparse. An iteration takes
  about 0.7 s.
"""
import sys
from dataclasses import dataclass

import meta_policy_search as mps
from experiments.command import make_main
from experiments.parts import build_parts, build_trainer, first_order_arguments
from experiments.settings import FirstOrderConfig, setting


@dataclass(frozen=True)
class Config(FirstOrderConfig):
    """The published settings of ProMP (arXiv:1810.06784)."""

    num_ppo_steps: int = setting(5, "passes over the same samples per meta-update")
    num_minibatches: int = setting(1, "minibatches (gradient steps) per pass over the samples after adaptation")
    clip_eps: float = setting(0.3, "likelihood ratios are clipped to 1 - clip_eps to 1 + clip_eps")
    init_inner_kl_penalty: float = setting(5e-4, "initial coefficient of the KL divergence of an adaptation step")
    adaptive_inner_kl_penalty: bool = setting(False, "adapt this coefficient to reach target_inner_step")
    target_inner_step: float = setting(0.01, "target KL divergence per adaptation step, nats")
    anneal_factor: float = setting(1.0, "factor of clip_eps after every meta-update, in (0, 1]")


def build(config: Config) -> "mps.Trainer":
    """Builds ProMP and its trainer."""
    return build_trainer(config, build_parts(config), mps.ProMP, **first_order_arguments(config))


main = make_main(Config)

if __name__ == "__main__":
    sys.exit(main())
