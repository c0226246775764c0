"""Base class of optimizers, which feeds inputs, forms minibatches and rolls back failed steps; learning-rate schedules.

Values are computed in blocks of a few tasks, several blocks in parallel. The layer outputs for a few tasks fit in the
processor cache; the layer outputs for all tasks do not. On a CPU, their memory does not grow with the number of tasks.
"""
import abc
import contextlib
import math
from typing import Any, Callable, Collection, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from meta_policy_search.sessions import VariableSet
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_arguments, check_non_negative, check_positive, check_positive_int
from meta_policy_search.utils.serializable import Configurable, Serializable
from meta_policy_search.utils.threads import available_cores, divide, run_in_threads

InputValues = Mapping[str, np.ndarray]
Feed = Mapping[tf.Tensor, np.ndarray]

NOT_FINITE = "is not finite; the step was rejected and the parameters are unchanged"

LAYER_BYTES = 3.5e5
"""Approximate size, in bytes, of the outputs of one layer for one block of tasks; a block has at least one task. In
smaller blocks, starting an operation takes as long as computing it. In larger blocks, a matrix product over several
tasks is slower than over one task."""


Schedule = Union[float, Mapping[str, float], Callable[[int], float]]
"""A number, the arguments of a `LinearSchedule` by name, or a function of the index of the meta-update (starting at 0).
"""


class LinearSchedule(Configurable):
    """Linear interpolation from `start` to `end` over the first meta-updates.

    Args:
        start (float): value at meta-update 0; at least 0.
        end (float): value from meta-update `num_updates` on; at least 0.
        num_updates (int): number of meta-updates until `end` is reached; at least 1.

    Raises:
        TypeError, ValueError: an argument has the wrong type or is out of range.
    """

    def __init__(self, start: float, end: float, num_updates: int) -> None:
        self.start, self.end = check_non_negative("start", start), check_non_negative("end", end)
        self.num_updates = check_positive_int("num_updates", num_updates)

    def __call__(self, update: int) -> float:
        """Returns the value at meta-update `update` (starting at 0)."""
        return self.start + (self.end - self.start) * min(update / self.num_updates, 1.0)


def check_schedule(argument: str, value: Schedule) -> Union[float, Callable[[int], float]]:
    """Returns a number above 0 as `float`, the `LinearSchedule` with the arguments of a mapping, or a function.

    Raises:
        TypeError, ValueError: `value` is none of these; the message calls it `argument`.
    """
    if isinstance(value, Mapping):
        names = ["start", "end", "num_updates"]
        if sorted(value) != sorted(names):
            raise ValueError(f"{argument}: expected the entries {', '.join(names)} of a linear schedule, got "
                             f"{', '.join(map(str, value)) or 'none'}")
        try:
            return LinearSchedule(**value)  # type: ignore[arg-type]  # checked by the constructor
        except (TypeError, ValueError) as error:
            raise type(error)(f"{argument}: {error}") from None
    if isinstance(value, str):
        raise TypeError(f"{argument}: expected a number above 0, a linear schedule (a dict with start, end and "
                        f"num_updates; on the command line JSON) or a function, got {value!r}")
    if not callable(value):
        return check_positive(argument, value)
    check_arguments(argument, value, "(index of the meta-update)", 0)
    return value


def run_in_blocks(session: tf.Session, fetches: Sequence[tf.Tensor], feed: Feed, task_inputs: Collection[tf.Tensor],
                  variables: Collection[tf.Variable], tasks_per_block: Optional[int] = None
                  ) -> Tuple[List[int], List[List[np.ndarray]]]:
    """Computes tensors in blocks of a few tasks, several blocks in parallel.

    The blocks do not depend on the number of cores, and results are in task order. Results are
    therefore identical for any number of cores. On a GPU, all tasks form one block.

    Args:
        session: the session.
        fetches: the tensors.
        feed: placeholder to value.
        task_inputs: placeholders whose first axis is the task axis. In placeholders of samples, the second axis is the
            sample axis. If empty, everything is computed in one call.
        variables: the network parameters; the largest axis determines the memory per sample.
        tasks_per_block: number of tasks per block. Default: None, as many as `LAYER_BYTES` allows.

    Returns:
        The number of tasks in each block, and the values of `fetches` for each block.
    """
    if not task_inputs:
        return [1], [session.run(fetches, feed)]
    values = [feed[ph] for ph in task_inputs]
    num_tasks = len(values[0])
    if any(device.device_type == "GPU" for device in session.list_devices()):
        num_blocks = 1.0  # a GPU is fastest with one large block
    elif tasks_per_block is not None:
        num_blocks = num_tasks / tasks_per_block
    else:
        width = max((size for v in variables for size in v.shape.as_list()), default=1)
        num_blocks = num_tasks * 4 * width * max(
            (np.shape(value)[1] for value in values if np.ndim(value) > 1), default=1) / LAYER_BYTES
    blocks = divide(range(num_tasks), max(1, math.ceil(num_blocks)))
    results: List[List[np.ndarray]] = [[] for _ in blocks]
    waiting = iter(range(len(blocks)))

    def work() -> None:
        for i in waiting:
            tasks = slice(blocks[i].start, blocks[i].stop)
            results[i] = session.run(fetches, {**feed, **{ph: feed[ph][tasks] for ph in task_inputs}})

    def stop() -> None:
        for _ in waiting:
            pass

    run_in_threads([work] * min(available_cores(), len(blocks)), stop, "block")
    return [len(block) for block in blocks], results


def concatenate_blocks(*args: Any) -> List[np.ndarray]:
    """Computes tensors whose first axis is the task axis; arguments as for `run_in_blocks`."""
    return [np.concatenate(values) for values in zip(*run_in_blocks(*args)[1])]


class Optimizer(Serializable, abc.ABC):
    """Base class of optimizers, which minimize a loss by changing the variables of a target.

    Call `build_graph` once, then `optimize` once per set of input values. Every `input_val_dict` maps the names of all
    inputs to their values. The target is any object with a `get_params()` method, which returns the variables to
    optimize as a dict by name or as a list.

    Copies and pickles contain only the constructor arguments, so they have no graph.

    Attributes:
        step_stats (dict): values to log after the last `optimize` call, by column name.
        tasks_per_block (int or None): number of tasks per block. Default: None, as many as `LAYER_BYTES` allows.
    """

    step_stats: Mapping[str, float] = {}
    tasks_per_block: Optional[int] = None

    @property
    def learning_rate(self) -> Optional[float]:
        """Step size of the next `optimize` call; None if the optimizer has no learning rate."""
        return None

    def build_graph(self, loss: tf.Tensor, target: Any, input_ph_dict: Mapping[str, tf.Tensor],
                    sample_axes: Optional[Mapping[str, int]] = None, task_inputs: Collection[str] = ()) -> None:
        """Sets the objective and the variables to optimize.

        Args:
            loss: scalar tensor to minimize.
            target: object whose `get_params()` returns the variables to optimize.
            input_ph_dict: name to placeholder, for all inputs of the loss.
            sample_axes: name of an input to its sample axis, for all inputs that are split by samples, such as into
                minibatches. Default: None, the first axis of every input that is not a scalar.
            task_inputs: names of the inputs whose first axis is the task axis and whose second axis is the sample axis.
                The loss is then computed in blocks of tasks, so it must be a mean over tasks of terms that depend only
                on the samples of one task and on the other inputs. Default: none; the loss is computed in one call.

        Raises:
            ValueError: the loss is not a scalar, or `sample_axes` or `task_inputs` contains an unknown name.
        """
        if "_loss" in vars(self):
            raise ValueError("optimizer: already used by another algorithm; build a new one")
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
        self._task_inputs = [self._inputs[name] for name in task_inputs]

    @abc.abstractmethod
    def optimize(self, input_val_dict: InputValues) -> float:
        """Reduces the loss on one set of input values.

        Args:
            input_val_dict: name to value of every input.

        Returns:
            The loss before the first step.

        Raises:
            ValueError: an input is missing or unknown.
            FloatingPointError: the loss, its gradient or another quantity of the step is not finite. The variables and
                the optimizer state are unchanged.
        """

    def loss(self, input_val_dict: InputValues) -> float:
        """Computes the loss."""
        return self._compute_floats([self._loss], input_val_dict)[0]

    @abc.abstractmethod
    def gradient(self, input_val_dict: InputValues) -> np.ndarray:
        """Computes the gradient of the loss with respect to all variables as one vector, float64 `[D]`."""

    def evaluate_tasks(self, fetches: Sequence[tf.Tensor], input_val_dict: InputValues) -> List[np.ndarray]:
        """Computes tensors whose first axis is the task axis, in blocks of tasks."""
        return concatenate_blocks(*self._block_arguments(fetches, self._feed(input_val_dict)))

    def _block_arguments(self, fetches: Sequence[tf.Tensor], feed: Feed) -> Tuple[Any, ...]:
        return (self._variables.session(), fetches, feed, self._task_inputs, self._variables.variables.values(),
                self.tasks_per_block)

    def get_state(self) -> Dict[str, Any]:
        """Returns the state that the next step depends on, without the target's variables, for a snapshot."""
        return {"rng": self._rng.bit_generator.state}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restores the state that `get_state` returned."""
        self._rng.bit_generator.state = state["rng"]

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Restores variables and optimizer state if the body of the `with` block raises, also on Ctrl-C."""
        variables, state = self._variables.read(), self.get_state()
        try:
            yield
        except BaseException:
            self._variables.write(variables)
            self.set_state(state)
            raise

    def compute_means(self, fetches: Sequence[tf.Tensor], input_val_dict: InputValues,
                      extra: Optional[Mapping[tf.Tensor, np.ndarray]] = None) -> List[np.ndarray]:
        """Computes tensors that depend on the same inputs as the loss, such as the loss; returns float64 values.

        With `task_inputs`, they are computed in blocks of tasks.

        Args:
            fetches: the tensors; with `task_inputs`, means over tasks.
            input_val_dict: name to value of every input.
            extra: placeholder to value, for further placeholders. Default: None.
        """
        feed = {**self._feed(input_val_dict), **(extra or {})}
        sizes, results = run_in_blocks(*self._block_arguments(fetches, feed))
        weights = np.asarray(sizes) / sum(sizes)
        return [sum(weight * np.asarray(value, np.float64) for weight, value in zip(weights, values))
                for values in zip(*results)]

    def _compute_floats(self, fetches: Sequence[tf.Tensor], input_val_dict: InputValues) -> List[float]:
        """Computes scalar tensors; see `compute_means`."""
        return [float(value) for value in self.compute_means(fetches, input_val_dict)]

    def _check_finite(self, tensors: Mapping[str, tf.Tensor], values: Mapping[str, np.ndarray],
                      input_val_dict: InputValues) -> None:
        """Raises `FloatingPointError` if the value of a tensor, by description, is not finite; names the cause."""
        for quantity, value in values.items():
            if not np.isfinite(value).all():
                cause = first_non_finite(tensors[quantity], self._variables.session(), self._feed(input_val_dict))
                raise FloatingPointError(f"the {quantity} {NOT_FINITE}; the first tensor that is not finite: "
                                         f"{cause or tensors[quantity].name}")

    def _feed(self, input_val_dict: InputValues) -> Dict[tf.Tensor, np.ndarray]:
        if set(input_val_dict) != set(self._inputs):
            raise ValueError(f"input_val_dict: expected the names {sorted(self._inputs)}, got {sorted(input_val_dict)}")
        return {self._inputs[name]: value for name, value in input_val_dict.items()}

    def _num_samples(self, input_val_dict: InputValues) -> int:
        sizes = {name: np.shape(input_val_dict[name])[axis] for name, axis in self._sample_axes.items()}
        if len(set(sizes.values())) != 1:
            raise ValueError(f"input_val_dict: expected the same number of samples in every input, got {sizes}")
        return next(iter(sizes.values()))

    def _take(self, input_val_dict: InputValues, samples: np.ndarray) -> Dict[str, np.ndarray]:
        """Returns the inputs with the selected samples only; inputs without a sample axis are unchanged."""
        return {name: np.take(value, samples, axis=self._sample_axes[name]) if name in self._sample_axes else value
                for name, value in input_val_dict.items()}

    def _minibatches(self, input_val_dict: InputValues, num_minibatches: int) -> Iterator[Dict[str, np.ndarray]]:
        """Yields `num_minibatches` parts of the inputs, with shuffled samples."""
        if num_minibatches == 1:
            yield dict(input_val_dict)
            return
        num_samples = self._num_samples(input_val_dict)
        if num_minibatches > num_samples:
            raise ValueError(f"num_minibatches: expected at most the number of samples, {num_samples}, got "
                             f"{num_minibatches}")
        for part in np.array_split(self._rng.permutation(num_samples), num_minibatches):
            yield self._take(input_val_dict, np.sort(part))


def check_finite_params(params: Mapping[str, np.ndarray]) -> None:
    """Raises `FloatingPointError` if a parameter, by name, is not finite after an update."""
    for name, value in params.items():
        if not np.isfinite(value).all():
            raise FloatingPointError(f"the updated {name} {NOT_FINITE}; reduce the step size or scale the rewards")


def first_non_finite(tensor: tf.Tensor, session: tf.Session, feed: Mapping[tf.Tensor, np.ndarray]) -> Optional[str]:
    """Returns the name of the first non-finite tensor that `tensor` depends on, or None.

    Tensors are checked in the order in which the graph was built; tensors inside loops are skipped.
    """
    found, waiting = {tensor.op}, [tensor.op]
    while waiting:
        for source in waiting.pop().inputs:
            if source.op not in found:
                found.add(source.op)
                waiting.append(source.op)
    candidates = [out for op in found for out in op.outputs  # operations inside of a loop cannot be fetched
                  if out.dtype.is_floating and op._get_control_flow_context() is None]  # noqa: SLF001
    candidates.sort(key=lambda out: out.op._id)  # noqa: SLF001 - the order in which the graph was built
    for candidate, value in zip(candidates, session.run(candidates, feed)):
        if not np.isfinite(value).all():
            return candidate.name
    return None
