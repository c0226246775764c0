"""VPG-DiCE-MAML: DiCE as inner objective, and a policy gradient on advantages as meta-update."""
from typing import Any, Mapping, Optional, Sequence, Type, Union

from meta_policy_search.meta_algos.dice_maml import DICEMAML
from meta_policy_search.meta_algos.inputs import AdaptationStep
from meta_policy_search.ops import losses
from meta_policy_search.optimizers.base import Schedule
from meta_policy_search.policies.base import MetaPolicy
from meta_policy_search.tf_compat import tf


class VPG_DICEMAML(DICEMAML):  # noqa: N801  (name in the public ProMP code)
    """MAML with DiCE as inner objective, and the policy gradient on advantages as outer objective.

    The outer objective is differentiated only once with respect to the adapted policies. The score of each action times
    its advantage is therefore sufficient, and a state-dependent baseline does not cause a bias. The sample processor
    needs a `return_baseline`, for example `DiceMetaSampleProcessor(LinearTimeBaseline(), ...,
    return_baseline=LinearFeatureBaseline())`.

    Logs `LossBefore` and `LearningRate`; with `target_kl` also `KLOuter` and `Rejected`.

    Args:
        max_path_length (int): maximum number of steps of a path, `T`; must equal the sample processor's.
        policy (MetaPolicy): the policy to optimize.
        inner_lr (float): inner step size alpha, at least 0; above 0 with `trainable_inner_step_size`. Default: 0.1.
        meta_batch_size (int): number of tasks `M`; must equal the policy's. Default: 20.
        num_inner_grad_steps (int): number of adaptation steps `K`. With 0, one policy is trained for all tasks.
            Default: 1.
        trainable_inner_step_size (bool): whether the meta-update also optimizes the inner step sizes; see `MAMLAlgo`.
            Default: False.
        first_order (bool): whether to omit second derivatives (first-order MAML; arXiv:1703.03400, section 5.2).
            Default: False.
        name (str): name scope of the algorithm's operations.
        learning_rate (float, dict or callable): step size of the meta-update, above 0; for a linear schedule, a dict of
            the arguments of `optimizers.base.LinearSchedule`; or a function from the index of the meta-update to the
            step size. Default: 1e-3.
        tf_optimizer_cls (str or type): optimizer of `tf.train`, by name such as `"Adam"` or `"RMSProp"`, or a subclass
            of `tf.train.Optimizer`. Default: `"Adam"`.
        tf_optimizer_args (dict or None): further arguments of `tf_optimizer_cls`. Default: None.
        entropy_coef (float): coefficient of the entropy bonus, at least 0. The loss is reduced by this coefficient
            times the mean entropy of the adapted policies (nats). Default: 0.
        max_grad_norm (float or None): maximum Euclidean norm of the meta-gradient of a step, above 0. Larger
            gradients are scaled down to this norm. Default: None, no limit.
        target_kl (float or None): target of the divergence `KLOuter` per meta-update, in nats, above 0. Steps that go
            too far are undone; see `MAMLFirstOrderOptimizer`. Default: None, no step is undone, as published.
        adapt_params (str or list of str): parameters that adaptation steps change: `'all'` (MAML), `'head'` (ANIL),
            `'body'` (BOIL), `'context'` (CAVIA), or patterns of names; see `meta_algos.adapted_params`. Default:
            `'all'`.
    """

    default_settings = {"return_baseline": "LinearFeatureBaseline"}

    def __init__(self, max_path_length: int, policy: MetaPolicy, inner_lr: float = 0.1, meta_batch_size: int = 20,
                 num_inner_grad_steps: int = 1, trainable_inner_step_size: bool = False, first_order: bool = False, *,
                 name: str = "vpg_dice_maml", learning_rate: Schedule = 1e-3,
                 tf_optimizer_cls: Union[str, Type[tf.train.Optimizer]] = "Adam",
                 tf_optimizer_args: Optional[Mapping[str, Any]] = None,
                 entropy_coef: float = 0.0, max_grad_norm: Optional[float] = None,
                 target_kl: Optional[float] = None, adapt_params: Union[str, Sequence[str]] = "all") -> None:
        super().__init__(max_path_length, policy, inner_lr, meta_batch_size, num_inner_grad_steps,
                         trainable_inner_step_size, first_order, name=name, learning_rate=learning_rate,
                         tf_optimizer_cls=tf_optimizer_cls, tf_optimizer_args=tf_optimizer_args,
                         entropy_coef=entropy_coef, max_grad_norm=max_grad_norm, target_kl=target_kl,
                         adapt_params=adapt_params)

    def outer_loss(self, step: AdaptationStep) -> tf.Tensor:
        """Builds the log-likelihood loss of the adapted policies, `[M]`."""
        weights = step.inputs.path_weights(self.max_path_length)
        return losses.log_likelihood_loss(step.log_prob, step.inputs.advantages, weights)
