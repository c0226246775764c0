"""ProMP: Proximal Meta-Policy Search (arXiv:1810.06784)."""
from typing import Any, Dict, Mapping, Sequence

import numpy as np

from meta_policy_search.meta_algos.adaptation_step import AdaptationStep
from meta_policy_search.meta_algos.first_order import FirstOrderMAMLAlgo, FirstOrderMAMLArguments
from meta_policy_search.ops import losses
from meta_policy_search.optimizers.maml_first_order_optimizer import MAMLPPOOptimizer
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import TaskSamples
from meta_policy_search.utils.checks import (
    check_bool,
    check_fraction,
    check_non_negative,
    check_positive,
    check_positive_int,
)
from meta_policy_search.utils.signatures import Unpack


class ProMP(FirstOrderMAMLAlgo):
    """Proximal Meta-Policy Search.

    Minimizes, in several gradient steps on the same samples, the mean over tasks of the clipped surrogate of the
    adapted policies plus the divergence of the policies that sampled at each inner step (arXiv:1810.06784, Eq. 10),

        L = mean_m L_clip,m(theta_K) + mean_k eta_k * mean_m KL(pi_old,k || pi_{theta_k}),

    with the likelihood-ratio loss as inner objective, which gives low-variance second derivatives (section 5).

    Logs `LossBefore`, `LossAfter`, `KLInner`, `KLOuter`, `KLCoeffInner`, `ClipEps` and `LearningRate`.

    Args:
        num_ppo_steps (int): passes over the samples per meta-update, without sampling again; default 5.
        num_minibatches (int): parts that the adapted policies' samples are split into in each pass; default 1.
        clip_eps (float): half-width of the interval that likelihood ratios are clipped to, above 0; default 0.2.
        target_inner_step (float): divergence per inner step, nats, that the adaptive penalty aims at, above 0; without
            effect if it is not adaptive. Default 0.01.
        init_inner_kl_penalty (float): initial coefficient eta of the divergence, the same for each inner step, at
            least 0; default 0.01.
        adaptive_inner_kl_penalty (bool): whether eta is doubled after a meta-update that moved further than 1.5
            times `target_inner_step`, and halved after one that moved less than 1/1.5 of it; default True.
        anneal_factor (float): `clip_eps` is multiplied by it after every meta-update, in (0, 1]; default 1.

    Example:
        An iteration by hand; `Trainer` does the same, with rows and snapshots.

        >>> from meta_policy_search.baselines import LinearFeatureBaseline
        >>> from meta_policy_search.envs import MetaPointEnvCorner, normalize
        >>> from meta_policy_search.policies import MetaGaussianMLPPolicy
        >>> from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler
        >>> env = normalize(MetaPointEnvCorner())
        >>> policy = MetaGaussianMLPPolicy(meta_batch_size=2, obs_dim=2, action_dim=2, hidden_sizes=(8,))
        >>> sampler = MetaSampler(env, policy, rollouts_per_meta_task=3, meta_batch_size=2, max_path_length=10)
        >>> processor = MetaSampleProcessor(LinearFeatureBaseline(), normalize_adv=True)
        >>> algo = ProMP(policy, meta_batch_size=2)
        >>> before = processor.process_samples(sampler.obtain_samples())
        >>> before[0]["observations"].shape, before[0]["advantages"].shape
        ((30, 2), (30,))
        >>> algo.adapt(before)  # each task acts with parameters of its own now
        >>> after = processor.process_samples(sampler.obtain_samples())
        >>> algo.optimize_policy([before, after], log=False)
    """

    def __init__(self, *args: Any, name: str = "ppo_maml", num_ppo_steps: int = 5, num_minibatches: int = 1,
                 clip_eps: float = 0.2, target_inner_step: float = 0.01,
                 init_inner_kl_penalty: float = 1e-2, adaptive_inner_kl_penalty: bool = True,
                 anneal_factor: float = 1.0, **kwargs: Unpack[FirstOrderMAMLArguments]) -> None:
        super().__init__(*args, name=name, **kwargs)
        num_ppo_steps = check_positive_int("num_ppo_steps", num_ppo_steps)
        self.optimizer: MAMLPPOOptimizer = MAMLPPOOptimizer(
            max_epochs=num_ppo_steps, num_minibatches=num_minibatches, **self._step_arguments)
        self.clip_eps = check_positive("clip_eps", clip_eps)
        penalty = check_non_negative("init_inner_kl_penalty", init_inner_kl_penalty)
        self.inner_kl_coeff = np.full(self.num_inner_grad_steps, penalty, np.float32)
        self.adaptive_inner_kl_penalty = check_bool("adaptive_inner_kl_penalty", adaptive_inner_kl_penalty)
        check_target = check_positive if self.adaptive_inner_kl_penalty else check_non_negative
        self.target_inner_step = check_target("target_inner_step", target_inner_step)
        self.anneal_factor = check_fraction("anneal_factor", anneal_factor)
        self.build_graph()

    def build_meta_objective(self, chain: Sequence[AdaptationStep]) -> None:
        """Builds the clipped surrogate of the adapted policies and the penalty on the inner divergences."""
        with tf.name_scope("meta_objective"):
            clip_eps = tf.placeholder(tf.float32, [], name="clip_eps")
            inner_kl_coeff = tf.placeholder(tf.float32, [self.num_inner_grad_steps], name="inner_kl_coeff")
            last = chain[-1]
            surrogate = losses.clipped_surrogate(last.log_prob, last.old_log_prob, last.inputs.advantages,
                                                 last.inputs.weights, clip_eps)
            kls = tf.stack([self._build_mean_kl(step) for step in chain])
            inner_kl, outer_kl = kls[:-1], kls[-1]
            penalty = tf.reduce_mean(inner_kl_coeff * inner_kl) if self.num_inner_grad_steps else 0.0
            loss = tf.reduce_mean(surrogate.loss) + penalty
        phs = {**self._meta_placeholders(chain), "clip_eps": clip_eps, "inner_kl_coeff": inner_kl_coeff}
        self.optimizer.build_graph(loss, self.meta_parameters, phs, inner_kl, outer_kl,
                                   sample_axes=self._last_step_sample_axes(chain), task_inputs=self.task_inputs(chain))

    def meta_input_values(self, all_samples_data: Sequence[Sequence[TaskSamples]]) -> Dict[str, np.ndarray]:
        """Adds the present clipping and penalties."""
        values = super().meta_input_values(all_samples_data)
        return {**values, "clip_eps": np.array(self.clip_eps, np.float32), "inner_kl_coeff": self.inner_kl_coeff}

    def _update(self, values: Mapping[str, np.ndarray]) -> Dict[str, float]:
        figures = super()._update(values)
        stats = self.optimizer.compute_stats(values)
        inner_kl, coeff = (float(np.mean(of_steps)) if self.num_inner_grad_steps else 0.0
                           for of_steps in (stats.inner_kl, self.inner_kl_coeff))
        figures.update(LossAfter=stats.loss, KLInner=inner_kl, KLOuter=stats.outer_kl, KLCoeffInner=coeff,
                       ClipEps=self.clip_eps)
        if self.adaptive_inner_kl_penalty:
            self.inner_kl_coeff = self._adapted_kl_coeff(stats.inner_kl)
        self.clip_eps *= self.anneal_factor
        return figures

    def _adapted_kl_coeff(self, inner_kl: np.ndarray) -> np.ndarray:
        """Returns the penalty coefficients for the next meta-update (as in arXiv:1707.06347, section 4)."""
        coeff = self.inner_kl_coeff.copy()
        coeff[inner_kl < self.target_inner_step / 1.5] /= 2.0
        coeff[inner_kl > self.target_inner_step * 1.5] *= 2.0
        return coeff

    def get_state(self) -> Dict[str, Any]:
        """Adds the annealed clipping and the adapted penalties."""
        return {**super().get_state(), "clip_eps": self.clip_eps, "inner_kl_coeff": self.inner_kl_coeff.copy()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restores what `get_state` returned, for the same number of inner steps."""
        if np.shape(state["inner_kl_coeff"]) != self.inner_kl_coeff.shape:
            raise ValueError(f"inner_kl_coeff: expected shape {self.inner_kl_coeff.shape}, one for each inner step, "
                             f"got {np.shape(state['inner_kl_coeff'])}")
        super().set_state(state)
        self.clip_eps = state["clip_eps"]
        self.inner_kl_coeff = state["inner_kl_coeff"].copy()
