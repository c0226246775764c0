"""The interface of optimizers. They share feeding inputs, splitting samples and undoing a step that fails."""
import abc
import contextlib
from typing import Any, Collection, Dict, Iterator, List, Mapping, Optional, Sequence

import numpy as np

from meta_policy_search.optimizers.blocks import TaskBlocks
from meta_policy_search.sessions import VariableSet
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import seeding
from meta_policy_search.utils.serializable import Serializable

InputValues = Mapping[str, np.ndarray]


class Optimizer(Serializable, abc.ABC):
    """Minimizes a loss by changing the variables of a target.

    `build_graph` is called once; `optimize` then takes one set of input values at a time. Every `input_val_dict` maps
    the names of all inputs to their values. The target is any object with a method `get_params()`, which returns the
    variables to optimize, a dict by name or a list.

    Copies and pickles contain the constructor's arguments only, so they have no graph.

    Attributes:
        step_stats (dict): figures of the last `optimize`, by the names under which algorithms log them.
    """

    step_stats: Mapping[str, float] = {}

    @property
    def learning_rate(self) -> Optional[float]:
        """Step size of the next call of `optimize`; None if the optimizer has no learning rate."""
        return None

    @abc.abstractmethod
    def build_graph(self, loss: tf.Tensor, target: Any, input_ph_dict: Mapping[str, tf.Tensor],
                    sample_axes: Optional[Mapping[str, int]] = None, task_inputs: Collection[str] = ()) -> None:
        """Sets the objective and the variables to optimize.

        Args:
            loss: scalar, to minimize.
            target: object whose `get_params()` are optimized.
            input_ph_dict: name to placeholder, everything the loss depends on.
            sample_axes: which inputs are split by samples (into minibatches, for example), and along which of their
                axes; by default every input that is not a scalar, along its first axis.
            task_inputs: which inputs have the tasks as their first axis and samples as their second. The loss must be
                the mean over tasks of what depends on a task's own samples and on the other inputs; it is then computed
                for a block of tasks at a time. By default none: it is computed at once.
        """

    @abc.abstractmethod
    def optimize(self, input_val_dict: InputValues) -> float:
        """Carries out the optimization step.

        Returns:
            The loss before the step.

        Raises:
            ValueError: an input is missing or unknown.
            FloatingPointError: the loss, its gradient or another quantity of the step is not finite; the variables
                and the optimizer's state are as they were.
        """

    @property
    def objective(self) -> tf.Tensor:
        """The loss as a tensor."""
        return self._loss

    def loss(self, input_val_dict: InputValues) -> float:
        """Computes the loss."""
        return float(self.compute_means([self._loss], input_val_dict)[0])

    @abc.abstractmethod
    def gradient(self, input_val_dict: InputValues) -> np.ndarray:
        """Computes the gradient of the loss by all variables as one vector, float64 `[D]`."""

    def evaluate(self, fetches: Any, input_val_dict: InputValues) -> Any:
        """Computes tensors, in any form that `tf.Session.run` takes, that depend on the same inputs as the loss."""
        return self._variables.session().run(fetches, self._feed(input_val_dict))

    def evaluate_tasks(self, fetches: Sequence[tf.Tensor], input_val_dict: InputValues) -> List[np.ndarray]:
        """Computes tensors whose first axis is that of the tasks; the tasks of `task_inputs` a block at a time."""
        return self._blocks.concatenated(self._variables.session(), fetches, self._feed(input_val_dict))

    def get_state(self) -> Dict[str, Any]:
        """Returns everything beside the target's variables that the next step depends on, for a snapshot."""
        return {"rng": self._rng.bit_generator.state}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restores what `get_state` returned."""
        self._rng.bit_generator.state = state["rng"]

    def _set_problem(self, loss: tf.Tensor, target: Any, input_ph_dict: Mapping[str, tf.Tensor],
                     sample_axes: Optional[Mapping[str, int]], task_inputs: Collection[str]) -> None:
        if loss.shape.rank != 0:
            raise ValueError(f"loss: expected a scalar tensor, got shape {loss.shape}")
        self._rng = seeding.next_rng(seeding.Stream.OPTIMIZER)
        self._loss = loss
        self._inputs = dict(input_ph_dict)
        params = target.get_params()
        self._variables = VariableSet(params if isinstance(params, Mapping) else {v.name: v for v in params})
        if sample_axes is None:
            sample_axes = {name: 0 for name, ph in self._inputs.items() if ph.shape.rank != 0}
        for argument, names in (("sample_axes", sample_axes), ("task_inputs", task_inputs)):
            unknown = sorted(set(names) - set(self._inputs))
            if unknown:
                raise ValueError(f"{argument}: expected names in input_ph_dict {sorted(self._inputs)}, got {unknown}")
        self._sample_axes = dict(sample_axes)
        self._blocks = TaskBlocks([self._inputs[name] for name in task_inputs], self._variables.variables.values())

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Puts variables and state back if what is done within fails, also by Ctrl-C."""
        variables, state = self._variables.read(), self.get_state()
        try:
            yield
        except BaseException:
            self._variables.write(variables)
            self.set_state(state)
            raise

    def compute_means(self, fetches: Sequence[tf.Tensor], input_val_dict: InputValues,
                      extra: Optional[Mapping[tf.Tensor, np.ndarray]] = None) -> List[np.ndarray]:
        """Computes tensors that are, like the loss, means over the tasks of `task_inputs`; float64.

        Args:
            fetches: the tensors.
            input_val_dict: values of all inputs.
            extra: values of further placeholders.
        """
        feed = {**self._feed(input_val_dict), **(extra or {})}
        return self._blocks.mean(self._variables.session(), fetches, feed)

    def _feed(self, input_val_dict: InputValues) -> Dict[tf.Tensor, np.ndarray]:
        if set(input_val_dict) != set(self._inputs):
            raise ValueError(f"input_val_dict: expected the names {sorted(self._inputs)}, got {sorted(input_val_dict)}")
        return {self._inputs[name]: value for name, value in input_val_dict.items()}

    def _num_samples(self, input_val_dict: InputValues) -> int:
        sizes = {name: np.shape(input_val_dict[name])[axis] for name, axis in self._sample_axes.items()}
        if len(set(sizes.values())) != 1:
            raise ValueError(f"input_val_dict: expected equally many samples in every input, got {sizes}")
        return next(iter(sizes.values()))

    def _take(self, input_val_dict: InputValues, samples: np.ndarray) -> Dict[str, np.ndarray]:
        """Returns the inputs with only some of the samples; inputs that are not split stay whole."""
        return {name: np.take(value, samples, axis=self._sample_axes[name]) if name in self._sample_axes else value
                for name, value in input_val_dict.items()}

    def _minibatches(self, input_val_dict: InputValues, num_minibatches: int) -> Iterator[Dict[str, np.ndarray]]:
        """Yields the inputs in `num_minibatches` parts, the samples shuffled."""
        if num_minibatches == 1:
            yield dict(input_val_dict)
            return
        num_samples = self._num_samples(input_val_dict)
        if num_minibatches > num_samples:
            raise ValueError(f"num_minibatches: expected at most the {num_samples} samples, got {num_minibatches}")
        for part in np.array_split(self._rng.permutation(num_samples), num_minibatches):
            yield self._take(input_val_dict, np.sort(part))


def first_non_finite(tensor: tf.Tensor, session: tf.Session, feed: Mapping[tf.Tensor, np.ndarray]) -> Optional[str]:
    """Returns the name of the first tensor, in the order of computation, that is not finite; None if all are.

    What is looked at is all that `tensor` was computed from, with `feed`.
    """
    found, waiting = {tensor.op}, [tensor.op]
    while waiting:
        for source in waiting.pop().inputs:
            if source.op not in found:
                found.add(source.op)
                waiting.append(source.op)
    candidates = [out for op in found for out in op.outputs if out.dtype.is_floating]
    candidates.sort(key=lambda out: out.op._id)  # noqa: SLF001 - the order in which the graph was built
    for candidate, value in zip(candidates, session.run(candidates, feed)):
        if not np.isfinite(value).all():
            return candidate.name
    return None
