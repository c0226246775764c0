"""VPG-MAML: MAML with a plain policy gradient as meta-update (arXiv:1703.03400)."""
from typing import Any, Mapping, Optional, Sequence, Type, Union

from meta_policy_search.meta_algos import inner_losses
from meta_policy_search.meta_algos.base import MAMLAlgo
from meta_policy_search.meta_algos.inputs import AdaptationStep, MetaObjective
from meta_policy_search.ops import losses
from meta_policy_search.optimizers.base import Schedule
from meta_policy_search.optimizers.maml_first_order_optimizer import MAMLFirstOrderOptimizer
from meta_policy_search.policies.base import MetaPolicy
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.checks import check_non_negative


class VPGMAML(MAMLAlgo):
    """MAML whose meta-update is one step of Adam along the policy gradient.

    Minimizes the mean over tasks of the log-likelihood loss of the adapted policies. With `exploration`, E-MAML's term
    is added (see `meta_algos.inner_losses`). Logs `LossBefore`, `LearningRate`, `LossAfter` and, if the
    policy's distribution has a `kl_sym`, `KLOuter`; with `target_kl` also `Rejected`.

    Args:
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
        inner_type (str): loss of the adaptation step: `'likelihood_ratio'`, `'log_likelihood'`, `'dice'` or
            `'taypo'`; see `meta_algos.inner_losses`. Default: `'likelihood_ratio'`.
        exploration (bool): whether to add the exploration term (E-MAML). Default: False.
        exploration_coeff (float or None): coefficient `c` of the exploration term, at least 0. Default: None, one over
            the number of samples.
        max_path_length (int or None): maximum number of steps of a path, for `inner_type='dice'` and `'taypo'`; no
            effect on other inner types. Their loss is divided by this number and by the number of paths. Default: None,
            their loss is the mean over the samples of the task. This mean causes a bias if paths can end early, because
            the number of samples then depends on the policy.
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
            too far and updates that increase the loss are undone; see `MAMLFirstOrderOptimizer`. Default: None, no
            step is undone, as published.
        adapt_params (str or list of str): parameters that adaptation steps change: `'all'` (MAML), `'head'` (ANIL),
            `'body'` (BOIL), `'context'` (CAVIA), or patterns of names; see `meta_algos.adapted_params`. Default:
            `'all'`.

    Raises:
        ValueError: an argument is out of range, or `exploration_coeff` is set without `exploration`.
    """

    def __init__(self, policy: MetaPolicy, inner_lr: float = 0.1, meta_batch_size: int = 20,
                 num_inner_grad_steps: int = 1, trainable_inner_step_size: bool = False, first_order: bool = False, *,
                 name: str = "vpg_maml", inner_type: str = "likelihood_ratio", exploration: bool = False,
                 exploration_coeff: Optional[float] = None, max_path_length: Optional[int] = None,
                 learning_rate: Schedule = 1e-3, tf_optimizer_cls: Union[str, Type[tf.train.Optimizer]] = "Adam",
                 tf_optimizer_args: Optional[Mapping[str, Any]] = None, entropy_coef: float = 0.0,
                 max_grad_norm: Optional[float] = None, target_kl: Optional[float] = None,
                 adapt_params: Union[str, Sequence[str]] = "all") -> None:
        super().__init__(policy, inner_lr, meta_batch_size, num_inner_grad_steps, trainable_inner_step_size,
                         first_order, name, adapt_params=adapt_params)
        self.inner_type, self.max_path_length = inner_losses.check_inner_type(inner_type, max_path_length)
        self.exploration, self.exploration_coeff = inner_losses.check_exploration(
            exploration, exploration_coeff, self.num_inner_grad_steps)
        self.optimizer = MAMLFirstOrderOptimizer(tf_optimizer_cls, tf_optimizer_args, learning_rate,
                                                 max_grad_norm=max_grad_norm, target_kl=target_kl)
        self.entropy_coef = check_non_negative("entropy_coef", entropy_coef)
        self.build_graph()

    def meta_objective(self, steps: Sequence[AdaptationStep]) -> MetaObjective:
        """Builds the log-likelihood loss of the adapted policies."""
        last = steps[-1]
        loss = losses.log_likelihood_loss(last.log_prob, last.inputs.advantages, last.inputs.weights)
        if self.exploration:
            loss += inner_losses.exploration_loss(steps, self.exploration_coeff)
        bonus = losses.entropy_bonus(self.policy.distribution, last.dist_info, last.inputs.weights, self.entropy_coef)
        mean = tf.reduce_mean(loss) - bonus
        kl = self.outer_kl(last)
        stats = {"LossAfter": mean} if kl is None else {"LossAfter": mean, "KLOuter": kl}
        return MetaObjective(mean, stats, optimizer_arguments={"divergence": kl}, by_task=True)
