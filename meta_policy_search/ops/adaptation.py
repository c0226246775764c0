"""MAML's adaptation step on parameters that are stacked over tasks."""
from collections import OrderedDict
from typing import Mapping

from meta_policy_search.tf_compat import tf


def stack_params(params: Mapping[str, tf.Tensor], num_tasks: tf.Tensor) -> "OrderedDict[str, tf.Tensor]":
    """Builds one copy of the parameters per task.

    The gradient with respect to a parameter is the sum over tasks of the gradients with respect to its copies.

    Args:
        params: name to tensor `[...]`.
        num_tasks: int scalar, the number of tasks `M`.

    Returns:
        Name to tensor `[M, ...]`.
    """
    with tf.name_scope("stack_params"):
        return OrderedDict(
            (name, tf.broadcast_to(p, tf.concat([[num_tasks], tf.shape(p)], axis=0))) for name, p in params.items()
        )


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
    gradients = tf.gradients(tf.reduce_sum(loss), list(params.values()),
                             unconnected_gradients=tf.UnconnectedGradients.ZERO)
    if first_order:
        gradients = [tf.stop_gradient(gradient) for gradient in gradients]
    return OrderedDict(zip(params, gradients))


def gradient_step(params: Mapping[str, tf.Tensor], loss: tf.Tensor, step_sizes: Mapping[str, tf.Tensor],
                  first_order: bool = False, name: str = "gradient_step") -> "OrderedDict[str, tf.Tensor]":
    """Builds one gradient step for every task: `theta'_m = theta_m - alpha dL_m / dtheta_m` (arXiv:1703.03400, Eq. 1).

    Args:
        params: name to float32 tensor `[M, ...]`, stacked over tasks.
        loss: float32 `[M]`, loss of each task.
        step_sizes: name to step size alpha: a scalar, or a tensor of the parameter's shape without the task axis.
        first_order: whether to stop gradients through the inner gradient (first-order MAML). Default: False.
        name: name scope.

    Returns:
        Name to updated parameter, float32 `[M, ...]`.
    """
    with tf.name_scope(name):
        gradients = task_gradients(params, loss, first_order)
        return OrderedDict((key, value - step_sizes[key] * gradients[key]) for key, value in params.items())
