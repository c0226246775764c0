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


def gradient_step(
    params: Mapping[str, tf.Tensor],
    loss: tf.Tensor,
    step_sizes: Mapping[str, tf.Tensor],
    first_order: bool = False,
    name: str = "gradient_step",
) -> "OrderedDict[str, tf.Tensor]":
    """Builds one gradient step for every task: `theta'_m = theta_m - alpha dL_m / dtheta_m` (arXiv:1703.03400, Eq. 1).

    A task's loss depends on its own parameters only, so the gradient of the losses' sum by the stacked parameters
    holds every task's gradient. Parameters that the losses do not depend on stay as they are.

    Args:
        params: float32, stacked over tasks, `[M, ...]`.
        loss: float32 `[M]`.
        step_sizes: name to step size, a scalar or of the parameter's unstacked shape.
        first_order: whether to stop gradients through the inner gradient (first-order MAML).
        name: name scope.
    """
    with tf.name_scope(name):
        gradients = tf.gradients(tf.reduce_sum(loss), list(params.values()))
        adapted = OrderedDict()
        for (key, value), gradient in zip(params.items(), gradients):
            if gradient is None:
                adapted[key] = value
                continue
            if first_order:
                gradient = tf.stop_gradient(gradient)
            adapted[key] = value - step_sizes[key] * gradient
        return adapted
