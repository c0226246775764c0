"""ProMP: Proximal Meta-Policy Search (arXiv:1810.06784)."""
from typing import Any, Dict, Mapping, Optional, Sequence, Type, Union

import numpy as np

from meta_policy_search.meta_algos.base import MAMLAlgo
from meta_policy_search.meta_algos.inputs import AdaptationStep, MetaObjective
from meta_policy_search.ops import losses
from meta_policy_search.optimizers.base import Schedule
from meta_policy_search.optimizers.maml_first_order_optimizer import MAMLPPOOptimizer
from meta_policy_search.policies.base import MetaPolicy
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.checks import (
    check_bool,
    check_fraction,
    check_non_negative,
    check_positive,
    check_positive_int,
)


class ProMP(MAMLAlgo):
    """Proximal Meta-Policy Search.

    A meta-update takes several gradient steps on the same samples. It minimizes the clipped surrogate loss of the
    adapted policies, plus a penalty on the divergence from the sampling policy in each adaptation step
    (arXiv:1810.06784, Eq. 10):

        L = mean_m L_clip,m(theta_K) + mean_k eta_k * mean_m KL(pi_old,k || pi_{theta_k}).

    The inner objective is the likelihood-ratio loss, whose second derivatives have low variance (section 5).

    Logs `LossBefore`, `LearningRate`, `LossAfter`, `KLInner`, `KLOuter`, `KLCoeffInner` and `ClipEps`; with `target_kl`
    also `Rejected`.

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
        num_ppo_steps (int): number of passes over the samples per meta-update. Default: 5.
        num_minibatches (int): number of minibatches per pass. Only the samples of the adapted policies are split.
            Default: 1.
        clip_eps (float): half-width of the interval that likelihood ratios are clipped to, above 0. Default: 0.2.
        target_inner_step (float): target of the adaptive penalty: divergence per adaptation step, in nats, above 0. Has
            no effect without `adaptive_inner_kl_penalty`. Default: 0.01.
        init_inner_kl_penalty (float): initial penalty coefficient eta of each adaptation step, at least 0. Default:
            0.01.
        adaptive_inner_kl_penalty (bool): whether to adapt eta after each meta-update: doubled if the divergence exceeds
            1.5 times `target_inner_step`, halved if it is below `target_inner_step / 1.5`. Default: True.
        anneal_factor (float): factor that `clip_eps` is multiplied by after each meta-update, in (0, 1]. Default: 1.
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
            `'body'` (BOIL), `'context'` (CAVIA), or patterns of parameter names; see `meta_algos.adapted_params`.
            Default: `'all'`.

    Example:
        One iteration. `Trainer` does the same, and also logs rows and saves snapshots.

        >>> from meta_policy_search.baselines import LinearFeatureBaseline
        >>> from meta_policy_search.envs import MetaPointEnvCornerGoals, normalize
        >>> from meta_policy_search.policies import MetaGaussianMLPPolicy
        >>> from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler
        >>> env = normalize(MetaPointEnvCornerGoals())
        >>> policy = MetaGaussianMLPPolicy(meta_batch_size=2, obs_dim=2, action_dim=2, hidden_sizes=(8,))
        >>> sampler = MetaSampler(env, policy, rollouts_per_meta_task=3, meta_batch_size=2, max_path_length=10)
        >>> processor = MetaSampleProcessor(LinearFeatureBaseline(), normalize_adv=True)
        >>> algo = ProMP(policy, meta_batch_size=2)
        >>> before = processor.process_samples(sampler.obtain_samples())
        >>> before[0]["observations"].shape, before[0]["advantages"].shape
        ((30, 2), (30,))
        >>> algo.adapt(before)  # each task now acts with its own parameters
        >>> after = processor.process_samples(sampler.obtain_samples())
        >>> algo.optimize_policy([before, after], log=False)
    """

    assignable_arguments = ("clip_eps",)
    _checks = {"clip_eps": check_positive}

    def __init__(self, policy: MetaPolicy, inner_lr: float = 0.1, meta_batch_size: int = 20,
                 num_inner_grad_steps: int = 1, trainable_inner_step_size: bool = False, first_order: bool = False, *,
                 name: str = "ppo_maml", num_ppo_steps: int = 5, num_minibatches: int = 1, clip_eps: float = 0.2,
                 target_inner_step: float = 0.01, init_inner_kl_penalty: float = 1e-2,
                 adaptive_inner_kl_penalty: bool = True, anneal_factor: float = 1.0, learning_rate: Schedule = 1e-3,
                 tf_optimizer_cls: Union[str, Type[tf.train.Optimizer]] = "Adam",
                 tf_optimizer_args: Optional[Mapping[str, Any]] = None,
                 entropy_coef: float = 0.0, max_grad_norm: Optional[float] = None,
                 target_kl: Optional[float] = None, adapt_params: Union[str, Sequence[str]] = "all") -> None:
        super().__init__(policy, inner_lr, meta_batch_size, num_inner_grad_steps, trainable_inner_step_size,
                         first_order, name, adapt_params=adapt_params)
        self.optimizer = MAMLPPOOptimizer(
            tf_optimizer_cls, tf_optimizer_args, learning_rate,
            max_epochs=check_positive_int("num_ppo_steps", num_ppo_steps), num_minibatches=num_minibatches,
            max_grad_norm=max_grad_norm, target_kl=target_kl)
        self.entropy_coef = check_non_negative("entropy_coef", entropy_coef)
        self.clip_eps = clip_eps
        penalty = check_non_negative("init_inner_kl_penalty", init_inner_kl_penalty)
        self.inner_kl_coeff = np.full(self.num_inner_grad_steps, penalty)
        self.adaptive_inner_kl_penalty = check_bool("adaptive_inner_kl_penalty", adaptive_inner_kl_penalty)
        check_target = check_positive if self.adaptive_inner_kl_penalty else check_non_negative
        self.target_inner_step = check_target("target_inner_step", target_inner_step)
        self.anneal_factor = check_fraction("anneal_factor", anneal_factor)
        self.build_graph()

    def meta_objective(self, steps: Sequence[AdaptationStep]) -> MetaObjective:
        """Builds the clipped surrogate loss of the adapted policies, plus the penalty on the inner divergences."""
        clip_eps = tf.placeholder(tf.float32, [], name="clip_eps")
        inner_kl_coeff = tf.placeholder(tf.float32, [self.num_inner_grad_steps], name="inner_kl_coeff")
        last = steps[-1]
        surrogate = losses.clipped_surrogate(last.log_prob, last.old_log_prob, last.inputs.advantages,
                                             last.inputs.weights, clip_eps)
        kls = tf.stack([self.mean_kl(step) for step in steps])
        inner_kl, outer_kl = kls[:-1], kls[-1]
        penalty = tf.reduce_mean(inner_kl_coeff * inner_kl) if self.num_inner_grad_steps else 0.0
        bonus = losses.entropy_bonus(self.policy.distribution, last.dist_info, last.inputs.weights, self.entropy_coef)
        loss = tf.reduce_mean(surrogate) + penalty - bonus
        return MetaObjective(loss, stats={"LossAfter": loss, "KLInner": inner_kl, "KLOuter": outer_kl},
                             inputs={"clip_eps": clip_eps, "inner_kl_coeff": inner_kl_coeff}, by_task=True,
                             optimizer_arguments={"divergence": outer_kl})

    def after_update(self, stats: Mapping[str, np.ndarray]) -> Dict[str, float]:
        """Adapts the penalty coefficients and anneals `clip_eps`; returns the values that the update used."""
        coeff = float(np.mean(self.inner_kl_coeff)) if self.num_inner_grad_steps else 0.0
        figures = {"KLCoeffInner": coeff, "ClipEps": self.clip_eps}
        if self.adaptive_inner_kl_penalty:
            self.inner_kl_coeff = self._adapted_kl_coeff(stats["KLInner"])
        self.clip_eps *= self.anneal_factor
        return figures

    def _adapted_kl_coeff(self, inner_kl: np.ndarray) -> np.ndarray:
        """Returns the penalty coefficients for the next meta-update (as in arXiv:1707.06347, section 4)."""
        coeff = self.inner_kl_coeff.copy()
        coeff[inner_kl < self.target_inner_step / 1.5] /= 2.0
        coeff[inner_kl > self.target_inner_step * 1.5] *= 2.0
        return coeff
