"""DiCE-MAML: meta-learning with an infinitely differentiable estimator (arXiv:1802.05098)."""
from typing import Any, Sequence, Tuple

import numpy as np

from meta_policy_search.meta_algos.adaptation_step import AdaptationStep
from meta_policy_search.meta_algos.first_order import FirstOrderMAMLAlgo, FirstOrderMAMLArguments
from meta_policy_search.ops import losses
from meta_policy_search.optimizers.maml_first_order_optimizer import MAMLFirstOrderOptimizer
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import TaskSamples
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.signatures import Unpack


class DICEMAML(FirstOrderMAMLAlgo):
    """MAML whose inner and outer objectives are DiCE objectives, so that second derivatives are unbiased.

    Per task, with `r'_pt` the adjusted reward of step t of path p and `T` the most steps that a path can have,

        L = -1/(P T) sum_p (sum_t box_pt r'_pt + box_p r''_p),   box_pt = exp(tau_pt - stop_gradient(tau_pt)),

    where `tau_pt` is the sum of the log-densities of the path's actions up to step t, `box_p` is that of the whole path
    and `r''_p` what a baseline subtracts after the end of a path (`adjusted_rewards_after_end`). Each meta-update is
    one step of Adam on the mean over tasks.

    Takes the samples of a `DiceMetaSampleProcessor`, with a baseline of time alone (`LinearTimeBaseline`); its notes
    say what would bias the gradient.

    Logs `LossBefore` and `LearningRate`. (A DiCE objective has the same value for all parameters, by construction: only
    its derivatives differ.)

    Args:
        max_path_length (int): the most steps that a path can have, `T`; the sample processor's.
    """

    def __init__(self, max_path_length: int, *args: Any, name: str = "dice_maml",
                 **kwargs: Unpack[FirstOrderMAMLArguments]) -> None:
        super().__init__(*args, name=name, **kwargs)
        self.max_path_length = check_positive_int("max_path_length", max_path_length)
        self.optimizer = MAMLFirstOrderOptimizer(**self._step_arguments)
        self.build_graph()

    def _sample_keys(self, is_last: bool) -> Tuple[str, ...]:
        return ("adjusted_rewards",)

    def _needs_paths(self, is_last: bool) -> bool:
        return True

    def _check_form(self, samples: Sequence[TaskSamples]) -> None:
        for task in samples:
            if "mask" not in task:
                raise ValueError("samples: expected those of a DiceMetaSampleProcessor, with entries such as 'mask', "
                                 f"got {', '.join(map(repr, sorted(task)))}")
            if np.ndim(task["mask"]) == 2 and np.shape(task["mask"])[1] != self.max_path_length:
                raise ValueError(f"samples: expected paths padded to max_path_length={self.max_path_length} steps, as "
                                 "by a DiceMetaSampleProcessor with the same number, got "
                                 f"{np.shape(task['mask'])[1]}")

    def build_inner_loss(self, step: AdaptationStep) -> tf.Tensor:
        """Builds the DiCE loss that an inner step descends, `[M]`."""
        inputs = step.inputs
        return losses.dice_loss(
            step.log_prob, inputs.entries["adjusted_rewards"], inputs.path_weights, inputs.path_starts).loss

    def build_outer_loss(self, step: AdaptationStep) -> tf.Tensor:
        """Builds the loss of the adapted policies, `[M]`: the same."""
        return self.build_inner_loss(step)

    def build_meta_objective(self, chain: Sequence[AdaptationStep]) -> None:
        """Builds the mean over tasks of the adapted policies' loss."""
        with tf.name_scope("meta_objective"):
            loss = tf.reduce_mean(self.build_outer_loss(chain[-1]))
        self.optimizer.build_graph(loss, self.meta_parameters, self._meta_placeholders(chain),
                                   task_inputs=self.task_inputs(chain))
