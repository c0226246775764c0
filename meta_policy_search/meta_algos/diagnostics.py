"""Diagnostics of a meta-update: noise of the meta-gradient, angle between gradients before and after adaptation.

`MAMLAlgo.compute_diagnostics` computes them; `Trainer(diagnostics=True)` logs them.
"""
import math
from typing import Collection, Dict, Mapping, Sequence

import numpy as np

from meta_policy_search.optimizers.base import Optimizer
from meta_policy_search.tf_compat import tf


def build_task_gradients(loss: tf.Tensor, params: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """Builds the gradient of a loss (or of the sum of several) by each task's parameters, `[M, D]`.

    A task's adapted parameters enter the meta-objective, a mean over tasks, through the task's outer loss alone. So its
    gradient by them is that of the outer loss, divided by the number of tasks: it has the same direction.

    Args:
        loss: the inner losses `[M]`, or the meta-objective, a scalar.
        params: name to tensor `[M, ...]`, parameters before or after adaptation.
    """
    tensors = list(params.values())
    gradients = tf.gradients(loss, tensors, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    num_tasks = tf.shape(tensors[0])[0]
    return tf.concat([tf.reshape(gradient, [num_tasks, -1]) for gradient in gradients], axis=1)


def compute_figures(optimizer: Optimizer, gradients: Sequence[tf.Tensor], values: Mapping[str, np.ndarray],
                    by_task: Collection[str], num_tasks: int) -> Dict[str, float]:
    """Computes how noisy the meta-gradient is, and how the inner steps change gradients.

    Args:
        optimizer: optimizer of the meta-objective.
        gradients: those of the inner loss before adaptation and of the meta-objective after it, each `[M, D]`.
        values: values of all inputs of the meta-objective.
        by_task: names of those whose first axis is the task.
        num_tasks: number of tasks, at least 2.

    Returns:
        Dict of `MetaGradNorm`, `MetaGradVariance`, `MetaGradRelativeStd` and `MetaGradHalvesCosine`, see
        `compare_halves` (of an odd number of tasks, the second half is larger); `PrePostGradCosine`, the cosine of the
        angle between the gradients of a task's inner loss by the parameters before adaptation and of its outer loss by
        the adapted ones, mean over the tasks in which neither is zero.
    """
    size = num_tasks // 2
    first, second = (optimizer.gradient({name: value[tasks] if name in by_task else value
                                         for name, value in values.items()})
                     for tasks in (slice(None, size), slice(size, None)))
    pre_gradients, post_gradients = optimizer.evaluate_tasks(gradients, values)
    return {**compare_halves(first, second, size, num_tasks - size),
            "PrePostGradCosine": mean_cosine(pre_gradients, post_gradients)}


def compare_halves(first: np.ndarray, second: np.ndarray, first_size: int, second_size: int) -> Dict[str, float]:
    """Estimates how noisy a meta-gradient is from those of two disjoint groups of its tasks.

    Let `g_1` and `g_2` be the means of the gradients of `M_1` and `M_2` tasks. Tasks are drawn independently, so each
    task's gradient has the same covariance matrix `S`, and none covaries with another's. The meta-gradient of all
    tasks is `g = (M_1 g_1 + M_2 g_2) / M`, `M = M_1 + M_2`; its total variance `E|g - E g|^2` is `tr S / M`, that of
    the difference `E|g_1 - g_2|^2 = tr S (1 / M_1 + 1 / M_2) = tr S M / (M_1 M_2)`. Hence
    `V = M_1 M_2 / M^2 |g_1 - g_2|^2`, for equal halves `|g_1 - g_2|^2 / 4`, has the expectation `tr S / M`: it is an
    unbiased estimate of the variance of `g`, due to tasks and paths together, summed over parameters. Since
    `E|g|^2 = |E g|^2 + tr S / M`, `sqrt(V) / |g|` is about one where `g` is nothing but noise.

    What ties tasks together is neglected: returns that are normalized over all of them (E-MAML), say.

    Args:
        first: `[D]`, meta-gradient of the first half, `g_1`.
        second: `[D]`, of the second half, `g_2`.
        first_size: number of tasks `M_1`.
        second_size: number of tasks `M_2`.

    Returns:
        Dict of `MetaGradNorm`, the length of `g`; `MetaGradVariance`, `V`; `MetaGradRelativeStd`, `sqrt(V) / |g|`, NaN
        if `g` is zero; `MetaGradHalvesCosine`, the cosine of the angle between `g_1` and `g_2`, NaN if one is zero.

    Example:
        >>> figures = compare_halves(np.array([1.0, 0.0]), np.array([1.0, 2.0]), 10, 10)
        >>> round(figures["MetaGradNorm"], 3), round(figures["MetaGradVariance"], 3)
        (1.414, 1.0)
    """
    size = first_size + second_size
    norm = float(np.linalg.norm(first_size * first + second_size * second)) / size
    std = float(np.linalg.norm(first - second)) * math.sqrt(first_size * second_size) / size
    return {
        "MetaGradNorm": norm,
        "MetaGradVariance": std**2,
        "MetaGradRelativeStd": std / norm if norm else np.nan,
        "MetaGradHalvesCosine": mean_cosine(first[None], second[None]),
    }


def mean_cosine(first: np.ndarray, second: np.ndarray) -> float:
    """Computes the mean cosine of the angles between rows, over those pairs of rows in which neither is zero.

    Args:
        first: `[M, D]`.
        second: `[M, D]`.

    Returns:
        A number in [-1, 1]; NaN where there is no such pair.
    """
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    has_angle = lengths != 0.0
    if not has_angle.any():
        return np.nan
    return float(np.mean(np.sum(first * second, axis=1)[has_angle] / lengths[has_angle]))
