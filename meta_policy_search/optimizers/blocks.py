"""What is computed from the samples of many tasks, computed for a few tasks at a time.

The layers' values for all tasks' samples together fit in no cache. Those of a few tasks do, several blocks of tasks
can be computed at once, and memory does not grow with the number of tasks.
"""
import math
from typing import Collection, List, Mapping, Sequence, Tuple

import numpy as np

from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.threads import available_cores, divide, run_in_threads

Feed = Mapping[tf.Tensor, np.ndarray]

LAYER_BYTES = 3.5e5
"""About so many bytes one layer's values for the samples of a block take, or those of a single task if they take more.
With less, starting the operations takes as long as the work; with more, matrix products over several tasks are slower
than over one."""


class TaskBlocks:
    """Runs operations whose inputs are samples of tasks a block of tasks at a time, several blocks at once.

    Which tasks are a block depends on the number of their samples and the size of the layers alone, and results are put
    together in the order of the tasks. So they are the same for any number of cores.

    Args:
        task_inputs: placeholders whose first axis is that of the tasks, and whose second one, where they are samples,
            that of the samples. Without any, everything is computed at once.
        variables: the network's parameters; the widest decides how much memory a sample takes.
    """

    def __init__(self, task_inputs: Collection[tf.Tensor], variables: Collection[tf.Variable]) -> None:
        self._task_inputs = list(task_inputs)
        self._width = max((size for v in variables for size in v.shape.as_list()), default=1)

    def mean(self, session: tf.Session, fetches: Sequence[tf.Tensor], feed: Feed) -> List[np.ndarray]:
        """Computes tensors that are means over the tasks; float64."""
        sizes, results = self._run(session, fetches, feed)
        weights = np.asarray(sizes) / sum(sizes)
        return [sum(weight * np.asarray(value, np.float64) for weight, value in zip(weights, values))
                for values in zip(*results)]

    def concatenated(self, session: tf.Session, fetches: Sequence[tf.Tensor], feed: Feed) -> List[np.ndarray]:
        """Computes tensors whose first axis is that of the tasks."""
        return [np.concatenate(values) for values in zip(*self._run(session, fetches, feed)[1])]

    def _run(self, session: tf.Session, fetches: Sequence[tf.Tensor], feed: Feed
             ) -> Tuple[List[int], List[List[np.ndarray]]]:
        """Returns the number of tasks in each block, and the values of `fetches` for it."""
        if not self._task_inputs:
            return [1], [session.run(fetches, feed)]
        blocks = self._blocks(session, feed)
        results: List[List[np.ndarray]] = [[] for _ in blocks]
        waiting = iter(range(len(blocks)))

        def work() -> None:
            for i in waiting:
                tasks = slice(blocks[i].start, blocks[i].stop)
                results[i] = session.run(fetches, {**feed, **{ph: feed[ph][tasks] for ph in self._task_inputs}})

        def stop() -> None:
            for _ in waiting:
                pass

        run_in_threads([work] * min(available_cores(), len(blocks)), stop, "block")
        return [len(block) for block in blocks], results

    def _blocks(self, session: tf.Session, feed: Feed) -> List[range]:
        values = [feed[ph] for ph in self._task_inputs]
        num_tasks = len(values[0])
        if any(device.device_type == "GPU" for device in session.list_devices()):
            return [range(num_tasks)]  # which works best on much at a time
        bytes_per_task = 4 * self._width * max(np.shape(value)[1] for value in values)
        return divide(range(num_tasks), max(1, math.ceil(num_tasks * bytes_per_task / LAYER_BYTES)))
