"""What all gradient-based meta-RL algorithms share: inputs, the inner steps and the meta-update's frame.

MAML (arXiv:1703.03400) seeks parameters `theta` from which `K` policy-gradient steps on a task's own samples,

    theta_0 = theta,   theta_{k+1} = theta_k - alpha dL_inner(theta_k; D_k) / dtheta_k,

lead to a good policy for that task. The graph holds the tasks as a leading axis `M` of parameters and samples, so
its size does not depend on their number.
"""
import abc
from collections import OrderedDict
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, TypedDict

import numpy as np

from meta_policy_search.meta_algos import diagnostics
from meta_policy_search.meta_algos.adaptation_step import AdaptationStep
from meta_policy_search.meta_algos.inputs import StepInputs, make_step_inputs
from meta_policy_search.meta_algos.meta_parameters import MetaParameters
from meta_policy_search.ops import adaptation, losses
from meta_policy_search.optimizers.base import Optimizer
from meta_policy_search.optimizers.blocks import TaskBlocks
from meta_policy_search.policies.base import MetaPolicy
from meta_policy_search.sessions import VariableSet
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import TaskSamples
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import (
    OfPart,
    check_bool,
    check_int_at_least,
    check_non_negative,
    check_positive,
    given_or_of_part,
)
from meta_policy_search.utils.serializable import Serializable
from meta_policy_search.utils.signatures import SharedArguments

__all__ = ["MAMLAlgo", "MAMLArguments", "MetaAlgo"]


class MetaAlgo(SharedArguments, abc.ABC):
    """A meta-learning algorithm: adapts a policy to each task, and improves what adaptation starts from.

    Args:
        policy (MetaPolicy): the policy to optimize.
    """

    meta_batch_size: int
    num_inner_grad_steps: int
    adaptation_kl: Optional[np.ndarray] = None  # [M], nats, how far the last `adapt` moved policies, where known
    compute_diagnostics: Callable[..., Dict[str, float]]  # where there are any, see `build_diagnostics`

    def __init__(self, policy: MetaPolicy) -> None:
        self.policy = policy

    @abc.abstractmethod
    def build_graph(self) -> None:
        """Builds the algorithm's graph; called once, by the constructor."""

    @abc.abstractmethod
    def make_vars(self, prefix: str = "") -> Tuple[List[Any], ...]:
        """Creates placeholders for one step's samples of every task."""

    def adapt(self, samples: Sequence[TaskSamples]) -> None:
        """Adapts the policy to each task by one inner step, from where each task's policy stands."""
        self._adapt(samples)

    def _adapt(self, samples: Sequence[TaskSamples]) -> None:
        """Does what `adapt` says; subclasses for the public code of ProMP override it by this name."""
        raise NotImplementedError

    @abc.abstractmethod
    def optimize_policy(self, all_samples_data: Sequence[Sequence[TaskSamples]], log: bool = True) -> None:
        """Takes one meta-update."""

    def build_diagnostics(self) -> None:
        """Builds what `compute_diagnostics` needs; by default there are no diagnostics: raises `ValueError`."""
        raise ValueError(f"diagnostics: expected False, as {type(self).__name__} has none, got True")

    def get_state(self) -> Any:
        """Returns what the next meta-update depends on beside the policy, for a snapshot; None by default."""

    def set_state(self, state: Any) -> None:
        """Restores what `get_state` returned, where that is not None."""

    def with_meta_batch_size(self, meta_batch_size: int) -> "MetaAlgo":
        """Returns the algorithm for another number of tasks, with a policy of its own; graph and parameters are shared.

        So a trained policy can be adapted to any number of tasks, one for instance.
        """
        other = type(self).__new__(type(self))  # not a copy, which an algorithm may build anew, with a graph of its own
        vars(other).update(vars(self))
        other.policy = self.policy.with_meta_batch_size(meta_batch_size)
        other.meta_batch_size = other.policy.meta_batch_size
        return other


class MAMLArguments(TypedDict, total=False):
    """Arguments that all MAML algorithms share, by name."""

    policy: MetaPolicy
    inner_lr: float
    meta_batch_size: Optional[int]
    num_inner_grad_steps: int
    trainable_inner_step_size: bool
    first_order: bool


class MAMLAlgo(Serializable, MetaAlgo):
    """The frame of every MAML algorithm.

    A subclass sets `self.optimizer`, calls `build_graph` at the end of its constructor, and supplies
    `build_inner_loss` (by default the likelihood-ratio loss) and `build_meta_objective`.

    Pickling keeps the constructor's arguments, the policy among them, and the algorithm's state; unpickling builds both
    anew in the default graph.

    Args:
        policy (MetaPolicy): the policy to optimize.
        inner_lr (float): step size alpha of the inner step, at least 0; above 0 if it is trained. Default 0.1.
        meta_batch_size (int or None): number of tasks `M`; by default, and for None, the policy's.
        num_inner_grad_steps (int): number of inner steps `K`; default 1. With 0, one policy is trained for all tasks.
        trainable_inner_step_size (bool): whether the meta-update also optimizes the inner step sizes (Meta-SGD,
            arXiv:1707.09835), one for each number in each parameter, all starting at `inner_lr`. They are
            represented by their logarithm and so stay positive. Default False.
        first_order (bool): whether to leave out second derivatives (arXiv:1703.03400, section 5.2); default False.
        name (str): name scope of the algorithm's operations.
    """

    optimizer: Optimizer
    _replaced = {"_adapt_objective_sym": "build_inner_loss", "_build_inner_adaption": "build_inner_loss",
                 "_adapt_sym": "_build_chain", "_extract_input_dict": "input_values"}

    def __init__(self, policy: MetaPolicy, inner_lr: float = 0.1, meta_batch_size: Optional[int] = OfPart(20),
                 num_inner_grad_steps: int = 1, trainable_inner_step_size: bool = False, first_order: bool = False,
                 name: str = "maml") -> None:
        if not isinstance(policy, MetaPolicy):
            raise TypeError(f"policy: expected a MetaPolicy (such as MetaGaussianMLPPolicy), got {policy!r}")
        super().__init__(policy)
        self.inner_lr = check_non_negative("inner_lr", inner_lr)
        self.meta_batch_size = given_or_of_part(
            "meta_batch_size", meta_batch_size, "policy.meta_batch_size", policy.meta_batch_size)
        self.num_inner_grad_steps = check_int_at_least("num_inner_grad_steps", num_inner_grad_steps, 0)
        self.trainable_inner_step_size = check_bool("trainable_inner_step_size", trainable_inner_step_size)
        if self.trainable_inner_step_size:  # which stay positive
            check_positive("inner_lr", inner_lr)
            self._check_adapts("trainable_inner_step_size")
        self.first_order = check_bool("first_order", first_order)
        self.name = name
        self._diagnostics: Any = None  # `AdaptationDiagnostics`, once they are built

    def _check_adapts(self, argument: str) -> None:
        if self.num_inner_grad_steps == 0:
            raise ValueError(f"{argument}: expected False with num_inner_grad_steps=0, got True")

    def build_graph(self) -> None:
        """Builds the algorithm's graph: the inner step for sampling, and the meta-objective; called once.

        Pseudocode::

            theta_0 = theta, copied for each task
            for step in num_inner_grad_steps:
                theta_{step+1} = theta_step - step_size * gradient of the inner loss, for all tasks at once
            meta-objective from theta_{num_inner_grad_steps} (and the chain that led there)
        """
        with tf.name_scope(self.name):
            self._build_step_sizes()
            self._build_adaptation()
            self._chain = self._build_chain()
            self.build_meta_objective(self._chain)

    def _build_step_sizes(self) -> None:
        params = self.policy.get_params()
        log_step_sizes = OrderedDict()
        if self.trainable_inner_step_size:
            for name, variable in params.items():
                value = np.full(variable.shape.as_list(), np.log(self.inner_lr), np.float32)
                log_step_sizes[name] = tf.Variable(value, use_resource=True, name="log_step_size")
            self._step_sizes = OrderedDict((name, tf.exp(v)) for name, v in log_step_sizes.items())
        else:
            self._step_sizes = OrderedDict((name, tf.constant(self.inner_lr)) for name in params)
        self._log_step_sizes = VariableSet(log_step_sizes)
        self.meta_parameters = MetaParameters(self.policy, log_step_sizes)

    def _build_adaptation(self) -> None:
        """Builds one inner step from parameters that are fed: what `adapt` runs between two samplings."""
        with tf.name_scope("adaptation"):
            self._adaptation_inputs = self._make_inputs("adaptation", is_last=False)
            params = self.policy.policies_params_phs
            step = self._build_step(self._adaptation_inputs, params)
            self._adapted_params = adaptation.gradient_step(params, self.build_inner_loss(step), self._step_sizes)
            adapted = self.policy.distribution_info_sym(step.inputs.observations, self._adapted_params)
            kl = self._ask_distribution("kl_sym", step.dist_info, adapted, required=False)
            self._adaptation_kl = [] if kl is None else [losses.weighted_mean(kl, step.inputs.weights)]

    def _build_chain(self) -> List[AdaptationStep]:
        """Builds the `K` inner steps from the variables, and what the policies do after each."""
        chain: List[AdaptationStep] = []
        for index in range(self.num_inner_grad_steps + 1):
            is_last = index == self.num_inner_grad_steps
            with tf.name_scope(f"step{index}"):
                inputs = self._make_inputs(f"step{index}", is_last)
                if index == 0:
                    params = adaptation.stack_params(self.policy.get_params(), tf.shape(inputs.observations)[0])
                chain.append(self._build_step(inputs, params))
                if not is_last:
                    loss = self.build_inner_loss(chain[-1])
                    params = adaptation.gradient_step(params, loss, self._step_sizes, self.first_order)
        return chain

    def _build_step(self, inputs: StepInputs, params: Mapping[str, tf.Tensor]) -> AdaptationStep:
        dist_info = self.policy.distribution_info_sym(inputs.observations, params)
        if not set(inputs.dist_info_old) <= set(dist_info):
            raise ValueError(f"policy: expected distribution_info_sym to give {sorted(inputs.dist_info_old)}, of which "
                             f"its distribution consists, got {sorted(dist_info)}")
        log_prob = self._ask_distribution("log_likelihood_sym", inputs.actions, dist_info)
        old_log_prob = self._ask_distribution("log_likelihood_sym", inputs.actions, inputs.dist_info_old)
        return AdaptationStep(inputs, params, dist_info, log_prob, old_log_prob)

    def _ask_distribution(self, method: str, *args: Any, required: bool = True) -> tf.Tensor:
        """Builds something by a method of the policy's distribution; says who does without it if that is `required`."""
        distribution = self.policy.distribution
        try:
            if not hasattr(distribution, method):
                raise NotImplementedError
            return getattr(distribution, method)(*args)
        except NotImplementedError as error:
            if not required:
                return None
            without = "; VPGMAML and DICEMAML do without" if method == "kl_sym" else ""
            raise TypeError(f"policy: {type(self).__name__} needs a distribution with {method}, which "
                            f"{type(distribution).__name__} does not implement{without}") from error

    def _build_mean_kl(self, step: AdaptationStep) -> tf.Tensor:
        """Builds the divergence `KL(pi_old || pi_theta_k)` of one step, nats; mean over samples, then over tasks."""
        kl = self._ask_distribution("kl_sym", step.inputs.dist_info_old, step.dist_info)
        return tf.reduce_mean(losses.weighted_mean(kl, step.inputs.weights))

    def build_inner_loss(self, step: AdaptationStep) -> tf.Tensor:
        """Builds the loss that an inner step descends, `[M]`; by default the likelihood-ratio loss."""
        weights, advantages = step.inputs.weights, step.inputs.advantages
        return losses.likelihood_ratio_loss(step.log_prob, step.old_log_prob, advantages, weights).loss

    @abc.abstractmethod
    def build_meta_objective(self, chain: Sequence[AdaptationStep]) -> None:
        """Builds the meta-objective and hands it to `self.optimizer`.

        Args:
            chain: the `K` inner steps, and last the adapted policies with the samples drawn from them.
        """

    max_path_length: Optional[int] = None
    """Most steps of a path, for DiCE; None for as many as the longest path has."""

    def _sample_keys(self, is_last: bool) -> Tuple[str, ...]:
        """Names the sample entries `[N]` that the losses need, of an inner step or of the adapted policies."""
        return ("advantages",)

    def _needs_paths(self, is_last: bool) -> bool:
        """Whether the losses need to know where paths start, in an inner step or in the adapted policies' samples."""
        return False

    def _make_inputs(self, name: str, is_last: bool) -> StepInputs:
        return make_step_inputs(name, self.policy.obs_dim, self.policy.distribution, self._sample_keys(is_last),
                                self._needs_paths(is_last), self.max_path_length)

    def _check_form(self, samples: Sequence[TaskSamples]) -> None:
        """Raises `ValueError` unless the algorithm can work on samples of this form."""

    def input_values(self, inputs: StepInputs, samples: Sequence[TaskSamples]) -> Dict[str, np.ndarray]:
        """Returns what the placeholders of one step are fed, by their names."""
        try:
            if len(samples) != self.meta_batch_size:
                raise ValueError(f"expected samples of {self.meta_batch_size} tasks, got {len(samples)}")
            self._check_form(samples)
            return inputs.values(samples)
        except ValueError as error:
            raise ValueError(f"{inputs.name}: {error}") from None

    def make_vars(self, prefix: str = "") -> Tuple[List[Any], ...]:
        """Creates placeholders for one step's samples, one per task, which `ops.ragged.stack_placeholders` stacks.

        Args:
            prefix: prepended to the name of each placeholder.

        Returns:
            `(observations, actions, advantages, agent_infos)`: lists of length `M` of float32 placeholders `[N, O]`,
            `[N, A]` (discrete actions `[N]`), `[N]`, and of dicts of placeholders for the distribution the actions were
            sampled from.
        """
        observations, actions, advantages, agent_infos = [], [], [], []
        action_shape = self.policy.distribution.action_shape
        for task in range(self.meta_batch_size):
            with tf.name_scope(f"{prefix}task{task}/"):
                observations.append(tf.placeholder(tf.float32, [None, self.policy.obs_dim], name="obs"))
                actions.append(tf.placeholder(tf.float32, [None, *action_shape], name="action"))
                advantages.append(tf.placeholder(tf.float32, [None], name="advantage"))
                agent_infos.append(self.policy.distribution_info_keys(observations[-1], {}))
        return observations, actions, advantages, agent_infos

    def adapt(self, samples: Sequence[TaskSamples], step_size: Optional[float] = None) -> None:
        """Adapts the policy to each task by one inner step, from where each task's policy stands.

        Afterwards the policy acts with the adapted parameters; `policy.switch_to_pre_update` undoes this. The attribute
        `adaptation_kl` is the divergence `KL(before || after)` on each task's samples, None without a `kl_sym`.

        Args:
            samples: the processed samples of each task, drawn with its present policy.
            step_size: replaces the algorithm's step sizes, for all parameters, in this step; default None.

        Raises:
            ValueError: the number of tasks is wrong, a task lacks an entry or has no samples, or `step_size` is not
                above 0.
            FloatingPointError: a parameter would not be finite; names task and parameter. The policy is as it was.
        """
        self._adapt(samples, *([] if step_size is None else [step_size]))

    def _adapt(self, samples: Sequence[TaskSamples], step_size: Optional[float] = None) -> None:
        inputs = self._adaptation_inputs
        feed = {inputs.placeholders[name]: value for name, value in self.input_values(inputs, samples).items()}
        if step_size is not None:
            step_size = check_positive("step_size", step_size)
            feed.update({sizes: np.full(sizes.shape, step_size) for sizes in self._step_sizes.values()})
        feed.update(self.policy.policies_params_feed_dict)
        blocks = TaskBlocks([*inputs.by_task.values(), *self.policy.policies_params_phs.values()],
                            self.policy.get_params().values())
        fetches = [*self._adapted_params.values(), *self._adaptation_kl]
        values = blocks.concatenated(self._log_step_sizes.session(), fetches, feed)
        adapted = OrderedDict(zip(self._adapted_params, values))
        for name, stacked in adapted.items():
            finite = np.isfinite(stacked).reshape(self.meta_batch_size, -1).all(axis=1)
            if not finite.all():
                raise FloatingPointError(
                    f"adaptation: {name} of task {np.argmin(finite)} would not be finite, so the step was refused and "
                    "the policy is as it was; its samples hold a number that is not finite, or the step is too long")
        self.policy.set_stacked_param_values(adapted)
        self.adaptation_kl = values[-1] if self._adaptation_kl else None

    def get_step_sizes(self) -> "OrderedDict[str, np.ndarray]":
        """Returns the inner step sizes by name of the policy's parameter: scalars, or of the parameter's shape."""
        session = self._log_step_sizes.session()
        return OrderedDict(zip(self._step_sizes, session.run(list(self._step_sizes.values()))))

    def meta_input_values(self, all_samples_data: Sequence[Sequence[TaskSamples]]) -> Dict[str, np.ndarray]:
        """Returns the values of all placeholders of the meta-objective by input name."""
        expected = self.num_inner_grad_steps + 1
        if len(all_samples_data) != expected:
            raise ValueError(f"all_samples_data: expected the samples of {expected} steps (num_inner_grad_steps + 1), "
                             f"got {len(all_samples_data)}")
        values: Dict[str, np.ndarray] = {}
        for step, samples in zip(self._chain, all_samples_data, strict=True):
            values.update(self.input_values(step.inputs, samples))
        return values

    @staticmethod
    def _meta_placeholders(chain: Sequence[AdaptationStep]) -> Dict[str, tf.Tensor]:
        return {name: ph for step in chain for name, ph in step.inputs.placeholders.items()}

    @staticmethod
    def task_inputs(chain: Sequence[AdaptationStep]) -> List[str]:
        """Names the placeholders of a chain whose axes are tasks and samples, for `optimizer.build_graph`."""
        return [name for step in chain for name in step.inputs.by_task]

    @staticmethod
    def _last_step_sample_axes(chain: Sequence[AdaptationStep]) -> Dict[str, int]:
        """Names what minibatches split: samples of the adapted policies, which those before adaptation would change."""
        return {name: 1 for name in chain[-1].inputs.by_task}

    def optimize_policy(self, all_samples_data: Sequence[Sequence[TaskSamples]], log: bool = True) -> None:
        """Takes one meta-update.

        Args:
            all_samples_data: `[K + 1][M]` processed samples: of each inner step, and last of the adapted policies.
            log: whether to log its figures, see the algorithm.

        Raises:
            ValueError: the number of steps or tasks is wrong, or a task lacks an entry or has no samples.
            FloatingPointError: the loss, its gradient or another quantity of the step is not finite; the parameters are
                as they were.
        """
        figures = self._update(self.meta_input_values(all_samples_data))
        if log:
            logger.logkvs(figures)

    def _update(self, values: Mapping[str, np.ndarray]) -> Dict[str, float]:
        """Takes one meta-update on the values of all placeholders; returns what to log of it."""
        return {"LossBefore": self.optimizer.optimize(values)}

    def build_diagnostics(self) -> None:
        """Builds what `compute_diagnostics` needs, before the graph is finalized, say; called again, does nothing.

        Raises:
            ValueError: there is a single task, so that there are no halves to compare, or no inner step.
        """
        if self._diagnostics is not None:
            return
        self._check_adapts("diagnostics")
        if self.meta_batch_size == 1:
            raise ValueError("diagnostics: expected a meta_batch_size of at least 2, since they compare the "
                             "meta-gradients of two halves of the tasks, got 1")
        objective = self.optimizer.objective
        with objective.graph.as_default(), tf.name_scope(f"{self.name}/diagnostics"):
            self._diagnostics = diagnostics.build_adaptation_diagnostics(
                self._chain, self.build_inner_loss(self._chain[0]), objective)

    def compute_diagnostics(self, all_samples_data: Sequence[Sequence[TaskSamples]]) -> Dict[str, float]:
        """Computes how noisy the meta-gradient is, and what the inner steps do to it, at the present parameters.

        Args:
            all_samples_data: as for `optimize_policy`, before it is called.

        Returns:
            Dict of `MetaGradNorm`, `MetaGradVariance`, `MetaGradRelativeStd` and `MetaGradHalvesCosine`, see
            `diagnostics.compare_halves` (of an odd number of tasks, the second half is larger); `PrePostGradCosine`,
            the cosine of the angle between the gradients of a task's inner loss by the parameters before adaptation
            and of its outer loss by the adapted ones, mean over the tasks in which neither is zero.
        """
        self.build_diagnostics()
        values, by_task = self.meta_input_values(all_samples_data), self.task_inputs(self._chain)
        size = self.meta_batch_size // 2
        first, second = (self.optimizer.gradient({name: value[tasks] if name in by_task else value
                                                  for name, value in values.items()})
                         for tasks in (slice(None, size), slice(size, None)))
        pre_gradients, post_gradients = self.optimizer.evaluate_tasks(self._diagnostics, values)
        return {
            **diagnostics.compare_halves(first, second, size, self.meta_batch_size - size),
            "PrePostGradCosine": diagnostics.mean_cosine(pre_gradients, post_gradients),
        }

    def get_state(self) -> Dict[str, Any]:
        """Returns everything beside the policy that the next meta-update depends on, for a snapshot."""
        return {"log_step_sizes": self._log_step_sizes.read(), "optimizer": self.optimizer.get_state()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restores what `get_state` returned."""
        self._log_step_sizes.write(state["log_step_sizes"], "log_step_sizes")
        self.optimizer.set_state(state["optimizer"])

    def __getstate__(self) -> Dict[str, Any]:
        """Keeps constructor arguments and state."""
        return {"arguments": super().__getstate__(), "state": self.get_state()}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        """Builds the algorithm in the default graph and restores its state."""
        super().__setstate__(state["arguments"])
        self.set_state(state["state"])
