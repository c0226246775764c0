"""Base class of gradient-based meta-RL algorithms: builds the graph, adapts policies and performs meta-updates.

MAML (arXiv:1703.03400) seeks parameters `theta` from which `K` policy-gradient steps on a task's own samples,

    theta_0 = theta,   theta_{k+1} = theta_k - alpha dL_inner(theta_k; D_k) / dtheta_k,

lead to a good policy for that task. The graph holds the tasks as a leading axis `M` of parameters and samples, so
its size does not depend on their number.
"""
import abc
import copy
from collections import OrderedDict
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.meta_algos import diagnostics
from meta_policy_search.meta_algos.inputs import (
    AdaptationStep,
    InnerState,
    InnerUpdate,
    MetaObjective,
    StepInputs,
)
from meta_policy_search.meta_algos.meta_algo import MetaAlgo
from meta_policy_search.ops import adaptation, losses
from meta_policy_search.optimizers.base import TaskBlocks
from meta_policy_search.policies.base import MetaPolicy
from meta_policy_search.sessions import VariableSet
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import TaskSamples
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import (
    check_agrees,
    check_bool,
    check_int_at_least,
    check_non_negative,
    check_positive,
    check_positive_int,
)
from meta_policy_search.utils.published_hooks import refuse_uncalled

__all__ = ["MAMLAlgo", "MetaAlgo"]

STEP_SIZE_DAMPING = 0.1
"""Added to the curvature of a trained log step size. Along most of them the divergence does not change, so an undamped
natural-gradient step would be unbounded."""


class MAMLAlgo(MetaAlgo):
    """Base class of MAML algorithms.

    A subclass supplies `meta_objective`, and, where they differ from the defaults, `inner_loss` and `inner_update`. Its
    constructor sets `self.optimizer` and then calls `self.build_graph()`. This class creates the placeholders, builds
    the graph, passes the objective to the optimizer, feeds samples, logs `MetaObjective.stats` and saves the state.

    Args:
        policy (MetaPolicy): the policy to optimize.
        inner_lr (float): step size alpha of the inner step, at least 0; above 0 if it is trained. Default 0.1.
        meta_batch_size (int): number of tasks `M`, the same as the policy's; default 20.
        num_inner_grad_steps (int): number of inner steps `K`; default 1. With 0, one policy is trained for all tasks.
        trainable_inner_step_size (bool): whether the meta-update also optimizes the inner step sizes (Meta-SGD,
            arXiv:1707.09835), one for each number in each parameter, all starting at `inner_lr`. They are
            represented by their logarithm and so stay positive. Default False.
        first_order (bool): whether to leave out second derivatives (arXiv:1703.03400, section 5.2); default False.
        name (str): name scope of the algorithm's operations.

    Attributes:
        optimizer (Optimizer): takes the meta-updates.
        step_sizes (dict): inner step sizes as tensors, by name of the policy's parameter: scalars, or of the
            parameter's shape.
    """

    optimizer: Any  # an `Optimizer`; subclasses use the methods of theirs

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_uncalled(cls, MAMLAlgo)

    def __init__(self, policy: MetaPolicy, inner_lr: float = 0.1, meta_batch_size: int = 20,
                 num_inner_grad_steps: int = 1, trainable_inner_step_size: bool = False, first_order: bool = False,
                 name: str = "maml") -> None:
        if not isinstance(policy, MetaPolicy):
            raise TypeError(f"policy: expected a MetaPolicy (such as MetaGaussianMLPPolicy), got {policy!r}")
        super().__init__(policy)
        self.inner_lr = check_non_negative("inner_lr", inner_lr)
        self.meta_batch_size = check_agrees("meta_batch_size", check_positive_int("meta_batch_size", meta_batch_size),
                                            "policy.meta_batch_size", policy.meta_batch_size)
        self.num_inner_grad_steps = check_int_at_least("num_inner_grad_steps", num_inner_grad_steps, 0)
        self.trainable_inner_step_size = check_bool("trainable_inner_step_size", trainable_inner_step_size)
        if self.trainable_inner_step_size:  # which stay positive
            check_positive("inner_lr", inner_lr)
            self._check_adapts("trainable_inner_step_size")
        self.first_order = check_bool("first_order", first_order)
        self.name = name
        self._inner_state: Dict[str, np.ndarray] = {}  # of the last inner step, `[M, ...]`
        self._adapted_values: Optional[Mapping[str, np.ndarray]] = None  # parameters that the last inner step set
        self._diagnostics: Any = None  # two tensors, once they are built

    @property
    def learning_rate(self) -> Optional[float]:
        """Step size of the next meta-update; can be set to a number, or to a function of the meta-update's index.

        None, and not to be set, if the optimizer has no learning rate, as for `TRPOMAML`.
        """
        return self.optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: Any) -> None:
        self.optimizer.learning_rate = learning_rate

    def _check_adapts(self, argument: str) -> None:
        if self.num_inner_grad_steps == 0:
            raise ValueError(f"{argument}: expected False with num_inner_grad_steps=0, got True")

    # What a subclass supplies

    def inner_loss(self, step: AdaptationStep) -> tf.Tensor:
        """Builds the loss of an inner step, `[M]`; by default the likelihood-ratio loss."""
        inputs = step.inputs
        return losses.likelihood_ratio_loss(step.log_prob, step.old_log_prob, inputs.advantages, inputs.weights)

    def inner_update(self, params: Mapping[str, tf.Tensor], loss: tf.Tensor, state: InnerState) -> InnerUpdate:
        """Builds the parameters after an inner step; by default a gradient step with `self.step_sizes`.

        Args:
            params: name to tensor `[M, ...]`, parameters before the step.
            loss: `[M]`, inner loss of each task.
            state: state of the update rule, of the form that `initial_inner_state` returns.

        Returns:
            Parameters after the step, and the state for the next inner step.
        """
        return adaptation.gradient_step(params, loss, self.step_sizes, self.first_order), state

    def initial_inner_state(self, params: Mapping[str, tf.Tensor]) -> InnerState:
        """Builds the state of the update rule before the first inner step; by default it has none.

        Args:
            params: name to tensor `[M, ...]`, parameters before the first inner step.

        Returns:
            Dict of tensors `[M, ...]`, such as the velocities of momentum.
        """
        return {}

    @abc.abstractmethod
    def meta_objective(self, steps: Sequence[AdaptationStep]) -> MetaObjective:
        """Builds the objective of the meta-update.

        Args:
            steps: the `K` inner steps, and last the adapted policies with the samples drawn from them.
        """

    def after_update(self, stats: Mapping[str, np.ndarray]) -> Mapping[str, float]:
        """Called after each meta-update, to change attributes that `MetaObjective.inputs` names.

        Args:
            stats: values of `MetaObjective.stats` after the update, float64.

        Returns:
            Further figures to log; by default none.
        """
        return {}

    # The graph

    def build_graph(self) -> None:
        """Builds the algorithm's graph: the inner step for `adapt`, and the meta-objective; called once.

        Pseudocode::

            theta_0 = theta, copied for each task
            for step in num_inner_grad_steps:
                theta_{step+1} = inner_update(theta_step, inner_loss), for all tasks at once
            meta_objective of theta_{num_inner_grad_steps} (and the steps that led there)
        """
        with tf.name_scope(self.name):
            self._build_step_sizes()
            self._build_adaptation()
            self._chain = self._build_chain()
            with tf.name_scope("meta_objective"):
                self._objective = self.meta_objective(self._chain)
            self._build_optimizer(self._objective)

    def _build_step_sizes(self) -> None:
        params = self.policy.get_params()
        log_step_sizes = OrderedDict()
        if self.trainable_inner_step_size:
            for name, variable in params.items():
                value = np.full(variable.shape.as_list(), np.log(self.inner_lr), np.float32)
                log_step_sizes[name] = tf.Variable(value, use_resource=True, name="log_step_size")
            self.step_sizes = OrderedDict((name, tf.exp(v)) for name, v in log_step_sizes.items())
        else:
            self.step_sizes = OrderedDict((name, tf.constant(self.inner_lr)) for name in params)
        self._log_step_sizes = VariableSet(log_step_sizes)

    def _build_adaptation(self) -> None:
        """Builds one inner step from fed parameters and a fed state, which `adapt` runs."""
        with tf.name_scope("adaptation"):
            self._adaptation_inputs = StepInputs("adaptation", self.policy)
            params = self.policy.policies_params_phs
            step = self._build_step(self._adaptation_inputs, params)
            self._inner_state_phs = {
                name: tf.placeholder_with_default(value, [None, *value.shape.as_list()[1:]])
                for name, value in self.initial_inner_state(params).items()}
            adapted, self._next_inner_state = self.inner_update(params, self.inner_loss(step), self._inner_state_phs)
            self._adapted_params = OrderedDict((name, adapted[name]) for name in params)
            dist_info = self.policy.distribution_info_sym(step.inputs.observations, self._adapted_params)
            kl = self._build_kl(step.dist_info, dist_info)
            self._adaptation_kl = [] if kl is None else [losses.weighted_mean(kl, step.inputs.weights)]

    def _build_chain(self) -> List[AdaptationStep]:
        """Builds the `K` inner steps from the variables, and the policies after each."""
        chain: List[AdaptationStep] = []
        params: Mapping[str, tf.Tensor] = {}
        for index in range(self.num_inner_grad_steps + 1):
            with tf.name_scope(f"step{index}"):
                inputs = StepInputs(f"step{index}", self.policy)
                if index == 0:
                    params = adaptation.stack_params(self.policy.get_params(), tf.shape(inputs.observations)[0])
                    state = self.initial_inner_state(params)
                chain.append(self._build_step(inputs, params))
                if index < self.num_inner_grad_steps:
                    params, state = self.inner_update(params, self.inner_loss(chain[-1]), state)
        return chain

    def _build_optimizer(self, objective: MetaObjective) -> None:
        """Passes the objective to the optimizer. Minibatches split the samples of the adapted policies only."""
        more: Dict[str, Any] = {}
        if objective.constraint is not None:
            damping = {f"log_step_size/{name}": STEP_SIZE_DAMPING for name in self._log_step_sizes.variables}
            more = {"leq_constraint": objective.constraint, "constraint_metric": objective.constraint_metric,
                    "damping": damping}
        phs = {name: ph for step in self._chain for name, ph in step.inputs.placeholders.items()}
        self.optimizer.build_graph(
            objective.loss, self, {**phs, **objective.inputs},
            sample_axes={name: 1 for name in self._chain[-1].inputs.by_task},
            task_inputs=self._task_inputs() if objective.by_task else [], **more)

    def _task_inputs(self) -> List[str]:
        """Returns the names of the placeholders whose axes are tasks and samples."""
        return [name for step in self._chain for name in step.inputs.by_task]

    def get_params(self) -> "OrderedDict[str, tf.Variable]":
        """Returns the variables that a meta-update changes: the policy's, and logarithms of trained step sizes."""
        log_step_sizes = self._log_step_sizes.variables.items()
        return OrderedDict([*self.policy.get_params().items(),
                            *((f"log_step_size/{name}", variable) for name, variable in log_step_sizes)])

    def _build_step(self, inputs: StepInputs, params: Mapping[str, tf.Tensor]) -> AdaptationStep:
        dist_info = self.policy.distribution_info_sym(inputs.observations, params)
        log_prob, old_log_prob = (self.policy.distribution.log_likelihood_sym(inputs.actions, info)
                                  for info in (dist_info, inputs.dist_info_old))
        return AdaptationStep(inputs, params, dist_info, log_prob, old_log_prob)

    def _build_kl(self, old_info: Mapping[str, tf.Tensor], info: Mapping[str, tf.Tensor]) -> Optional[tf.Tensor]:
        """Builds the divergence `KL(old || new)`, `[M, N]`; None if the policy's distribution does not implement it."""
        kl_sym = getattr(self.policy.distribution, "kl_sym", None)  # a user's may have only what sampling needs
        try:
            return None if kl_sym is None else kl_sym(old_info, info)
        except NotImplementedError:
            return None

    def mean_kl(self, step: AdaptationStep) -> tf.Tensor:
        """Builds the divergence `KL(pi_old || pi_theta_k)` of one step, nats, a scalar; mean over samples and tasks."""
        kl = self._build_kl(step.inputs.dist_info_old, step.dist_info)
        if kl is None:
            raise TypeError(f"policy: {type(self).__name__} needs a distribution with kl_sym, which "
                            f"{type(self.policy.distribution).__name__} does not implement; VPGMAML and DICEMAML do "
                            "without")
        return tf.reduce_mean(losses.weighted_mean(kl, step.inputs.weights))

    def input_values(self, inputs: StepInputs, samples: Sequence[TaskSamples]) -> Dict[str, np.ndarray]:
        """Returns what the placeholders of one step are fed, by their names."""
        try:
            if len(samples) != self.meta_batch_size:
                raise ValueError(f"expected samples of {self.meta_batch_size} tasks, got {len(samples)}")
            return inputs.values(samples)
        except ValueError as error:
            raise ValueError(f"{inputs.name}: {error}") from None

    def make_vars(self, prefix: str = "") -> Tuple[List[Any], ...]:
        """Creates placeholders for one step's samples, one per task.

        For a meta-objective that is not a function of `AdaptationStep`s, see `MetaObjective.inputs`.

        Args:
            prefix: prepended to the name of each placeholder.

        Returns:
            `(observations, actions, advantages, agent_infos)`: lists of length `M` of float32 placeholders `[N, O]`,
            `[N, A]` (discrete actions `[N]`), `[N]`, and of dicts of placeholders for the distribution the actions were
            sampled from.
        """
        action_shape = self.policy.distribution.action_shape
        observations, actions, advantages, agent_infos = [], [], [], []
        for task in range(self.meta_batch_size):
            with tf.name_scope(f"{prefix}task{task}/"):
                observations.append(tf.placeholder(tf.float32, [None, self.policy.obs_dim], name="obs"))
                actions.append(tf.placeholder(tf.float32, [None, *action_shape], name="action"))
                advantages.append(tf.placeholder(tf.float32, [None], name="advantage"))
                agent_infos.append(self.policy.distribution_info_keys(observations[-1], {}))
        return observations, actions, advantages, agent_infos

    def _adapt(self, samples: Sequence[TaskSamples], step_size: Optional[float] = None) -> None:
        """Performs `adapt`. The attribute `adaptation_kl` is None if the policy's distribution has no `kl_sym`.

        Raises:
            ValueError: the number of tasks is wrong, a task lacks an entry or has no samples, or `step_size` is not
                above 0.
            FloatingPointError: a parameter would not be finite; names task and parameter. The policy is as it was.
        """
        inputs, task_inputs = self._adaptation_inputs, list(self.policy.policies_params_phs.values())
        feed = {inputs.placeholders[name]: value for name, value in self.input_values(inputs, samples).items()}
        if step_size is not None:
            step_size = check_positive("step_size", step_size)
            feed.update({sizes: np.full(sizes.shape, step_size) for sizes in self.step_sizes.values()})
        feed.update(self.policy.policies_params_feed_dict)
        if self.policy.stacked_param_values() is self._adapted_values:  # else it begins with the initial state
            feed.update({self._inner_state_phs[name]: value for name, value in self._inner_state.items()})
            task_inputs.extend(self._inner_state_phs.values())
        blocks = TaskBlocks([*inputs.by_task.values(), *task_inputs], self.policy.get_params().values())
        fetches = [*self._adapted_params.values(), *self._next_inner_state.values(), *self._adaptation_kl]
        values = iter(blocks.concatenated(self._log_step_sizes.session(), fetches, feed))
        adapted = OrderedDict(zip(self._adapted_params, values))
        self._check_finite(adapted)
        self._inner_state = dict(zip(self._next_inner_state, values))
        self.policy.set_stacked_param_values(adapted)
        self._adapted_values = adapted
        self.adaptation_kl = next(values, None)

    def _check_finite(self, adapted: Mapping[str, np.ndarray]) -> None:
        for name, stacked in adapted.items():
            finite = np.isfinite(stacked).reshape(self.meta_batch_size, -1).all(axis=1)
            if not finite.all():
                raise FloatingPointError(
                    f"adaptation: {name} of task {np.argmin(finite)} would not be finite, so the step was refused and "
                    "the policy is as it was; its samples hold a number that is not finite, or the step is too long")

    def get_step_sizes(self) -> "OrderedDict[str, np.ndarray]":
        """Returns the inner step sizes by name of the policy's parameter: scalars, or of the parameter's shape."""
        session = self._log_step_sizes.session()
        return OrderedDict(zip(self.step_sizes, session.run(list(self.step_sizes.values()))))

    def meta_input_values(self, all_samples_data: Sequence[Sequence[TaskSamples]]) -> Dict[str, np.ndarray]:
        """Returns the values of all placeholders of the meta-objective by input name."""
        expected = self.num_inner_grad_steps + 1
        if len(all_samples_data) != expected:
            raise ValueError(f"all_samples_data: expected the samples of {expected} steps (num_inner_grad_steps + 1), "
                             f"got {len(all_samples_data)}")
        values: Dict[str, np.ndarray] = {}
        for step, samples in zip(self._chain, all_samples_data, strict=True):
            values.update(self.input_values(step.inputs, samples))
        values.update({name: np.asarray(value, np.float32) for name, value in self._objective_inputs().items()})
        return values

    def _objective_inputs(self) -> Dict[str, Any]:
        """Returns the attributes that `MetaObjective.inputs` names."""
        return {name: getattr(self, name) for name in self._objective.inputs}

    def optimize_policy(self, all_samples_data: Sequence[Sequence[TaskSamples]], log: bool = True) -> None:
        """Performs one meta-update.

        Args:
            all_samples_data: `[K + 1][M]` processed samples: of each inner step, and last of the adapted policies.
            log: whether to log the columns that the algorithm documents.

        Raises:
            ValueError: the number of steps or tasks is wrong, or a task lacks an entry or has no samples.
            FloatingPointError: the loss, its gradient or another quantity of the step is not finite; the parameters are
                as they were.
        """
        values = self.meta_input_values(all_samples_data)
        self.optimizer.optimize(values)
        stats = self._compute_stats(values)
        means = {name: float(np.mean(value)) if np.size(value) else 0.0 for name, value in stats.items()}
        figures = {**self.optimizer.step_stats, **means, **self.after_update(stats)}
        if log:
            logger.logkvs(figures)

    def compute_stats(self, all_samples_data: Sequence[Sequence[TaskSamples]]) -> Dict[str, np.ndarray]:
        """Computes `MetaObjective.stats` at the current parameters, float64; arguments as for `optimize_policy`."""
        return self._compute_stats(self.meta_input_values(all_samples_data))

    def _compute_stats(self, values: Mapping[str, np.ndarray]) -> Dict[str, np.ndarray]:
        stats = self._objective.stats
        return dict(zip(stats, self.optimizer.compute_means(list(stats.values()), values))) if stats else {}

    def build_diagnostics(self) -> None:
        """Builds the graph of `compute_diagnostics`; does nothing when called again.

        Raises:
            ValueError: there is only one task (two halves are compared), or there are no inner steps.
        """
        if self._diagnostics is not None:
            return
        self._check_adapts("diagnostics")
        if self.meta_batch_size == 1:
            raise ValueError("diagnostics: expected a meta_batch_size of at least 2, since they compare the "
                             "meta-gradients of two halves of the tasks, got 1")
        loss = self._objective.loss
        with loss.graph.as_default(), tf.name_scope(f"{self.name}/diagnostics"):
            first, last = self._chain[0], self._chain[-1]
            self._diagnostics = [diagnostics.build_task_gradients(self.inner_loss(first), first.params),
                                 diagnostics.build_task_gradients(loss, last.params)]

    def compute_diagnostics(self, all_samples_data: Sequence[Sequence[TaskSamples]]) -> Dict[str, float]:
        """Computes how noisy the meta-gradient is, and how inner steps change gradients, at the current parameters.

        Args:
            all_samples_data: as for `optimize_policy`, before it is called.

        Returns:
            Dict of the columns that `diagnostics.compute_figures` documents.
        """
        self.build_diagnostics()
        return diagnostics.compute_figures(self.optimizer, self._diagnostics, self.meta_input_values(all_samples_data),
                                           self._task_inputs(), self.meta_batch_size)

    def get_state(self) -> Dict[str, Any]:
        """Returns everything apart from the policy that the next meta-update depends on, for a snapshot.

        This includes the attributes that `MetaObjective.inputs` names.
        """
        attributes = {name: copy.copy(value) for name, value in self._objective_inputs().items()}
        return {"log_step_sizes": self._log_step_sizes.read(), "optimizer": self.optimizer.get_state(), **attributes}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restores what `get_state` returned; raises `ValueError` if it does not fit this algorithm."""
        for name, ph in self._objective.inputs.items():
            if np.shape(state[name]) != tuple(ph.shape.as_list()):
                raise ValueError(f"{name}: expected shape {tuple(ph.shape.as_list())}, got {np.shape(state[name])}")
        self._log_step_sizes.write(state["log_step_sizes"], "log_step_sizes")
        self.optimizer.set_state(state["optimizer"])
        for name in self._objective.inputs:
            setattr(self, name, copy.copy(state[name]))
