"""Values on their way to workers and back: pickled, with the arrays in them beside it, which Ray need not copy."""
import pickle
from typing import Any, List, NamedTuple

import cloudpickle
import numpy as np


class Packed(NamedTuple):
    """A pickled value."""

    data: bytes
    buffers: List[np.ndarray]  # uint8, the memory of the arrays in the value

    @property
    def num_bytes(self) -> int:
        """Size of the whole."""
        return len(self.data) + sum(buffer.nbytes for buffer in self.buffers)

    def unpack(self, copy: bool = False) -> Any:
        """Returns the value. Without `copy`, its arrays share memory with the buffers, and cannot be written to."""
        return pickle.loads(self.data, buffers=[buffer.copy() if copy else buffer for buffer in self.buffers])


def pack(value: Any) -> Packed:
    """Returns a value as `Packed`; the buffers share memory with its arrays."""
    buffers: List[pickle.PickleBuffer] = []
    data = cloudpickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return Packed(data, [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers])
