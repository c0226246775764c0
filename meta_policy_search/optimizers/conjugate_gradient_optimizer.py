"""Constrained optimization with conjugate gradients and a line search, for the meta-update of TRPO-MAML.

Minimizes a loss subject to a divergence of at most epsilon (TRPO, arXiv:1502.05477, appendix C):

1. The direction `x` solves `H x = g`, where `H` is the Hessian of the divergence and `g` the gradient of the loss.
2. The length of the step makes the quadratic approximation of the divergence, plus damping, equal to epsilon.
3. A backtracking line search finds a step that reduces the loss and satisfies the constraint.
"""
import functools
import pdb
import sys
from typing import Any, Callable, Collection, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from meta_policy_search.actors.parameters import flatten_params, unflatten_params
from meta_policy_search.optimizers.base import NOT_FINITE, InputValues, Optimizer
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import (
    check_bool,
    check_choice,
    check_fraction,
    check_non_negative,
    check_positive,
    check_positive_int,
)
from meta_policy_search.utils.serializable import Serializable
from meta_policy_search.utils.threads import one_blas_thread

Product = Callable[[np.ndarray], np.ndarray]
Metric = Tuple[Sequence[tf.Tensor], Callable[[Sequence[tf.Tensor]], tf.Tensor]]


HVP_APPROACHES = ("finite_difference", "gauss_newton", "exact")
"""Methods for Hessian-vector products by name."""


class FiniteDifferenceHvp(Serializable):
    """Hessian-vector products from finite differences of the gradient.

    `H x = (g(theta + e x) - g(theta - e x)) / (2 e)` with `e = base_eps / |x|`, so the step has a fixed length. With a
    fixed `e`, float32 rounding errors dominate for small `x`, and the step leaves the quadratic region for large `x`.

    Args:
        base_eps (float): length of the step in parameter space, above 0. Default: 1e-2.
        symmetric (bool): whether to use central differences: two gradients per product, second-order error. Otherwise,
            forward differences from the current parameters: one gradient per product, plus one per `optimize` call.
            Default: True.
        grad_clip (float or None): has no effect; accepted because the public ProMP code has it. Default: None.
    """

    def __init__(self, base_eps: float = 1e-2, symmetric: bool = True, grad_clip: Optional[float] = None) -> None:
        self.base_eps = check_positive("base_eps", base_eps)
        self.symmetric = check_bool("symmetric", symmetric)

    def at(self, optimizer: "ConjugateGradientOptimizer", input_val_dict: InputValues) -> Product:
        """Returns `x -> H x`. The variables are restored after each product, even if it raises an error."""
        theta = optimizer.get_flat()
        here = None if self.symmetric else optimizer.constraint_gradient(input_val_dict)

        def product(x: np.ndarray) -> np.ndarray:
            norm = float(np.linalg.norm(x))
            if norm == 0.0:
                return np.zeros_like(x)
            eps = self.base_eps / norm
            try:
                optimizer.set_flat(theta + eps * x)
                above = optimizer.constraint_gradient(input_val_dict)
                if here is not None:
                    return (above - here) / eps
                optimizer.set_flat(theta - eps * x)
                return (above - optimizer.constraint_gradient(input_val_dict)) / (2.0 * eps)
            finally:
                optimizer.set_flat(theta)

        return product


class ConjugateGradientOptimizer(Optimizer):
    """Minimizes a loss under a constraint with conjugate gradients and a backtracking line search.

    Args:
        cg_iters (int): maximum number of conjugate gradient iterations, at least 1. Default: 10.
        reg_coeff (float): damping, added to the diagonal of the Hessian `H` before inversion; at least 0. Default: 0.
        subsample_factor (float): fraction of the samples used for Hessian-vector products, in (0, 1]; drawn at random
            in each `optimize` call. Default: 1.
        backtrack_ratio (float): ratio of successive step lengths in the line search, in (0, 1). Default: 0.8.
        max_backtracks (int): maximum number of steps that the line search tries, at least 1. Default: 15.
        debug_nan (bool): whether a debugger opens on a terminal before the error about a non-finite loss, gradient or
            constraint is raised. Default: False.
        accept_violation (bool): whether to keep the smallest step tried if no step meets the conditions. A step whose
            loss or constraint is not finite is never kept. Default: False.
        hvp_approach (str, FiniteDifferenceHvp or None): method for Hessian-vector products: `'gauss_newton'`,
            `'finite_difference'` or `'exact'`. None chooses `'gauss_newton'` if `build_graph` receives a
            `constraint_metric`, which requires a distribution with `fisher_norm_sym`, otherwise
            `'finite_difference'`. Default: None.

    The values of `hvp_approach` are:

    * `'finite_difference'`: finite differences of the gradient. `FiniteDifferenceHvp(base_eps=1e-3)` changes their
      settings.
    * `'exact'`: the gradient of `g^T x` in the graph (Pearlmutter, 1994).
    * `'gauss_newton'`: products with the generalized Gauss-Newton matrix `J^T F J` (Schraudolph, 2002). The constraint
      must depend on the variables only through tensors `y`, such as the means and standard deviations of policies. `J`
      is the Jacobian of `y` with respect to the variables. `F` is a positive semi-definite matrix, the curvature with
      respect to `y`; see `constraint_metric` in `build_graph`. If `F` is the Fisher information, `J^T F J` is the
      Hessian of the divergence from the current distributions. At the start of a trust-region step, this is the Hessian
      of the constraint. A product costs about as much as two gradients.
    """

    def __init__(self, cg_iters: int = 10, reg_coeff: float = 0, subsample_factor: float = 1.0,
                 backtrack_ratio: float = 0.8, max_backtracks: int = 15, debug_nan: bool = False,
                 accept_violation: bool = False,
                 hvp_approach: Union[str, FiniteDifferenceHvp, None] = None) -> None:
        self._cg_iters = check_positive_int("cg_iters", cg_iters)
        self._reg_coeff = check_non_negative("reg_coeff", reg_coeff)
        self._subsample_factor = check_fraction("subsample_factor", subsample_factor)
        self._backtrack_ratio = check_fraction("backtrack_ratio", backtrack_ratio, high_open=True)
        self._max_backtracks = check_positive_int("max_backtracks", max_backtracks)
        self._debug_nan = check_bool("debug_nan", debug_nan)
        self._accept_violation = check_bool("accept_violation", accept_violation)
        if not isinstance(hvp_approach, (FiniteDifferenceHvp, type(None))):
            check_choice("hvp_approach", hvp_approach, HVP_APPROACHES)
        self._hvp_approach = FiniteDifferenceHvp() if hvp_approach == "finite_difference" else hvp_approach
        self._is_built = True

    @property
    def hvp_approach(self) -> Union[str, FiniteDifferenceHvp, None]:
        """Method for Hessian-vector products; None before `build_graph` if none was given."""
        return self._hvp_approach

    @property
    def step_size(self) -> float:
        """Upper bound of the constraint, `epsilon` of `build_graph`; it cannot be assigned."""
        return self._step_size

    def build_graph(self, loss: tf.Tensor, target: Any,  # type: ignore[override]  # with a constraint
                    input_ph_dict: Mapping[str, tf.Tensor], leq_constraint: Tuple[tf.Tensor, float],
                    sample_axes: Optional[Mapping[str, int]] = None, task_inputs: Collection[str] = (),
                    constraint_metric: Optional[Metric] = None, damping: Optional[Mapping[str, float]] = None) -> None:
        """Sets the objective, the constraint and the variables to optimize.

        Args:
            loss: scalar tensor to minimize.
            target: object whose `get_params()` returns the variables to optimize.
            input_ph_dict: name to placeholder, for all inputs of loss and constraint.
            leq_constraint: `(f, epsilon)`: the optimizer keeps the scalar tensor `f` at or below `epsilon`, which is
                above 0.
            sample_axes: name of an input to its sample axis, for all inputs that `subsample_factor` applies to.
                Default: None, the first axis of every input that is not a scalar.
            task_inputs: names of the inputs whose first axis is the task axis and whose second axis is the sample axis.
                Loss and constraint are then computed in blocks of tasks, so they must be means over tasks of terms that
                depend only on the samples of one task and on the other inputs. Default: none; they are computed in one
                call.
            constraint_metric: `(outputs, norm)`, required by `hvp_approach='gauss_newton'`. The constraint must depend
                on the variables only through the tensors `outputs`, such as means and standard deviations of policies.
                `norm` is a function that builds the squared length of a change of `outputs`, a scalar. To second order,
                it equals twice the change of the constraint. Default: None.
            damping: name of a variable to a number that is added to the diagonal of the Hessian for this variable, in
                addition to `reg_coeff`. Default: None, zero for all variables.

        Raises:
            ValueError: `loss` or `f` is not a scalar, `epsilon` is not above 0, or `sample_axes` or `task_inputs`
                contains an unknown name.
        """
        super().build_graph(loss, target, input_ph_dict, sample_axes, task_inputs)
        self._constraint, epsilon = leq_constraint
        if self._constraint.shape.rank != 0:
            raise ValueError(f"leq_constraint: expected a scalar tensor, got shape {self._constraint.shape}")
        self._step_size = check_positive("leq_constraint[1]", epsilon)
        damping = damping or {}
        self._damping = np.concatenate([np.full(v.shape.num_elements(), self._reg_coeff + damping.get(name, 0.0))
                                        for name, v in self._variables.variables.items()])
        if self._hvp_approach is None:
            self._hvp_approach = "gauss_newton" if constraint_metric else FiniteDifferenceHvp()
        with tf.name_scope("conjugate_gradient_optimizer"):
            self._gradient = self.build_flat_gradient(loss)
            self._direction_ph = tf.placeholder(tf.float32, [len(self._damping)], name="direction")
            if self.hvp_approach == "gauss_newton":
                self._product = self._build_gauss_newton_product(constraint_metric)
            else:
                self._constraint_gradient = self.build_flat_gradient(self._constraint)
            if self.hvp_approach == "exact":
                along = tf.reduce_sum(self._constraint_gradient * self._direction_ph)
                self._product = self.build_flat_gradient(along)

    def _build_gauss_newton_product(self, constraint_metric: Optional[Metric]) -> tf.Tensor:
        """Builds `J^T F J x`, `[D]`.

        `J x` is computed as the gradient of `(J^T v) . x` with respect to an auxiliary `v`, because `J^T v` is linear
        in `v`.
        """
        if constraint_metric is None:
            raise ValueError("constraint_metric: expected the outputs that the constraint depends on and their "
                             "curvature, required by hvp_approach='gauss_newton', got None")
        outputs, norm = constraint_metric
        dual = [tf.zeros_like(y) for y in outputs]
        pulled_back = self.build_flat_gradient(outputs, dual)
        pushed_forward = [tf.stop_gradient(change) for change in _gradients(pulled_back, dual, self._direction_ph)]
        curved = _gradients(0.5 * norm(pushed_forward), pushed_forward)
        return self.build_flat_gradient(outputs, [tf.stop_gradient(c) for c in curved])

    def hessian_product(self, input_val_dict: InputValues) -> Product:
        """Returns the function `x -> H x` at the current values of the variables, float64 `[D]` to `[D]`."""
        if isinstance(self.hvp_approach, FiniteDifferenceHvp):
            return self.hvp_approach.at(self, input_val_dict)
        return lambda x: self.compute(self._product, input_val_dict, {self._direction_ph: x})

    def build_flat_gradient(self, f: Union[tf.Tensor, Sequence[tf.Tensor]],
                            weights: Optional[Sequence[tf.Tensor]] = None) -> tf.Tensor:
        """Builds the gradient of a scalar with respect to all variables as one vector `[D]`.

        The gradient is zero for variables that `f` does not depend on.

        Args:
            f: scalar tensor, or a sequence of tensors.
            weights: for a sequence `f`, tensors of the same shapes: the gradient of `sum_i sum(weights_i * f_i)` is
                built.
        """
        gradients = _gradients(f, list(self._variables.variables.values()), weights)
        return tf.concat([tf.reshape(gradient, [-1]) for gradient in gradients], axis=0)

    def compute(self, fetch: tf.Tensor, input_val_dict: InputValues,
                extra: Optional[Mapping[tf.Tensor, np.ndarray]] = None) -> np.ndarray:
        """Computes a tensor that is a mean over tasks, like loss and constraint; returns float64 values."""
        return self.compute_means([fetch], input_val_dict, extra)[0]

    def get_flat(self) -> np.ndarray:
        """Returns the variables as one vector, float64 `[D]`."""
        return flatten_params(self._variables.read()).astype(np.float64)

    def set_flat(self, flat: np.ndarray) -> None:
        """Sets the variables from one vector `[D]`."""
        self._variables.write(unflatten_params("flat", flat, self._variables.variables, ndim=1))

    def gradient(self, input_val_dict: InputValues) -> np.ndarray:
        """Computes the gradient of the loss as one vector, float64 `[D]`."""
        return self.compute(self._gradient, input_val_dict)

    def constraint_gradient(self, input_val_dict: InputValues) -> np.ndarray:
        """Computes the gradient of the constraint tensor as one vector, float64 `[D]`."""
        return self.compute(self._constraint_gradient, input_val_dict)

    def constraint_val(self, input_val_dict: InputValues) -> float:
        """Computes the value of the constraint tensor."""
        return self._compute_floats([self._constraint], input_val_dict)[0]

    @one_blas_thread()
    def optimize(self, input_val_dict: InputValues) -> float:
        """Takes one constrained step. `step_stats["StepFraction"]` is 0 if the line search rejected every step."""
        tensors = {"loss": self._loss, "gradient of the loss": self._gradient, "constraint": self._constraint}
        before = dict(zip(tensors, self.compute_means(list(tensors.values()), input_val_dict)))
        try:
            self._check_finite(tensors, before, input_val_dict)
        except FloatingPointError:
            if self._debug_nan and sys.stdin is not None and sys.stdin.isatty():
                pdb.set_trace()
            raise
        loss_before, constraint_before = float(before["loss"]), float(before["constraint"])
        with self._all_or_nothing():
            step = self._full_step(self._subsample(input_val_dict), before["gradient of the loss"])
            if step.any():
                loss, constraint, fraction = self._search(input_val_dict, loss_before, self.get_flat(), step)
            else:
                logger.log("the gradient or the curvature along it is zero; the parameters are unchanged")
                loss, constraint, fraction = loss_before, constraint_before, 0.0
        self.step_stats = {"MeanKLBefore": constraint_before, "MeanKL": constraint, "LossBefore": loss_before,
                           "LossAfter": loss, "dLoss": loss_before - loss, "StepFraction": fraction}
        return loss_before

    def _subsample(self, input_val_dict: InputValues) -> InputValues:
        if self._subsample_factor == 1.0:
            return input_val_dict
        num_samples = self._num_samples(input_val_dict)
        keep = max(1, int(num_samples * self._subsample_factor))
        return self._take(input_val_dict, np.sort(self._rng.permutation(num_samples)[:keep]))

    def _full_step(self, input_val_dict: InputValues, gradient: np.ndarray) -> np.ndarray:
        """Returns the step for which the quadratic approximation of the constraint, plus damping, equals its bound.

        The caller subtracts the step from the variables.
        """
        product = self.hessian_product(input_val_dict)

        def damped_product(x: np.ndarray) -> np.ndarray:
            image = product(x) + self._damping * x
            if not np.isfinite(image).all():
                raise FloatingPointError(f"the curvature of the constraint {NOT_FINITE}")
            return image

        direction, image = conjugate_gradients(damped_product, gradient, self._cg_iters)
        curvature = float(direction @ image)
        if not np.isfinite(curvature) or curvature <= 0.0:
            return np.zeros_like(direction)
        return direction * np.sqrt(2.0 * self._step_size / curvature)

    def _search(self, input_val_dict: InputValues, loss_before: float, theta: np.ndarray,
                step: np.ndarray) -> Tuple[float, float, float]:
        """Tries steps of decreasing length, and sets the variables to the first step that meets the conditions.

        If no step meets them, the variables are reset to `theta`, unless `accept_violation` keeps the last step.

        Returns:
            Loss and constraint at the resulting variables, and the fraction of the full step that was taken.
        """
        loss, constraint, fraction = np.nan, np.nan, 0.0
        for trial in range(self._max_backtracks):
            fraction = self._backtrack_ratio**trial
            if not np.isfinite((theta - fraction * step).astype(np.float32)).all():
                continue
            self.set_flat(theta - fraction * step)
            loss, constraint = self._compute_floats([self._loss, self._constraint], input_val_dict)
            if -np.inf < loss < loss_before and constraint <= self._step_size:
                return loss, constraint, fraction
        if self._accept_violation and np.isfinite([loss, constraint]).all():
            return loss, constraint, fraction
        logger.log("no step met the conditions of the line search; the parameters are unchanged")
        self.set_flat(theta)
        loss, constraint = self._compute_floats([self._loss, self._constraint], input_val_dict)
        return loss, constraint, 0.0


_gradients = functools.partial(tf.gradients, unconnected_gradients=tf.UnconnectedGradients.ZERO)


def conjugate_gradients(product: Product, b: np.ndarray, max_iterations: int = 10,
                        residual_tolerance: float = 1e-10) -> Tuple[np.ndarray, np.ndarray]:
    """Solves `H x = b` approximately for a positive semi-definite `H` (Hestenes & Stiefel, 1952).

    Args:
        product: function that computes `H p`, `[D]` to `[D]`.
        b: `[D]`.
        max_iterations: maximum number of products. Default: 10.
        residual_tolerance: stops when the squared residual is at most this fraction of `|b|^2`. Default: 1e-10.

    Returns:
        `(x, H x)`, each `[D]`. `H x` is computed from the residual, without a further product.
    """
    x, residual = np.zeros_like(b), b.copy()
    direction, squared = b.copy(), float(b @ b)
    negligible = residual_tolerance * squared
    for _ in range(max_iterations):
        if squared <= negligible:
            break
        image = product(direction)
        curvature = float(direction @ image)
        if not np.isfinite(curvature) or curvature <= 0.0:
            break
        alpha = squared / curvature
        x += alpha * direction
        residual -= alpha * image
        last, squared = squared, float(residual @ residual)
        direction = residual + (squared / last) * direction
    return x, b - residual
