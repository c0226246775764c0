"""Base classes of meta-RL algorithms: their interface, and the graph of those that adapt by gradient steps.

MAML (arXiv:1703.03400) optimizes initial parameters `theta` such that `K` policy-gradient steps on samples of a task,

    theta_0 = theta,   theta_{k+1} = theta_k - alpha dL_inner(theta_k; D_k) / dtheta_k,

lead to a good policy for that task. In the graph, parameters and samples have a leading task axis `M`, so the size of
the graph does not depend on the number of tasks.
"""
import abc
import copy
import types
from collections import OrderedDict
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from meta_policy_search.envs.normalized_env import NormalizedEnv
from meta_policy_search.meta_algos import diagnostics, inner_losses
from meta_policy_search.meta_algos.adapted_params import select_params
from meta_policy_search.meta_algos.inputs import AdaptationStep, InnerState, InnerUpdate, MetaObjective, StepInputs
from meta_policy_search.ops import adaptation, losses
from meta_policy_search.ops.networks import CONTEXT
from meta_policy_search.optimizers.base import Optimizer, concatenate_blocks
from meta_policy_search.policies.base import MetaPolicy
from meta_policy_search.policies.categorical_mlp_policy import MetaCategoricalMLPPolicy
from meta_policy_search.policies.meta_gaussian_mlp_policy import MetaGaussianMLPPolicy
from meta_policy_search.samplers.meta_sample_processor import MetaSampleProcessor
from meta_policy_search.sessions import VariableSet, graph_scope
from meta_policy_search.settings import inherit_default_settings
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import TaskSamples
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import (
    check_agrees,
    check_bool,
    check_int_at_least,
    check_non_negative,
    check_not_replaced,
    check_positive,
    check_positive_int,
    check_type,
)
from meta_policy_search.utils.serializable import Serializable, replaced_arguments, shallow_copy


class MetaAlgo(Serializable, abc.ABC):
    """Base class of meta-learning algorithms, which adapt a policy to each task and optimize its initial parameters.

    Copies and pickles contain the constructor arguments, including the policy, and the state of the algorithm, but not
    that of an inner update rule, such as momentum, between two adaptation steps. Unpickling rebuilds policy and
    algorithm in the default graph.

    The class attributes and `policy_cls` declare the parts of a training with this algorithm, which the function
    `meta_policy_search.train` and the command line build. A subclass replaces those that differ.

    Args:
        policy (MetaPolicy): the policy to optimize.
    """

    env_wrappers: Tuple[type, ...] = (NormalizedEnv,)
    """Wrappers of the environment, in the order in which they are applied. An environment that is an instance of one
    of them receives only the following ones."""

    sample_processor_cls: type = MetaSampleProcessor
    """Class that computes the samples for `adapt` and `optimize_policy`."""

    optimizer_cls: Optional[type] = None
    """Class of the constructor argument `optimizer`, whose arguments are settings of the training. Default: None, there
    is no such argument."""

    evaluator_cls: Optional[type] = None
    """Subclass of `evaluation.MetaEvaluator` that evaluates the policy. Default: None, the class for the environment:
    `TrialEvaluator` for a `TrialEnv`, otherwise `MetaEvaluator`."""

    default_settings: Mapping[str, Any] = {
        "env": "HalfCheetahRandDirecEnv", "n_itr": 100, "meta_batch_size": 20, "rollouts_per_meta_task": 20,
        "max_path_length": 100, "baseline": "LinearFeatureBaseline", "normalize_adv": True, "hidden_sizes": (64, 64)}
    """Defaults of the settings of a training with this algorithm. They replace other defaults. The entries of base
    classes apply as well. `env` applies to the command line."""

    policy: Any = None
    """The policy to optimize."""

    meta_batch_size: int
    """Number of tasks `M`."""

    num_inner_grad_steps: int
    """Number of adaptation steps `K` in training."""

    adaptation_kl: Optional[np.ndarray] = None
    """Divergence `KL(before || after)` of the last `adapt` call in each task, in nats, `[M]`; None if unknown."""

    _is_warned = False

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        for name, part in (("sample_processor_cls", cls.sample_processor_cls), ("optimizer_cls", cls.optimizer_cls),
                           ("evaluator_cls", cls.evaluator_cls)):
            check_type(f"{cls.__name__}.{name}", part, (Callable, type(None)), "a class")
        check_type(f"{cls.__name__}.policy_cls", cls.policy_cls, (types.MethodType, types.FunctionType),
                   "a class method policy_cls(is_discrete)")
        check_type(f"{cls.__name__}.default_settings", cls.default_settings, Mapping, "a dict of settings")
        inherit_default_settings(cls)

    def __init__(self, policy: MetaPolicy) -> None:
        self.policy = check_not_replaced("policy", policy, MetaPolicy)

    @classmethod
    def policy_cls(cls, is_discrete: bool) -> type:
        """Returns the default policy class.

        Args:
            is_discrete: whether the actions of the environment are discrete.
        """
        return MetaCategoricalMLPPolicy if is_discrete else MetaGaussianMLPPolicy

    def adapt(self, samples: Sequence[TaskSamples], step_size: Optional[float] = None) -> None:
        """Adapts the policy to each task by one adaptation step from the task's current parameters.

        Afterwards, the policy acts with the adapted parameters; `policy.switch_to_pre_update` discards them. The
        attribute `adaptation_kl` is the divergence `KL(before || after)` on the samples of each task.

        Args:
            samples: processed samples of each task, sampled with its current policy.
            step_size: replaces all inner step sizes in this call; above 0. Default: None, the algorithm's step sizes.

        Raises:
            ValueError: the samples do not fit the algorithm, or `step_size` is not above 0.
            FloatingPointError: a parameter would not be finite. The policy is unchanged.
        """
        self._adapt(samples, *([] if step_size is None else [step_size]))

    def _adapt(self, samples: Sequence[TaskSamples], step_size: Optional[float] = None) -> None:
        """Implements `adapt`; its name is that of the public ProMP code, so that subclasses written for it work."""
        raise NotImplementedError

    @abc.abstractmethod
    def optimize_policy(self, all_samples_data: Sequence[Sequence[TaskSamples]], log: bool = True) -> None:
        """Performs one meta-update.

        Args:
            all_samples_data: `[K + 1][M]` processed samples: those of each adaptation step, then those of the adapted
                policies.
            log: whether to log statistics of the update. Default: True.
        """

    def _warn_if_worse(self, figures: Mapping[str, float]) -> None:
        """Warns once if a meta-update increased its loss and moved the adapted policies by more than 1 nat."""
        kl = figures.get("KLOuter", 0.0)
        if not self._is_warned and kl > 1.0 and figures.get("LossAfter", -np.inf) > figures["LossBefore"]:
            self._is_warned = True
            logger.warn(f"a meta-update increased its loss and changed the adapted policies by {kl:.3g} nats "
                        "(KLOuter). This can undo adaptation; set target_kl (such as 0.1) or reduce learning_rate. "
                        "Further updates of this kind are not reported")

    def check_batch(self, num_paths: int) -> None:
        """Raises `ValueError` if a meta-update cannot use `num_paths` paths per task. Default: accepts any number."""

    def build_diagnostics(self) -> None:
        """Builds the graph of `compute_diagnostics`. Default: raises `ValueError`, because there are no diagnostics."""
        raise ValueError(f"diagnostics: expected False, got True; {type(self).__name__} has no diagnostics")

    def compute_diagnostics(self, all_samples_data: Sequence[Sequence[TaskSamples]]) -> Dict[str, float]:
        """Computes diagnostics of the next meta-update by column name."""
        raise NotImplementedError

    def get_state(self) -> Any:
        """Returns the state that the next meta-update depends on, without the policy. Default: None."""

    def set_state(self, state: Any) -> None:
        """Restores the state that `get_state` returned."""

    def with_meta_batch_size(self, meta_batch_size: int) -> "MetaAlgo":
        """Returns a version of this algorithm for another number of tasks, for example to adapt to a single new task.

        The result shares the graph and the parameters with this algorithm. It has a separate policy object with
        separate adapted parameters.
        """
        policy = self.policy.with_meta_batch_size(meta_batch_size)
        changed = {"policy": policy, "meta_batch_size": policy.meta_batch_size}
        return shallow_copy(self, **changed, _given=replaced_arguments(self, changed))

    def __getstate__(self) -> Dict[str, Any]:
        """Returns constructor arguments and state."""
        return {"arguments": super().__getstate__(), "state": self.get_state()}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        """Builds the algorithm in the default graph and restores its state."""
        super().__setstate__(state["arguments"])
        if state["state"] is not None:
            self.set_state(state["state"])


class MAMLAlgo(MetaAlgo):
    """Base class of MAML algorithms.

    A subclass implements `meta_objective` and may override `inner_loss` and `inner_update`. Its constructor sets
    `self.optimizer`, then calls `self.build_graph()`. This class creates the placeholders, builds the graph, passes the
    objective to the optimizer, feeds samples, logs `MetaObjective.stats` and provides the state for snapshots.

    Args:
        policy (MetaPolicy): the policy to optimize.
        inner_lr (float): inner step size alpha, at least 0; above 0 with `trainable_inner_step_size`. Default: 0.1.
        meta_batch_size (int): number of tasks `M`; must equal the policy's. Default: 20.
        num_inner_grad_steps (int): number of adaptation steps `K`. With 0, one policy is trained for all tasks.
            Default: 1.
        trainable_inner_step_size (bool): whether the meta-update also optimizes the inner step sizes (Meta-SGD,
            arXiv:1707.09835). Each entry of each parameter has a separate step size, initialized to `inner_lr`. The
            trained variables are the logarithms of the step sizes, so step sizes stay positive. Default: False.
        first_order (bool): whether to omit second derivatives (first-order MAML; arXiv:1703.03400, section 5.2).
            All values of `inner_type` are then equivalent if all paths have `max_path_length` steps. Default: False.
        name (str): name scope of the algorithm's operations.
        adapt_params (str or list of str): parameters that adaptation steps change: `'all'` (MAML), `'head'` (ANIL),
            `'body'` (BOIL), `'context'` (CAVIA), or patterns of names; see `meta_algos.adapted_params`. Default:
            `'all'`.

    Attributes:
        optimizer (Optimizer): performs the meta-updates.
        step_sizes (dict): inner step sizes as tensors, by name of adapted parameter: scalars, or tensors of the
            parameter's shape.

    Raises:
        TypeError: `policy` is not a `MetaPolicy`.
        ValueError: an argument is out of range, or `meta_batch_size` differs from the policy's.
    """

    inner_type: str = "likelihood_ratio"
    max_path_length: Optional[int] = None
    optimizer: Any = None  # an `Optimizer`; subclasses call methods of their optimizer class
    _objective: Any = None  # a `MetaObjective`, built by `build_graph`

    def __init__(self, policy: MetaPolicy, inner_lr: float = 0.1, meta_batch_size: int = 20,
                 num_inner_grad_steps: int = 1, trainable_inner_step_size: bool = False, first_order: bool = False,
                 name: str = "maml", *, adapt_params: Union[str, Sequence[str]] = "all") -> None:
        super().__init__(check_type("policy", policy, MetaPolicy, "a MetaPolicy (such as MetaGaussianMLPPolicy)"))
        self.inner_lr = check_non_negative("inner_lr", inner_lr)
        self.meta_batch_size = check_agrees("meta_batch_size", check_positive_int("meta_batch_size", meta_batch_size),
                                            "policy.meta_batch_size", policy.meta_batch_size)
        self.num_inner_grad_steps = check_int_at_least("num_inner_grad_steps", num_inner_grad_steps, 0)
        self.trainable_inner_step_size = check_bool("trainable_inner_step_size", trainable_inner_step_size)
        if self.trainable_inner_step_size:  # step sizes are represented by their logarithms
            check_positive("inner_lr", inner_lr)
            self._check_adapts("trainable_inner_step_size")
        self.first_order = check_bool("first_order", first_order)
        self.name = name
        self.adapt_params = adapt_params
        self._adapted_names = select_params(adapt_params, policy.get_params(), self.num_inner_grad_steps)
        self._inner_state: Dict[str, np.ndarray] = {}  # after the last adaptation step, each `[M, ...]`
        self._adapted_values: Optional[Mapping[str, np.ndarray]] = None  # set by the last adaptation step
        self._diagnostics: Any = None  # two tensors, built by `build_diagnostics`

    @property
    def learning_rate(self) -> Optional[float]:
        """Step size of the next meta-update; can be set to a number or a function of the meta-update's index.

        If the optimizer has no learning rate (`TRPOMAML`), the value is None and cannot be set.
        """
        return self.optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: Any) -> None:
        self.optimizer.learning_rate = learning_rate

    def _check_adapts(self, argument: str) -> None:
        if self.num_inner_grad_steps == 0:
            raise ValueError(f"{argument}: expected False with num_inner_grad_steps=0, got True")

    # Methods that subclasses override

    def inner_loss(self, step: AdaptationStep) -> tf.Tensor:
        """Builds the loss of an adaptation step, `[M]`. Default: that of `inner_type`, the likelihood-ratio loss."""
        return inner_losses.inner_loss(step, self.inner_type, self.max_path_length)

    def inner_update(self, params: Mapping[str, tf.Tensor], loss: tf.Tensor, state: InnerState) -> InnerUpdate:
        """Builds the parameters after an adaptation step. Default: a gradient step with `self.step_sizes`.

        Args:
            params: dict from name to tensor `[M, ...]`: the adapted parameters (`adapt_params`) before the step.
            loss: `[M]`, inner loss of each task.
            state: state of the update rule, with the keys and shapes that `initial_inner_state` returns.

        Returns:
            Parameters after the step, and state for the next adaptation step.
        """
        return adaptation.gradient_step(params, loss, self.step_sizes, self.first_order), state

    def initial_inner_state(self, params: Mapping[str, tf.Tensor]) -> InnerState:
        """Builds the state of the update rule before the first adaptation step. Default: no state.

        Args:
            params: dict from name to tensor `[M, ...]`: the adapted parameters before the first adaptation step.

        Returns:
            Dict of tensors `[M, ...]`, such as the velocities of momentum.
        """
        return {}

    @abc.abstractmethod
    def meta_objective(self, steps: Sequence[AdaptationStep]) -> MetaObjective:
        """Builds the objective of the meta-update.

        Args:
            steps: the `K` adaptation steps, followed by the adapted policies with the samples drawn from them.
        """

    def after_update(self, stats: Mapping[str, np.ndarray]) -> Mapping[str, float]:
        """Hook called after each meta-update; may change the attributes that `MetaObjective.inputs` names.

        Args:
            stats: values of `MetaObjective.stats` after the update, float64.

        Returns:
            Further values to log, by column name. Default: none.
        """
        return {}

    # The graph

    def build_graph(self) -> None:
        """Builds the algorithm's graph: the adaptation step for `adapt`, and the meta-objective. Call it once.

        Pseudocode::

            theta_0 = theta, copied for each task
            for step in range(num_inner_grad_steps):
                theta_{step+1} = inner_update(theta_step, inner_loss), for all tasks at once
            meta_objective of theta_{num_inner_grad_steps} and of all earlier steps
        """
        if self._is_built:
            raise TypeError(f"{type(self).__name__}: build_graph was called twice; all constructors of the library "
                            "except that of MAMLAlgo call it")
        with graph_scope(self):
            self.step_sizes, log_step_sizes = adaptation.build_step_sizes(
                self._adapted_part(self.policy.get_params()), self.inner_lr, self.trainable_inner_step_size)
            self._log_step_sizes = VariableSet(log_step_sizes)
            with tf.name_scope("adaptation"):  # one step from fed parameters and a fed state, which `adapt` runs
                self._adaptation_inputs = StepInputs("adaptation", self.policy)
                params: Mapping[str, tf.Tensor] = self.policy.policies_params_phs
                step = self._build_step(self._adaptation_inputs, params)
                self._inner_state_phs = {
                    name: tf.placeholder_with_default(value, [None, *value.shape.as_list()[1:]])
                    for name, value in self._build_inner_state(params).items()}
                adapted, self._next_inner_state = self._build_update(step, self._inner_state_phs)
                self._adapted_params = self._adapted_part(adapted)
                dist_info = self.policy.distribution_info_sym(step.inputs.observations, adapted)
                kl = self._build_kl(step.dist_info, dist_info)
                self._adaptation_kl = [] if kl is None else [losses.weighted_mean(kl, step.inputs.weights)]
            self._chain: List[AdaptationStep] = []  # `K` steps from the variables, and the policies after each of them
            for index in range(self.num_inner_grad_steps + 1):
                with tf.name_scope(f"step{index}"):
                    inputs = StepInputs(f"step{index}", self.policy)
                    if index == 0:
                        params = adaptation.stack_params(self.policy.get_params(), tf.shape(inputs.observations)[0])
                        state = self._build_inner_state(params)
                    self._chain.append(self._build_step(inputs, params))
                    if index < self.num_inner_grad_steps:
                        params, state = self._build_update(self._chain[-1], state)
            with tf.name_scope("meta_objective"):
                self._objective = check_type("meta_objective", self.meta_objective(self._chain), MetaObjective,
                                             "a MetaObjective, such as MetaObjective(loss)")
                for name in ("stats", "inputs", "optimizer_arguments"):
                    check_type(f"meta_objective: {name}", self._objective._asdict()[name], Mapping, "a dict")
                for name, value in (("loss", self._objective.loss), *self._objective.stats.items()):
                    if not tf.is_tensor(value):
                        raise TypeError(f"meta_objective: {name}: expected a tensor, got {value!r}")
            self._build_optimizer(self._objective)
        self._is_built = True

    def _adapted_part(self, params: Mapping[str, Any]) -> "OrderedDict[str, Any]":
        """Returns the parameters that adaptation steps change."""
        return OrderedDict((name, params[name]) for name in self._adapted_names)

    def _build_inner_state(self, params: Mapping[str, tf.Tensor]) -> InnerState:
        """Builds the state of the update rule before the first adaptation step, and checks it."""
        state = self.initial_inner_state(self._adapted_part(params))
        if not isinstance(state, Mapping) or not all(
                tf.is_tensor(value) and value.shape.rank for value in state.values()):
            raise TypeError(f"{type(self).__name__}.initial_inner_state: expected a dict of tensors [M, ...], got "
                            f"{state}")
        return state

    def _build_update(self, step: AdaptationStep, state: InnerState) -> InnerUpdate:
        """Builds all parameters after an adaptation step, and the state of the update rule."""
        loss = self.inner_loss(step)
        if not tf.is_tensor(loss) or loss.shape.rank not in (1, None):
            raise ValueError(f"{type(self).__name__}.inner_loss: expected a tensor [M] with the loss of each task, got "
                             f"{loss}")
        try:
            result = self.inner_update(self._adapted_part(step.params), loss, state)
        except KeyError as error:
            if error.args and error.args[0] in state:
                raise
            raise KeyError(f"{type(self).__name__}.inner_update: expected a state with the entry {error}. Override "
                           "initial_inner_state, which returns the first state") from error
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise TypeError(f"{type(self).__name__}.inner_update: expected a pair (parameters, state), got a "
                            f"{type(result).__name__}")
        adapted, new_state = result
        _check_entries(f"{type(self).__name__}.inner_update: parameters", adapted, self._adapted_part(step.params))
        _check_entries(f"{type(self).__name__}.inner_update: state", new_state, state)
        return OrderedDict((name, adapted.get(name, value)) for name, value in step.params.items()), new_state

    def _build_optimizer(self, objective: MetaObjective) -> None:
        """Passes the objective to the optimizer. Minibatches split only the samples of the adapted policies."""
        for name, ph in objective.inputs.items():
            if objective.by_task and (ph.shape.rank is None or ph.shape[:1] == [None]):
                raise ValueError(f"{type(self).__name__}.meta_objective: expected inputs of known shapes with "
                                 f"by_task=True, which does not divide them into tasks, got {name} of shape {ph.shape}")
        phs = {name: ph for step in self._chain for name, ph in step.inputs.placeholders.items()}
        self._task_inputs = list(phs)  # placeholders with a task axis and a sample axis
        check_type(f"{type(self).__name__}.optimizer", self.optimizer, Optimizer,
                   "an Optimizer, such as MAMLFirstOrderOptimizer(), before build_graph")
        self.optimizer.build_graph(
            objective.loss, self, {**phs, **objective.inputs},
            sample_axes={name: 1 for name in self._chain[-1].inputs.placeholders},
            task_inputs=self._task_inputs if objective.by_task else [], **objective.optimizer_arguments)

    def get_params(self) -> "OrderedDict[str, tf.Variable]":
        """Returns the variables of a meta-update: parameters without the context, logarithms of trained step sizes."""
        params = self.policy.get_params()
        params.pop(CONTEXT, None)  # zero before adaptation
        params.update({f"log_step_size/{name}": log for name, log in self._log_step_sizes.variables.items()})
        return params

    def _build_step(self, inputs: StepInputs, params: Mapping[str, tf.Tensor]) -> AdaptationStep:
        dist_info = self.policy.distribution_info_sym(inputs.observations, params)
        log_prob, old_log_prob = (self.policy.distribution.log_likelihood_sym(inputs.actions, info)
                                  for info in (dist_info, inputs.dist_info_old))
        return AdaptationStep(inputs, params, dist_info, log_prob, old_log_prob)

    def _build_kl(self, old_info: Mapping[str, tf.Tensor], info: Mapping[str, tf.Tensor]) -> Optional[tf.Tensor]:
        """Builds the divergence `KL(old || new)`, `[M, N]`; None if the distribution does not implement `kl_sym`."""
        try:
            return self.policy.distribution.kl_sym(old_info, info)
        except NotImplementedError:  # in custom distributions
            return None

    def outer_kl(self, step: AdaptationStep) -> Optional[tf.Tensor]:
        """Builds the same divergence as `mean_kl`; returns None if the distribution does not implement `kl_sym`."""
        kl = self._build_kl(step.inputs.dist_info_old, step.dist_info)
        return None if kl is None else tf.reduce_mean(losses.weighted_mean(kl, step.inputs.weights))

    def mean_kl(self, step: AdaptationStep) -> tf.Tensor:
        """Builds the divergence `KL(pi_old || pi_theta_k)` of one step, mean over samples and tasks, a scalar in nats.

        Raises:
            TypeError: the policy's distribution does not implement `kl_sym`.
        """
        kl = self.outer_kl(step)
        if kl is None:
            raise TypeError(f"policy: expected a distribution with kl_sym for {type(self).__name__}, got "
                            f"{type(self.policy.distribution).__name__} without it; VPGMAML and DICEMAML do not need "
                            "kl_sym")
        return kl

    def input_values(self, inputs: StepInputs, samples: Sequence[TaskSamples]) -> Dict[str, np.ndarray]:
        """Returns the values of the placeholders of one step, by placeholder name."""
        if not isinstance(samples, Sequence) or not all(isinstance(task, Mapping) for task in samples):
            raise TypeError(f"{inputs.name}: expected a list of samples, one dict per task as process_samples returns "
                            f"(optimize_policy: a list of such lists, one per step), got a {type(samples).__name__}")
        try:
            if len(samples) != self.meta_batch_size:
                raise ValueError(f"expected samples of {self.meta_batch_size} tasks, got {len(samples)}")
            values = inputs.values(samples)
            if f"{inputs.name}/path_starts" in values and self.max_path_length is not None:
                longest = max(np.max(task["path_lengths"]) for task in samples)
                if longest > self.max_path_length:
                    raise ValueError(f"expected paths of at most max_path_length={self.max_path_length} steps, got "
                                     f"{longest}; use the same max_path_length in the sampler")
            return values
        except ValueError as error:
            raise ValueError(f"{inputs.name}: {error}") from None

    def make_vars(self, prefix: str = "") -> Tuple[List[Any], ...]:
        """Creates placeholders for the samples of one step, one set per task.

        Use them in a meta-objective that is not a function of `AdaptationStep`s; see `MetaObjective.inputs`.

        Args:
            prefix: prefix of the placeholder names. Default: none.

        Returns:
            `(observations, actions, advantages, agent_infos)`, four lists of length `M`. The first three contain
            float32 placeholders `[N, O]`, `[N, A]` (discrete actions: `[N]`) and `[N]`. `agent_infos` contains dicts of
            placeholders for the sampling distribution.
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
        """Implements `adapt`. The attribute `adaptation_kl` is None if the policy's distribution has no `kl_sym`.

        Raises:
            ValueError: the number of tasks is wrong, a task lacks an entry or has no samples, or `step_size` is not
                above 0.
            FloatingPointError: a parameter would not be finite; the message names task and parameter. The policy is
                unchanged.
        """
        inputs, task_inputs = self._adaptation_inputs, list(self.policy.policies_params_phs.values())
        feed = {inputs.placeholders[name]: value for name, value in self.input_values(inputs, samples).items()}
        if step_size is not None:
            step_size = check_positive("step_size", step_size)
            feed.update({sizes: np.full(sizes.shape, step_size) for sizes in self.step_sizes.values()})
        feed.update(self.policy.policies_params_feed_dict)
        if self.policy.stacked_param_values() is self._adapted_values:  # else: initial state
            feed.update({self._inner_state_phs[name]: value for name, value in self._inner_state.items()})
            task_inputs.extend(self._inner_state_phs.values())
        fetches = [*self._adapted_params.values(), *self._next_inner_state.values(), *self._adaptation_kl]
        values = iter(concatenate_blocks(self._log_step_sizes.session(), fetches, feed,
                                         [*inputs.placeholders.values(), *task_inputs],
                                         self.policy.get_params().values()))
        adapted = OrderedDict(self.policy.stacked_param_values())
        adapted.update(zip(self._adapted_params, values))
        adaptation.check_adapted(adapted)
        self._inner_state = dict(zip(self._next_inner_state, values))
        self.policy.set_stacked_param_values(adapted)
        self._adapted_values = adapted
        self.adaptation_kl = next(values, None)

    def get_step_sizes(self) -> "OrderedDict[str, np.ndarray]":
        """Returns the inner step sizes by name of adapted parameter: scalars, or arrays of the parameter's shape."""
        session = self._log_step_sizes.session()
        return OrderedDict(zip(self.step_sizes, session.run(list(self.step_sizes.values()))))

    def meta_input_values(self, all_samples_data: Sequence[Sequence[TaskSamples]]) -> Dict[str, np.ndarray]:
        """Returns the values of all inputs of the meta-objective by name; arguments as for `optimize_policy`."""
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
        """Returns the values of the attributes that `MetaObjective.inputs` names."""
        if self._objective is None:
            raise TypeError(f"{type(self).__name__}: the constructor has to call self.build_graph()")
        try:
            return {name: getattr(self, name) for name in self._objective.inputs}
        except AttributeError as error:
            raise AttributeError(f"{type(self).__name__}.meta_objective: expected inputs named like attributes of the "
                                 f"algorithm, whose values they receive: {error}") from error

    def optimize_policy(self, all_samples_data: Sequence[Sequence[TaskSamples]], log: bool = True) -> None:
        """Performs one meta-update.

        Args:
            all_samples_data: `[K + 1][M]` processed samples: those of each adaptation step, then those of the adapted
                policies.
            log: whether to log the columns listed in the class docstring. Default: True.

        Raises:
            ValueError: the number of steps or tasks is wrong, or a task lacks an entry or has no samples.
            FloatingPointError: the loss, its gradient or another quantity of the step is not finite. The parameters are
                unchanged.
        """
        values = self.meta_input_values(all_samples_data)
        self.optimizer.optimize(values)
        tensors = self._objective.stats
        stats = dict(zip(tensors, self.optimizer.compute_means(list(tensors.values()), values))) if tensors else {}
        means = {name: float(np.mean(value)) if np.size(value) else 0.0 for name, value in stats.items()}
        further = check_type(f"{type(self).__name__}.after_update", self.after_update(stats), Mapping,
                             "a dict of columns")
        taken = {name for name in logger.getkvs() if name.startswith("Step_")} | self.optimizer.step_stats.keys()
        if wrong := [name for name in (*means, *further) if name in taken]:
            raise ValueError(f"{'after_update' if wrong[0] in further else 'meta_objective'}: expected other names "
                             f"than the columns of the library, got {wrong[0]}")
        figures = {**self.optimizer.step_stats, **means, **further}
        self._warn_if_worse(figures)
        if log:
            logger.logkvs(figures)

    def build_diagnostics(self) -> None:
        """Builds the graph of `compute_diagnostics`; further calls have no effect.

        Raises:
            ValueError: there is only one task (diagnostics compare two halves of the tasks), or no adaptation step.
        """
        if self._diagnostics is not None:
            return
        self._check_adapts("diagnostics")
        if self.meta_batch_size == 1:
            raise ValueError("diagnostics: expected a meta_batch_size of at least 2, got 1; diagnostics compare the "
                             "meta-gradients of two halves of the tasks")
        loss = self._objective.loss
        with loss.graph.as_default(), tf.name_scope(f"{self.name}/diagnostics"):
            first, last = self._chain[0], self._chain[-1]
            self._diagnostics = [diagnostics.build_task_gradients(of, self._adapted_part(step.params))
                                 for of, step in ((self.inner_loss(first), first), (loss, last))]

    def compute_diagnostics(self, all_samples_data: Sequence[Sequence[TaskSamples]]) -> Dict[str, float]:
        """Computes, at the current parameters, the meta-gradient noise and the change of gradients by adaptation.

        Args:
            all_samples_data: as for `optimize_policy`. Call this method before `optimize_policy`.

        Returns:
            Dict from column name to value; see `meta_algos.diagnostics.compute_figures` for the columns.
        """
        self.build_diagnostics()
        return diagnostics.compute_figures(self.optimizer, self._diagnostics, self.meta_input_values(all_samples_data),
                                           self._task_inputs, self.meta_batch_size)

    def get_state(self) -> Dict[str, Any]:
        """Returns the state that the next meta-update depends on, without the policy, for a snapshot.

        The state includes the attributes that `MetaObjective.inputs` names.
        """
        attributes = {name: copy.copy(value) for name, value in self._objective_inputs().items()}
        return {"log_step_sizes": self._log_step_sizes.read(), "optimizer": self.optimizer.get_state(), **attributes}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restores the state that `get_state` returned; raises `ValueError` if a shape does not match."""
        for name, ph in self._objective.inputs.items():
            if not ph.shape.is_compatible_with(np.shape(state[name])):
                raise ValueError(f"{name}: expected shape {tuple(ph.shape.as_list())}, got {np.shape(state[name])}")
        self._log_step_sizes.write(state["log_step_sizes"], "log_step_sizes")
        self.optimizer.set_state(state["optimizer"])
        for name in self._objective.inputs:
            setattr(self, name, copy.copy(state[name]))


def _check_entries(owner: str, given: Any, expected: Mapping[str, tf.Tensor]) -> None:
    """Raises `ValueError` unless `given` is a dict of tensors with the names and numbers of axes of `expected`."""
    if not isinstance(given, Mapping) or given.keys() != expected.keys():
        got = ", ".join(given) if isinstance(given, Mapping) else given
        raise ValueError(f"{owner}: expected a dict with {', '.join(expected) or 'no entries'}, got {got or 'none'}")
    for name, tensor in expected.items():
        found, shape = tf.convert_to_tensor(given[name]).shape, ("M", *tensor.shape.as_list()[1:])
        if found.rank != len(shape):
            raise ValueError(f"{owner}: {name}: expected the shape {shape} with one entry per task, got {found}")
