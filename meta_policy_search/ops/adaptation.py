"""The inner step of MAML on parameters stacked over tasks."""
from collections import OrderedDict
from typing import Mapping

from meta_policy_search.tf_compat import tf


def stack_params(params: Mapping[str, tf.Tensor], num_tasks: tf.Tensor) -> "OrderedDict[str, tf.Tensor]":
    """Builds a copy of the parameters for each task: `[...]` to `[M, ...]`.

    The gradient by a parameter is the sum over tasks of the gradients by its copies.
    """
    with tf.name_scope("stack_params"):
        return OrderedDict(
            (name, tf.broadcast_to(p, tf.concat([[num_tasks], tf.shape(p)], axis=0))) for name, p in params.items()
        )


def task_gradients(params: Mapping[str, tf.Tensor], loss: tf.Tensor,
                   first_order: bool = False) -> "OrderedDict[str, tf.Tensor]":
    """Builds the gradient of every task's loss by the task's own parameters, each `[M, ...]`.

    A task's loss depends on its own parameters only, so the gradient of the losses' sum by the stacked parameters
    holds every task's gradient. It is zero for parameters that the losses do not depend on.

    Args:
        params: float32, stacked over tasks, `[M, ...]`.
        loss: float32 `[M]`.
        first_order: whether to stop gradients through the result (first-order MAML).
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
        params: float32, stacked over tasks, `[M, ...]`.
        loss: float32 `[M]`.
        step_sizes: name to step size, a scalar or of the parameter's unstacked shape.
        first_order: whether to stop gradients through the inner gradient (first-order MAML).
        name: name scope.
    """
    with tf.name_scope(name):
        gradients = task_gradients(params, loss, first_order)
        return OrderedDict((key, value - step_sizes[key] * gradients[key]) for key, value in params.items())
