"""What algorithms share whose meta-update is made of first-order steps."""
from typing import Any, Dict, Mapping, Optional, Type

from meta_policy_search.meta_algos.base import MAMLAlgo, MAMLArguments
from meta_policy_search.optimizers.maml_first_order_optimizer import MAMLFirstOrderOptimizer, StepArguments
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.schedules import Schedule


class FirstOrderMAMLArguments(MAMLArguments, StepArguments, total=False):
    """Arguments that MAML algorithms with first-order steps share, by name."""


class FirstOrderMAMLAlgo(MAMLAlgo):
    """MAML whose meta-update is made of first-order steps; logs `LearningRate`.

    A subclass builds its optimizer from `_step_arguments`.

    Args:
        learning_rate (float or callable): step size on the meta-objective, above 0, or a function of the index of the
            meta-update, such as `utils.schedules.LinearSchedule`. The attribute of this name is that of the next
            meta-update, and may be set. Default 1e-3.
        tf_optimizer_cls (type): takes the steps, a `tf.train.Optimizer`; default `tf.train.AdamOptimizer`.
        tf_optimizer_args (dict or None): its further arguments.
    """

    optimizer: MAMLFirstOrderOptimizer

    def __init__(self, *args: Any, learning_rate: Schedule = 1e-3,
                 tf_optimizer_cls: Type[tf.train.Optimizer] = tf.train.AdamOptimizer,
                 tf_optimizer_args: Optional[Mapping[str, Any]] = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._step_arguments = StepArguments(
            learning_rate=learning_rate, tf_optimizer_cls=tf_optimizer_cls, tf_optimizer_args=tf_optimizer_args)

    @property
    def learning_rate(self) -> float:
        """Step size of the next meta-update; may be set, to a number or a function of the meta-update's index."""
        return self.optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: Schedule) -> None:
        self.optimizer.learning_rate = learning_rate

    def _update(self, values: Mapping[str, Any]) -> Dict[str, float]:
        learning_rate = self.learning_rate
        return {**super()._update(values), "LearningRate": learning_rate}
