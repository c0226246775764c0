"""Diagnostics of a meta-update: noise of the meta-gradient, and angle between gradients before and after adaptation.

`MAMLAlgo.compute_diagnostics` computes the diagnostics; `Trainer(diagnostics=True)` logs them.
"""
import math
from typing import Collection, Dict, Mapping, Sequence

import numpy as np

from meta_policy_search.optimizers.base import Optimizer
from meta_policy_search.tf_compat import tf


def build_task_gradients(loss: tf.Tensor, params: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """Builds the gradient of a loss (or of a sum of losses) with respect to the parameters of each task, `[M, D]`.

    The meta-objective is a mean over tasks, and the adapted parameters of a task affect only the outer loss of that
    task. The gradient of the meta-objective with respect to the adapted parameters is therefore the gradient of the
    outer loss divided by the number of tasks. Both gradients have the same direction.

    Args:
        loss: the inner losses `[M]`, or the meta-objective, a scalar.
        params: dict from name to tensor `[M, ...]`: parameters before or after adaptation.
    """
    tensors = list(params.values())
    gradients = tf.gradients(loss, tensors, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    num_tasks = tf.shape(tensors[0])[0]
    return tf.concat([tf.reshape(gradient, [num_tasks, -1]) for gradient in gradients], axis=1)


def compute_figures(optimizer: Optimizer, gradients: Sequence[tf.Tensor], values: Mapping[str, np.ndarray],
                    by_task: Collection[str], num_tasks: int) -> Dict[str, float]:
    """Computes the noise of the meta-gradient and the change of gradients by adaptation.

    Args:
        optimizer: optimizer of the meta-objective.
        gradients: gradients of the inner loss before adaptation and of the meta-objective after adaptation, each
            `[M, D]`; see `build_task_gradients`.
        values: name to value, for all inputs of the meta-objective.
        by_task: names of the inputs whose first axis is the task axis.
        num_tasks: number of tasks, at least 2.

    Returns:
        Dict of float:

        * `MetaGradNorm`, `MetaGradVariance`, `MetaGradRelativeStd` and `MetaGradHalvesCosine`: see `compare_halves`. If
          the number of tasks is odd, the second half is larger.
        * `PrePostGradCosine`: cosine of the angle between two gradients of a task: the gradient of its inner loss with
          respect to the parameters before adaptation, and the gradient of its outer loss with respect to the adapted
          parameters. Mean over the tasks in which neither gradient is zero.
    """
    size = num_tasks // 2
    first, second = (optimizer.gradient({name: value[tasks] if name in by_task else value
                                         for name, value in values.items()})
                     for tasks in (slice(None, size), slice(size, None)))
    pre_gradients, post_gradients = optimizer.evaluate_tasks(gradients, values)
    return {**compare_halves(first, second, size, num_tasks - size),
            "PrePostGradCosine": mean_cosine(pre_gradients, post_gradients)}


def compare_halves(first: np.ndarray, second: np.ndarray, first_size: int, second_size: int) -> Dict[str, float]:
    """Estimates the noise of a meta-gradient from the meta-gradients of two disjoint groups of tasks.

    Let `g_1` and `g_2` be the mean gradients of `M_1` and `M_2` tasks, and `M = M_1 + M_2`. Tasks are drawn
    independently, so the gradients of all tasks have the same covariance matrix `S` and are uncorrelated with each
    other. Hence:

    * The meta-gradient of all tasks, `g = (M_1 g_1 + M_2 g_2) / M`, has the total variance `E|g - E g|^2 = tr S / M`.
    * The difference has the total variance `E|g_1 - g_2|^2 = tr S (1 / M_1 + 1 / M_2) = tr S M / (M_1 M_2)`.
    * `V = M_1 M_2 / M^2 |g_1 - g_2|^2` (with equal halves: `|g_1 - g_2|^2 / 4`) has the expectation `tr S / M`. It is
      an unbiased estimate of the variance of `g`, summed over parameters, and includes the noise of both tasks and
      paths.
    * `E|g|^2 = |E g|^2 + tr S / M`, so `sqrt(V) / |g|` is about one if `g` is pure noise.

    The estimate neglects dependence between tasks, such as returns that are normalized over all tasks (E-MAML).

    Args:
        first: `[D]`, meta-gradient of the first group, `g_1`.
        second: `[D]`, meta-gradient of the second group, `g_2`.
        first_size: number of tasks `M_1`.
        second_size: number of tasks `M_2`.

    Returns:
        Dict of float:

        * `MetaGradNorm`: the norm of `g`.
        * `MetaGradVariance`: `V`.
        * `MetaGradRelativeStd`: `sqrt(V) / |g|`; NaN if `g` is zero.
        * `MetaGradHalvesCosine`: cosine of the angle between `g_1` and `g_2`; NaN if `g_1` or `g_2` is zero.

    Example:
        >>> figures = compare_halves(np.array([1.0, 0.0]), np.array([1.0, 2.0]), 10, 10)
        >>> round(figures["MetaGradNorm"], 3), round(figures["MetaGradVariance"], 3)
        (1.414, 1.0)
    """
    size = first_size + second_size
    norm = float(np.linalg.norm(first_size * first + second_size * second)) / size
    std = float(np.linalg.norm(first - second)) * math.sqrt(first_size * second_size) / size
    return {"MetaGradNorm": norm, "MetaGradVariance": std**2, "MetaGradRelativeStd": std / norm if norm else np.nan,
            "MetaGradHalvesCosine": mean_cosine(first[None], second[None])}


def mean_cosine(first: np.ndarray, second: np.ndarray) -> float:
    """Computes the mean cosine of the angles between rows, without pairs of rows in which one row is zero.

    Args:
        first: `[M, D]`.
        second: `[M, D]`.

    Returns:
        Mean cosine, in [-1, 1]; NaN if every pair contains a zero row.
    """
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    has_angle = lengths != 0.0
    if not has_angle.any():
        return np.nan
    return float(np.mean(np.sum(first * second, axis=1)[has_angle] / lengths[has_angle]))
