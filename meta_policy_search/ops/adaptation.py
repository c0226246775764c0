"""MAML's adaptation step on parameters that are stacked over tasks."""
from collections import OrderedDict
from typing import Mapping, Tuple

import numpy as np

from meta_policy_search.ops.tensorflow_ops import make_variables
from meta_policy_search.tf_compat import tf


def stack_params(params: Mapping[str, tf.Tensor], num_tasks: tf.Tensor) -> "OrderedDict[str, tf.Tensor]":
    """Builds one copy of the parameters per task.

    The gradient with respect to a parameter is the sum over tasks of the gradients with respect to its copies.

    Args:
        params: dict from name to tensor `[...]`.
        num_tasks: int scalar, the number of tasks `M`.

    Returns:
        Name to tensor `[M, ...]`.
    """
    with tf.name_scope("stack_params"):
        return OrderedDict((name, tf.broadcast_to(p, tf.concat([[num_tasks], tf.shape(p)], axis=0)))
                           for name, p in params.items())


def task_gradients(params: Mapping[str, tf.Tensor], loss: tf.Tensor,
                   first_order: bool = False) -> "OrderedDict[str, tf.Tensor]":
    """Builds the gradient of each task's loss with respect to the parameters of that task.

    The loss of a task depends only on the parameters of that task. The gradient of the summed losses with respect to
    the stacked parameters therefore contains the gradients of all tasks. It is zero for parameters that the losses do
    not depend on.

    Args:
        params: name to float32 tensor `[M, ...]`, stacked over tasks.
        loss: float32 `[M]`, loss of each task.
        first_order: whether to stop gradients through the result (first-order MAML). Default: False.

    Returns:
        Name to gradient, float32 `[M, ...]`.
    """
    values = list(params.values())
    found = tf.gradients(tf.reduce_sum(loss), values)
    if values and all(gradient is None for gradient in found):
        raise ValueError("inner_loss: expected a loss that depends on the adapted parameters")
    gradients = [tf.zeros_like(value) if gradient is None else gradient for value, gradient in zip(values, found)]
    if first_order:
        gradients = [tf.stop_gradient(gradient) for gradient in gradients]
    return OrderedDict(zip(params, gradients))


def gradient_step(params: Mapping[str, tf.Tensor], loss: tf.Tensor, step_sizes: Mapping[str, tf.Tensor],
                  first_order: bool = False) -> "OrderedDict[str, tf.Tensor]":
    """Builds one gradient step for every task: `theta'_m = theta_m - alpha dL_m / dtheta_m` (arXiv:1703.03400, Eq. 1).

    Args:
        params: name to float32 tensor `[M, ...]`, stacked over tasks.
        loss: float32 `[M]`, loss of each task.
        step_sizes: name to step size alpha: a scalar, or a tensor of the parameter's shape without the task axis.
        first_order: whether to stop gradients through the inner gradient (first-order MAML). Default: False.

    Returns:
        Name to updated parameter, float32 `[M, ...]`.
    """
    with tf.name_scope("gradient_step"):
        gradients = task_gradients(params, loss, first_order)
        return OrderedDict((key, value - step_sizes[key] * gradients[key]) for key, value in params.items())


def build_step_sizes(params: Mapping[str, tf.Tensor], initial: float, trainable: bool) -> Tuple[
        "OrderedDict[str, tf.Tensor]", "OrderedDict[str, tf.Variable]"]:
    """Builds the inner step sizes by parameter name, and the variables that are their logarithms if they are trained.

    Args:
        params: the parameters that adaptation steps change, by name.
        initial: initial step size.
        trainable: whether each entry of each parameter has a trained step size. Otherwise, step sizes are scalars.
    """
    if not trainable:
        return OrderedDict((name, tf.constant(initial)) for name in params), OrderedDict()
    with tf.name_scope("log_step_size"):
        logs = make_variables({name: np.full(v.shape.as_list(), np.log(initial)) for name, v in params.items()})
    return OrderedDict((name, tf.exp(log)) for name, log in logs.items()), logs


def check_adapted(adapted: Mapping[str, np.ndarray]) -> None:
    """Raises `FloatingPointError` if a parameter `[M, ...]` is not finite; names parameter and task."""
    for name, stacked in adapted.items():
        finite = np.isfinite(stacked).reshape(len(stacked), -1).all(axis=1)
        if not finite.all():
            raise FloatingPointError(
                f"adaptation: {name} of task {np.argmin(finite)} would not be finite; the step was rejected and the "
                "policy is unchanged. Check the samples for non-finite values, or reduce the step size.")
