"""RL^2 (arXiv:1611.02779): trains a recurrent policy on whole trials with proximal policy optimization (PPO)."""
from typing import Any, Dict, Mapping, Optional, Sequence, Type, Union

import numpy as np

from meta_policy_search.baselines.base import return_statistics
from meta_policy_search.envs.normalized_env import NormalizedEnv
from meta_policy_search.envs.trial_env import TrialEnv
from meta_policy_search.meta_algos.base import MAMLAlgo, MetaAlgo
from meta_policy_search.ops import losses
from meta_policy_search.optimizers.base import Schedule
from meta_policy_search.optimizers.maml_first_order_optimizer import MAMLPPOOptimizer
from meta_policy_search.policies.recurrent_policy import (
    CategoricalRecurrentPolicy,
    GaussianRecurrentPolicy,
    RecurrentPolicy,
)
from meta_policy_search.samplers.meta_sample_processor import TrialSampleProcessor
from meta_policy_search.samplers.paths import pad_steps, path_mask
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import TaskSamples
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import (
    check_agrees,
    check_non_negative,
    check_positive,
    check_positive_int,
    check_type,
)

TRIALS_PER_BLOCK = 128
"""Maximum number of trials per call of a thread. In smaller blocks, the overhead of TensorFlow operations dominates."""


class RL2(MetaAlgo):
    """RL^2: trains a recurrent policy that adapts to a task through its hidden state, without gradient steps.

    A meta-update takes several passes over minibatches of trials. It minimizes the mean over all steps of the PPO loss
    (arXiv:1707.06347) with a value loss and an entropy bonus:

        L = -min(r A, clip(r, 1 - eps, 1 + eps) A) + c_V (v - v_target)^2 / 2 - c_H H(pi).

    `r` is the likelihood ratio of an action, given all earlier steps of the trial; `A` is the advantage; `v` is the
    output of the value head; `H(pi)` is the entropy. `v_target` is the discounted return of the remaining trial,
    standardized with the mean and standard deviation defined in `ValueHeadBaseline`. Gradients are propagated through
    all steps of a trial.

    Logs `LossBefore`, `LearningRate`, `LossAfter`, `KLOuter` and `ValueLoss`; with `target_kl` also `Rejected`.

    Args:
        policy (RecurrentPolicy): the policy to optimize.
        meta_batch_size (int): number of tasks `M`, the same as the policy's; default 20.
        name (str): name scope of the algorithm's operations.
        num_ppo_steps (int): number of passes over the same trials per meta-update; default 8.
        num_minibatches (int): number of minibatches per pass; default 4.
        clip_eps (float): `eps`, half-width of the clipping interval of likelihood ratios, above 0; default 0.1.
        value_coef (float): `c_V`, coefficient of the value loss, at least 0; default 0.5.
        entropy_coef (float): `c_H`, coefficient of the entropy bonus, at least 0; default 0.
        learning_rate (float, dict or callable): step size, above 0; for a linear schedule, a dict of the arguments of
            `optimizers.base.LinearSchedule`; or a function of the index of the meta-update. Default: 1e-3.
        tf_optimizer_cls (str or type): optimizer of `tf.train`, by name such as `"Adam"` or `"RMSProp"`, or a subclass
            of `tf.train.Optimizer`. Default: `"Adam"`.
        tf_optimizer_args (dict or None): further arguments of `tf_optimizer_cls`.
        target_kl (float or None): target of the divergence `KLOuter` per meta-update, in nats, above 0. Steps that go
            too far and updates that increase the loss are undone; see `MAMLFirstOrderOptimizer`. Default: None, no
            step is undone.

    Attributes:
        optimizer (Optimizer): optimizer that performs the meta-updates.

    Raises:
        TypeError: the policy is not a `RecurrentPolicy`.
        ValueError: a number is out of range, or `meta_batch_size` is not the policy's.
    """

    num_inner_grad_steps = 0
    env_wrappers = (NormalizedEnv, TrialEnv)
    sample_processor_cls = TrialSampleProcessor
    default_settings = {"baseline": None}

    @classmethod
    def policy_cls(cls, is_discrete: bool) -> type:
        """Returns the default policy class; see `MetaAlgo.policy_cls`."""
        return CategoricalRecurrentPolicy if is_discrete else GaussianRecurrentPolicy

    def __init__(self, policy: RecurrentPolicy, meta_batch_size: int = 20, *, name: str = "rl2", num_ppo_steps: int = 8,
                 num_minibatches: int = 4, clip_eps: float = 0.1, value_coef: float = 0.5, entropy_coef: float = 0.0,
                 learning_rate: Schedule = 1e-3,
                 tf_optimizer_cls: Union[str, Type[tf.train.Optimizer]] = "Adam",
                 tf_optimizer_args: Optional[Mapping[str, Any]] = None, target_kl: Optional[float] = None) -> None:
        check_type("policy", policy, RecurrentPolicy, "a RecurrentPolicy (such as CategoricalRecurrentPolicy)")
        super().__init__(policy)  # type: ignore[arg-type]  # the policy has no adapted parameters
        self.meta_batch_size = check_agrees("meta_batch_size", check_positive_int("meta_batch_size", meta_batch_size),
                                            "policy.meta_batch_size", policy.meta_batch_size)
        self.name = name
        self.optimizer = MAMLPPOOptimizer(
            tf_optimizer_cls, tf_optimizer_args, learning_rate, num_minibatches=num_minibatches, target_kl=target_kl,
            max_epochs=check_positive_int("num_ppo_steps", num_ppo_steps))
        self.clip_eps = check_positive("clip_eps", clip_eps)
        self.value_coef = check_non_negative("value_coef", value_coef)
        self.entropy_coef = check_non_negative("entropy_coef", entropy_coef)
        self._build_graph(policy)
        self._is_built = True

    learning_rate = MAMLAlgo.learning_rate

    def _build_graph(self, policy: RecurrentPolicy) -> None:
        """Builds the loss. It is a mean over trials, so several threads can each compute a block of trials."""
        distribution = policy.distribution
        with tf.name_scope(self.name):
            observations = tf.placeholder(tf.float32, [None, None, policy.obs_dim], name="observations")
            actions = tf.placeholder(tf.float32, [None, None, *policy.action_shape], name="actions")
            old = policy.distribution_info_keys(observations, None)
            advantages, value_targets, weights = (
                tf.placeholder(tf.float32, [None, None], name=name)
                for name in ("advantages", "value_targets", "weights"))
            new, values = policy.trial_info_sym(observations)
            surrogate = losses.clipped_surrogate(
                distribution.log_likelihood_sym(actions, new), distribution.log_likelihood_sym(actions, old),
                advantages, weights, self.clip_eps)
            value_loss = losses.weighted_mean(0.5 * tf.square(values - value_targets), weights)
            loss = surrogate + self.value_coef * value_loss
            bonus = losses.entropy_bonus(distribution, new, weights, self.entropy_coef)
            self._loss = tf.reduce_mean(loss) - bonus
            kl = tf.reduce_mean(losses.weighted_mean(distribution.kl_sym(old, new), weights))
            self._stats = {"LossAfter": self._loss, "KLOuter": kl, "ValueLoss": tf.reduce_mean(value_loss)}
            inputs = {"observations": observations, "actions": actions, "advantages": advantages, "weights": weights,
                      "value_targets": value_targets, **{f"agent_infos/{key}": ph for key, ph in old.items()}}
            self.optimizer.tasks_per_block = TRIALS_PER_BLOCK
            self.optimizer.build_graph(self._loss, policy, inputs, sample_axes=dict.fromkeys(inputs, 0),
                                       task_inputs=list(inputs), divergence=kl)

    def check_batch(self, num_paths: int) -> None:
        """Raises `ValueError` if there are fewer trials than minibatches."""
        trials = self.meta_batch_size * num_paths
        if self.optimizer.num_minibatches > trials:
            raise ValueError(f"num_minibatches: expected at most the number of trials, {trials}, got "
                             f"{self.optimizer.num_minibatches}")

    def input_values(self, samples: Sequence[TaskSamples]) -> Dict[str, np.ndarray]:
        """Returns the values of all placeholders by input name, float32 `[B, T, ...]` for the `B` trials of all tasks.

        Entries after the end of a trial are zero, including the weights. The weights sum to `B`.

        Raises:
            ValueError: the number of tasks is wrong, or an entry is missing in the samples of a task.
        """
        check_agrees("number of tasks in the samples", len(samples), "meta_batch_size", self.meta_batch_size)

        def padded(entries: Sequence[np.ndarray], dtype: type = np.float32) -> np.ndarray:
            return pad_steps(np.concatenate(entries), mask).astype(dtype, copy=False)

        try:
            mask = path_mask(np.concatenate([task["path_lengths"] for task in samples]))
            returns = padded([task["returns"] for task in samples], np.float64)
            values = {name: padded([task[name] for task in samples])
                      for name in ("observations", "actions", "advantages")}
            values.update({f"agent_infos/{key}": padded([task["agent_infos"][key] for task in samples])
                           for key, _ in self.policy.distribution.dist_info_specs})
        except KeyError as error:
            raise ValueError(f"samples: expected an entry {error} of each task") from None
        mean, scale = return_statistics(returns, mask)
        values["value_targets"] = np.where(mask, (returns - mean) / scale, 0.0).astype(np.float32)
        values["weights"] = (mask * (len(mask) / mask.sum())).astype(np.float32)
        return values

    def _adapt(self, samples: Sequence[TaskSamples], step_size: Optional[float] = None) -> None:
        raise ValueError("adapt: RL2 has no inner steps; its policy adapts while it acts")

    def optimize_policy(self, all_samples_data: Sequence[Sequence[TaskSamples]], log: bool = True) -> None:
        """Performs one meta-update.

        Args:
            all_samples_data: a list with one item, the processed samples of each task.
            log: whether to log the columns listed in the class docstring.

        Raises:
            ValueError: the number of items or tasks is wrong, or an entry is missing in the samples of a task.
            FloatingPointError: the loss or its gradient is not finite; the parameters do not change.
        """
        if len(all_samples_data) != 1:
            raise ValueError(f"all_samples_data: expected the samples of one step, as RL2 has no inner steps, got "
                             f"{len(all_samples_data)}")
        values = self.input_values(all_samples_data[0])
        self.optimizer.optimize(values)
        if log:
            stats = self.optimizer.compute_means(list(self._stats.values()), values)
            figures = {**self.optimizer.step_stats, **dict(zip(self._stats, map(float, stats)))}
            self._warn_if_worse(figures)
            logger.logkvs(figures)

    def get_state(self) -> Dict[str, Any]:
        """Returns the state of the optimizer."""
        return {"optimizer": self.optimizer.get_state()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restores what `get_state` returned."""
        self.optimizer.set_state(state["optimizer"])
