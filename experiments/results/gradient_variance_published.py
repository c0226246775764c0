"""Measures the variance of meta-gradients as in Figure 3 of the ProMP paper (arXiv:1810.06784).

    python -m experiments.reproduce gradient_variance_training    # each estimator trains its own policy
    python -m experiments.reproduce gradient_variance_published   # measures the policies in data/reproduce

Each estimator trains a policy with plain meta-gradients (Adam). For every tenth policy, its meta-gradient is computed
ten times, each time from new paths of the same 20 tasks. The experiment of the public code changes the tasks in the
last of the ten rounds, which is a mistake.
"""
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import meta_policy_search as mps
from experiments.results.entries import ENTRIES
from experiments.results.gradient_variance import DRAWINGS, sample_and_adapt
from meta_policy_search.utils.statistics import running_mean

TRAINING = "gradient_variance_training"
RUNS = os.path.join("data", "reproduce", TRAINING)
REACH = 2  # measurements on each side in a running mean


def mean_relative_std(gradients: np.ndarray) -> float:
    """Returns the mean over parameters of `std / (|mean| + 1e-8)`.

    Args:
        gradients: `[n, D]`, independent estimates.
    """
    return float(np.mean(gradients.std(axis=0) / (np.abs(gradients.mean(axis=0)) + 1e-8)))


def measure(seed: int, methods: Sequence[str], folder: str = RUNS) -> Iterator[tuple[str, dict[int, float]]]:
    """Yields `(method, values)`; `values` maps an iteration to the relative standard deviation of the meta-gradient.

    Args:
        seed: seed of the training runs.
        methods: names of the estimators.
        folder: folder of the training runs.

    Raises:
        SnapshotError: the policies have not been trained.
    """
    settings = ENTRIES[TRAINING].settings
    for method in methods:
        run = os.path.join(folder, f"{method},seed={seed}")
        iterations = range(0, settings["n_itr"], settings["snapshot_gap"])
        values = [mean_relative_std(_gradients(run, itr)) for itr in iterations]
        yield method, dict(zip(iterations, running_mean(np.array(values), REACH)[0].tolist(), strict=True))


def _gradients(folder: str, itr: int) -> np.ndarray:
    """Returns independent estimates of the meta-gradient of a policy, `[DRAWINGS, D]`."""
    trainer: Any = mps.load_run(folder, itr).trainer
    samples = (sample_and_adapt(trainer, new_tasks=draw == 0) for draw in range(DRAWINGS))
    gradients = [trainer.algo.optimizer.gradient(trainer.algo.meta_input_values(each)) for each in samples]
    trainer.sampler.close()
    return np.array(gradients)
