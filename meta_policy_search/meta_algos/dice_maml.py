"""DiCE-MAML: MAML with the infinitely differentiable DiCE estimator (arXiv:1802.05098)."""
from typing import Any, Dict, Mapping, Optional, Sequence, Type, Union

import numpy as np

from meta_policy_search.meta_algos.base import MAMLAlgo
from meta_policy_search.meta_algos.inputs import AdaptationStep, MetaObjective, StepInputs
from meta_policy_search.ops import losses
from meta_policy_search.optimizers.base import Schedule
from meta_policy_search.optimizers.maml_first_order_optimizer import MAMLFirstOrderOptimizer
from meta_policy_search.policies.base import MetaPolicy
from meta_policy_search.samplers.meta_sample_processor import DiceMetaSampleProcessor
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import TaskSamples
from meta_policy_search.utils.checks import check_non_negative, check_positive_int


class DICEMAML(MAMLAlgo):
    """MAML with DiCE as inner and outer objective, so that second derivatives are unbiased.

    The loss of a task with `P` paths of at most `T` steps is

        L = -1/(P T) sum_p (sum_t box_pt r'_pt + box_p r''_p),   box_pt = exp(tau_pt - stop_gradient(tau_pt)).

    `tau_pt` is the sum of the log-densities of the actions of path p up to step t, and `box_p` is the box of the whole
    path. `r'_pt` is the adjusted reward of step t. `r''_p` is the sum of the adjusted rewards after the end of the
    path, where the rewards are zero and the baseline is subtracted (`adjusted_rewards_after_end`). Each meta-update is
    one step of Adam on the mean over tasks.

    The samples must come from a `DiceMetaSampleProcessor` with a baseline that depends on time only
    (`LinearTimeBaseline`). The documentation of the processor explains which baselines bias the gradient.

    Logs `LossBefore` and `LearningRate`; with `target_kl` also `KLOuter` and `Rejected`. A DiCE objective has the same
    value for all parameters; only its derivatives differ. Therefore `target_kl` limits only the divergence.

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

    max_path_length: int
    sample_processor_cls = DiceMetaSampleProcessor
    default_settings = {"baseline": "LinearTimeBaseline"}  # another baseline causes a bias

    def __init__(self, max_path_length: int, policy: MetaPolicy, inner_lr: float = 0.1, meta_batch_size: int = 20,
                 num_inner_grad_steps: int = 1, trainable_inner_step_size: bool = False, first_order: bool = False, *,
                 name: str = "dice_maml", learning_rate: Schedule = 1e-3,
                 tf_optimizer_cls: Union[str, Type[tf.train.Optimizer]] = "Adam",
                 tf_optimizer_args: Optional[Mapping[str, Any]] = None,
                 entropy_coef: float = 0.0, max_grad_norm: Optional[float] = None,
                 target_kl: Optional[float] = None, adapt_params: Union[str, Sequence[str]] = "all") -> None:
        super().__init__(policy, inner_lr, meta_batch_size, num_inner_grad_steps, trainable_inner_step_size,
                         first_order, name, adapt_params=adapt_params)
        self.max_path_length = check_positive_int("max_path_length", max_path_length)
        self.optimizer = MAMLFirstOrderOptimizer(tf_optimizer_cls, tf_optimizer_args, learning_rate,
                                                 max_grad_norm=max_grad_norm, target_kl=target_kl)
        self.entropy_coef = check_non_negative("entropy_coef", entropy_coef)
        self.build_graph()

    def input_values(self, inputs: StepInputs, samples: Sequence[TaskSamples]) -> Dict[str, np.ndarray]:
        """Returns the values of the placeholders of one step, by placeholder name."""
        for task in samples:
            if np.shape(task.get("mask", ()))[1:] not in ((), (self.max_path_length,)):
                raise ValueError(f"{inputs.name}: expected paths padded to max_path_length={self.max_path_length} "
                                 f"steps, got {np.shape(task['mask'])[1]}; use the same max_path_length in the "
                                 "DiceMetaSampleProcessor")
        return super().input_values(inputs, samples)

    def inner_loss(self, step: AdaptationStep) -> tf.Tensor:
        """Builds the DiCE loss of an adaptation step, `[M]`."""
        inputs = step.inputs
        return losses.dice_loss(step.log_prob, inputs.entry("adjusted_rewards"),
                                inputs.path_weights(self.max_path_length), inputs.path_starts)

    def outer_loss(self, step: AdaptationStep) -> tf.Tensor:
        """Builds the outer loss, `[M]`: the DiCE loss of the adapted policies."""
        return self.inner_loss(step)

    def meta_objective(self, steps: Sequence[AdaptationStep]) -> MetaObjective:
        """Builds the mean over tasks of the outer loss."""
        last = steps[-1]
        bonus = losses.entropy_bonus(self.policy.distribution, last.dist_info, last.inputs.weights, self.entropy_coef)
        loss, kl = tf.reduce_mean(self.outer_loss(last)) - bonus, self.outer_kl(last)
        return MetaObjective(loss, {} if self.optimizer.target_kl is None else {"KLOuter": kl}, by_task=True,
                             optimizer_arguments={"divergence": kl, "loss_has_value": False})
