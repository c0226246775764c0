"""Measures the noise of meta-gradients with DiCE and with the likelihood ratio of ProMP.

The command is `python -m experiments.reproduce gradient_variance`. ProMP trains a policy. At some iterations, each
estimator samples 20 tasks with 40 paths of 100 steps before and after adaptation, ten times (ProMP, arXiv:1810.06784,
section 7.2). From each sample, it computes the meta-gradient of a policy gradient objective. `VPGMAML` with the
likelihood ratio as inner loss has the low-variance curvature of ProMP; `VPG_DICEMAML` has the curvature of DiCE. All
estimators use the same outer objective, policy, seed and tasks.

With the same step size, the adaptation step of DiCE is about 24 times as long: DiCE sums rewards with standard
deviation one, whereas the likelihood ratio uses advantages with standard deviation one. Therefore DiCE is also measured
with a step size that is 24 times smaller.
"""
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.results.entries import build

if TYPE_CHECKING:
    from meta_policy_search.meta_trainer import Trainer

SETTINGS = {"env": "HalfCheetahRandDirecEnv", "meta_batch_size": 20, "rollouts_per_meta_task": 40, "n_itr": 1}
ESTIMATORS = {
    "low_variance": ("vpg_maml", {"inner_type": "likelihood_ratio"}),
    "dice": ("vpg_dice_maml", {}),
    "dice_short": ("vpg_dice_maml", {"inner_lr": 0.1 / 24.0}),
}
CHECKPOINTS = (0, 10, 20, 40)  # numbers of meta-updates before a measurement
DRAWINGS = 10  # samples per measurement


def relative_std(gradients: np.ndarray) -> float:
    """Returns the standard deviation of a gradient estimate relative to the norm of its mean.

    The value is `sqrt(sum_d var_d) / |mean|`.

    Args:
        gradients: `[n, D]`, independent estimates.
    """
    return float(np.sqrt(gradients.var(axis=0, ddof=1).sum()) / np.linalg.norm(gradients.mean(axis=0)))


def measure(seed: int, methods: Sequence[str], **settings: Any) -> Iterator[tuple[str, dict[int, float]]]:
    """Yields `(method, values)`; `values` maps a number of meta-updates to `relative_std` of the meta-gradient.

    Args:
        seed: seed of training and of all samples.
        methods: names of the estimators.
        **settings: settings that override `SETTINGS`.
    """
    learner = build("pro_mp", {**SETTINGS, "seed": seed, **settings})
    estimators = {name: build(script, {**SETTINGS, "seed": seed, **special, **settings})
                  for name, (script, special) in ESTIMATORS.items() if name in methods}
    measured: dict[str, dict[int, float]] = {name: {} for name in estimators}
    for itr in range(CHECKPOINTS[-1] + 1):
        if itr in CHECKPOINTS:
            for name, estimator in estimators.items():
                estimator.policy.set_params(learner.policy.get_param_values())
                inputs = (estimator.algo.meta_input_values(sample_and_adapt(estimator)) for _ in range(DRAWINGS))
                gradients = [estimator.algo.optimizer.gradient(values) for values in inputs]
                measured[name][itr] = relative_std(np.array(gradients))
        learner.algo.optimize_policy(sample_and_adapt(learner), log=False)
    for trainer in (learner, *estimators.values()):
        trainer.sampler.close()
    yield from measured.items()


def sample_and_adapt(trainer: "Trainer", new_tasks: bool = True) -> list[Any]:
    """Samples new tasks (by default), and paths before and after adaptation; returns both lists of samples."""
    if new_tasks:
        trainer.sampler.update_tasks()
    trainer.policy.switch_to_pre_update()
    before = trainer.sample_processor.process_samples(trainer.sampler.obtain_samples())
    trainer.algo.adapt(before)
    return [before, trainer.sample_processor.process_samples(trainer.sampler.obtain_samples())]
