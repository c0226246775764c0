"""DiCE-MAML with a plain policy gradient on advantages as outer step."""
from typing import Any, Tuple

from meta_policy_search.meta_algos.adaptation_step import AdaptationStep
from meta_policy_search.meta_algos.dice_maml import DICEMAML
from meta_policy_search.meta_algos.first_order import FirstOrderMAMLArguments
from meta_policy_search.ops import losses
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.signatures import Unpack


class VPG_DICEMAML(DICEMAML):  # noqa: N801  (the name of the public code)
    """MAML whose inner objective is DiCE, and whose outer one is the policy gradient on advantages.

    The outer objective is differentiated once through the adapted policies' actions, for which the score of each
    action, times its advantage, is enough; a state-dependent baseline does no harm there. So the sample processor
    needs a `return_baseline`, as `DiceMetaSampleProcessor(LinearTimeBaseline(), ..., return_baseline=
    LinearFeatureBaseline())`.
    """

    def __init__(self, max_path_length: int, *args: Any, name: str = "vpg_dice_maml",
                 **kwargs: Unpack[FirstOrderMAMLArguments]) -> None:
        super().__init__(max_path_length, *args, name=name, **kwargs)

    def _sample_keys(self, is_last: bool) -> Tuple[str, ...]:
        return ("advantages",) if is_last else super()._sample_keys(is_last)

    def build_outer_loss(self, step: AdaptationStep) -> tf.Tensor:
        """Builds the log-likelihood loss of the adapted policies, `[M]`."""
        return losses.log_likelihood_loss(step.log_prob, step.inputs.advantages, step.inputs.path_weights).loss
