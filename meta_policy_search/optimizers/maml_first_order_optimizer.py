"""First-order optimization of meta-objectives (SGD, Adam and others), over several epochs of minibatches."""
from typing import Any, Collection, Dict, List, Mapping, Optional, Sequence, Tuple, Type, Union

import numpy as np

from meta_policy_search.optimizers.base import InputValues, Optimizer, Schedule, check_finite_params, check_schedule
from meta_policy_search.sessions import VariableSet
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import Params
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import (
    check_bool,
    check_choice,
    check_non_negative,
    check_positive,
    check_positive_int,
    check_type,
)

TF_OPTIMIZERS = ("Adadelta", "Adagrad", "Adam", "Ftrl", "GradientDescent", "Momentum", "RMSProp")
"""Names of the optimizers of `tf.train`, without the suffix `Optimizer`, that can be specified by name."""

MIN_RATE_FACTOR = 1e-4
"""Lower bound of `MAMLFirstOrderOptimizer.rate_factor`."""


class MAMLFirstOrderOptimizer(Optimizer):
    """Minimizes a loss with a TensorFlow optimizer.

    With `target_kl`, a step after which the divergence exceeds 1.5 times the target is undone, and the update ends. If
    the first step is undone, or if the loss has increased, the whole update is rejected. To undo a step, the parameters
    and the optimizer state (such as Adam's moments) are restored. The learning rate is multiplied by `rate_factor`. A
    rejected update halves this factor. An update without undone steps whose divergence is below half the target
    increases it by half, up to 1.

    If the loss or its gradient is not finite, the step is rejected with a `FloatingPointError` that names the quantity.
    After an error or Ctrl-C, the variables and the optimizer state are restored to their values before `optimize`.

    Args:
        tf_optimizer_cls (str or type): optimizer of `tf.train`, by name (one of `TF_OPTIMIZERS`; the suffix
            `Optimizer` may be omitted), or a subclass of `tf.train.Optimizer`. Default: `"Adam"`.
        tf_optimizer_args (dict or None): further arguments of `tf_optimizer_cls`, by name. Default: None.
        learning_rate (float, dict or callable): step size, above 0; for a linear schedule, a dict of the arguments of
            `optimizers.base.LinearSchedule`, such as `{"start": 1e-3, "end": 0.0, "num_updates": 100}`; or a function
            from the number of earlier `optimize` calls to the step size. Default: 1e-3. The attribute of the same name
            is the step size of the next call and can be set to any of these.
        max_epochs (int): maximum number of passes over the samples per `optimize` call, at least 1. Default: 1.
        tolerance (float or None): stops if the loss decreases by less than this between two epochs; None never stops
            early. Default: 1e-6.
        num_minibatches (int): number of minibatches per epoch, with one step per minibatch. Each epoch splits the
            samples at random. Default: 1.
        verbose (bool): whether to log the loss of each epoch. Default: False.
        max_grad_norm (float or None): maximum Euclidean norm of the gradient of a step, above 0. Larger gradients are
            scaled down to this norm. Default: None, no limit.
        target_kl (float or None): target of the divergence that `build_graph` receives, above 0. Default: None, steps
            are never undone.

    Attributes:
        rate_factor (float): factor of the learning rate, from `MIN_RATE_FACTOR` to 1; 1 without `target_kl`.

    Raises:
        TypeError: `tf_optimizer_cls` is neither a name nor a subclass of `tf.train.Optimizer`.
        ValueError: `tf_optimizer_cls` is not one of the names, or a number is out of range.
    """

    def __init__(self, tf_optimizer_cls: Union[str, Type[tf.train.Optimizer]] = "Adam",
                 tf_optimizer_args: Optional[Mapping[str, Any]] = None, learning_rate: Schedule = 1e-3,
                 max_epochs: int = 1, tolerance: Optional[float] = 1e-6, num_minibatches: int = 1,
                 verbose: bool = False, max_grad_norm: Optional[float] = None,
                 target_kl: Optional[float] = None) -> None:
        self._tf_optimizer_cls = _find_optimizer(tf_optimizer_cls)
        self._tf_optimizer_args = dict(check_type("tf_optimizer_args", tf_optimizer_args or {}, Mapping, "a dict"))
        self.learning_rate = self._tf_optimizer_args.pop("learning_rate", learning_rate)
        self._num_updates = 0
        self._max_epochs = check_positive_int("max_epochs", max_epochs)
        self._tolerance = None if tolerance is None else check_non_negative("tolerance", tolerance)
        self.num_minibatches = check_positive_int("num_minibatches", num_minibatches)
        self._verbose = check_bool("verbose", verbose)
        self._max_grad_norm = None if max_grad_norm is None else check_positive("max_grad_norm", max_grad_norm)
        self.target_kl = None if target_kl is None else check_positive("target_kl", target_kl)
        self.rate_factor = 1.0
        try:
            self._tf_optimizer_cls(learning_rate=1.0, **self._tf_optimizer_args)
        except TypeError as error:
            raise TypeError(f"tf_optimizer_args: {error}") from None
        self._is_built = True

    @property
    def learning_rate(self) -> float:
        """Step size of the next `optimize` call, without `rate_factor`.

        Can be set to every value that the argument of the constructor accepts.
        """
        rate = self._learning_rate
        return check_non_negative("learning_rate", rate(self._num_updates)) if callable(rate) else rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: Schedule) -> None:
        self._learning_rate = check_schedule("learning_rate", learning_rate)

    def build_graph(self, loss: tf.Tensor, target: Any, input_ph_dict: Mapping[str, tf.Tensor],
                    sample_axes: Optional[Mapping[str, int]] = None, task_inputs: Collection[str] = (),
                    divergence: Optional[tf.Tensor] = None, loss_has_value: bool = True) -> None:
        """Sets the objective and the variables to optimize.

        Args:
            loss: scalar tensor to minimize.
            target: object whose `get_params()` returns the variables to optimize.
            input_ph_dict: name to placeholder, for all inputs of the loss.
            sample_axes: name of an input to its sample axis; see `Optimizer.build_graph`.
            task_inputs: names of the inputs with a task axis; see `Optimizer.build_graph`.
            divergence: scalar that `target_kl` limits, with the same inputs as the loss; about zero before the first
                step. Default: None, which is an error with `target_kl`.
            loss_has_value: whether updates that increase the loss are rejected with `target_kl`; False if only the
                derivatives of the loss are meaningful. Default: True.

        Raises:
            ValueError: `target_kl` is set and there is no divergence.
        """
        super().build_graph(loss, target, input_ph_dict, sample_axes, task_inputs)
        if self.target_kl is not None and divergence is None:
            raise ValueError("target_kl: expected None, because the algorithm passes no divergence to the optimizer or "
                             f"the policy's distribution has no kl_sym, got {self.target_kl}")
        self._divergence = [] if self.target_kl is None else [divergence]
        self._loss_has_value = loss_has_value
        with tf.name_scope("first_order_optimizer"):
            variables = self._variables.variables
            gradients = zip(variables, tf.gradients(loss, list(variables.values())))
            self._gradients = {name: tf.convert_to_tensor(g) for name, g in gradients if g is not None}
            if not self._gradients:
                raise ValueError("loss: expected a loss that depends on the variables")
            self._new_gradients = [tf.placeholder(g.dtype, variables[name].shape, name="gradient")
                                   for name, g in self._gradients.items()]
            steps = [(ph, variables[name]) for ph, name in zip(self._new_gradients, self._gradients)]
            self._rate_ph = tf.placeholder(tf.float32, [], name="learning_rate")
            optimizer = self._tf_optimizer_cls(learning_rate=self._rate_ph, **self._tf_optimizer_args)
            self._train_op = optimizer.apply_gradients(steps)
            self._optimizer_variables = VariableSet({variable.name: variable for variable in optimizer.variables()})
            self._all_variables = VariableSet({**variables, **self._optimizer_variables.variables})

    def optimize(self, input_val_dict: InputValues) -> float:
        """Takes up to `max_epochs * num_minibatches` gradient steps; see `Optimizer.optimize`.

        Raises:
            ValueError: an input is missing or unknown, or there are fewer samples than minibatches.
            FloatingPointError: the loss, its gradient or a new parameter is not finite. The variables and the optimizer
                state are unchanged.
        """
        stats = {"LearningRate": self.learning_rate * self.rate_factor}
        with self._all_or_nothing():
            stats["LossBefore"], points = self._take_steps(input_val_dict)
            if self.target_kl is not None:
                stats["Rejected"] = float(self._check_steps(self.target_kl, stats["LossBefore"], points,
                                                            input_val_dict))
            check_finite_params(self._all_variables.read())
            self._num_updates += 1
        self.step_stats = stats
        return stats["LossBefore"]

    def _take_steps(self, input_val_dict: InputValues) -> Tuple[float, List[Params]]:
        """Takes steps until the divergence is too large; returns the loss before them, and all values before each."""
        points: List[Params] = []
        loss_before = self.loss(input_val_dict) if self.num_minibatches > 1 else np.nan
        last_loss = np.inf
        for epoch in range(self._max_epochs):
            losses = []
            for batch in self._minibatches(input_val_dict, self.num_minibatches):
                loss, gradients, divergence = self._evaluate(batch)
                if points and self._is_too_far(divergence):
                    return loss_before, points
                if self.target_kl is not None:
                    points.append(self._all_variables.read())
                self._take_step(gradients)
                losses.append(loss)
            loss = float(np.mean(losses))
            if self._verbose:
                logger.log(f"Epoch {epoch}: loss {loss:.6g}")
            loss_before = loss if np.isnan(loss_before) else loss_before
            if self._tolerance is not None and last_loss - loss < self._tolerance:
                break
            last_loss = loss
        return loss_before, points

    def gradient(self, input_val_dict: InputValues) -> np.ndarray:
        """Computes the gradient of the loss as one vector, float64 `[D]`; zero for unconnected variables."""
        gradients = dict(zip(self._gradients, self.compute_means(list(self._gradients.values()), input_val_dict)))
        parts = [gradients.get(name, np.zeros(v.shape)) for name, v in self._variables.variables.items()]
        return np.concatenate([part.ravel() for part in parts])

    def _evaluate(self, batch: InputValues) -> Tuple[float, List[np.ndarray], float]:
        """Computes the loss, its gradient (scaled to `max_grad_norm`), and the divergence (0 without `target_kl`)."""
        loss, *values = self.compute_means([self._loss, *self._gradients.values(), *self._divergence], batch)
        gradients, divergence = values[:len(self._gradients)], values[len(self._gradients):]
        tensors = {"loss": self._loss, **{f"gradient with respect to {self._variables.variables[name].name}": gradient
                                          for name, gradient in self._gradients.items()}}
        self._check_finite(tensors, dict(zip(tensors, [loss, *gradients])), batch)
        if self._max_grad_norm is not None:
            norm = np.sqrt(sum(np.sum(np.square(gradient)) for gradient in gradients))
            gradients = [gradient * min(1.0, self._max_grad_norm / max(norm, 1e-12)) for gradient in gradients]
        return float(loss), gradients, float(sum(divergence))

    def _take_step(self, gradients: Sequence[np.ndarray]) -> None:
        feed = dict(zip(self._new_gradients, gradients))
        feed[self._rate_ph] = self.learning_rate * self.rate_factor
        self._variables.session().run(self._train_op, feed)

    def _check_steps(self, target_kl: float, loss_before: float, points: List[Params],
                     input_val_dict: InputValues) -> bool:
        """Undoes the last step or the update if it went too far; adapts `rate_factor`.

        Args:
            target_kl: target of the divergence.
            loss_before: loss before the first step.
            points: values of all variables before each step.
            input_val_dict: name to value of every input.

        Returns:
            Whether the update is rejected.
        """
        loss, divergence = self._compute_floats([self._loss, *self._divergence], input_val_dict)
        num_steps = len(points)
        if self._is_too_far(divergence):
            num_steps -= 1
            self._all_variables.write(points[-1])
            loss, divergence = self._compute_floats([self._loss, *self._divergence], input_val_dict)
        is_worse = loss > loss_before and self._loss_has_value
        if num_steps == 0 or is_worse or self._is_too_far(divergence):
            self._all_variables.write(points[0])
            self.rate_factor = max(self.rate_factor / 2.0, MIN_RATE_FACTOR)
            return True
        if num_steps == len(points) and divergence < target_kl / 2.0:
            self.rate_factor = min(self.rate_factor * 1.5, 1.0)
        return False

    def _is_too_far(self, divergence: float) -> bool:
        return self.target_kl is not None and not divergence <= 1.5 * self.target_kl  # also NaN

    def get_state(self) -> Dict[str, Any]:
        """Returns the optimizer's variables (such as Adam's moments), random state, number of updates and schedule."""
        return {**super().get_state(), "variables": self._optimizer_variables.read(), "num_updates": self._num_updates,
                "learning_rate": self._learning_rate, "rate_factor": self.rate_factor}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restores the state that `get_state` returned."""
        super().set_state(state)
        self._optimizer_variables.write(dict(zip(self._optimizer_variables.variables, state["variables"].values())))
        self._num_updates, self.learning_rate = state["num_updates"], state["learning_rate"]
        self.rate_factor = state["rate_factor"]


class MAMLPPOOptimizer(MAMLFirstOrderOptimizer):
    """A `MAMLFirstOrderOptimizer` without early stopping by default, as used by ProMP.

    Args:
        tf_optimizer_cls (str or type): optimizer of `tf.train`, by name (one of `TF_OPTIMIZERS`; the suffix
            `Optimizer` may be omitted), or a subclass of `tf.train.Optimizer`. Default: `"Adam"`.
        tf_optimizer_args (dict or None): further arguments of `tf_optimizer_cls`, by name. Default: None.
        learning_rate (float, dict or callable): step size, above 0; for a linear schedule, a dict of the arguments of
            `optimizers.base.LinearSchedule`, such as `{"start": 1e-3, "end": 0.0, "num_updates": 100}`; or a function
            from the number of earlier `optimize` calls to the step size. Default: 1e-3.
        max_epochs (int): maximum number of passes over the samples per `optimize` call, at least 1. Default: 1.
        tolerance (float or None): stops if the loss decreases by less than this between two epochs. Default: None,
            which never stops early.
        num_minibatches (int): number of minibatches per epoch, with one step per minibatch. Each epoch splits the
            samples at random. Default: 1.
        verbose (bool): whether to log the loss of each epoch. Default: False.
        max_grad_norm (float or None): maximum Euclidean norm of the gradient of a step, above 0. Larger gradients are
            scaled down to this norm. Default: None, no limit.
        target_kl (float or None): target of the divergence that `build_graph` receives, above 0. Default: None, steps
            are never undone.
    """

    def __init__(self, tf_optimizer_cls: Union[str, Type[tf.train.Optimizer]] = "Adam",
                 tf_optimizer_args: Optional[Mapping[str, Any]] = None, learning_rate: Schedule = 1e-3,
                 max_epochs: int = 1, tolerance: Optional[float] = None, num_minibatches: int = 1,
                 verbose: bool = False, max_grad_norm: Optional[float] = None,
                 target_kl: Optional[float] = None) -> None:
        super().__init__(tf_optimizer_cls, tf_optimizer_args, learning_rate, max_epochs, tolerance, num_minibatches,
                         verbose, max_grad_norm, target_kl)


def _find_optimizer(cls: Any) -> Type[tf.train.Optimizer]:
    """Returns the optimizer class of a name or of a class; raises an error for other values."""
    if isinstance(cls, str):
        return getattr(tf.train, check_choice("tf_optimizer_cls", cls.removesuffix("Optimizer"), TF_OPTIMIZERS)
                       + "Optimizer")
    if not (isinstance(cls, type) and issubclass(cls, tf.train.Optimizer)):
        raise TypeError(f"tf_optimizer_cls: expected one of the names {', '.join(TF_OPTIMIZERS)} or a subclass of "
                        f"tf.train.Optimizer, got {cls!r}")
    return cls
