"""VPG-MAML: model-agnostic meta-learning with a plain policy gradient as outer step (arXiv:1703.03400)."""
from typing import Any, Dict, Mapping, Sequence

import numpy as np

from meta_policy_search.meta_algos.adaptation_step import AdaptationStep
from meta_policy_search.meta_algos.exploring import ExploringArguments, ExploringMAMLAlgo
from meta_policy_search.meta_algos.first_order import FirstOrderMAMLAlgo
from meta_policy_search.ops import losses
from meta_policy_search.optimizers.maml_first_order_optimizer import MAMLFirstOrderOptimizer, StepArguments
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.signatures import Unpack


class VPGArguments(ExploringArguments, StepArguments, total=False):
    """Arguments that VPG-MAML has from others, by name."""


class VPGMAML(FirstOrderMAMLAlgo, ExploringMAMLAlgo):
    """MAML whose meta-update is one step of Adam along the policy gradient.

    Minimizes the mean over tasks of the adapted policies' log-likelihood loss (plus, with `exploration`, E-MAML's
    term, see `ExploringMAMLAlgo`). Logs `LossBefore`, `LossAfter` and `LearningRate`.
    """

    def __init__(self, *args: Any, name: str = "vpg_maml", **kwargs: Unpack[VPGArguments]) -> None:
        super().__init__(*args, name=name, **kwargs)
        self.optimizer = MAMLFirstOrderOptimizer(**self._step_arguments)
        self.build_graph()

    def build_meta_objective(self, chain: Sequence[AdaptationStep]) -> None:
        """Builds the adapted policies' log-likelihood loss."""
        with tf.name_scope("meta_objective"):
            last = chain[-1]
            outer = losses.log_likelihood_loss(last.log_prob, last.inputs.advantages, last.inputs.weights)
            loss = tf.reduce_mean(outer.loss + self.build_exploration_loss(chain))
        self.optimizer.build_graph(loss, self.meta_parameters, self._meta_placeholders(chain),
                                   sample_axes=self._last_step_sample_axes(chain), task_inputs=self.task_inputs(chain))

    def _update(self, values: Mapping[str, np.ndarray]) -> Dict[str, float]:
        return {**super()._update(values), "LossAfter": self.optimizer.loss(values)}
