"""DiCE-MAML with a plain policy gradient on advantages as outer step."""
from typing import Any, Mapping, Optional, Sequence, Type, Union

from meta_policy_search.meta_algos.dice_maml import DICEMAML
from meta_policy_search.meta_algos.inputs import AdaptationStep
from meta_policy_search.ops import losses
from meta_policy_search.policies.base import MetaPolicy
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.schedules import Schedule


class VPG_DICEMAML(DICEMAML):  # noqa: N801  (the name of the public code)
    """MAML whose inner objective is DiCE, and whose outer objective is the policy gradient on advantages.

    The outer objective is differentiated once through the adapted policies' actions, so the score of each action, times
    its advantage, is enough, and a state-dependent baseline does not bias it. The sample processor therefore needs a
    `return_baseline`, for example `DiceMetaSampleProcessor(LinearTimeBaseline(), ..., return_baseline=
    LinearFeatureBaseline())`.

    Logs `LossBefore` and `LearningRate`.

    Args:
        max_path_length (int): maximum number of steps of a path, `T`; that of the sample processor.
        policy (MetaPolicy): the policy to optimize.
        inner_lr (float): step size alpha of the inner step, at least 0; above 0 if it is trained. Default 0.1.
        meta_batch_size (int): number of tasks `M`, the same as the policy's; default 20.
        num_inner_grad_steps (int): number of inner steps `K`; default 1. With 0, one policy is trained for all tasks.
        trainable_inner_step_size (bool): whether the meta-update also optimizes the inner step sizes, see `MAMLAlgo`;
            default False.
        first_order (bool): whether to leave out second derivatives (arXiv:1703.03400, section 5.2); default False.
        name (str): name scope of the algorithm's operations.
        learning_rate (float or callable): step size on the meta-objective, above 0, or a function of the index of the
            meta-update, such as `utils.schedules.LinearSchedule`. Default 1e-3.
        tf_optimizer_cls (type): a `tf.train.Optimizer`, takes the steps; default `tf.train.AdamOptimizer`.
        tf_optimizer_args (dict or None): further arguments of `tf_optimizer_cls`.
        entropy_coef (float): coefficient of the mean entropy of the adapted policies, nats, which is subtracted from
            the loss; at least 0, default 0.
        max_grad_norm (float or None): largest Euclidean norm of a step's meta-gradient, above 0; longer ones are scaled
            to it. Default None, without limit.
        adapt_params (str or list of str): the parameters that inner steps change: `'all'` (MAML), `'head'` (ANIL),
            `'body'` (BOIL), `'context'` (CAVIA), or patterns of their names; see `meta_algos.adapted_params`. Default
            `'all'`.
    """

    def __init__(self, max_path_length: int, policy: MetaPolicy, inner_lr: float = 0.1, meta_batch_size: int = 20,
                 num_inner_grad_steps: int = 1, trainable_inner_step_size: bool = False, first_order: bool = False, *,
                 name: str = "vpg_dice_maml", learning_rate: Schedule = 1e-3,
                 tf_optimizer_cls: Type[tf.train.Optimizer] = tf.train.AdamOptimizer,
                 tf_optimizer_args: Optional[Mapping[str, Any]] = None,
                 entropy_coef: float = 0.0, max_grad_norm: Optional[float] = None,
                 adapt_params: Union[str, Sequence[str]] = "all") -> None:
        super().__init__(max_path_length, policy, inner_lr, meta_batch_size, num_inner_grad_steps,
                         trainable_inner_step_size, first_order, name=name, learning_rate=learning_rate,
                         tf_optimizer_cls=tf_optimizer_cls, tf_optimizer_args=tf_optimizer_args,
                         entropy_coef=entropy_coef, max_grad_norm=max_grad_norm, adapt_params=adapt_params)

    def outer_loss(self, step: AdaptationStep) -> tf.Tensor:
        """Builds the log-likelihood loss of the adapted policies, `[M]`."""
        weights = step.inputs.path_weights(self.max_path_length)
        return losses.log_likelihood_loss(step.log_prob, step.inputs.advantages, weights)
