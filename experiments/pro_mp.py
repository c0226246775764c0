"""ProMP (arXiv:1810.06784): several clipped gradient steps per meta-update on the same samples.

    python experiments/pro_mp.py                            # half cheetah, forward or backward, as published
    python experiments/pro_mp.py --env MetaPointEnvCorner   # 2D navigation with a sparse reward

On the half cheetah, adaptation gains about 190 in return after 50 iterations with 20 tasks (4 million environment
steps, 2 minutes on two cores). An iteration with the published 40 tasks takes about 3.5 s there, on the point
environment 0.7 s; on the latter, with its sparse reward, the published settings hardly learn to adapt (see
experiments/results).
"""
import sys
from dataclasses import dataclass

import meta_policy_search as mps
from experiments.command import make_main
from experiments.parts import build_parts, build_trainer, first_order_arguments
from experiments.settings import FirstOrderConfig, setting


@dataclass(frozen=True)
class Config(FirstOrderConfig):
    """The published settings."""

    num_ppo_steps: int = setting(5, "gradient steps per meta-update, without sampling again")
    num_minibatches: int = setting(1, "parts that the samples after adaptation are split into in each step")
    clip_eps: float = setting(0.3, "half-width of the interval that likelihood ratios are clipped to")
    init_inner_kl_penalty: float = setting(5e-4, "coefficient of the divergence of an adaptation step, at first")
    adaptive_inner_kl_penalty: bool = setting(False, "change that coefficient to reach target_inner_step")
    target_inner_step: float = setting(0.01, "divergence per adaptation step that it aims at, nats")
    anneal_factor: float = setting(1.0, "clip_eps is multiplied by it after every meta-update, in (0, 1]")


def build(config: Config) -> "mps.Trainer":
    """Builds ProMP and its trainer."""
    return build_trainer(config, build_parts(config), mps.ProMP, **first_order_arguments(config))


main = make_main(Config)

if __name__ == "__main__":
    sys.exit(main())
