"""VPG-MAML: model-agnostic meta-learning with a plain policy gradient as outer step (arXiv:1703.03400)."""
from typing import Any, Sequence

from meta_policy_search.meta_algos.adaptation_step import AdaptationStep
from meta_policy_search.meta_algos.exploring import ExploringArguments, ExploringMAMLAlgo
from meta_policy_search.ops import losses
from meta_policy_search.optimizers.maml_first_order_optimizer import MAMLFirstOrderOptimizer
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import TaskSamples
from meta_policy_search.utils import logger
from meta_policy_search.utils.signatures import Unpack


class VPGMAML(ExploringMAMLAlgo):
    """MAML whose meta-update is one step of Adam along the policy gradient.

    Minimizes the mean over tasks of the adapted policies' log-likelihood loss (plus, with `exploration`, E-MAML's
    term, see `ExploringMAMLAlgo`).

    Args:
        learning_rate (float): step size of Adam on the meta-objective; default 1e-3.
    """

    def __init__(
        self,
        *args: Any,
        name: str = "vpg_maml",
        learning_rate: float = 1e-3,
        **kwargs: Unpack[ExploringArguments],
    ) -> None:
        super().__init__(*args, name=name, **kwargs)
        self.optimizer = MAMLFirstOrderOptimizer(learning_rate=learning_rate, max_epochs=1)
        self.build_graph()

    def build_meta_objective(self, chain: Sequence[AdaptationStep]) -> None:
        """Builds the adapted policies' log-likelihood loss."""
        with tf.name_scope("meta_objective"):
            last = chain[-1]
            outer = losses.log_likelihood_loss(last.log_prob, last.inputs.advantages, last.inputs.weights)
            loss = tf.reduce_mean(outer.loss + self.build_exploration_loss(chain))
        self.optimizer.build_graph(
            loss=loss,
            target=self.meta_parameters,
            input_ph_dict=self._meta_placeholders(chain),
            sample_axes=self._last_step_sample_axes(chain),
        )

    def optimize_policy(self, all_samples_data: Sequence[Sequence[TaskSamples]], log: bool = True) -> None:
        """Takes one meta-update.

        Args:
            all_samples_data: `[K + 1][M]` processed samples: of each inner step, and last of the adapted policies.
            log: whether to log `LossBefore` and `LossAfter`.

        Raises:
            ValueError: the number of steps or tasks is wrong, or a task lacks an entry or has no samples.
            FloatingPointError: the loss or its gradient is not finite; the parameters are as they were.
        """
        values = self.meta_input_values(all_samples_data)
        loss_before = self.optimizer.optimize(values)
        if log:
            logger.logkv("LossBefore", loss_before)
            logger.logkv("LossAfter", self.optimizer.loss(values))
