"""E-MAML: TRPO-MAML with an exploration term for the samples before adaptation (arXiv:1803.01118)."""
from typing import Optional, Sequence, Union

from meta_policy_search.meta_algos.trpo_maml import TRPOMAML
from meta_policy_search.optimizers.conjugate_gradient_optimizer import ConjugateGradientOptimizer
from meta_policy_search.policies.base import MetaPolicy


class EMAML(TRPOMAML):
    """TRPO-MAML that also rewards samples before adaptation for the returns after adaptation.

    The samples before adaptation determine the adapted parameters. Their score, multiplied by the mean reward of the
    adapted policy (standardized over tasks), is added to the meta-objective; see `meta_algos.inner_losses`.

    Logs the same columns as `TRPOMAML`.

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
        step_size (float): maximum mean divergence `KL(pi_old || pi_theta_K)` per meta-update, in nats. Default: 0.01.
        optimizer (ConjugateGradientOptimizer or None): performs the meta-update. Default: None, a
            `ConjugateGradientOptimizer` with default arguments. It receives a `constraint_metric` if the policy's
            distribution has a `fisher_norm_sym`.
        inner_type (str): loss of the adaptation step: `'likelihood_ratio'`, `'log_likelihood'`, `'dice'` or
            `'taypo'`; see `meta_algos.inner_losses`. Default: `'likelihood_ratio'`.
        exploration (bool): whether to add the exploration term. Without it, the algorithm is `TRPOMAML`. Default: True.
        exploration_coeff (float or None): coefficient `c` of the exploration term, at least 0. Default: None, one over
            the number of samples.
        max_path_length (int or None): maximum number of steps of a path, for `inner_type='dice'` and `'taypo'`; no
            effect on other inner types. Their loss is divided by this number and by the number of paths. Default: None,
            their loss is the mean over the samples of the task. This mean causes a bias if paths can end early, because
            the number of samples then depends on the policy.
        adapt_params (str or list of str): parameters that adaptation steps change: `'all'` (MAML), `'head'` (ANIL),
            `'body'` (BOIL), `'context'` (CAVIA), or patterns of names; see `meta_algos.adapted_params`. Default:
            `'all'`.

    Raises:
        ValueError: an argument is out of range, or `exploration_coeff` is set without `exploration`.
    """

    def __init__(self, policy: MetaPolicy, inner_lr: float = 0.1, meta_batch_size: int = 20,
                 num_inner_grad_steps: int = 1, trainable_inner_step_size: bool = False, first_order: bool = False, *,
                 name: str = "e_maml", step_size: float = 0.01,
                 optimizer: Optional[ConjugateGradientOptimizer] = None, inner_type: str = "likelihood_ratio",
                 exploration: bool = True, exploration_coeff: Optional[float] = None,
                 max_path_length: Optional[int] = None, adapt_params: Union[str, Sequence[str]] = "all") -> None:
        super().__init__(policy, inner_lr, meta_batch_size, num_inner_grad_steps, trainable_inner_step_size,
                         first_order, name=name, step_size=step_size, optimizer=optimizer, inner_type=inner_type,
                         exploration=exploration, exploration_coeff=exploration_coeff,
                         max_path_length=max_path_length, adapt_params=adapt_params)
